"""`AnthropicModel`: the real clients over the loopback, what they send, what comes back, and what their errors become."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from types import SimpleNamespace
from typing import Any

import anthropic
import pytest

from context_window import (
    Answer,
    AnthropicModel,
    BudgetError,
    FunctionCall,
    Message,
    ModelAccessError,
    ModelError,
    ModelNetworkError,
    ModelOverloadedError,
    ModelRateLimitError,
    PromptTooLongError,
    Reasoning,
    Session,
    Toolbox,
    run_turn,
)
from session.providers.anthropic import validate_anthropic
from tests.support.looping import manager
from tests.support.stubs import AnthropicStub, Block, Call, Say, Think, in_order
from tests.support.stubs.server import Body, Refusal

MODEL = "claude-scripted-1"
"""The client warns of real ones when their day has come."""
QUICK: dict[str, Any] = {"trust_env": False, "verify": False}
"""No certificates are read, which takes longer than all else: nothing here is encrypted."""


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


TOOLS = Toolbox([add]).definitions


@asynccontextmanager
async def client_of(stub: AnthropicStub, kind: str) -> AsyncIterator[Any]:
    """Anthropic's client, asynchronous or not."""
    if kind == "plain":
        plain_http = anthropic.DefaultHttpxClient(**QUICK)
        with anthropic.Anthropic(api_key="key", base_url=stub.url, max_retries=0, http_client=plain_http) as plain:
            yield plain
        return
    http = anthropic.DefaultAsyncHttpxClient(**QUICK)
    async with anthropic.AsyncAnthropic(api_key="key", base_url=stub.url, max_retries=0, http_client=http) as client:
        yield client


def asked(
    stub: AnthropicStub, *, kind: str = "async", allow_tools: bool = True, on_text: Any = None, session: Session | None = None, **more: Any
) -> Answer:
    """What the stub answers to a session."""

    async def ask() -> Answer:
        async with client_of(stub, kind) as client:
            view = session or Session([Message("user", "Hi")])
            return await AnthropicModel(client, MODEL, **more).answer(view, TOOLS, allow_tools=allow_tools, on_text=on_text)

    with stub:
        return asyncio.run(ask())


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_an_answer_is_streamed_and_comes_whole(kind: str) -> None:
    pieces: list[str] = []
    text = "A long answer, in several pieces: " * 4
    answer = asked(
        AnthropicStub(in_order([Think("hm"), Say(text), Call("add", {"a": 1, "b": [2, {"c": "ü"}]})])), kind=kind, on_text=pieces.append
    )
    assert [type(item) for item in answer.items] == [Reasoning, Message, FunctionCall]
    assert len(pieces) > 2
    assert "".join(pieces) == text == answer.text
    assert json.loads(answer.calls[0].arguments) == {"a": 1, "b": [2, {"c": "ü"}]}
    assert (answer.stop, answer.model) == ("tool_use", MODEL)
    assert answer.usage is not None
    assert answer.usage.total_input > 0
    assert answer.usage.output_tokens > 0
    assert len({item.id for item in answer.items}) == 3
    assert all(item.created_at > 1.7e9 for item in answer.items)


def test_the_request_holds_system_tools_and_cache_marks() -> None:
    stub = AnthropicStub()
    session = Session([Message("system", "Be terse."), Message("user", "Hi")])
    asked(stub, session=session, stop_sequences=["STOP"], max_tokens=50)
    [request] = stub.requests
    assert (request["model"], request["max_tokens"], request["stop_sequences"]) == (MODEL, 50, ["STOP"])
    assert request["system"] == [{"type": "text", "text": "Be terse.", "cache_control": {"type": "ephemeral"}}]
    assert request["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert [tool["name"] for tool in request["tools"]] == ["add"]
    assert "tool_choice" not in request


def test_without_caching_nothing_is_marked() -> None:
    stub = AnthropicStub()
    asked(stub, caching=False)
    assert "cache_control" not in json.dumps(stub.requests)


def test_a_model_that_may_not_call_is_told_of_the_tools_all_the_same() -> None:
    stub = AnthropicStub()
    asked(stub, allow_tools=False)
    assert stub.requests[0]["tool_choice"] == {"type": "none"}
    assert stub.requests[0]["tools"]


def test_without_a_figure_answers_have_the_room_that_managers_keep_free() -> None:
    client = anthropic.AsyncAnthropic(api_key="key")
    assert AnthropicModel(client, "claude-sonnet-4-6").max_tokens == 32_000
    assert AnthropicModel(client, "claude-3-haiku-20240307").max_tokens == 4_096
    assert AnthropicModel(client, "somebody-s-own").max_tokens == 8_192


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"client": object()}, "client"),
        ({"client": anthropic.AsyncAnthropic}, "client"),
        ({"model": " "}, "model"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"caching": "yes"}, "caching"),
        ({"messages": []}, "messages"),
        ({"stream": True}, "stream"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(given: dict[str, Any], field: str) -> None:
    whole = {"client": anthropic.AsyncAnthropic(api_key="key"), "model": MODEL, **given}
    with pytest.raises(BudgetError) as caught:
        AnthropicModel(whole.pop("client"), whole.pop("model"), **whole)
    assert caught.value.field == field


# Refusals


def refusing(refusal: Refusal) -> Callable[[Mapping[str, Any]], Sequence[Block]]:
    def script(request: Mapping[str, Any]) -> Sequence[Block]:
        raise refusal

    return script


REFUSALS: list[tuple[Refusal, type[ModelError]]] = [
    (Refusal("Too many.", status=429, kind="rate_limit_error"), ModelRateLimitError),
    (Refusal("Overloaded", status=529, kind="overloaded_error"), ModelOverloadedError),
    (Refusal("Internal server error", status=500, kind="api_error"), ModelOverloadedError),
    (Refusal("bad gateway", status=502, kind=""), ModelOverloadedError),
    (Refusal("invalid x-api-key", status=401, kind="authentication_error"), ModelAccessError),
    (Refusal("not for you", status=403, kind="permission_error"), ModelAccessError),
    (Refusal("no such model", status=404, kind="not_found_error"), ModelError),
    (Refusal("messages.3: nonsense"), ModelError),
    (Refusal("prompt is too long: 208310 tokens > 200000 maximum"), PromptTooLongError),
    (Refusal("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease …"), PromptTooLongError),
    (Refusal("Request exceeds the maximum size", status=413, kind="request_too_large"), PromptTooLongError),
]


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize(("refusal", "expected"), REFUSALS, ids=[refusal.message[:30] for refusal, _ in REFUSALS])
def test_each_refusal_is_an_error_of_its_kind_in_one_line_that_says_what_to_do(
    refusal: Refusal, expected: type[ModelError], kind: str
) -> None:
    with pytest.raises(ModelError) as caught:
        asked(AnthropicStub(refusing(refusal)), kind=kind)
    error = caught.value
    assert type(error) is expected
    assert (error.status, error.kind) == (refusal.status, refusal.kind)
    assert "\n" not in str(error)
    assert refusal.message.rstrip(".") in str(error)
    assert str(error).endswith(expected.advice)
    assert isinstance(error.__cause__, anthropic.APIStatusError)


@pytest.mark.parametrize(
    ("message", "figures"),
    [
        ("prompt is too long: 208310 tokens > 200000 maximum", (208_310, 200_000)),
        ("Prompt is too long", (None, None)),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease", (190_000, 180_000)),
    ],
)
def test_the_figures_of_a_prompt_that_is_too_long_are_carried(message: str, figures: tuple[int | None, int | None]) -> None:
    with pytest.raises(PromptTooLongError) as caught:
        asked(AnthropicStub(refusing(Refusal(message))))
    assert (caught.value.tokens, caught.value.limit) == figures


def test_what_an_error_repeats_is_short_and_safe_to_print() -> None:
    with pytest.raises(ModelError) as caught:
        asked(AnthropicStub(refusing(Refusal("\x1b[2J\nbad \u202e" + "x" * 100_000))))
    assert len(str(caught.value)) < 600
    assert str(caught.value).isprintable()


# Networks


def test_nobody_listening_is_an_error_of_the_network() -> None:
    async def ask() -> None:
        with AnthropicStub() as stub:
            pass
        async with client_of(stub, "async") as client:
            await AnthropicModel(client, MODEL).answer(Session([Message("user", "Hi")]), (), allow_tools=True)

    with pytest.raises(ModelNetworkError, match="Check the network"):
        asyncio.run(ask())


def test_a_client_without_a_key_is_an_error_of_access(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    async def ask() -> None:
        async with anthropic.AsyncAnthropic(base_url="http://127.0.0.1:9", max_retries=0) as client:
            await AnthropicModel(client, MODEL).answer(Session([Message("user", "Hi")]), (), allow_tools=True)

    with pytest.raises(ModelAccessError, match="Check the API key"):
        asyncio.run(ask())


class Cut(AnthropicStub):
    """Its streams end as `ending` makes them end."""

    def __init__(self, ending: Callable[[bytes], bytes]) -> None:
        super().__init__(in_order([Say("A long answer that is never finished. " * 9)]))
        self.ending = ending

    def written(self, raw: bytes, status: int, body: Body) -> tuple[str, bytes]:
        kind, sent = super().written(raw, status, body)
        return kind, self.ending(sent)


def error_event(kind: str, message: str) -> bytes:
    told = json.dumps({"type": "error", "error": {"type": kind, "message": message}})
    return f"event: error\ndata: {told}\n\n".encode()


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (lambda sent: sent[: sent.index(b"event: message_delta")], ModelNetworkError),
        (lambda sent: sent[: len(sent) // 2] + b"}}}}\n\n", ModelNetworkError),
        (lambda sent: b"", ModelNetworkError),
        (lambda sent: b"<html>login</html>", ModelNetworkError),
        (lambda sent: sent[sent.index(b"event: content_block_start") :], ModelNetworkError),
        (lambda sent: sent[: sent.index(b"event: message_delta")] + error_event("overloaded_error", "Overloaded"), ModelOverloadedError),
        (lambda sent: sent.replace(b'"type": "text", "text": ""', b'"type": "tool_use", "name": "add", "input": {}'), ModelError),
        (lambda sent: sent.replace(b'"content_block_delta", "index": 0', b'"content_block_delta", "index": 7'), ModelNetworkError),
        (
            lambda sent: sent.replace(b'"type": "text", "text": ""', b'"type": "tool_use", "id": "t", "name": "add", "input": {}').replace(
                b'"type": "text_delta", "text"', b'"type": "input_json_delta", "partial_json"'
            ),
            ModelNetworkError,
        ),
        (lambda sent: error_event("rate_limit_error", "Too many."), ModelRateLimitError),
        (lambda sent: error_event("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), PromptTooLongError),
    ],
    ids=(
        *("ends early", "broken", "empty", "a web page", "starts late", "overloaded inside", "nonsense"),
        *("no such block", "arguments that are no JSON", "busy at once", "too long"),
    ),
)
def test_a_stream_that_does_not_end_as_it_should_is_an_error_and_no_answer(
    ending: Callable[[bytes], bytes], expected: type[ModelError], kind: str
) -> None:
    with pytest.raises(ModelError) as caught:
        asked(Cut(ending), kind=kind)
    assert type(caught.value) is expected
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_cancel_while_the_model_is_asked_ends_at_once_and_the_question_stays(kind: str) -> None:
    reached, leave = threading.Event(), threading.Event()

    def script(request: Mapping[str, Any]) -> Sequence[Block]:
        reached.set()
        leave.wait(10)
        return [Say("Too late.")]

    async def scene(stub: AnthropicStub) -> Session:
        session = Session()
        async with client_of(stub, kind) as client:
            task = asyncio.create_task(run_turn(session, "Hi", model=AnthropicModel(client, MODEL), manager=manager()))
            await asyncio.to_thread(reached.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(asyncio.shield(task), 5)
            leave.set()
        return session

    with AnthropicStub(script) as stub:
        session = asyncio.run(scene(stub))
    assert [item.type for item in session.items] == ["message"]


class Speaking:
    """A client that is no asynchronous one: `One` is told, and `Two` while the turn is being cancelled."""

    def __init__(self) -> None:
        self.messages = self
        self.cancelled, self.sent = threading.Event(), threading.Event()

    def stream(self, **request: Any) -> Any:
        return closing(self._events())

    def _events(self) -> Generator[Any, None, None]:
        yield SimpleNamespace(type="text", text="One")
        self.cancelled.wait(10)
        yield SimpleNamespace(type="text", text="Two")
        self.sent.set()
        yield SimpleNamespace(type="text", text="Three")


def test_what_a_thread_hears_after_a_cancel_is_told_nobody_for_it_is_in_no_log() -> None:
    client, told = Speaking(), list[str]()

    async def scene() -> Session:
        session = Session()

        def hear(text: str) -> None:
            told.append(text)
            task.cancel()
            client.cancelled.set()
            assert client.sent.wait(10)

        task = asyncio.create_task(run_turn(session, "Hi", model=AnthropicModel(client, MODEL), manager=manager(), on_text=hear))
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
        return session

    said = asyncio.run(scene()).items[-1]
    assert isinstance(said, Message)
    assert (said.text, said.interrupted) == ("One", True)
    assert told == ["One"]


def test_turns_with_thinking_tools_and_a_spent_limit_are_valid_to_the_last_request() -> None:
    script = in_order([Think("hm"), Call("add", {"a": 1, "b": 2}), Call("add", {"a": 3, "b": 4})], [Say("Three and seven.")], [Say("Bye.")])

    async def scene(stub: AnthropicStub) -> Session:
        session = Session()
        async with client_of(stub, "async") as client:
            model = AnthropicModel(client, MODEL)
            for said in ("Add.", "Bye"):
                await run_turn(session, said, model=model, tools=[add], manager=manager(max_tool_calls_per_turn=1))
        return session

    with AnthropicStub(script) as stub:
        session = asyncio.run(scene(stub))
    assert len(stub.answers) == len(stub.requests) == 3
    assert stub.requests[1]["tool_choice"] == {"type": "none"}
    assert all(validate_anthropic(request) == [] for request in stub.requests)
    assert [item.extra.get("model") for item in session.items if item.usage] == [MODEL] * 3


class Searching(AnthropicStub):
    """It searches the web by itself, and pauses in between, each time after one more search.

    Attributes:
        pauses: How often it pauses.
        gone_on: How often it did, with what it had said last and unchanged.
    """

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.pauses = pauses
        self.gone_on = 0
        self._said: list[Body] = []

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        answer = super().serve(path, headers, body)
        last = body["messages"][-1]
        if last["role"] == "assistant":
            bare = [{key: value for key, value in block.items() if key != "cache_control"} for block in last["content"]]
            assert bare == self._said
            self.gone_on += 1
            result = {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{self.gone_on}", "content": []}
            content: list[Body] = [result, {"type": "text", "text": f"Found {self.gone_on}. "}]
        else:
            content, self._said = [{"type": "text", "text": "I look it up. "}], []
        if self.gone_on < self.pauses:
            search = {"type": "server_tool_use", "id": f"srvtoolu_{self.gone_on + 1}", "name": "web_search", "input": {"query": "fjords"}}
            content, answer["stop_reason"] = [*content, search], "pause_turn"
        self._said += content
        return {**answer, "content": content}


@pytest.mark.parametrize("caching", [True, False])
def test_an_answer_that_paused_is_sent_back_as_it_came_and_gone_on_with(caching: bool) -> None:
    web: Any = {"type": "web_search_20250305", "name": "web_search"}

    async def scene(stub: AnthropicStub) -> list[Any]:
        session = Session()
        async with client_of(stub, "async") as client:
            model = AnthropicModel(client, MODEL, caching=caching)
            said = ("Where are the fjords?", "Thanks.")
            return [await run_turn(session, words, model=model, tools=[web], manager=manager()) for words in said]

    with Searching(pauses=3) as stub:
        first, second = asyncio.run(scene(stub))
    assert (first.stop, first.requests, stub.gone_on) == ("end_turn", 4, 3)
    assert first.text == "I look it up. Found 1. Found 2. Found 3. "
    assert second.requests == 1  # where nothing is paused any more, all of it is valid as history
    assert validate_anthropic(stub.requests[-1]) == []


def test_what_only_looks_like_a_pause_is_not_put_back() -> None:
    session = Session([Message("user", "Hi"), Message("assistant", "x", extra={"anthropic_blocks": [5]})])
    stub = AnthropicStub(prefill=True)
    asked(stub, session=session)
    assert [block["text"] for block in stub.requests[0]["messages"][-1]["content"]] == ["x"]
