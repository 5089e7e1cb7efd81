"""What passes through the gateway: bytes, headers, errors, broken connections; and who may use it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from context_window import ArgumentError, ContextWindow
from context_window.gateway.anthropic_messages import AnthropicWire
from context_window.gateway.app import gateway_app
from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.serve import bound_socket
from context_window.gateway.windows import Windows
from tests.support.gateways import gateway

Answer = Callable[[BaseHTTPRequestHandler, bytes], None]
MESSAGES = "/anthropic/v1/messages"
SHORT = b'{"model": "claude-sonnet-5-5",  "max_tokens": 10, "messages": [{"role": "user", "content": "Hi \\u00e9"}], "unknown": [1.0, 1e3]}'
WAIT = 20


class Upstream:
    """A provider that answers as a test says, and remembers the requests."""

    def __init__(self, answer: Answer) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[list[tuple[str, str]]] = []
        self.paths: list[str] = []
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                upstream.bodies.append(body)
                upstream.headers.append(list(self.headers.items()))
                upstream.paths.append(self.path)
                answer(self, body)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def upstream_that(answer: Answer) -> Iterator[Upstream]:
    upstream = Upstream(answer)
    thread = threading.Thread(target=upstream.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        upstream.server.shutdown()
        upstream.server.server_close()
        thread.join()


def says(status: int, body: bytes, headers: dict[str, str] | None = None) -> Answer:
    """An answer with this body."""

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(status)
        for name, value in {"content-type": "application/json", "x-own": "kept", **(headers or {})}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def post(address: str, path: str = MESSAGES, body: bytes = SHORT, headers: Mapping[str, str] | None = None) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=WAIT) as client:
        return client.post(address + path, content=body, headers={"content-type": "application/json", **(headers or {})})


def long_body(turns: int = 60) -> bytes:
    messages: list[Any] = []
    for number in range(turns):
        messages += [{"role": "user", "content": f"{number} " + "words " * 50}, {"role": "assistant", "content": "words " * 50}]
    messages.append({"role": "user", "content": "And now?"})
    return json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages, "metadata": {"user_id": "u"}}).encode()


def test_a_conversation_that_fits_goes_out_byte_for_byte() -> None:
    """While the conversation fits the budget the body goes out byte-identical."""
    with upstream_that(says(200, b'{"ok":  true}')) as upstream, gateway(upstream.url, 10_000) as address:
        answer = post(address, f"{MESSAGES}?beta=true", headers={"x-api-key": "secret", "anthropic-beta": "a,b"})
    assert upstream.bodies == [SHORT]
    assert upstream.paths == ["/v1/messages?beta=true"]
    sent = {name.lower(): value for name, value in upstream.headers[0]}
    assert (sent["x-api-key"], sent["anthropic-beta"]) == ("secret", "a,b")
    assert sent["host"] == upstream.url.removeprefix("http://")
    assert (answer.status_code, answer.content, answer.headers["x-own"]) == (200, b'{"ok":  true}', "kept")


def test_the_task_is_never_emptied(caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be fitted without touching the user's words goes out unchanged, is counted, and said at once with the smallest sensible
    budget"""
    words = [
        {"role": "user", "content": "Do this first: " + "move the file, " * 400},
        {"role": "user", "content": "and that: " + "b " * 900},
    ]
    for messages in ([words[0]], [*words, {"role": "assistant", "content": "Yes."}, words[1]]):
        body = json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages}).encode()
        ledger = GatewayLedger()
        caplog.clear()
        with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 1_000, ledger=ledger) as address:
            for _ in range(3):
                post(address, body=body)
            with httpx.Client(trust_env=False, timeout=WAIT) as client:
                page, status = client.get(address).text, client.get(f"{address}/status").json()
        assert upstream.bodies == [body] * 3
        assert ledger.unmanaged == {"ContextOverflowError": 3}
        told = [record.getMessage() for record in caplog.records if record.name == "context_window.gateway.app"]
        assert len(told) == 1
        assert f"The smallest sensible one is {status['smallest']:,} tokens" in page
        smallest = int(told[0].partition("The smallest sensible budget for it is ")[2].partition(" tokens")[0].replace(",", ""))
        assert 1_500 < smallest < 8_000
        with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, smallest, ledger=ledger) as address:
            post(address, body=body)
        assert ledger.unmanaged == {"ContextOverflowError": 3}


def test_only_messages_change() -> None:
    body = long_body()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 2_000) as address:
        post(address, body=body)
        post(address, f"{MESSAGES}/count_tokens", body=body)
    given, sent = json.loads(body), json.loads(upstream.bodies[0])
    assert list(sent) == list(given)
    assert {**sent, "messages": None} == {**given, "messages": None}
    assert len(sent["messages"]) < len(given["messages"]) / 2
    assert sent["messages"][-1] == given["messages"][-1]
    assert upstream.bodies[1] == upstream.bodies[0]


def test_another_worker_sends_the_same_view() -> None:
    """A worker holds nothing that the conversation does not say."""
    bodies = [long_body(turns) for turns in (20, 40, 60)]
    with upstream_that(says(200, b"{}")) as upstream:
        with gateway(upstream.url, 2_000) as address:
            for body in bodies:
                post(address, body=body)
        with gateway(upstream.url, 2_000) as address:
            post(address, body=bodies[-1])
    assert upstream.bodies[2] == upstream.bodies[3]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/anthropic/v1/models", b""),
        (MESSAGES, b"no json"),
        (MESSAGES, b"[" * 100_000),
        (MESSAGES, b'{"messages": [3]}'),
        (MESSAGES, b'{"model": 3, "messages": []}'),
        (MESSAGES, b'{"model": "claude-sonnet-5-5", "messages": [{"role": "user", "content": [null, 3, {"type": []}]}]}'),
        (MESSAGES, b'{"model": "claude-sonnet-5-5", "messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}'),
        (MESSAGES, b'{"model": "no-such-model", "messages": [{"role": "user", "content": "a"}], "tools": [3]}'),
        ("/openai/v1/responses", b'{"model": "gpt-5", "input": [{}], "previous_response_id": "r"}'),
        ("/openai/v1/responses", b'{"model": "gpt-5", "input": [{"type": "odd"}]}'),
        ("/openai/v1/chat/completions", b'{"model": "gpt-5", "messages": [{"role": "tool"}]}'),
        (
            "/google/v1beta/models/gemini-3-pro:generateContent",
            b'{"contents": [{"parts": [{"functionCall": 3}, 7]}], "cachedContent": "c"}',
        ),
        ("/google/v1beta/models/gemini-3-pro:generateContent", b'{"contents": [{"parts": [{"functionResponse": {}}]}]}'),
        ("/google/v1beta/models/gemini-3-pro:countTokens", b'{"contents": [{"parts": [{"text": "a"}]}]}'),
        ("/openai/v1/embeddings", b'{"model": "e", "input": "a"}'),
    ],
)
def test_whatever_the_gateway_does_not_understand_goes_to_the_upstream_unchanged(path: str, body: bytes) -> None:
    with upstream_that(says(400, b'{"error": {"message": "no"}}')) as upstream, gateway(upstream.url, 1_000) as address:
        answer = post(address, path, body)
    assert (answer.status_code, upstream.bodies) == (400, [body])


def test_a_compressed_body_passes_through() -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 1_000) as address:
        post(address, body=b"\x28\xb5\x2f\xfd", headers={"content-encoding": "zstd"})
    assert upstream.bodies == [b"\x28\xb5\x2f\xfd"]


def test_a_body_over_the_limit_is_refused_in_the_provider_s_words() -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 1_000, largest_body=1_000) as address:
        anthropic, openai = post(address, body=b"x" * 1_001), post(address, "/openai/v1/responses", b"x" * 1_001)
    assert upstream.bodies == []
    assert (anthropic.status_code, anthropic.json()["error"]["type"]) == (413, "request_too_large")
    assert (openai.status_code, openai.json()["error"]["type"]) == (413, "invalid_request_error")


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (400, "invalid_request_error", "prompt is too long: 9000 tokens > 5000 maximum"),
        (413, "request_too_large", "Request exceeds the maximum size"),
    ],
)
def test_a_prompt_that_is_too_long_is_sent_once_more_and_smaller(status: int, kind: str, message: str) -> None:
    """The client sees the second answer."""
    sizes: list[int] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        sizes.append(len(body))
        refusal = {"type": "error", "error": {"type": kind, "message": message}}
        says(status, json.dumps(refusal).encode())(handler, body) if len(sizes) == 1 else says(200, b"{}")(handler, body)

    with upstream_that(answer) as upstream, gateway(upstream.url, 8_000) as address:
        assert post(address, body=long_body()).status_code == 200
    assert sizes[1] < sizes[0]


def test_a_refusal_that_nothing_can_help_is_the_client_s_to_see() -> None:
    refusal = b'{"error": {"message": "prompt is too long"}}'
    with upstream_that(says(400, refusal)) as upstream, gateway(upstream.url, 8_000) as address:
        answer = post(address)
    assert (answer.status_code, answer.content, len(upstream.bodies)) == (400, refusal, 1)


@pytest.mark.parametrize("status", [429, 500, 529])
def test_the_upstream_s_errors_reach_the_client_as_they_are(status: int) -> None:
    body = b'{"error": {"message": "busy"}}'
    with upstream_that(says(status, body, {"retry-after": "7"})) as upstream, gateway(upstream.url, 8_000) as address:
        answer = post(address)
    assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (status, body, "7")


def test_an_upstream_that_cannot_be_reached_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with gateway(url, 8_000) as address:
        answer = post(address)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"] == "the gateway cannot reach anthropic: ConnectError"


def test_pieces_of_a_stream_arrive_as_they_are_sent() -> None:
    """Answers are relayed as they come: the second piece is sent only when the client has the first."""
    go_on = threading.Event()

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(b"data: 1\n\n")
        assert go_on.wait(WAIT)
        handler.wfile.write(b"data: 2\n\n")
        handler.close_connection = True

    with (
        upstream_that(answer) as upstream,
        gateway(upstream.url, 8_000) as address,
        httpx.Client(trust_env=False, timeout=WAIT) as client,
        client.stream("POST", address + MESSAGES, content=SHORT) as stream,
    ):
        pieces = stream.iter_raw()
        assert next(pieces) == b"data: 1\n\n"
        go_on.set()
        assert b"".join(pieces) == b"data: 2\n\n"


def test_small_pieces_do_not_wait_for_each_other() -> None:
    """Answers are relayed as they come. asyncio sends pieces at once only on sockets that name their protocol."""
    with bound_socket("127.0.0.1", 0) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    with client, server:
        assert server.proto == socket.IPPROTO_TCP


def test_a_stream_that_breaks_off_breaks_off_for_the_client_too() -> None:
    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(200)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"5\r\nhello\r\n")
        handler.close_connection = True

    with upstream_that(answer) as upstream, gateway(upstream.url, 8_000) as address, pytest.raises(httpx.RemoteProtocolError):
        post(address)


def test_a_client_that_leaves_closes_the_upstream_s_connection() -> None:
    """Cancelling by the client cancels upstream."""
    closed = threading.Event()

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(200)
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(b"first")
        handler.connection.settimeout(WAIT)
        if not handler.connection.recv(1):
            closed.set()
        handler.close_connection = True

    with upstream_that(answer) as upstream, gateway(upstream.url, 8_000) as address:
        with httpx.Client(trust_env=False, timeout=WAIT) as client, client.stream("POST", address + MESSAGES, content=SHORT) as stream:
            assert next(stream.iter_raw()) == b"first"
        assert closed.wait(WAIT)


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"host": "evil.example:80"}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}]
)
def test_a_browser_page_cannot_use_it(headers: dict[str, str]) -> None:
    """A page's requests have an `Origin`; a name of the page's own that leads here is not one of the gateway's."""
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 8_000) as address:
        assert post(address, headers=headers).status_code == 403
    assert upstream.bodies == []


@pytest.mark.parametrize("path", ["/", "/v1/messages", "/http://evil.example/", "/other/../v1"])
def test_only_known_upstreams_can_be_reached(path: str) -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 8_000) as address:
        answer = post(address, path)
    assert (answer.status_code, upstream.bodies) == (404, [])
    assert "addresses here begin with the provider's name: anthropic, openai, chatgpt, google" in answer.json()["error"]["message"]


@pytest.mark.parametrize("urls", [{"other": "http://a"}, {"openai": "ftp://a"}, {"openai": "http://"}, {"openai": "http://u:p@a"}])
def test_an_upstream_that_makes_no_sense_is_named(urls: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match="upstream"):
        gateway_app(ContextWindow(), urls=urls)


@pytest.mark.parametrize("strict", [False, True])
def test_a_conversation_that_cannot_be_fitted_goes_out_unchanged_or_is_refused(strict: bool) -> None:
    """Nothing is known of the model, and no limit is set."""
    body = json.dumps({"model": "no-such-model-at-all", "messages": [{"role": "user", "content": "a"}]}).encode()
    ledger = GatewayLedger()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, None, ledger=ledger, strict=strict) as address:
        answer = post(address, "/openai/v1/chat/completions", body)
    assert (answer.status_code, upstream.bodies) == ((400, []) if strict else (200, [body]))
    assert ledger.unmanaged == {"UnknownModelError": 1}
    assert "no-such-model-at-all" in answer.text or not strict


@pytest.mark.parametrize(("reserve", "tokens"), [(None, 192_000), (50_000, 150_000)], ids=["request's", "user's"])
def test_the_output_reserve_of_the_user_counts_more_than_that_of_a_request(reserve: int | None, tokens: int) -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 8_000, "messages": [{"role": "user", "content": "Hi"}]}
    wire = AnthropicWire()
    conversation = wire.conversation("/v1/messages", body)
    assert conversation is not None
    assert Windows(ContextWindow(output_reserve=reserve))._tracker_for(wire, conversation).budget == tokens
