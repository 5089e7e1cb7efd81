"""`AnthropicModel` with the real clients and a stub on the loopback: requests, answers, and the conversion of errors."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from context_window import (
    AnthropicModel,
    ArgumentError,
    Message,
    ModelAccessError,
    ModelError,
    ModelNetworkError,
    ModelOverloadedError,
    ModelRateLimitError,
    PromptTooLongError,
    Session,
    run_turn,
)
from session.providers.anthropic import validate_anthropic
from tests.contracts.test_models import PROVIDERS, add, answer_of, anthropic_model, each_client, refuse_with, with_streams
from tests.support.lazy import LazyModule
from tests.support.looping import manager
from tests.support.stubs import AnthropicStub, Call, Say, Think, in_order
from tests.support.stubs.server import Body, Refusal

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

ANTHROPIC = PROVIDERS[0]
MODEL = "claude-scripted-1"
"""That of these tests, an invented name: the client warns of real models that are retired."""


def test_the_request_holds_system_tools_and_cache_marks() -> None:
    stub = AnthropicStub()
    session = Session([Message("system", "Be terse."), Message("user", "Hi")])
    answer_of(ANTHROPIC, stub, session=session, stop_sequences=["STOP"], max_tokens=50)
    [request] = stub.requests
    assert (request["model"], request["max_tokens"], request["stop_sequences"]) == (MODEL, 50, ["STOP"])
    assert request["system"] == [{"type": "text", "text": "Be terse.", "cache_control": {"type": "ephemeral"}}]
    assert request["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert [tool["name"] for tool in request["tools"]] == ["add"]
    assert "tool_choice" not in request


def test_without_caching_nothing_is_marked() -> None:
    stub = AnthropicStub()
    answer_of(ANTHROPIC, stub, caching=False)
    assert "cache_control" not in json.dumps(stub.requests)


def test_the_default_max_tokens_is_the_output_reserve() -> None:
    client = anthropic.AsyncAnthropic(api_key="key")
    assert AnthropicModel(client, "claude-sonnet-4-6").max_tokens == 32_000
    assert AnthropicModel(client, "claude-3-haiku-20240307").max_tokens == 4_096
    assert AnthropicModel(client, "somebody-s-own").max_tokens == 8_192


def test_caching_is_a_choice() -> None:
    caching: Any = "yes"
    with pytest.raises(ArgumentError, match="caching='yes'"):
        AnthropicModel(anthropic.AsyncAnthropic(api_key="key"), MODEL, caching=caching)


# Refusals


def test_quoted_client_messages_are_short_and_printable() -> None:
    with pytest.raises(ModelError) as caught:
        answer_of(ANTHROPIC, AnthropicStub(refuse_with(Refusal("\x1b[2J\nbad \u202e" + "x" * 100_000))))
    assert len(str(caught.value)) < 600
    assert str(caught.value).isprintable()


# Network errors


def test_a_client_without_a_key_is_an_access_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    async def ask() -> None:
        async with anthropic.AsyncAnthropic(base_url="http://127.0.0.1:9", max_retries=0) as client:
            await AnthropicModel(client, MODEL).answer(Session([Message("user", "Hi")]), (), allow_tools=True)

    with pytest.raises(ModelAccessError, match="Check the API key"):
        asyncio.run(ask())


def error_event(kind: str, message: str) -> bytes:
    data = json.dumps({"type": "error", "error": {"type": kind, "message": message}})
    return f"event: error\ndata: {data}\n\n".encode()


@each_client
@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (lambda stream: b"<html>login</html>", ModelNetworkError),
        (lambda stream: stream[stream.index(b"event: content_block_start") :], ModelNetworkError),
        (
            lambda stream: stream[: stream.index(b"event: message_delta")] + error_event("overloaded_error", "Overloaded"),
            ModelOverloadedError,
        ),
        (lambda stream: stream.replace(b'"type": "text", "text": ""', b'"type": "tool_use", "name": "add", "input": {}'), ModelError),
        (lambda stream: stream.replace(b'"content_block_delta", "index": 0', b'"content_block_delta", "index": 7'), ModelNetworkError),
        (
            lambda stream: stream.replace(
                b'"type": "text", "text": ""', b'"type": "tool_use", "id": "t", "name": "add", "input": {}'
            ).replace(b'"type": "text_delta", "text"', b'"type": "input_json_delta", "partial_json"'),
            ModelNetworkError,
        ),
        (lambda stream: error_event("rate_limit_error", "Too many."), ModelRateLimitError),
        (lambda stream: error_event("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), PromptTooLongError),
    ],
    ids=(
        *("a web page", "starts late", "overloaded inside", "nonsense"),
        *("no such block", "arguments that are no JSON", "busy at once", "too long"),
    ),
)
def test_a_broken_stream_is_an_error(ending: Callable[[bytes], bytes], expected: type[ModelError], is_async: bool) -> None:
    stub = AnthropicStub(in_order([Say("A long answer that is never finished. " * 9)]))
    with pytest.raises(ModelError) as caught:
        answer_of(ANTHROPIC, with_streams(stub, ending), is_async=is_async)
    assert type(caught.value) is expected
    assert len(str(caught.value)) < 600


class SlowClient:
    """A synchronous client that streams `One`, then `Two` while the turn is being cancelled."""

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


def test_text_after_a_cancel_is_neither_logged_nor_passed_on() -> None:
    client, texts = SlowClient(), list[str]()

    async def scene() -> Session:
        session = Session()

        def hear(text: str) -> None:
            texts.append(text)
            task.cancel()
            client.cancelled.set()
            assert client.sent.wait(10)

        task = asyncio.create_task(run_turn(session, "Hi", model=AnthropicModel(client, MODEL), manager=manager(), on_text=hear))
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
        return session

    last = asyncio.run(scene()).items[-1]
    assert isinstance(last, Message)
    assert (last.text, last.interrupted) == ("One", True)
    assert texts == ["One"]


def test_turns_with_reasoning_tools_and_a_used_up_limit_are_valid() -> None:
    script = in_order([Think("hm"), Call("add", {"a": 1, "b": 2}), Call("add", {"a": 3, "b": 4})], [Say("Three and seven.")], [Say("Bye.")])

    async def scene(stub: AnthropicStub) -> Session:
        session = Session()
        async with anthropic_model(stub.url, is_async=True) as model:
            for question in ("Add.", "Bye"):
                await run_turn(session, question, model=model, tools=[add], manager=manager(max_tool_calls_per_turn=1))
        return session

    with AnthropicStub(script) as stub:
        session = asyncio.run(scene(stub))
    assert len(stub.answers) == len(stub.requests) == 3
    assert stub.requests[1]["tool_choice"] == {"type": "none"}
    assert all(validate_anthropic(request) == [] for request in stub.requests)
    assert [item.extra.get("model") for item in session.items if item.usage] == [MODEL] * 3


class SearchingStub(AnthropicStub):
    """A model with a server-side web search. It pauses after each search.

    Attributes:
        pauses: Number of pauses.
        repeats: Requests that repeated its paused answer unchanged.
    """

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.pauses = pauses
        self.repeats = 0
        self._said: list[Body] = []

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        answer = super().serve(path, headers, body)
        last = body["messages"][-1]
        if last["role"] == "assistant":
            bare = [{key: value for key, value in block.items() if key != "cache_control"} for block in last["content"]]
            assert bare == self._said
            self.repeats += 1
            result = {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{self.repeats}", "content": []}
            content: list[Body] = [result, {"type": "text", "text": f"Found {self.repeats}. "}]
        else:
            content, self._said = [{"type": "text", "text": "I look it up. "}], []
        if self.repeats < self.pauses:
            search = {"type": "server_tool_use", "id": f"srvtoolu_{self.repeats + 1}", "name": "web_search", "input": {"query": "fjords"}}
            content, answer["stop_reason"] = [*content, search], "pause_turn"
        self._said += content
        return {**answer, "content": content}


@pytest.mark.parametrize("caching", [True, False])
def test_a_paused_answer_is_sent_back_unchanged_and_continued(caching: bool) -> None:
    web: Any = {"type": "web_search_20250305", "name": "web_search"}

    async def scene(stub: AnthropicStub) -> list[Any]:
        session = Session()
        async with anthropic_model(stub.url, is_async=True, caching=caching) as model:
            questions = ("Where are the fjords?", "Thanks.")
            return [await run_turn(session, words, model=model, tools=[web], manager=manager()) for words in questions]

    with SearchingStub(pauses=3) as stub:
        first, second = asyncio.run(scene(stub))
    assert (first.stop, first.requests, stub.repeats) == ("end_turn", 4, 3)
    assert first.text == "I look it up. Found 1. Found 2. Found 3. "
    assert second.requests == 1  # once nothing is paused, the whole log is valid as history
    assert validate_anthropic(stub.requests[-1]) == []


def test_text_that_only_looks_like_a_paused_call_is_not_restored() -> None:
    session = Session([Message("user", "Hi"), Message("assistant", "x", extra={"anthropic_blocks": [5]})])
    stub = AnthropicStub(prefill=True)
    answer_of(ANTHROPIC, stub, session=session)
    assert [block["text"] for block in stub.requests[0]["messages"][-1]["content"]] == ["x"]
