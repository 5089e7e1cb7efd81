"""`AnthropicSummarizer`, with fakes of both clients and with the real ones over a loopback connection."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from session import AnthropicSummarizer, FormatError, Message, Session, SummaryError


def answer(*texts: str, stop_reason: str | None = "end_turn") -> SimpleNamespace:
    blocks = [SimpleNamespace(type="thinking", thinking="hm"), *(SimpleNamespace(type="text", text=text) for text in texts)]
    return SimpleNamespace(content=blocks, stop_reason=stop_reason)


class Client:
    """A fake of Anthropic's client, synchronous or asynchronous."""

    def __init__(self, response: Any, *, asynchronous: bool, seconds: float = 0) -> None:
        self.messages = SimpleNamespace(create=self._create_later if asynchronous else self._create)
        self.given, self.seconds = response, seconds
        self.asked: dict[str, Any] = {}
        self.thread: int | None = None

    def _create(self, **request: Any) -> Any:
        time.sleep(self.seconds)
        self.asked, self.thread = request, threading.get_ident()
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    async def _create_later(self, **request: Any) -> Any:
        await asyncio.sleep(self.seconds)
        self.seconds = 0
        return self._create(**request)


BOTH = pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])


def problem_of(client: Any, **options: Any) -> str:
    async def ask() -> str:
        return await AnthropicSummarizer(client, "claude-haiku-4-5", **options)("prompt")

    return asyncio.run(ask())


@BOTH
def test_the_text_of_the_response_is_the_summary(asynchronous: bool) -> None:
    client = Client(answer("one ", "two"), asynchronous=asynchronous)
    assert problem_of(client, max_tokens=99, timeout=5) == "one two"
    assert client.asked == {
        "model": "claude-haiku-4-5",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "prompt"}],
        "timeout": 5.0,
    }
    assert (client.thread == threading.get_ident()) == asynchronous


@BOTH
@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "pause_turn", "tool_use", None])
def test_an_incomplete_response_is_an_error(asynchronous: bool, reason: str | None) -> None:
    with pytest.raises(SummaryError, match=str(reason)) as caught:
        problem_of(Client(answer("half", stop_reason=reason), asynchronous=asynchronous))
    assert ("pass a larger max_tokens" in str(caught.value)) == (reason == "max_tokens")


@BOTH
@pytest.mark.parametrize("response", [answer(), answer(" \n"), SimpleNamespace(content=None, stop_reason="end_turn")], ids=range(3))
def test_a_response_without_text_is_an_error(asynchronous: bool, response: Any) -> None:
    with pytest.raises(SummaryError, match="answered without a text"):
        problem_of(Client(response, asynchronous=asynchronous))


@BOTH
def test_a_slow_response_is_a_timeout(asynchronous: bool) -> None:
    with pytest.raises(SummaryError, match=r"'claude-haiku-4-5' did not answer within 0\.05 seconds"):
        problem_of(Client(answer("late"), asynchronous=asynchronous, seconds=0.3), timeout=0.05)


@BOTH
def test_an_error_of_the_client_is_raised_and_leaves_the_log_unchanged(asynchronous: bool) -> None:
    session = Session([Message("user", "u"), Message("assistant", "a")])
    before = session.to_dict()
    with pytest.raises(SummaryError, match="ConnectionError: 'no route'"):
        asyncio.run(
            session.summarize(AnthropicSummarizer(Client(ConnectionError("no route"), asynchronous=asynchronous), "m"), keep_recent_turns=0)
        )
    assert session.to_dict() == before


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"client": None}, "client"),
        ({"client": SimpleNamespace(messages=None)}, "client"),
        ({"model": " "}, "model"),
        ({"model": None}, "model"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"timeout": "5"}, "timeout"),
    ],
    ids=range(11),
)
def test_invalid_arguments_are_refused_in_the_constructor(arguments: dict[str, Any], where: str) -> None:
    values: dict[str, Any] = {"client": Client(answer("x"), asynchronous=True), "model": "m"} | arguments
    with pytest.raises(FormatError, match=rf"^AnthropicSummarizer\.{where}"):
        AnthropicSummarizer(values.pop("client"), values.pop("model"), **values)


# The real clients


@contextmanager
def endpoint() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a local server that answers like the Messages API. Give its address and the list of requests."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            body = json.dumps(
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-haiku-4-5",
                    "content": [{"type": "text", "text": "what was said"}],
                    "stop_reason": "end_turn",
                    "stop_sequence": None,
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing, to keep the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("name", ["AsyncAnthropic", "Anthropic"])
def test_the_real_clients_write_summaries(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import anthropic

    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    session = Session([Message("user", "hello"), Message("assistant", "good day")])

    async def summarize(url: str) -> None:
        client: Any = getattr(anthropic, name)(api_key="none", base_url=url, max_retries=0)
        await session.summarize(AnthropicSummarizer(client, "claude-haiku-4-5"), keep_recent_turns=0)
        closed = client.close()
        if name == "AsyncAnthropic":
            await closed

    with endpoint() as (url, requests):
        asyncio.run(summarize(url))
    assert [message.text for message in session.messages()] == ["hello", "[Conversation Summary]\nwhat was said"]
    assert "assistant: good day" in requests[0]["messages"][0]["content"]
