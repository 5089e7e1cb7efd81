"""A gateway that others can reach is used by those with a token, and what one of them has taught it is nothing to the others."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_window import ContextWindow
from context_window.cli import run
from context_window.errors import ArgumentError
from context_window.gateway.app import gateway_app
from context_window.gateway.callers import HEADER, digest_of, gated_app, tokens_in
from context_window.gateway.serve import address_of, bound_socket, serving
from context_window.gateway.shared_refusals import RefusalsOfKind, SharedRefusals
from context_window.statusline import status_line
from tests.gateway.test_gateway_http import says, upstream_that
from tests.gateway.test_gateway_shared_views import growing

FIRST, SECOND = "first-token-0123456789", "second-token-012345678"


@contextmanager
def gated(upstream: str, refusals: SharedRefusals | None = None) -> Iterator[str]:
    urls = dict.fromkeys(("anthropic", "openai", "google"), upstream)
    window = ContextWindow(max_tokens=3_000, keep_first_message=True)
    stores = {token: None if refusals is None else RefusalsOfKind(refusals, digest_of(token)) for token in (FIRST, SECOND)}
    app = gated_app({token: gateway_app(window, urls=urls, refusals=store) for token, store in stores.items()})
    with bound_socket("127.0.0.1", 0) as listener, serving(app, listener):
        yield address_of(listener)


def ask(url: str, body: Any, token: str | None = None) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=60) as client:
        headers = {"x-api-key": "k", **({} if token is None else {HEADER: token})}
        return client.post(url, content=json.dumps(body).encode(), headers=headers)


def test_who_has_a_token_gets_through_and_the_upstream_sees_nothing_of_it() -> None:
    """In a header, or first in the path of the base URL; with an address as the upstream knows it."""
    seen: list[tuple[str, str]] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        seen.append((handler.path, str(handler.headers)))
        says(200, b"{}")(handler, body)

    with upstream_that(answer) as upstream, gated(upstream.url) as address:
        assert ask(f"{address}/anthropic/v1/messages?beta=true", growing(3), FIRST).status_code == 200
        assert ask(f"{address}/{SECOND}/anthropic/v1/messages?beta=true", growing(3)).status_code == 200
    assert [path for path, _ in seen] == ["/v1/messages?beta=true"] * 2
    assert not any(token in headers for _, headers in seen for token in (FIRST, SECOND, HEADER))


TRIES = st.one_of(
    st.just(("/anthropic/v1/messages", None)),
    st.just(("/", None)),
    st.just(("/metrics", None)),
    st.just((f"/x/{FIRST}/anthropic/v1/messages", None)),
    st.just((f"/{FIRST}/anthropic/v1/messages", SECOND[:-1])),
    st.text("abcdef-", max_size=30).map(lambda text: (f"/{text}/anthropic/v1/messages", None)),
    st.integers(0, len(FIRST) - 1).map(lambda end: ("/anthropic/v1/messages", FIRST[:end])),
    st.integers(0, len(FIRST) - 1).map(lambda end: (f"/{FIRST[:end]}x/status", None)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=max(10, settings().max_examples // 5))
@given(tries=st.lists(TRIES, min_size=1, max_size=5))
def test_without_a_token_nobody_gets_through(tries: list[tuple[str, str | None]]) -> None:
    """Neither to the upstream nor to a page. A wrong token and none get the same answer."""
    with upstream_that(says(200, b"{}")) as upstream, gated(upstream.url) as address:
        answers = [ask(address + path, growing(2), token) for path, token in tries]
        assert upstream.bodies == []
    assert {(answer.status_code, answer.text) for answer in answers} == {(401, answers[0].text)}
    assert FIRST not in answers[0].text


@pytest.mark.parametrize("is_shared", [False, True], ids=["no store", "a store"])
def test_tokens_share_nothing(is_shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a refusal, not a figure, not the page; the same conversation of another token is as if it was never seen."""
    refusals = SharedRefusals(str(tmp_path / "r.db"), wait_seconds=60) if is_shared else None
    sent: list[int] = []
    message = "prompt is too long: 2000 tokens > 900 maximum"
    refusal = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).encode()

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        sent.append(len(body))
        too_long = handler.headers["x-api-key"] == "k" and len(sent) == 1
        says(400, refusal)(handler, body) if too_long else says(200, json.dumps({"usage": {"input_tokens": 9}}).encode())(handler, body)

    with upstream_that(answer) as upstream, gated(upstream.url, refusals) as address:
        path = "/anthropic/v1/messages"
        assert ask(address + path, growing(12), FIRST).status_code == 200
        assert ask(address + path, growing(12), SECOND).status_code == 200
        assert ask(address + path, growing(12), FIRST).status_code == 200
        whole, smaller, other, again = sent
        assert smaller == again < whole == other
        with httpx.Client(trust_env=False) as client:
            assert "claude-sonnet-5-5" in client.get(f"{address}/{FIRST}/").text
            assert client.get(f"{address}/{SECOND}/status").json() != client.get(f"{address}/{FIRST}/status").json()
            monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{address}/{FIRST}/anthropic")
            assert "gateway" in status_line({})
            metrics = [client.get(f"{address}/{token}/metrics").text for token in (FIRST, SECOND)]
    assert ["conversation_requests_total 2.0" in text for text in metrics] == [True, False]
    if refusals is not None:
        refusals.close()


def test_the_file_of_tokens_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """Read again, it has the same token."""
    file = tmp_path / "folder" / "tokens"
    (token,) = tokens_in(file)
    assert len(token) >= 32
    assert tokens_in(file) == [token]
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "short", "with spaces in it", f"{FIRST}\n{FIRST}", "slash/slash/slash", "\x00" * 20])
def test_tokens_that_cannot_be_used_are_said(content: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ArgumentError):
        tokens_in(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_of_tokens_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "tokens")
    assert run(["gateway", "--token", str(tmp_path / "tokens"), "--", "true"]) == 2
    assert "is not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "203.0.113.1", "example.org"])
def test_a_host_that_others_can_reach_needs_tokens(host: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["gateway", "--host", host]) == 2
    assert "pass --token FILE" in capsys.readouterr().err
    file = tmp_path / "tokens"
    file.write_text("short", encoding="utf-8")
    assert run(["gateway", "--host", host, "--token", str(file)]) == 2
    assert "cannot be used" in capsys.readouterr().err
