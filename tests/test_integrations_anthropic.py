"""Requests for Anthropic's API from a session, and what is done where the API finds one too long: the real client, a strict stub."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anthropic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_window import BudgetError, ContextWindow, ContextWindowManager, PromptTooLongError, Session
from context_window.integrations.anthropic import acreate, create, cut_short
from context_window.payload import LEAST_ANSWER
from session.providers import validate_anthropic
from tests.support.counting import Letters
from tests.support.managing import manager, session_of
from tests.support.stubs import AnthropicStub, Call, Say, in_order
from tests.support.stubs.clients import anthropic_client
from tests.support.stubs.server import Body, Refusal

MODEL = "claude-opus-5"
SMALL = "claude-sonnet-4-5"
"""A model with a window of 200,000 tokens and answers of up to 64,000."""
TOOL = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def look_up(city: str, days: int = 3) -> str:
    """The weather of a city."""
    return f"{city}: {days} days of sun"


class Narrow(AnthropicStub):
    """The API with a window of so many letters of messages; `says` words the refusal."""

    def __init__(self, window: int, says: Callable[[int, int], Refusal]) -> None:
        super().__init__(in_order([Say("Here.")]))
        self.window, self.says = window, says

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        if (size := letters(body)) > self.window:
            raise self.says(size, self.window)
        return super().serve(path, headers, body)


def letters(request: Mapping[str, Any]) -> int:
    """What `Letters` would count for the texts of a request; calls too."""
    size = len(str(request.get("system", "")))
    for message in request["messages"]:
        for block in message["content"]:
            size += len(json.dumps(block))
    return size


def prompt_too_long(size: int, window: int) -> Refusal:
    return Refusal(f"prompt is too long: {size} tokens > {window} maximum")


def with_the_answer(size: int, window: int) -> Refusal:
    words = f"{size} + 1000 > {window + 1000}, decrease input length or `max_tokens` and try again"
    return Refusal(f"input length and `max_tokens` exceed context limit: {words}")


def without_figures(size: int, window: int) -> Refusal:
    return Refusal("prompt is too long")


def too_many_bytes(size: int, window: int) -> Refusal:
    return Refusal("Request exceeds the maximum size", status=413, kind="request_too_large")


@contextmanager
def asked(stub: AnthropicStub) -> Iterator[anthropic.Anthropic]:
    with stub, anthropic_client(stub) as client:
        yield client


def asking(session: Session) -> Session:
    session.add_message("user", "And now?", "last", 0.0)
    return session


# The request


def test_a_request_is_taken_by_the_api_as_it_is() -> None:
    session = asking(session_of(12))
    with asked(AnthropicStub(in_order([Call("read", {"path": "a"})]))) as client:
        request = manager(2_000).anthropic_request(session, model=MODEL, max_tokens=1_000, tools=[TOOL], stop_sequences=["END"])
        answer = client.messages.create(**request)
    assert answer.stop_reason == "tool_use"
    assert validate_anthropic(request) == []
    assert request["stop_sequences"] == ["END"]


def test_its_messages_are_those_of_the_view() -> None:
    session, one = asking(session_of(12)), manager(1_500)
    request = one.anthropic_request(session, model=MODEL, max_tokens=1_000)
    view = one.process_session(session)
    messages, system = view.to_anthropic_messages(caching=True)
    assert view is not session
    assert (request["messages"], request["system"]) == (messages, system)
    assert "tools" not in request


def test_the_async_twin_gives_the_same() -> None:
    session = asking(session_of(12))
    asked_for: dict[str, Any] = {"model": MODEL, "max_tokens": 1_000, "tools": [look_up]}
    assert asyncio.run(manager(1_500).aanthropic_request(session, **asked_for)) == manager(1_500).anthropic_request(session, **asked_for)


def test_functions_and_other_providers_definitions_become_anthropics() -> None:
    chat = {"type": "function", "function": {"name": "search", "description": "Finds.", "parameters": {"type": "object", "properties": {}}}}
    request = manager().anthropic_request(asking(Session()), model=MODEL, max_tokens=10, tools=[look_up, chat])
    assert [(tool["name"], tool["description"]) for tool in request["tools"]] == [
        ("look_up", "The weather of a city."),
        ("search", "Finds."),
    ]
    assert request["tools"][0]["input_schema"]["required"] == ["city"]


def test_tools_that_the_manager_did_not_know_of_count_against_the_budget() -> None:
    session = asking(session_of(12))
    without, with_tools, told = manager(2_500), manager(2_500), manager(2_500)
    without.anthropic_request(session, model=MODEL, max_tokens=10)
    with_tools.anthropic_request(session, model=MODEL, max_tokens=10, tools=[TOOL])
    told = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=2_500), tools=[TOOL])
    told.process_session(session)
    assert with_tools.get_token_usage() == told.get_token_usage()
    assert with_tools.get_token_usage()["overhead"] > without.get_token_usage()["overhead"]


def test_a_request_without_tools_leaves_what_was_decided_with_them() -> None:
    session, one = asking(session_of(12)), manager(2_000)
    before = one.anthropic_request(session, model=MODEL, max_tokens=10, tools=[TOOL])["messages"]
    assert one.anthropic_request(session, model=MODEL, max_tokens=10)["messages"] == before


# How long the answer may be


@pytest.mark.parametrize(
    ("model", "wanted", "given"),
    [
        (SMALL, 1_000, 1_000),
        (SMALL, 500_000, 64_000),  # what it can answer
        ("claude-3-haiku-20240307", 8_000, 4_096),
        ("a-model-of-tomorrow", 500_000, 500_000),  # nothing is known of it: the API will say
    ],
)
def test_the_answer_is_no_longer_than_the_model_can_make_it(model: str, wanted: int, given: int) -> None:
    assert manager().anthropic_request(asking(Session()), model=model, max_tokens=wanted)["max_tokens"] == given


def test_the_answer_has_what_the_window_has_left_after_prompt_and_doubt() -> None:
    session = Session()
    session.add_message("user", "x" * 150_000, "u", 0.0)
    one = ContextWindowManager(SMALL, Letters(), context_window=ContextWindow(max_tokens=190_000))
    request = one.anthropic_request(session, model=SMALL, max_tokens=64_000)
    used, doubt = one.get_token_usage()["total"], one.analyze_session(session)["expected_error"]
    assert request["max_tokens"] == 200_000 - used - -int(-used * doubt // 1)


def test_a_full_window_still_leaves_room_for_a_short_answer() -> None:
    session = Session()
    session.add_message("user", "x" * 199_999, "u", 0.0)
    one = ContextWindowManager(SMALL, Letters(), context_window=ContextWindow(max_tokens=200_500))
    assert one.anthropic_request(session, model=SMALL, max_tokens=64_000)["max_tokens"] == LEAST_ANSWER
    assert one.anthropic_request(session, model=SMALL, max_tokens=200)["max_tokens"] == 200


def test_thinking_that_leaves_nothing_for_the_answer_is_named() -> None:
    with pytest.raises(BudgetError, match=r"thinking\.budget_tokens=70000.*64,000 tokens"):
        manager().anthropic_request(
            asking(Session()), model=SMALL, max_tokens=90_000, thinking={"type": "enabled", "budget_tokens": 70_000}
        )


# Cache marks


def marks(request: Mapping[str, Any]) -> list[Any]:
    """Every mark in the order of the prompt; the request's own last."""
    blocks = [*request.get("tools", []), *request.get("system", [])]
    blocks += [block for message in request["messages"] for block in message["content"]]
    return [block["cache_control"] for block in [*blocks, request] if "cache_control" in block]


@given(
    turns=st.integers(1, 12),
    budget=st.integers(400, 4_000),
    marked=st.integers(0, 3),
    own=st.sampled_from([None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]),
    goes_on=st.booleans(),
)
@example(turns=2, budget=4_000, marked=4, own=None, goes_on=False)
def test_there_are_never_more_than_four_marks(turns: int, budget: int, marked: int, own: dict[str, str] | None, goes_on: bool) -> None:
    session, one = asking(session_of(turns)), manager(budget)
    if goes_on:
        session = asking_again(one.trim_session(session).copy())
    kind = own or {"type": "ephemeral"}
    tools = [{**TOOL, "name": f"t{number}", **({"cache_control": kind} if number < marked else {})} for number in range(4)]
    more = {} if own is None else {"cache_control": own}
    request = one.anthropic_request(session, model=MODEL, max_tokens=10, tools=tools, **more)
    found = marks(request)
    assert len(found) <= 4
    assert all(mark == kind for mark in found)
    assert sum("cache_control" in tool for tool in request["tools"]) == marked
    assert validate_anthropic(request) == []


def test_more_marks_than_there_may_be_are_the_callers_to_take_back() -> None:
    tools = [{**TOOL, "name": f"t{number}", "cache_control": {"type": "ephemeral"}} for number in range(4)]
    with pytest.raises(BudgetError, match=r"cache_control=5: a request may have 4"):
        manager().anthropic_request(asking(Session()), model=MODEL, max_tokens=10, tools=tools, cache_control={"type": "ephemeral"})


def asking_again(session: Session) -> Session:
    session.add_message("assistant", "Well.", "a-more", 0.0)
    session.add_message("user", "And then?", "u-more", 0.0)
    return session


def test_what_is_read_from_next_is_marked_last_of_all() -> None:
    tools = [{**TOOL, "name": f"t{number}", "cache_control": {"type": "ephemeral"}} for number in range(3)]
    request = manager(4_000).anthropic_request(asking(session_of(3)), model=MODEL, max_tokens=10, tools=tools)
    assert "cache_control" in request["messages"][-1]["content"][-1]
    assert len(marks(request)) == 4


# What makes no sense


@pytest.mark.parametrize(
    ("more", "said"),
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
def test_an_argument_that_makes_no_sense_is_named_with_what_to_do(more: dict[str, Any], said: str) -> None:
    with pytest.raises(BudgetError, match=said):
        manager().anthropic_request(asking(Session()), **{"model": MODEL, "max_tokens": 10, **more})


def test_a_session_in_which_nothing_was_said_is_no_request() -> None:
    session = Session()
    session.add_message("system", "Be brief.")
    with pytest.raises(BudgetError, match="add what the user says first"):
        manager().anthropic_request(session, model=MODEL, max_tokens=10)


# When the API still says that the prompt is too long


@pytest.mark.parametrize("says", [prompt_too_long, with_the_answer, without_figures, too_many_bytes])
def test_a_prompt_that_is_too_long_is_sent_once_more_with_less(says: Callable[[int, int], Refusal]) -> None:
    session, one, stub = asking(session_of(20)), manager(100_000), Narrow(6_000, says)
    with asked(stub) as client:
        answer = create(one, client, session, model=MODEL, max_tokens=1_000, tools=[TOOL])
    assert answer.content[0].type == "text"
    first, second = stub.requests
    assert letters(first) > 6_000 >= letters(second)
    assert validate_anthropic(second) == []
    assert len(session.items) == 1 + 20 * 4 + 1


def test_the_async_client_is_asked_once_more_too() -> None:
    async def ask(stub: AnthropicStub) -> Any:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
        async with anthropic.AsyncAnthropic(api_key="key", base_url=stub.url, max_retries=0, http_client=http) as client:
            return await acreate(manager(100_000), client, asking(session_of(20)), model=MODEL, max_tokens=1_000)

    with Narrow(6_000, prompt_too_long) as stub:
        assert asyncio.run(ask(stub)).stop_reason == "end_turn"
    assert len(stub.requests) == 2


def test_the_next_request_of_the_session_is_small_at_once_and_goes_on_from_there() -> None:
    session, one, stub = asking(session_of(20)), manager(100_000), Narrow(6_000, prompt_too_long)
    with asked(stub) as client:
        create(one, client, session, model=MODEL, max_tokens=1_000)
        session.add_message("assistant", "Here.", "said", 0.0)
        session.add_message("user", "Thanks. And then?", "then", 0.0)
        create(one, client, session, model=MODEL, max_tokens=1_000)
    assert len(stub.requests) == 3
    bare = [without_marks(request["messages"]) for request in stub.requests]
    assert bare[2][: len(bare[1])] == bare[1]


def without_marks(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [
        {**message, "content": [{name: value for name, value in block.items() if name != "cache_control"} for block in message["content"]]}
        for message in messages
    ]


def test_other_sessions_keep_their_budget() -> None:
    one, other = manager(100_000), asking(session_of(20))
    with asked(Narrow(6_000, prompt_too_long)) as client:
        create(one, client, asking(session_of(20)), model=MODEL, max_tokens=1_000)
    assert one.process_session(other) is other
    assert one.total_budget == 100_000


def test_a_prompt_that_is_too_long_twice_is_an_error_with_the_figures() -> None:
    stub = Narrow(6_000, lambda size, window: Refusal(f"prompt is too long: {size} tokens > {size - 1} maximum"))  # figures that mislead
    with asked(stub) as client, pytest.raises(PromptTooLongError) as caught:
        create(manager(100_000), client, asking(session_of(20)), model=MODEL, max_tokens=1_000)
    assert caught.value.tokens is not None
    assert caught.value.limit == caught.value.tokens - 1
    assert f"{caught.value.tokens} tokens > {caught.value.limit} maximum" in str(caught.value)
    assert isinstance(caught.value.__cause__, anthropic.BadRequestError)
    assert len(stub.requests) == 2


def test_a_prompt_of_which_nothing_can_be_taken_is_not_sent_again() -> None:
    session = Session()
    session.add_message("user", "x" * 900, "u", 0.0)
    stub = Narrow(100, prompt_too_long)
    with asked(stub) as client, pytest.raises(PromptTooLongError):
        create(manager(), client, session, model=MODEL, max_tokens=1_000)
    assert len(stub.requests) == 1


def test_other_errors_of_the_client_stay_as_they_are() -> None:
    stub = Narrow(100, lambda size, window: Refusal("slow down: 900 tokens > 100 maximum", status=429, kind="rate_limit_error"))
    with asked(stub) as client, pytest.raises(anthropic.RateLimitError):
        create(manager(100_000), client, asking(session_of(20)), model=MODEL, max_tokens=1_000)
    assert len(stub.requests) == 1


class Full(AnthropicStub):
    """The API with a window that answers run into: it has room for the first prompt and so many letters; `shrinks` on each request."""

    def __init__(self, room: int, *, shrinks: bool = False) -> None:
        super().__init__()
        self.room, self.shrinks = room, shrinks
        self.window = 0

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        answer = super().serve(path, headers, body)
        if self.shrinks or not self.window:
            self.window = letters(body) + self.room
        left = self.window - letters(body)
        if left < body["max_tokens"]:
            answer["stop_reason"] = "model_context_window_exceeded"
            answer["usage"] = {"input_tokens": letters(body), "output_tokens": left}
        return answer


def test_an_answer_that_ended_with_the_window_is_asked_for_again_with_more_room() -> None:
    stub = Full(500)
    with asked(stub) as client:
        answer = create(manager(100_000), client, asking(session_of(20)), model=MODEL, max_tokens=2_000)
    assert answer.stop_reason == "end_turn"
    assert letters(stub.requests[1]) + 2_000 <= stub.window
    assert len(stub.requests) == 2


def test_an_answer_that_is_cut_short_again_is_given_as_it_is() -> None:
    stub = Full(500, shrinks=True)
    with asked(stub) as client:
        answer = create(manager(100_000), client, asking(session_of(20)), model=MODEL, max_tokens=2_000)
    assert answer.stop_reason == "model_context_window_exceeded"
    assert answer.usage.output_tokens == 500
    assert len(stub.requests) == 2


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": "many"}, {"input_tokens": -5, "output_tokens": None}])
def test_an_answer_without_figures_is_told_as_such(usage: object) -> None:
    found = cut_short({"stop_reason": "model_context_window_exceeded", "usage": usage}, 100)
    assert found is not None
    assert (found.tokens, found.limit) == (None, None)
    assert cut_short({"stop_reason": "end_turn", "usage": usage}, 100) is None


def test_what_streams_is_asked_for_in_another_way() -> None:
    with asked(AnthropicStub()) as client, pytest.raises(BudgetError, match=r"client\.messages\.stream"):
        create(manager(), client, asking(Session()), model=MODEL, max_tokens=10, stream=True)


@pytest.mark.parametrize("tools", [5, None, '{"name": "f"}', {"name": "f"}], ids=["number", "none", "text", "mapping"])
def test_what_is_no_list_of_tools_is_told(tools: Any) -> None:
    with asked(AnthropicStub()) as client, pytest.raises(BudgetError, match="pass a list of tools"):
        create(manager(), client, asking(Session()), model=MODEL, max_tokens=10, tools=tools)


@pytest.mark.parametrize("client", [None, 5, "key", anthropic.Anthropic, object()])
def test_what_is_no_client_is_told(client: Any) -> None:
    with pytest.raises(BudgetError, match=r"client=.*pass an anthropic\.Anthropic\(\)"):
        create(manager(), client, asking(session_of(2)), model=MODEL, max_tokens=10)
    with pytest.raises(BudgetError, match=r"client=.*AsyncAnthropic"):
        asyncio.run(acreate(manager(), client, asking(session_of(2)), model=MODEL, max_tokens=10))


@pytest.mark.parametrize("given", [None, 5, MODEL, ContextWindow()])
def test_what_is_no_manager_is_told(given: Any) -> None:
    with asked(AnthropicStub()) as client, pytest.raises(BudgetError, match=r"manager=.*pass a ContextWindowManager"):
        create(given, client, asking(session_of(2)), model=MODEL, max_tokens=10)


def test_an_asynchronous_client_is_sent_to_where_it_is_awaited() -> None:
    client = anthropic.AsyncAnthropic(api_key="none", base_url="http://127.0.0.1:9", max_retries=0)
    with pytest.raises(BudgetError, match=r"await acreate"):
        create(manager(), client, asking(session_of(2)), model=MODEL, max_tokens=10)  # type: ignore[arg-type]


def test_a_synchronous_client_is_sent_to_where_nobody_awaits_it() -> None:
    with asked(AnthropicStub()) as client, pytest.raises(BudgetError, match=r"pass an anthropic.AsyncAnthropic\(\), or call create"):
        asyncio.run(acreate(manager(), client, asking(session_of(2)), model=MODEL, max_tokens=10))  # type: ignore[arg-type]
