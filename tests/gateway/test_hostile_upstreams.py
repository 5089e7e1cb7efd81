"""What another client of the gateway waits beside an upstream, or a client, that means harm."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import httpx
import pytest

from context_window.gateway import connections
from tests.gateway.test_gateway_http import says, upstream_that
from tests.support.gateways import gateway

WORST = 2.0
"""Seconds that another client may wait, on a busy machine. What broke took 16 and 25."""
PATIENCE = 60
QUESTION = {"role": "user", "content": "Hi."}
LONG = [{"role": ("user", "assistant")[turn % 2], "content": f"{turn} word" * 500} for turn in range(41)]
TOOLS = [{"name": "f", "input_schema": {"type": "object"}}]
MB = 1_000_000
EVENT = b"data: " + b"x" * 8 * MB
JSON = [("content-type", "application/json")]
STREAM = [("content-type", "text/event-stream")]


def packed(layers: int) -> bytes:
    content = bytes(100 * MB)
    for _ in range(layers):
        content = gzip.compress(content, 1)
    return content


def packed_pieces(*contents: bytes) -> list[bytes]:
    """Return one packed stream in pieces that each unpack to one of the contents."""
    packer = zlib.compressobj(9, wbits=31)
    return [packer.compress(content) + packer.flush(zlib.Z_SYNC_FLUSH) for content in contents]


class Slowly(list[bytes]):
    """Pieces of which each comes by itself."""

    def __iter__(self) -> Iterator[bytes]:
        for piece in super().__iter__():
            yield piece
            time.sleep(0.1)


BOMB, DOUBLE = packed(1), packed(2)
LINES = b'data: "usage"\n' + b"data:\n" * 650_000
DELTA = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}\n\n' % (b"x" * 100)
STOP = b'data: {"type":"message_stop"}\n\n'
BLOCK = b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
Answer = tuple[str, Sequence[tuple[str, str]], Sequence[bytes]]
HOSTILE: dict[str, Answer] = {
    "a refusal packed once": ("400 Bad", [("content-encoding", "gzip"), *JSON], [BOMB]),
    "a refusal packed twice": ("400 Bad", [("content-encoding", "gzip, gzip"), *JSON], [DOUBLE]),
    "an answer packed once": ("200 OK", [("content-encoding", "gzip"), *JSON], [BOMB]),
    "a stream packed once": ("200 OK", [("content-encoding", "gzip"), *STREAM], [BOMB]),
    "an event of 8 MB": ("200 OK", STREAM, [EVENT[at : at + 16_384] for at in range(0, len(EVENT), 16_384)]),
    "blank lines": ("200 OK", STREAM, [b"\n" * 4 * MB]),
    "small events": ("200 OK", STREAM, [b'data:{"usage":1}\n' * 100_000]),
    "4 MB out of a few bytes, again and again": ("200 OK", [("content-encoding", "gzip"), *STREAM], Slowly(packed_pieces(*[LINES] * 4))),
    "an event of many lines": ("200 OK", STREAM, [b"a\n" * 500_000] * 15),
    "an event of many lines of data": ("200 OK", STREAM, [b"data:\n" * 500_000] * 8),
    "a text in many pieces": ("200 OK", STREAM, [b'data: {"type":"message_start","message":{}}\n\n', BLOCK, DELTA * 40_000, STOP]),
    "an answer of 200 MB": ("200 OK", JSON, [b'{"x":"', *[b"a" * MB] * 200]),
    "nested JSON": ("400 Bad", JSON, [b"[" * 99_000]),
    "a long number": ("400 Bad", JSON, [b'{"error":{"message":"prompt is too long: ' + b"9" * 90_000 + b' tokens > 5 maximum"}}']),
    "many reports": ("200 OK", JSON, [b"[" + b'{"usage":{"input_tokens":1}},' * 100_000 + b"{}]"]),
    "numbers that are none": ("200 OK", JSON, [b'{"usage":{"input_tokens":1E400,"output_tokens":' + b"9" * 400 + b"}}"]),
    "no status of HTTP": ("999 Odd", JSON, [b"{}"]),
    "a header of 5 MB": ("200 OK", [("x-long", "y" * 5 * MB)], [b"{}"]),
}


def serving(answer: Answer) -> Callable[[BaseHTTPRequestHandler, bytes], None]:
    """Return an upstream that answers so, byte for byte, whoever says to come for that; others get an answer at once."""
    status, headers, pieces = answer

    def respond(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if "x-victim" in handler.headers:
            says(200, b"{}")(handler, body)
            return
        head = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers), "connection: close", "", ""]
        handler.close_connection = True
        with suppress(OSError):
            handler.wfile.write("\r\n".join(head).encode())
            for piece in pieces:
                handler.wfile.write(piece)

    return respond


def body(messages: object) -> bytes:
    return json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages, "tools": TOOLS}).encode()


@pytest.mark.no_cover
@pytest.mark.parametrize("recall", [False, True], ids=["plain", "recall"])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_other_client_waits_for_a_hostile_upstream(name: str, recall: bool) -> None:
    """Whatever it answers, another client gets its answers meanwhile. Who asked it gets these bytes, or an error of the gateway's.

    A busy machine can make any client wait, but not three times: a fault does.
    """
    assert any(longest_wait(HOSTILE[name], recall=recall) < WORST for _ in range(3))


def longest_wait(hostile: Answer, *, recall: bool) -> float:
    """Let one client get a hostile answer, and check what it got. Return the seconds that another one waited at most meanwhile."""
    waits: list[float] = []
    is_over = threading.Event()
    with upstream_that(serving(hostile)) as upstream, gateway(upstream.url, 8_000, recall=recall) as address:
        url = f"{address}/anthropic/v1/messages"

        def ask_again_and_again() -> None:
            with httpx.Client(timeout=PATIENCE, trust_env=False) as client:
                while not is_over.is_set():
                    begun = time.perf_counter()
                    assert client.post(url, content=body([QUESTION]), headers={"x-victim": "1"}).status_code == 200
                    waits.append(time.perf_counter() - begun)

        victim = threading.Thread(target=ask_again_and_again)
        victim.start()
        asked = httpx.stream("POST", url, content=body(LONG), headers={"accept-encoding": "identity"}, timeout=PATIENCE, trust_env=False)
        with asked as answer:
            length = sum(map(len, answer.iter_raw()))
            status = answer.status_code
        is_over.set()
        victim.join()
    expected, _, pieces = hostile
    assert status == 502 or (expected[:3] == str(status) and length == sum(map(len, pieces)))
    return max(waits)


def test_who_leaves_does_not_stay_with_an_answer_that_never_ends() -> None:
    """A refusal is read before it is passed on. Its connection is closed when the client has left."""
    ends: list[bytes | str] = []
    is_over = threading.Event()

    def never(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.close_connection = True
        handler.wfile.write(b"HTTP/1.1 400 Bad\r\ncontent-length: 90000\r\n\r\n{")
        handler.connection.settimeout(PATIENCE / 4)
        try:
            ends.append(handler.connection.recv(1))
        except OSError as error:
            ends.append(type(error).__name__)
        is_over.set()

    with upstream_that(never) as upstream, gateway(upstream.url, 8_000) as address:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{address}/anthropic/v1/messages", content=body([QUESTION]), timeout=0.5, trust_env=False)
        assert is_over.wait(PATIENCE / 2)
    assert ends in ([b""], ["ConnectionResetError"])


HALF = b"POST /anthropic/v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-le"


@pytest.mark.parametrize("sent", [b"", HALF], ids=["nothing", "half a head"])
@pytest.mark.parametrize("is_second", [False, True], ids=["first", "second"])
def test_half_a_request_does_not_stay(sent: bytes, is_second: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is closed, be it the first request there or a later one."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 8_000) as address:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port), PATIENCE) as connection:
            if is_second:
                connection.sendall(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
                while b"gateway_decision" not in connection.recv(65_536):
                    pass
            connection.sendall(sent)
            begun = time.perf_counter()
            while connection.recv(65_536):
                pass
            assert time.perf_counter() - begun < PATIENCE / 2
