"""Clients of the gateway that mean harm: they do not read, leave without a word, ask for more meanwhile, or write what is no request."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler

import httpx
import pytest

from context_window.gateway import connections
from context_window.gateway.app import LARGE_BODY
from context_window.gateway.cost_limit import LONGEST_MODEL
from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.relay import OpenAnswer
from context_window.gateway.serve import UNREAD, _allow_files, bound_socket
from tests.support.gateways import gateway

from .test_gateway_http import MESSAGES, SHORT, WAIT, post, says, upstream_that

HEAD = b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\n" % MESSAGES.encode()
WHOLE = b"%bcontent-length: %d\r\n\r\n%b" % (HEAD, len(SHORT), SHORT)
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(SHORT), SHORT)
SECOND = b"POST /anthropic/v1/other HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n"


class Endless:
    """An upstream whose answer does not end before its connection does.

    Attributes:
        begun: Released by each answer.
        ended: Released by each answer at its end.
    """

    def __init__(self, piece: bytes) -> None:
        """
        Args:
            piece: What is sent again and again; nothing for an answer that stalls.
        """
        self.begun, self.ended = threading.Semaphore(0), threading.Semaphore(0)
        self._piece = piece

    def __call__(self, handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.close_connection = True
        handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        self.begun.release()
        with suppress(OSError):
            while self._piece:
                handler.wfile.write(self._piece)
            handler.connection.recv(1)
        self.ended.release()


@contextmanager
def connected(address: str, sent: bytes) -> Iterator[socket.socket]:
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as client:
        client.sendall(sent)
        yield client


@pytest.mark.parametrize("is_half_closed", [False, True])
def test_a_client_that_takes_nothing_of_an_answer_is_given_up(is_half_closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It held its own connection and one to the provider for as long as it liked."""
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.3)
    endless = Endless(b"data: x\n\n" * 5_000)
    with upstream_that(endless) as upstream, gateway(upstream.url, 10_000) as address, connected(address, WHOLE) as client:
        assert endless.begun.acquire(timeout=WAIT)
        if is_half_closed:
            client.shutdown(socket.SHUT_WR)
        assert endless.ended.acquire(timeout=WAIT)


@pytest.mark.parametrize("connection", [b"keep-alive", b"close"])
@pytest.mark.parametrize("more", [b"", SECOND * 100, b"\0" * 1_000])
def test_a_client_that_leaves_is_noticed_whatever_it_sent_meanwhile(
    connection: bytes, more: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A next request that waits stopped the reading, and so nobody saw the client leave."""
    stalled = Endless(b"")
    with (
        upstream_that(stalled) as upstream,
        gateway(upstream.url, 10_000) as address,
        connected(address, WHOLE.replace(b"\r\n", b"\r\nconnection: %b\r\n" % connection, 1)) as client,
    ):
        assert stalled.begun.acquire(timeout=WAIT)
        client.sendall(more)
        assert not stalled.ended.acquire(timeout=0.1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        client.close()
        assert stalled.ended.acquire(timeout=WAIT)
    assert len(upstream.bodies) == 1
    assert caplog.text == ""


def test_the_end_of_the_gateway_ends_open_answers_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """Each had a traceback, in the terminal that an assistant has."""
    endless = Endless(b"data: x\n\n" * 5_000)
    with upstream_that(endless) as upstream, ExitStack() as clients:
        with gateway(upstream.url, 10_000) as address:
            for _ in range(3):
                clients.enter_context(connected(address, WHOLE))
                assert endless.begun.acquire(timeout=WAIT)
        for _ in range(3):
            assert endless.ended.acquire(timeout=WAIT)
    assert caplog.text == ""


def test_others_work_between_the_pieces_of_an_answer() -> None:
    """Thousands of pieces of a byte can come in one packet."""
    pieces, turns = 1_000, 0

    async def content() -> AsyncIterator[bytes]:
        for _ in range(pieces):
            yield b"x"

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read() -> None:
        other = asyncio.create_task(count())
        assert [piece async for piece in OpenAnswer(httpx.Response(200, content=content())).pieces()] == [b"x"] * pieces
        other.cancel()

    asyncio.run(read())
    assert turns >= pieces


def test_the_system_keeps_little_of_an_answer_that_nobody_reads() -> None:
    with bound_socket("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 2 * UNREAD


def test_as_many_files_can_be_open_as_connections_need() -> None:
    resource = pytest.importorskip("resource")
    before = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 10, hard))
        _allow_files(soft - 5)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 5, hard)
        _allow_files(10)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 5, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


REFUSED = {
    "two lengths": HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\n" + SHORT,
    "a list of lengths": HEAD + b"content-length: 5, 6\r\n\r\n" + SHORT,
    **{
        f"a length of {length[:9]!r}": b"%bcontent-length: %b\r\n\r\n%b" % (HEAD, length, SHORT)
        for length in (b"-5", b"+5", b"0x10", b"1_0", b"1 0", b"", b"9" * 5_000, "٥".encode())
    },
    "a length and chunks": HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKED,
    "chunks and a length": HEAD + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n" + CHUNKED,
    **{
        f"an encoding {encoding!r}": b"%btransfer-encoding: %b\r\n\r\n%b" % (HEAD, encoding, CHUNKED)
        for encoding in (b"xchunked", b"gzip, chunked", b"chunked, identity", b"\x0bchunked", b"chunked\r\ntransfer-encoding: identity")
    },
    "a space before the colon": HEAD + b"transfer-encoding : chunked\r\n\r\n" + CHUNKED,
    **{
        f"a chunk of {size[:9]!r}": b"%btransfer-encoding: chunked\r\n\r\n%b\r\n%b\r\n0\r\n\r\n" % (HEAD, size, SHORT)
        for size in (b"-5", b"0x5", b"1_0", b"f" * 21, b"5;a\nb: c", b"5;" + b"b" * 1_000_000)
    },
    "a chunk that is longer": HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n" + SECOND,
    "a line feed in a value": HEAD + b"x: a\ncontent-length: 0\r\ncontent-length: 5\r\n\r\n" + SHORT,
    "a carriage return in a value": HEAD + b"x: a\rcontent-length: 0\r\ncontent-length: 5\r\n\r\n" + SHORT,
    "a value of 1 MB": HEAD + b"x: " + b"y" * 1_000_000 + b"\r\ncontent-length: 5\r\n\r\n" + SHORT,
    "300 headers": HEAD + b"".join(b"x%d: y\r\n" % number for number in range(300)) + b"content-length: 0\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": bytes.fromhex("160301020001000001fc0303") + bytes(500),
    "the address of another host": WHOLE.replace(b" /", b" http://evil.example/", 1),
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "TRACE": WHOLE.replace(b"POST", b"TRACE"),
    "a method in small letters": WHOLE.replace(b"POST", b"post"),
}
TAKEN = {
    "one length twice": b"%bcontent-length: %d\r\ncontent-length: %d\r\n\r\n%b" % (HEAD, len(SHORT), len(SHORT), SHORT),
    "chunks": HEAD + b"transfer-encoding: chunked\r\n\r\n" + CHUNKED,
    "chunks and trailers": HEAD + b"transfer-encoding: chunked\r\n\r\n" + CHUNKED[:-2] + b"x-api-key: evil\r\ncontent-length: 3\r\n\r\n",
    "a byte a chunk": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"".join(b"1\r\n%c\r\n" % byte for byte in SHORT) + b"0\r\n\r\n",
    "a folded header": HEAD + b"x: y\r\n transfer-encoding: chunked\r\ncontent-length: %d\r\n\r\n" % len(SHORT) + SHORT,
    "a body that goes on": WHOLE + b"\0\1",
    "an upgrade": WHOLE.replace(b"\r\n", b"\r\nupgrade: h2c\r\nconnection: upgrade\r\n", 1),
    "HTTP/1.0": WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
}


def test_no_framing_takes_a_request_past_what_was_checked() -> None:
    """What reads like a request in one way and like two in another reaches no upstream; what is taken arrives as one, with its length."""
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        for sent, statuses in [*((sent, b"4") for sent in REFUSED.values()), *((sent, b"2") for sent in TAKEN.values())]:
            upstream.bodies.clear()
            upstream.headers.clear()
            answer = b""
            with suppress(ConnectionError), connected(address, sent) as client:  # a reset: the rest is not read
                answer = client.recv(65_536)
            assert not answer or answer.startswith(b"HTTP/1.1 " + statuses), sent[:200]
            assert upstream.bodies == ([] if statuses == b"4" else [SHORT]), sent[:200]
            names = [name.lower() for name, _ in (upstream.headers or [[]])[0]]
            assert names.count("content-length") == len(upstream.bodies), sent[:200]
            assert not {"transfer-encoding", "upgrade", "connection", "x-api-key"} & set(names)


def test_requests_in_one_packet_are_answered_one_after_another() -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address, connected(address, WHOLE * 3) as client:
        answers = b""
        while answers.count(b"HTTP/1.1 200") < 3 and (piece := client.recv(65_536)):
            answers += piece
    assert upstream.bodies == [SHORT] * 3
    assert answers.count(b"HTTP/1.1 200") == 3


@pytest.mark.parametrize("place", ["app.request_object", "repairs.Repairs.applied", "anthropic_messages.AnthropicWire.conversation"])
def test_no_other_client_waits_while_a_large_body_is_read(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that takes time with its size is done where the answers of others pass."""
    has_begun, may_end = threading.Event(), threading.Event()

    def slowly(*_: object) -> None:
        has_begun.set()
        may_end.wait(20)

    monkeypatch.setattr(f"context_window.gateway.{place}", slowly)
    body = json.dumps({"model": "claude-sonnet-4-6", "messages": [{"role": "user", "content": "x" * LARGE_BODY}]}).encode()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, None) as address, ThreadPoolExecutor(1) as pool:
        large = pool.submit(post, address, body=body)
        assert has_begun.wait(20)
        assert httpx.get(f"{address}/metrics", timeout=10).status_code == 200
        may_end.set()
        assert large.result().status_code == 200


def test_a_model_s_name_has_a_length() -> None:
    """What is known of a model is kept by its name, thousands of them."""
    ledger = GatewayLedger()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000, ledger=ledger) as address:
        for length in (LONGEST_MODEL, LONGEST_MODEL + 1):
            body = {"model": "claude-sonnet-4-6".ljust(length, "x"), "messages": [{"role": "user", "content": "Hi"}]}
            assert post(address, body=json.dumps(body).encode()).status_code == 200
    assert (len(upstream.bodies), ledger.requests) == (2, 1)
