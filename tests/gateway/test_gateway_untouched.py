"""What goes upstream is what the client sent: its address, its headers, and nothing that the gateway's HTTP library adds."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress

import pytest

from context_window.gateway import app
from context_window.gateway.anthropic_messages import AnthropicWire
from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.windows import Windows
from tests.support.gateways import gateway

from .test_gateway_http import MESSAGES, SHORT, WAIT, says, upstream_that


def answered(address: str, path: str, *headers: bytes, method: str = "POST", body: bytes = SHORT) -> bytes:
    """Return the whole answer to a request with no headers but these and those that HTTP needs."""
    host, _, port = address.removeprefix("http://").partition(":")
    lines = [f"{method} {path} HTTP/1.1".encode(), b"host: 127.0.0.1", b"connection: close", b"content-length: %d" % len(body), *headers]
    with socket.create_connection((host, int(port)), timeout=WAIT) as client:
        try:
            client.sendall(b"\r\n".join([*lines, b"", body]))
            return b"".join(iter(lambda: client.recv(65_536), b""))
        except ConnectionError:  # the server has not read all that was sent
            return b""


def test_no_header_is_added() -> None:
    """A client that did not ask for a compressed answer would not understand one."""
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        answered(address, MESSAGES, b"x-api-key: k", b"x-odd: \xff\xfe")
    sent = {name.lower(): value for name, value in upstream.headers[0]}
    assert sent == {
        "host": upstream.url.removeprefix("http://"),
        "x-api-key": "k",
        "x-odd": "\xff\xfe",
        "content-length": str(len(SHORT)),
    }


def test_a_cookie_that_one_client_was_given_is_not_sent_with_another_s_request() -> None:
    """Providers set cookies. A client that wants them keeps them itself."""
    with upstream_that(says(200, b"{}", {"set-cookie": "session=first; path=/"})) as upstream, gateway(upstream.url, 10_000) as address:
        assert b"session=first" in answered(address, MESSAGES, b"x-api-key: first")
        answered(address, MESSAGES, b"x-api-key: second")
        answered(address, MESSAGES, b"x-api-key: third", b"cookie: own=1")
    cookies = [dict(headers).get("cookie", dict(headers).get("Cookie")) for headers in upstream.headers]
    assert cookies == [None, None, "own=1"]


@pytest.mark.parametrize(
    "path",
    ["/v1/files/a%2Fb%3Fc%23d", "/v1/files/a%25b?x=%20y%2F&z", "/v1/files/a%20%C3%A9;b=1", "/v1beta/models/tuned%2Fm:generateContent"],
)
def test_an_address_is_not_written_anew(path: str) -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        answered(address, f"/google{path}")
    assert upstream.paths == [path]


@pytest.mark.parametrize("path", ["/anthropic%2Fv1/messages", "/anthropic@evil.example/v1", "/anthropic%00/v1", "/%2Fanthropic/v1"])
def test_a_name_that_only_looks_like_an_upstream_s_is_none(path: str) -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        assert b" 404 " in answered(address, path)
    assert upstream.bodies == []


@pytest.mark.parametrize("path", ["/openai/@evil.example", "/openai/evil.example:80/v1"])
def test_no_path_leads_to_another_host(path: str) -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        answer = answered(address, path)
    assert b" 200 " in answer
    assert dict(upstream.headers[0])["Host"] == upstream.url.removeprefix("http://")


@pytest.mark.parametrize(
    "path",
    [
        "/openai/../admin",
        "/openai/v1/%2e%2e/admin",
        "/openai/v1/..%2Fadmin",
        "/anthropic/x/../v1/messages",
        "/anthropic/./v1/messages",
        "/anthropic//v1/messages",
        "/openai//evil.example/v1",
        "/openai/\\evil.example",
        "/openai/v1/%5C..%5Cadmin",
        "/anthropic/v1/messages#x",
        "/anthropic/v1/messages?a=1#x",
    ],
)
def test_a_path_that_may_mean_another_one_upstream_is_refused(path: str) -> None:
    """What is checked is what is sent: nothing leaves the upstream's own address, and no conversation passes unmanaged by a detour."""
    with upstream_that(says(200, b"{}")) as upstream, gateway(f"{upstream.url}/base", 10_000) as address:
        assert b" 400 " in answered(address, path)
    assert upstream.paths == []


def test_a_slash_at_the_end_is_no_detour() -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(f"{upstream.url}/base", 10_000) as address:
        answered(address, "/anthropic/v1/messages/")
    assert upstream.paths == ["/base/v1/messages"]


@pytest.mark.parametrize(
    "header",
    [
        b"host: evil.example",
        b"content-length: 5",
        b"x-long: " + b"a" * 200_000,
        b"\r\n".join(b"x-%d: 1" % number for number in range(20_000)),
        b"x\x00y: 1",
        b"x-a: b\x00c",
        b": no name",
    ],
)
def test_hostile_headers_are_refused_before_anything_is_sent(header: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """In silence, since an assistant may have the terminal, and the gateway goes on."""
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        answer = answered(address, MESSAGES, header)
        assert not answer or answer.startswith(b"HTTP/1.1 4")
        assert upstream.bodies == []
        assert b" 200 " in answered(address, MESSAGES)
    assert caplog.text == ""


@pytest.mark.parametrize(
    "header",
    [
        b"content-type: \xff",
        b"content-type: text/html",
        b"content-encoding: \xff",
        b"user-agent: " + b"\xff" * 100,
        b"upgrade: websocket",
        b"connection: \xff, x-api-key",
        b"accept-encoding:",
    ],
)
def test_odd_headers_go_to_the_upstream(header: bytes) -> None:
    with upstream_that(says(400, b'{"error": {"message": "no"}}')) as upstream, gateway(upstream.url, 10_000) as address:
        answer = answered(address, MESSAGES, header)
    assert b" 400 " in answer
    assert answer.endswith(b'{"error": {"message": "no"}}')
    assert upstream.bodies == [SHORT]


def test_a_body_is_json_whatever_its_type_says() -> None:
    """The provider decides what type it wants. The view is the same."""
    body = json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 5, "messages": [{"role": "user", "content": "a " * 4_000}] * 3}).encode()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 5_000) as address:
        answered(address, MESSAGES, b"content-type: text/plain", body=body)
        answered(address, MESSAGES, b"content-type: application/json", body=body)
    assert upstream.bodies[0] == upstream.bodies[1]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("step", [(AnthropicWire, "conversation"), (Windows, "fit"), (app, "request_object")])
@pytest.mark.parametrize("fault", [AssertionError, RuntimeError, MemoryError, OSError, KeyError])
def test_a_fault_of_ours_sends_the_client_s_own_body(
    step: tuple[object, str], fault: type[Exception], strict: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it is, and wherever it happens. The last line says so; `--strict` refuses instead."""

    def fails(*_: object, **__: object) -> None:
        raise fault("what was said")

    monkeypatch.setattr(*step, fails)
    ledger = GatewayLedger()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000, ledger=ledger, strict=strict) as address:
        answer = answered(address, MESSAGES)
    assert answer.startswith(b"HTTP/1.1 400" if strict else b"HTTP/1.1 200")
    assert upstream.bodies == ([] if strict else [SHORT])
    assert ledger.line().endswith(f"not managed: 1 × {fault.__name__}")
    assert caplog.text == ""


def test_a_request_that_does_not_go_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds no connection for ever, and nothing of it goes upstream."""
    monkeypatch.setattr("context_window.gateway.app.BODY_SECONDS", 0.2)
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=WAIT) as client:
            client.sendall(b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n{" % MESSAGES.encode())
            assert b" 408 " in client.recv(65_536)
        assert upstream.bodies == []
        assert b" 200 " in answered(address, MESSAGES)


def test_a_request_that_hardly_goes_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte in a minute held a connection for years."""
    monkeypatch.setattr("context_window.gateway.app.BODY_SECONDS", 0.5)
    monkeypatch.setattr("context_window.gateway.app.SLOWEST", 100)
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=0.05) as client:
            client.sendall(b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n" % MESSAGES.encode())
            begun, answer = time.monotonic(), b""
            while not answer and time.monotonic() - begun < WAIT / 2:
                client.sendall(b" ")
                with suppress(TimeoutError):
                    answer = client.recv(65_536)
        assert b" 408 " in answer
        assert upstream.bodies == []
