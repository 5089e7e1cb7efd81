"""Upstreams that fail in the middle of something, with and without the recall tool: the client sees it, and nothing is lost."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest

from tests.support.gateways import gateway
from tests.support.stubs.anthropic_events import events_of

from .test_gateway_http import MESSAGES, WAIT, Answer, long_body, says, upstream_that

Json = dict[str, Any]
TOOL = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
USAGE = {"input_tokens": 10, "output_tokens": 5}
RECALL: Json = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-5",
    "content": [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "t1", "name": "recall", "input": {"id": "0123456789ab"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": USAGE,
}
DONE: Json = {**RECALL, "id": "m2", "content": [{"type": "text", "text": "All done."}], "stop_reason": "end_turn"}
STREAM = events_of(DONE, 4)
PART = STREAM[: len(STREAM) // 2]
"""The first half of a stream. It ends in the middle of an event."""
STALL = 6
"""Seconds of a stall: one more than httpx waits by default. Those of half a minute behave alike."""
BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}

MODES = pytest.mark.parametrize("mode", ["plain", "recall", "second round"])
"""Without the tool; with it, in the answer that comes first; with it, in the answer to a recall's result."""


def body(*, streamed: bool) -> bytes:
    fields = json.loads(long_body())
    return json.dumps({**fields, "tools": [TOOL], "stream": streamed}).encode()


def kind_of(*, is_streamed: bool) -> str:
    return "text/event-stream" if is_streamed else "application/json"


def begins(handler: BaseHTTPRequestHandler, request: bytes, content: bytes = PART) -> None:
    """Begin an answer of unknown length with these bytes."""
    handler.send_response(200)
    handler.send_header("content-type", kind_of(is_streamed=json.loads(request)["stream"]))
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
    handler.wfile.flush()


def resets(handler: BaseHTTPRequestHandler, request: bytes) -> None:
    """Send a half and reset the connection."""
    begins(handler, request)
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.server.shutdown_request = handler.server.close_request  # type: ignore[method-assign]


def half_closes(handler: BaseHTTPRequestHandler, request: bytes) -> None:
    """Send a half and close this side of the connection, but not the other."""
    begins(handler, request)
    handler.connection.shutdown(socket.SHUT_WR)
    handler.close_connection = True


def failing(mode: str, fault: Answer, *, streamed: bool) -> Answer:
    """An upstream that fails once: at the first request, or in the second round at the one that answers a recall."""
    failed: list[bool] = []
    header = {"content-type": kind_of(is_streamed=streamed)}

    def answer(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        is_first_round = b'"tool_result"' not in content
        if mode == "second round" and is_first_round:
            says(200, events_of(RECALL, 40) if streamed else json.dumps(RECALL).encode(), header)(handler, content)
        elif not failed:
            failed.append(True)
            fault(handler, content)
        else:
            says(200, STREAM if streamed else json.dumps(DONE).encode(), header)(handler, content)

    return answer


class Seen:
    """An answer, as a client saw it.

    Attributes:
        status: Its status.
        headers: Its headers.
        content: The bytes of its body, up to where it broke off.
        broke_off: True if it did.
    """

    def __init__(self, address: str, *, streamed: bool) -> None:
        self.content, self.broke_off = b"", False
        headers = {"content-type": "application/json", "x-api-key": "k"}
        with (
            httpx.Client(trust_env=False, timeout=WAIT) as client,
            client.stream("POST", address + MESSAGES, content=body(streamed=streamed), headers=headers) as answer,
        ):
            self.status, self.headers = answer.status_code, answer.headers
            try:
                for piece in answer.iter_raw():
                    self.content += piece
            except (httpx.RemoteProtocolError, httpx.ReadError):
                self.broke_off = True


def run(mode: str, fault: Answer, *, streamed: bool) -> Seen:
    """Send a request that meets a fault, and the same again. The second one must be answered in full, with the same view."""
    with (
        upstream_that(failing(mode, fault, streamed=streamed)) as upstream,
        gateway(upstream.url, 2_000, recall=mode != "plain") as address,
    ):
        seen = Seen(address, streamed=streamed)
        again = Seen(address, streamed=streamed)
    assert (again.status, again.broke_off) == (200, False)
    assert (b"message_stop" if streamed else b"All done.") in again.content
    rounds = len(upstream.bodies) // 2
    assert upstream.bodies[:rounds] == upstream.bodies[rounds:]
    assert (b'"recall"' in upstream.bodies[0]) == (mode != "plain")
    assert b'"recall"' not in seen.content + again.content
    return seen


@MODES
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [429, 529])
def test_a_busy_upstream_says_so_itself(mode: str, streamed: bool, status: int) -> None:
    """A slow or failing upstream gives the client the upstream's own status and body. In a stream that has begun, as an event."""
    seen = run(mode, says(status, json.dumps(BUSY).encode(), {"retry-after": "7"}), streamed=streamed)
    assert not seen.broke_off
    if mode == "second round" and streamed:
        assert seen.status == 200
        assert b"Let me see." in seen.content
        assert seen.content.rstrip().endswith(b"data: " + json.dumps(BUSY, separators=(",", ":")).encode())
    else:
        assert (seen.status, json.loads(seen.content), seen.headers["retry-after"]) == (status, BUSY, "7")


@MODES
@pytest.mark.parametrize("fault", [resets, half_closes])
def test_a_stream_that_breaks_off_breaks_off_for_the_client(mode: str, fault: Answer) -> None:
    """The pieces before the fault reach the client. A whole end would make half an answer look like all of it."""
    seen = run(mode, fault, streamed=True)
    assert seen.status == 200
    assert seen.broke_off
    assert b"message_stop" not in seen.content
    if mode == "plain":
        assert PART.startswith(seen.content)
    assert b"message_start" in seen.content or fault is resets


@pytest.mark.parametrize("mode", ["recall", "second round"])
@pytest.mark.parametrize("fault", [resets, half_closes])
def test_a_whole_answer_that_breaks_off_is_an_error_of_the_gateway(mode: str, fault: Answer) -> None:
    """Nothing of it has reached the client, so the error has a status of its own."""
    seen = run(mode, fault, streamed=False)
    assert (seen.status, seen.broke_off) == (502, False)
    assert json.loads(seen.content)["error"]["message"].startswith("the gateway cannot reach")


@MODES
@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\xff\xfe not an event",
        b"data: {broken\n\n",
        b"event: message_start\ndata: []\n\n: comment\n\n",
        b'data: {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}}\n\n',
        b'data: {"type": "content_block_start", "index": [], "content_block": 3}\n\ndata: {"type": "message_delta", "usage": 3}\n\n',
        b'data: {"type": "message_start", "message": {"content": 3}}\n\ndata: {"type": "message_stop"}\n\n',
    ],
)
def test_garbage_in_a_stream_ends_nothing_but_that_answer(mode: str, garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """It is no fault of the gateway's, which has no traceback for it."""
    seen = run(mode, says(200, garbage, {"content-type": "text/event-stream"}), streamed=True)
    assert seen.status == 200
    assert caplog.text == ""
    if mode == "plain":
        assert seen.content == garbage


@MODES
def test_garbage_instead_of_an_answer_reaches_the_client(mode: str) -> None:
    seen = run(mode, says(200, b"<html>502"), streamed=False)
    assert (seen.status, seen.content) == (200, b"<html>502")


@MODES
def test_a_client_that_gives_up_on_a_stall_closes_the_upstream_s_connection(mode: str) -> None:
    """The gateway itself waits as long as the client does. What came before the stall has arrived."""
    stalled, closed = threading.Event(), threading.Event()

    def stalls(handler: BaseHTTPRequestHandler, request: bytes) -> None:
        begins(handler, request, STREAM[: STREAM.index(b"\n\n") + 2])
        stalled.set()
        handler.connection.settimeout(WAIT)
        if not handler.connection.recv(1):
            closed.set()
        handler.close_connection = True

    with (
        upstream_that(failing(mode, stalls, streamed=True)) as upstream,
        gateway(upstream.url, 2_000, recall=mode != "plain") as address,
    ):
        with (
            httpx.Client(trust_env=False, timeout=WAIT) as client,
            client.stream("POST", address + MESSAGES, content=body(streamed=True), headers={"x-api-key": "k"}) as answer,
        ):
            pieces = answer.iter_raw()
            assert b"message_start" in next(pieces)
            assert stalled.wait(WAIT)
        assert closed.wait(WAIT)
        again = Seen(address, streamed=True)
    assert b"message_stop" in again.content


def test_a_long_stall_is_only_a_stall() -> None:
    """Longer than HTTP libraries wait by default, before the answer and in the middle, with and without the tool: all arrives."""
    stalled = STREAM.index(b"\n\n") + 2

    def before(handler: BaseHTTPRequestHandler, request: bytes) -> None:
        time.sleep(STALL)
        says(200, STREAM, {"content-type": "text/event-stream"})(handler, request)

    def amid(handler: BaseHTTPRequestHandler, request: bytes) -> None:
        begins(handler, request, STREAM[:stalled])
        time.sleep(STALL)
        rest = STREAM[stalled:]
        handler.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(rest), rest))

    def seen(fault: Answer, mode: str) -> Seen:
        with upstream_that(fault) as upstream, gateway(upstream.url, 2_000, recall=mode != "plain") as address:
            return Seen(address, streamed=True)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(seen, [before, amid, before, amid], ["plain", "plain", "recall", "recall"]))
    assert [(answer.status, answer.broke_off) for answer in answers] == [(200, False)] * 4
    assert all(answer.content == STREAM for answer in answers[:2])
    assert all(b"message_stop" in answer.content for answer in answers)
