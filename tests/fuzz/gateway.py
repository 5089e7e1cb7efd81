"""Targets `requests` and `answers`: what clients send to the gateway, and what upstreams answer.

The promise: whatever the bytes, no exception leaves the application and no status is 500. A client gets the upstream's answer, or a refusal
with an error in JSON. An answer without recalls arrives byte for byte. Each exchange ends.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from random import Random
from typing import Any, NamedTuple

import httpx

from context_window import ContextWindow
from context_window.gateway.app import gateway_app
from context_window.gateway.ledger import GatewayLedger

from .checks import REFUSED
from .seeds import Seed, event_stream, make_seed

PATIENCE = 60
"""Seconds that an exchange may take, on a busy machine."""
BUDGET = 2_000
"""Tokens of the window: the conversations of `REQUESTS` do not fit."""
REFUSALS = frozenset({400, 402, 403, 404, 408, 413, 502})
OWN_PAGES = frozenset({"/", "/live", "/status", "/metrics"})
TURNS = [f"turn {number} " + "word " * 250 for number in range(8)]
RECALL = {"query": "turn"}
USAGE = {"input_tokens": 5, "output_tokens": 2}
CHAT_USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


class Api(NamedTuple):
    """One wire format.

    Attributes:
        path: The address of a conversation.
        body: A request.
        answers: Whole answers: one with a recall, and one without.
        events: A stream with a recall.
    """

    path: str
    body: dict[str, Any]
    answers: tuple[Any, Any]
    events: list[Any]


def _turns(model: str = "assistant") -> Iterator[tuple[str, str]]:
    for number, text in enumerate(TURNS):
        yield ("user", model)[number % 2], text
    yield "user", "And now?"


def _messages() -> list[Any]:
    return [{"role": role, "content": text} for role, text in _turns()]


def _block(index: int, block: Any, delta: Any) -> list[Any]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def _chunk(delta: Any, reason: str | None = None) -> Any:
    return {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _candidate(parts: list[Any], **more: Any) -> Any:
    return {"responseId": "x", "candidates": [{"content": {"role": "model", "parts": parts}, **more}]}


_SAID = {"type": "text", "text": "Let me see."}
_MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "stop_reason": None, "usage": USAGE}
_USE = {"type": "tool_use", "id": "t", "name": "recall", "input": RECALL}
_TOOL_CALL = {"id": "c", "type": "function", "function": {"name": "recall", "arguments": json.dumps(RECALL)}}
_ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "recall", "arguments": json.dumps(RECALL)}
_REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
_TEXT_ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}
_RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "usage": USAGE}
_PART = {"functionCall": {"name": "recall", "args": RECALL}, "thoughtSignature": "c2ln"}
_METADATA = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}

APIS: dict[str, Api] = {
    "anthropic": Api(
        "/anthropic/v1/messages",
        {
            "model": "claude-sonnet-5-5",
            "max_tokens": 100,
            "system": "S",
            "messages": _messages(),
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        },
        (
            {**_MESSAGE, "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, _SAID, _USE], "stop_reason": "tool_use"},
            {**_MESSAGE, "content": [_SAID], "stop_reason": "end_turn"},
        ),
        [
            {"type": "message_start", "message": {**_MESSAGE, "content": []}},
            *_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Let me see."}),
            *_block(1, {**_USE, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(RECALL)}),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ],
    ),
    "chat": Api(
        "/openai/v1/chat/completions",
        {"model": "gpt-5.2", "messages": _messages(), "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
        (
            {
                "id": "x",
                "choices": [{"message": {"role": "assistant", "content": "a", "tool_calls": [_TOOL_CALL]}, "finish_reason": "tool_calls"}],
                "usage": CHAT_USAGE,
            },
            {"id": "x", "choices": [{"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}], "usage": CHAT_USAGE},
        ),
        [
            _chunk({"role": "assistant", "content": "a"}),
            _chunk({"tool_calls": [{"index": 0, **_TOOL_CALL}]}),
            _chunk({}, "tool_calls"),
            {"id": "x", "choices": [], "usage": CHAT_USAGE},
        ],
    ),
    "responses": Api(
        "/openai/v1/responses",
        {
            "model": "gpt-5.2",
            "instructions": "S",
            "input": _messages(),
            "store": False,
            "tools": [{"type": "function", "name": "f", "parameters": {}}],
        },
        ({**_RESPONSE, "output": [_REASONING, _ITEM]}, {**_RESPONSE, "output": [_TEXT_ITEM]}),
        [
            {"type": "response.created", "sequence_number": 0, "response": {**_RESPONSE, "output": []}},
            {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": _REASONING},
            {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": _REASONING},
            {"type": "response.output_item.added", "sequence_number": 3, "output_index": 1, "item": {**_ITEM, "arguments": ""}},
            {"type": "response.function_call_arguments.delta", "sequence_number": 4, "output_index": 1, "item_id": "fc_1", "delta": "{}"},
            {"type": "response.output_item.done", "sequence_number": 5, "output_index": 1, "item": _ITEM},
            {"type": "response.completed", "sequence_number": 6, "response": {**_RESPONSE, "output": [_REASONING, _ITEM]}},
        ],
    ),
    "google": Api(
        "/google/v1beta/models/gemini-3-pro-preview:generateContent",
        {
            "contents": [{"role": role, "parts": [{"text": text}]} for role, text in _turns("model")],
            "tools": [{"functionDeclarations": [{"name": "f"}]}],
        },
        (
            {**_candidate([{"text": "a"}, _PART], finishReason="STOP"), "usageMetadata": _METADATA},
            {**_candidate([{"text": "a"}], finishReason="STOP"), "usageMetadata": _METADATA},
        ),
        [_candidate([{"text": "a"}]), _candidate([_PART]), {**_candidate([], finishReason="STOP"), "usageMetadata": _METADATA}],
    ),
}
STREAM = "-stream"
"""End of the name of an input that is a stream."""
REFUSAL = {"error": {"type": "invalid_request_error", "message": "prompt is too long: 5000 tokens > 1500 maximum"}, "type": "error"}
PATHS = (
    "",
    "/",
    "/live",
    "/status",
    "/metrics",
    "/nobody/x",
    "/anthropic",
    "/openai/v1/../x",
    "/google/%2e%2e/x",
    "/%ff/\udcff",
    "/openai/\t",
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"host", b"evil.example"),
    (b"host", b"[::1"),
    (b"host", b"\xff"),
    (b"origin", b"null"),
    (b"content-encoding", b"gzip"),
    (b"content-length", b"-1"),
    (b"connection", b"x, ,\xff"),
    (b"\xff", b"\0"),
    (b"x-long", b"y" * 10_000),
    (b"expect", b"100-continue"),
    (b"accept-encoding", b"br;q=x"),
    (b"cookie", b"\r\na: b"),
)
ENCODINGS = (b"gzip", b"x-gzip", b"deflate", b"br", b"identity", b"GZIP", b"gzip, gzip", b"\xff", b"")
TYPES = (b"text/event-stream", b"text/event-stream; charset=x", b"application/json", b"", b"\xff")


def request_seeds() -> Iterator[Seed]:
    """Yield a request of each wire format."""
    for name, api in APIS.items():
        yield make_seed(name, "file", "document", api.body, "requests")


def answer_seeds() -> Iterator[Seed]:
    """Yield the answers and the stream of each wire format, and a refusal."""
    for name, api in APIS.items():
        yield make_seed(name, "file", "document", api.answers[0], "answers")
        yield make_seed(name + STREAM, "file", "events", api.events, "answers")
    yield make_seed("anthropic", "file", "document", REFUSAL, "answers")


def check_request(seed: Seed, body: bytes, number: int) -> str:
    """Send a damaged request to the gateway. Every third one has a damaged address or header as well.

    Args:
        seed: The seed, named after its wire format.
        body: The mutant.
        number: Decides the address, the headers and the pieces of the body.
    """
    chance = Random(number)
    path, headers, query = APIS[seed.name].path, [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")], b""
    method = "POST"
    if chance.random() < 1 / 3:
        start = chance.randrange(len(path))
        path = chance.choice((chance.choice(PATHS), path[:start] + chance.choice(("%", "\\", "//", "\0", "%00", "ü", "?")) + path[start:]))
        headers += chance.sample(HEADERS, 2)
        query = chance.choice((b"", b"alt=sse", b"\xff=%", b"&&=", b"k=\n"))
        method = chance.choice(("POST", "GET", "PUT", "HEAD", "OPTIONS", "DELETE"))
    upstream = _Upstream([Reply(200, [(b"x-upstream", b"1")], [b"{}"])])
    exchange = run_exchange(upstream, method, path, headers, body, query=query, recall=number % 2 == 0)
    for sent in upstream.bodies:
        assert sent == body or isinstance(_loaded(sent), dict), "the upstream got a body that is neither the client's nor JSON"
    if (b"x-upstream", b"1") in exchange.headers:
        return "relayed"
    return _refused(exchange, path, method)


def _loaded(content: bytes) -> object:
    """Return a JSON value that may be nested as deeply as an empty stack allows."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(json.loads, content).result()


def _refused(exchange: Exchange, path: str, method: str) -> str:
    """Check that an answer of the gateway's own is a refusal, or one of its pages."""
    if path in OWN_PAGES and exchange.status == 200:
        return "a page"
    assert exchange.status in REFUSALS or (exchange.status == 405 and path in OWN_PAGES), f"status {exchange.status}"
    if exchange.status != 405 and method != "HEAD":
        assert json.loads(exchange.body)["error"]["message"]
    return REFUSED


def check_answer(seed: Seed, body: bytes, number: int) -> str:
    """Let an upstream give a damaged answer to a request that has the recall tool.

    Args:
        seed: The seed, named after its wire format, and that it is a stream.
        body: The mutant.
        number: Decides the answer's status, headers and pieces, and the answer to a recall.
    """
    name, is_stream = seed.name.removesuffix(STREAM), seed.name.endswith(STREAM)
    chance, api = Random(number), APIS[name]
    headers = [(b"content-type", b"text/event-stream" if is_stream else b"application/json")]
    status, sent, has_foreign_headers = 400 if seed.value() == REFUSAL else 200, body, False
    if chance.random() < 0.2:
        headers, has_foreign_headers = [(b"content-type", chance.choice(TYPES)), (b"content-encoding", chance.choice(ENCODINGS))], True
        status = chance.choice((200, 200, 200, 204, 299, 400, 413, 500, 529, 999))
        sent = chance.choice((body, gzip.compress(body), zlib.compress(body), gzip.compress(body)[:-9]))
    size = chance.choice((1_000_000, 1_000, 97, 1 + len(sent) // 50))
    first = Reply(status, headers, [sent[start : start + size] for start in range(0, len(sent), size)])
    second = chance.choice((first, *_sound_replies(name)))
    upstream = _Upstream([first, second])
    recall = chance.random() < 0.8
    path, query, request = _request(name, is_stream=is_stream)
    exchange = run_exchange(upstream, "POST", path, _CLIENT, request, query=query, recall=recall)
    if exchange.status == 502:
        return _refused(exchange, api.path, "POST")
    assert exchange.status == status or len(upstream.bodies) > 1, f"status {exchange.status}"
    if len(upstream.bodies) == 1 and not (recall and b"recall" in body):
        assert exchange.body == sent, "the answer did not arrive as it was sent"
    return "recalled" if exchange.recalls else "damaged headers" if has_foreign_headers else "answered"


_CLIENT = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]


@cache
def _request(name: str, *, is_stream: bool) -> tuple[str, bytes, bytes]:
    """Return the path, the query and the body of a request for a whole answer, or for a stream."""
    path, body = APIS[name].path, APIS[name].body
    if name == "google":
        return (
            (path.replace(":generate", ":streamGenerate"), b"alt=sse", json.dumps(body).encode())
            if is_stream
            else (path, b"", json.dumps(body).encode())
        )
    return path, b"", json.dumps({**body, "stream": is_stream}).encode()


@cache
def _sound_replies(name: str) -> tuple[Reply, Reply]:
    """Return a whole answer and a stream as the upstream sends them."""
    answer, stream = json.dumps(APIS[name].answers[1]), event_stream(APIS[name].events)
    return (
        Reply(200, [(b"content-type", b"application/json")], [answer.encode()]),
        Reply(200, [(b"content-type", b"text/event-stream")], [stream.encode()]),
    )


class Reply(NamedTuple):
    """An answer of the stub: status, headers and pieces of the body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    pieces: list[bytes]


class Exchange(NamedTuple):
    """A client's answer, and the number of recalls in it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    recalls: int


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class _Upstream(httpx.AsyncBaseTransport):
    """An upstream with prepared replies. The last one is repeated.

    Attributes:
        bodies: The bodies of its requests.
    """

    def __init__(self, replies: list[Reply]) -> None:
        self._replies = replies
        self.bodies: list[bytes] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(await request.aread())
        reply = self._replies[min(len(self.bodies), len(self._replies)) - 1]
        return httpx.Response(reply.status, headers=reply.headers, stream=_Pieces(reply.pieces))


def run_exchange(
    upstream: _Upstream, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes, *, query: bytes, recall: bool
) -> Exchange:
    """Send one request to a new gateway and return the answer.

    Raises:
        AssertionError: The exchange is not one of HTTP.
        TimeoutError: It did not end.
    """
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path.encode("utf-8", "replace").decode(),
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    return _runner().run(_exchange(upstream, scope, body, recall=recall))


@cache
def _runner() -> asyncio.Runner:
    """Return the event loop of this process. A new one for each exchange would take half of its time."""
    return asyncio.Runner()


async def _exchange(upstream: _Upstream, scope: dict[str, Any], body: bytes, *, recall: bool) -> Exchange:
    half = len(body) // 2
    incoming = [{"type": "http.request", "body": body[:half], "more_body": True}, {"type": "http.request", "body": body[half:]}]
    outgoing: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0) if incoming else await asyncio.Future()

    async def send(message: Any) -> None:
        outgoing.append(message)

    ledger = GatewayLedger()
    window = ContextWindow(max_tokens=BUDGET, keep_first_message=True)
    app = gateway_app(window, ledger=ledger, recall=recall, transport=upstream)
    async with asyncio.timeout(PATIENCE), app.router.lifespan_context(app):
        await app(scope, receive, send)
    await asyncio.sleep(0)  # what was cancelled ends
    assert asyncio.all_tasks() == {asyncio.current_task()}, "a task is left"
    start, *pieces = outgoing
    assert start["type"] == "http.response.start"
    assert all(piece["type"] == "http.response.body" for piece in pieces)
    assert pieces, "the answer has no body"
    assert not pieces[-1].get("more_body", False), "the answer has no end"
    return Exchange(start["status"], start["headers"], b"".join(piece.get("body", b"") for piece in pieces), ledger.recalls)
