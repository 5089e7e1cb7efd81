"""Requests to Anthropic's API, and retries with smaller ones, with the real client and a strict stub."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_window import ArgumentError, ContextWindow, ContextWindowManager, PromptTooLongError, Session
from context_window.integrations.anthropic import acreate, create, cut_short
from context_window.requests.payload import MIN_ANSWER
from session.providers import validate_anthropic
from tests.support.counting import Letters
from tests.support.lazy import LazyModule
from tests.support.managing import make_manager, session_of
from tests.support.stubs import AnthropicStub, Call, Say, in_order
from tests.support.stubs.clients import anthropic_client
from tests.support.stubs.server import Body, Refusal

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

MODEL = "claude-opus-5"
SMALL = "claude-sonnet-4-5"
"""A model with a window of 200,000 tokens and an output limit of 64,000."""
TOOL = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def look_up(city: str, days: int = 3) -> str:
    """The weather of a city."""
    return f"{city}: {days} days of sun"


class NarrowWindow(AnthropicStub):
    """A stub with a window of this many letters in messages; `says` makes the message of its refusal."""

    def __init__(self, window: int, says: Callable[[int, int], Refusal]) -> None:
        super().__init__(in_order([Say("Here.")]))
        self.window, self.says = window, says

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        if (size := letters(body)) > self.window:
            raise self.says(size, self.window)
        return super().serve(path, headers, body)


def letters(request: Mapping[str, Any]) -> int:
    """Return the count of `Letters` for the texts and calls of a request."""
    size = len(str(request.get("system", "")))
    for message in request["messages"]:
        for block in message["content"]:
            size += len(json.dumps(block))
    return size


def prompt_too_long(size: int, window: int) -> Refusal:
    return Refusal(f"prompt is too long: {size} tokens > {window} maximum")


def prompt_and_answer_too_long(size: int, window: int) -> Refusal:
    words = f"{size} + 1000 > {window + 1000}, decrease input length or `max_tokens` and try again"
    return Refusal(f"input length and `max_tokens` exceed context limit: {words}")


def without_figures(size: int, window: int) -> Refusal:
    return Refusal("prompt is too long")


def too_many_bytes(size: int, window: int) -> Refusal:
    return Refusal("Request exceeds the maximum size", status=413, kind="request_too_large")


@contextmanager
def client_of(stub: AnthropicStub) -> Iterator[anthropic.Anthropic]:
    with stub, anthropic_client(stub) as client:
        yield client


def with_question(session: Session) -> Session:
    session.add_message("user", "And now?", "last", 0.0)
    return session


# Requests


def test_the_api_accepts_the_request() -> None:
    session = with_question(session_of(12))
    with client_of(AnthropicStub(in_order([Call("read", {"path": "a"})]))) as client:
        request = make_manager(2_000).anthropic_request(session, model=MODEL, max_tokens=1_000, tools=[TOOL], stop_sequences=["END"])
        answer = client.messages.create(**request)
    assert answer.stop_reason == "tool_use"
    assert validate_anthropic(request) == []
    assert request["stop_sequences"] == ["END"]


def test_the_messages_are_those_of_the_view() -> None:
    session, window_manager = with_question(session_of(12)), make_manager(1_500)
    request = window_manager.anthropic_request(session, model=MODEL, max_tokens=1_000)
    view = window_manager.process_session(session)
    messages, system = view.to_anthropic_messages(caching=True)
    assert view.items != session.items
    assert (request["messages"], request["system"]) == (messages, system)
    assert "tools" not in request


def test_the_async_method_returns_the_same_request() -> None:
    session = with_question(session_of(12))
    asked_for: dict[str, Any] = {"model": MODEL, "max_tokens": 1_000, "tools": [look_up]}
    assert asyncio.run(make_manager(1_500).aanthropic_request(session, **asked_for)) == make_manager(1_500).anthropic_request(
        session, **asked_for
    )


def test_functions_and_other_providers_definitions_become_anthropics() -> None:
    chat = {"type": "function", "function": {"name": "search", "description": "Finds.", "parameters": {"type": "object", "properties": {}}}}
    request = make_manager().anthropic_request(with_question(Session()), model=MODEL, max_tokens=10, tools=[look_up, chat])
    assert [(tool["name"], tool["description"]) for tool in request["tools"]] == [
        ("look_up", "The weather of a city."),
        ("search", "Finds."),
    ]
    assert request["tools"][0]["input_schema"]["required"] == ["city"]


def test_tools_of_the_request_count_against_the_budget() -> None:
    session = with_question(session_of(12))
    without, with_tools, knows_tools = make_manager(2_500), make_manager(2_500), make_manager(2_500)
    without.anthropic_request(session, model=MODEL, max_tokens=10)
    with_tools.anthropic_request(session, model=MODEL, max_tokens=10, tools=[TOOL])
    knows_tools = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=2_500), tools=[TOOL])
    knows_tools.process_session(session)
    assert with_tools.get_token_usage() == knows_tools.get_token_usage()
    assert with_tools.get_token_usage()["overhead"] > without.get_token_usage()["overhead"]


def test_a_request_without_tools_keeps_earlier_decisions() -> None:
    session, window_manager = with_question(session_of(12)), make_manager(2_000)
    before = window_manager.anthropic_request(session, model=MODEL, max_tokens=10, tools=[TOOL])["messages"]
    assert window_manager.anthropic_request(session, model=MODEL, max_tokens=10)["messages"] == before


# max_tokens


@pytest.mark.parametrize(
    ("model", "wanted", "expected"),
    [
        (SMALL, 1_000, 1_000),
        (SMALL, 500_000, 64_000),  # its output limit
        ("claude-3-haiku-20240307", 8_000, 4_096),
        ("a-model-of-tomorrow", 500_000, 500_000),  # an unknown model: the API decides
    ],
)
def test_max_tokens_is_at_most_the_models_output_limit(model: str, wanted: int, expected: int) -> None:
    assert make_manager().anthropic_request(with_question(Session()), model=model, max_tokens=wanted)["max_tokens"] == expected


def test_max_tokens_is_at_most_the_rest_of_the_window() -> None:
    session = Session()
    session.add_message("user", "x" * 150_000, "u", 0.0)
    window_manager = ContextWindowManager(SMALL, Letters(), context_window=ContextWindow(max_tokens=190_000))
    request = window_manager.anthropic_request(session, model=SMALL, max_tokens=64_000)
    used, doubt = window_manager.get_token_usage()["total"], window_manager.analyze_session(session)["expected_error"]
    assert request["max_tokens"] == 200_000 - used - -int(-used * doubt // 1)


def test_a_full_window_leaves_room_for_a_short_answer() -> None:
    session = Session()
    session.add_message("user", "x" * 199_999, "u", 0.0)
    window_manager = ContextWindowManager(SMALL, Letters(), context_window=ContextWindow(max_tokens=200_500))
    assert window_manager.anthropic_request(session, model=SMALL, max_tokens=64_000)["max_tokens"] == MIN_ANSWER
    assert window_manager.anthropic_request(session, model=SMALL, max_tokens=200)["max_tokens"] == 200


def test_thinking_that_leaves_nothing_for_the_answer_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"thinking\.budget_tokens=70000.*64,000 tokens"):
        make_manager().anthropic_request(
            with_question(Session()), model=SMALL, max_tokens=90_000, thinking={"type": "enabled", "budget_tokens": 70_000}
        )


# Cache marks


def marks(request: Mapping[str, Any]) -> list[Any]:
    """Return all cache marks in the order of the prompt, the request's own mark last."""
    blocks = [*request.get("tools", []), *request.get("system", [])]
    blocks += [block for message in request["messages"] for block in message["content"]]
    return [block["cache_control"] for block in [*blocks, request] if "cache_control" in block]


@given(
    turns=st.integers(1, 12),
    budget=st.integers(400, 4_000),
    marked=st.integers(0, 3),
    own_mark=st.sampled_from([None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]),
    goes_on=st.booleans(),
)
@example(turns=2, budget=4_000, marked=4, own_mark=None, goes_on=False)
def test_there_are_at_most_four_cache_marks(turns: int, budget: int, marked: int, own_mark: dict[str, str] | None, goes_on: bool) -> None:
    session, window_manager = with_question(session_of(turns)), make_manager(budget)
    if goes_on:
        session = with_another_turn(window_manager.trim_session(session).copy())
    kind = own_mark or {"type": "ephemeral"}
    tools = [{**TOOL, "name": f"t{number}", **({"cache_control": kind} if number < marked else {})} for number in range(4)]
    fields = {} if own_mark is None else {"cache_control": own_mark}
    request = window_manager.anthropic_request(session, model=MODEL, max_tokens=10, tools=tools, **fields)
    marks_in_request = marks(request)
    assert len(marks_in_request) <= 4
    assert all(mark == kind for mark in marks_in_request)
    assert sum("cache_control" in tool for tool in request["tools"]) == marked
    assert validate_anthropic(request) == []


def test_too_many_marks_of_the_caller_are_an_error() -> None:
    tools = [{**TOOL, "name": f"t{number}", "cache_control": {"type": "ephemeral"}} for number in range(4)]
    with pytest.raises(ArgumentError, match=r"cache_control=5: a request may have 4"):
        make_manager().anthropic_request(
            with_question(Session()), model=MODEL, max_tokens=10, tools=tools, cache_control={"type": "ephemeral"}
        )


def with_another_turn(session: Session) -> Session:
    session.add_message("assistant", "Well.", "a-more", 0.0)
    session.add_message("user", "And then?", "u-more", 0.0)
    return session


def test_the_end_of_the_messages_keeps_its_mark() -> None:
    tools = [{**TOOL, "name": f"t{number}", "cache_control": {"type": "ephemeral"}} for number in range(3)]
    request = make_manager(4_000).anthropic_request(with_question(session_of(3)), model=MODEL, max_tokens=10, tools=tools)
    assert "cache_control" in request["messages"][-1]["content"][-1]
    assert len(marks(request)) == 4


# Invalid arguments


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": ""}, "pass the model's name"),
        ({"model": 5}, "pass the model's name"),
        ({"max_tokens": 0}, "pass a whole number of 1 or more"),
        ({"max_tokens": "many"}, "pass a whole number of 1 or more"),
        ({"messages": []}, "the session holds the messages"),
        ({"system": "x"}, "add it to the session as its system message"),
        ({"tools": [3]}, "pass each tool as its definition"),
    ],
)
def test_an_invalid_argument_is_named_with_the_fix(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make_manager().anthropic_request(with_question(Session()), **{"model": MODEL, "max_tokens": 10, **fields})


def test_an_empty_session_is_an_error() -> None:
    session = Session()
    session.add_message("system", "Be brief.")
    with pytest.raises(ArgumentError, match="add a user message first"):
        make_manager().anthropic_request(session, model=MODEL, max_tokens=10)


# Prompts that are too long


@pytest.mark.parametrize("says", [prompt_too_long, prompt_and_answer_too_long, without_figures, too_many_bytes])
def test_a_prompt_that_is_too_long_is_retried_smaller(says: Callable[[int, int], Refusal]) -> None:
    session, window_manager, stub = with_question(session_of(20)), make_manager(100_000), NarrowWindow(6_000, says)
    with client_of(stub) as client:
        answer = create(window_manager, client, session, model=MODEL, max_tokens=1_000, tools=[TOOL])
    assert answer.content[0].type == "text"
    first, second = stub.requests
    assert letters(first) > 6_000 >= letters(second)
    assert validate_anthropic(second) == []
    assert len(session.items) == 1 + 20 * 4 + 1


def test_the_async_client_retries_too() -> None:
    async def ask(stub: AnthropicStub) -> Any:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
        async with anthropic.AsyncAnthropic(api_key="key", base_url=stub.url, max_retries=0, http_client=http) as client:
            return await acreate(make_manager(100_000), client, with_question(session_of(20)), model=MODEL, max_tokens=1_000)

    with NarrowWindow(6_000, prompt_too_long) as stub:
        assert asyncio.run(ask(stub)).stop_reason == "end_turn"
    assert len(stub.requests) == 2


def test_later_requests_of_the_session_stay_small() -> None:
    session, window_manager = with_question(session_of(20)), make_manager(100_000, compaction=False)
    stub = NarrowWindow(6_000, prompt_too_long)
    with client_of(stub) as client:
        create(window_manager, client, session, model=MODEL, max_tokens=1_000)
        session.add_message("assistant", "Here.", "said", 0.0)
        session.add_message("user", "Thanks. And then?", "then", 0.0)
        create(window_manager, client, session, model=MODEL, max_tokens=1_000)
    assert len(stub.requests) == 3
    bare = [without_marks(request["messages"]) for request in stub.requests]
    assert bare[2][: len(bare[1])] == bare[1]


def without_marks(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [
        {**message, "content": [{name: value for name, value in block.items() if name != "cache_control"} for block in message["content"]]}
        for message in messages
    ]


def test_other_sessions_keep_their_budget() -> None:
    window_manager, other_session = make_manager(100_000), with_question(session_of(20))
    with client_of(NarrowWindow(6_000, prompt_too_long)) as client:
        create(window_manager, client, with_question(session_of(20)), model=MODEL, max_tokens=1_000)
    assert window_manager.process_session(other_session).items == other_session.items
    assert window_manager.total_budget == 100_000


def test_a_prompt_that_is_too_long_twice_is_an_error_with_the_figures() -> None:
    stub = NarrowWindow(
        6_000, lambda size, window: Refusal(f"prompt is too long: {size} tokens > {size - 1} maximum")
    )  # misleading figures
    with client_of(stub) as client, pytest.raises(PromptTooLongError) as caught:
        create(make_manager(100_000), client, with_question(session_of(20)), model=MODEL, max_tokens=1_000)
    assert caught.value.tokens is not None
    assert caught.value.limit == caught.value.tokens - 1
    assert f"{caught.value.tokens} tokens > {caught.value.limit} maximum" in str(caught.value)
    assert isinstance(caught.value.__cause__, anthropic.BadRequestError)
    assert len(stub.requests) == 2


def test_a_prompt_that_cannot_become_smaller_is_sent_once() -> None:
    session = Session()
    session.add_message("user", "x" * 900, "u", 0.0)
    stub = NarrowWindow(100, prompt_too_long)
    with client_of(stub) as client, pytest.raises(PromptTooLongError):
        create(make_manager(clamp_messages=False), client, session, model=MODEL, max_tokens=1_000)
    assert len(stub.requests) == 1


def test_other_errors_of_the_client_are_raised_unchanged() -> None:
    stub = NarrowWindow(100, lambda size, window: Refusal("slow down: 900 tokens > 100 maximum", status=429, kind="rate_limit_error"))
    with client_of(stub) as client, pytest.raises(anthropic.RateLimitError):
        create(make_manager(100_000), client, with_question(session_of(20)), model=MODEL, max_tokens=1_000)
    assert len(stub.requests) == 1


class FullWindow(AnthropicStub):
    """A stub whose window has room for the first prompt and a few letters of the answer. `shrinks` reduces it with each request."""

    def __init__(self, room: int, *, shrinks: bool = False) -> None:
        super().__init__()
        self.room, self.shrinks = room, shrinks
        self.window = 0

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        answer = super().serve(path, headers, body)
        if self.shrinks or not self.window:
            self.window = letters(body) + self.room
        room = self.window - letters(body)
        if room < body["max_tokens"]:
            answer["stop_reason"] = "model_context_window_exceeded"
            answer["usage"] = {"input_tokens": letters(body), "output_tokens": room}
        return answer


def test_an_answer_cut_off_by_the_window_is_retried_with_more_room() -> None:
    stub = FullWindow(500)
    with client_of(stub) as client:
        answer = create(make_manager(100_000), client, with_question(session_of(20)), model=MODEL, max_tokens=2_000)
    assert answer.stop_reason == "end_turn"
    assert letters(stub.requests[1]) + 2_000 <= stub.window
    assert len(stub.requests) == 2


def test_an_answer_that_is_cut_off_again_is_returned() -> None:
    stub = FullWindow(500, shrinks=True)
    with client_of(stub) as client:
        answer = create(make_manager(100_000), client, with_question(session_of(20)), model=MODEL, max_tokens=2_000)
    assert answer.stop_reason == "model_context_window_exceeded"
    assert answer.usage.output_tokens == 500
    assert len(stub.requests) == 2


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": "many"}, {"input_tokens": -5, "output_tokens": None}])
def test_a_cut_off_answer_without_usage_has_no_figures(usage: object) -> None:
    refusal = cut_short({"stop_reason": "model_context_window_exceeded", "usage": usage}, 100)
    assert refusal is not None
    assert (refusal.tokens, refusal.limit) == (None, None)
    assert cut_short({"stop_reason": "end_turn", "usage": usage}, 100) is None


def test_streaming_is_an_error_that_names_the_alternative() -> None:
    with client_of(AnthropicStub()) as client, pytest.raises(ArgumentError, match=r"client\.messages\.stream"):
        create(make_manager(), client, with_question(Session()), model=MODEL, max_tokens=10, stream=True)


@pytest.mark.parametrize("tools", [5, None, '{"name": "f"}', {"name": "f"}], ids=["number", "none", "text", "mapping"])
def test_invalid_tools_of_create_are_an_error(tools: Any) -> None:
    with client_of(AnthropicStub()) as client, pytest.raises(ArgumentError, match="pass a list of tools"):
        create(make_manager(), client, with_question(Session()), model=MODEL, max_tokens=10, tools=tools)


@pytest.mark.parametrize(
    "make_client",
    [lambda: None, lambda: 5, lambda: "key", lambda: anthropic.Anthropic, object],
    ids=["none", "number", "text", "class", "object"],
)
def test_an_invalid_client_is_an_error(make_client: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match=r"client=.*pass an anthropic\.Anthropic\(\)"):
        create(make_manager(), make_client(), with_question(session_of(2)), model=MODEL, max_tokens=10)
    with pytest.raises(ArgumentError, match=r"client=.*AsyncAnthropic"):
        asyncio.run(acreate(make_manager(), make_client(), with_question(session_of(2)), model=MODEL, max_tokens=10))


@pytest.mark.parametrize("value", [None, 5, MODEL, ContextWindow()])
def test_an_invalid_manager_is_an_error(value: Any) -> None:
    with client_of(AnthropicStub()) as client, pytest.raises(ArgumentError, match=r"manager=.*pass a ContextWindowManager"):
        create(value, client, with_question(session_of(2)), model=MODEL, max_tokens=10)


def test_create_with_an_asynchronous_client_names_acreate() -> None:
    client = anthropic.AsyncAnthropic(api_key="none", base_url="http://127.0.0.1:9", max_retries=0)
    with pytest.raises(ArgumentError, match=r"await acreate"):
        create(make_manager(), client, with_question(session_of(2)), model=MODEL, max_tokens=10)  # type: ignore[arg-type]


def test_acreate_with_a_synchronous_client_names_create() -> None:
    with client_of(AnthropicStub()) as client, pytest.raises(ArgumentError, match=r"pass an anthropic.AsyncAnthropic\(\), or call create"):
        asyncio.run(acreate(make_manager(), client, with_question(session_of(2)), model=MODEL, max_tokens=10))  # type: ignore[arg-type]
