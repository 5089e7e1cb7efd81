"""`--warn-secrets`: a key in a request is told of before it is sent, once, with its place, and without it."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest

from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.secret_warnings import SecretWarnings
from session.secret_finder import Secret, secrets_in
from tests.gateway.test_gateway_http import MESSAGES, WAIT, long_body, post, says, upstream_that
from tests.session.test_secret_finder import shows
from tests.support.gateways import gateway
from tests.support.made_up_keys import PASSWORDS, made_up_keys

KEYS = made_up_keys()
OUTPUT = f"DEBUG=1\nOPENAI_API_KEY={KEYS[2]}\nPASSWORD={PASSWORDS[0]}\n"
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": ".env"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": OUTPUT}]}
REQUESTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "anthropic": (
        MESSAGES,
        {
            "model": "claude-sonnet-5-5",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "Set it up."},
                {"role": "assistant", "content": [CALL]},
                {"role": "user", "content": [RESULT]},
            ],
        },
        "messages[2] (user), line 2",
    ),
    "chat": (
        "/openai/v1/chat/completions",
        {"model": "gpt-5", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": OUTPUT}]},
        "messages[1] (user), line 2",
    ),
    "responses": (
        "/openai/v1/responses",
        {
            "model": "gpt-5",
            "input": [
                {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": OUTPUT},
            ],
        },
        "input[1] (function_call_output), line 2",
    ),
    "google": (
        "/google/v1beta/models/gemini-3-pro:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": OUTPUT}]}]},
        "contents[0] (user), line 2",
    ),
}


@pytest.mark.parametrize("wire", REQUESTS)
def test_a_key_is_told_of_before_it_is_sent(wire: str, caplog: pytest.LogCaptureFixture) -> None:
    """`--warn-secrets` says, before it is sent, that a request holds a key, and where"""
    path, fields, place = REQUESTS[wire]
    told: list[int] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        told.append(len(warnings(caplog)))
        says(200, b"{}")(handler, body)

    ledger = GatewayLedger()
    body = json.dumps(fields).encode()
    with upstream_that(answer) as upstream, gateway(upstream.url, 10_000, ledger=ledger, warn_secrets=True) as address:
        for _ in range(2):
            post(address, path, body)
        with httpx.Client(trust_env=False, timeout=WAIT) as client:
            page, status = client.get(address).text, client.get(f"{address}/status").json()
    assert told == [2, 2]  # before the first request, and not again with the second
    assert upstream.bodies == [body] * 2
    first, second = warnings(caplog)
    assert first == f"a request holds an API key, in {place}"
    assert second.startswith("a request holds a value named PASSWORD, in ")
    assert first[1:] in page
    assert status["keys"] == 2
    assert ", 2 keys in requests" in ledger.line()
    for key in (KEYS[2], PASSWORDS[0]):
        assert not shows(f"{caplog.text}{page}{status}{ledger.line()}", key)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.endswith("secret_warnings")]


def test_nobody_is_warned_who_did_not_ask(caplog: pytest.LogCaptureFixture) -> None:
    path, fields, _ = REQUESTS["anthropic"]
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000) as address:
        post(address, path, json.dumps(fields).encode())
    assert not warnings(caplog)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": KEYS[4] + "A" * 400}},
        {"type": "thinking", "thinking": "Hm.", "signature": KEYS[4]},
        {"type": "tool_use", "id": KEYS[4], "name": "f", "input": {}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{KEYS[4]}"}},
    ],
)
def test_bytes_and_ids_are_no_keys(block: dict[str, Any]) -> None:
    watch = SecretWarnings()
    watch.look({"messages": [{"role": "user", "content": [block]}]})
    assert watch.count == 0
    watch.look({"messages": [{"role": "user", "content": [{"type": "text", "text": KEYS[4]}]}]})
    assert watch.count == 1  # or the test could not fail


def test_only_new_texts_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation comes whole with each request."""
    searched: list[str] = []

    def search(text: str) -> list[Secret]:
        searched.append(text)
        return secrets_in(text)

    monkeypatch.setattr("context_window.gateway.secret_warnings.secrets_in", search)
    watch, messages = SecretWarnings(), json.loads(long_body())["messages"]
    for count in range(1, len(messages) + 1):
        watch.look({"messages": messages[:count]})
    assert len(searched) == len(set(searched)) <= 3 * len(messages)


def test_a_deep_request_is_searched() -> None:
    deep: Any = KEYS[0]
    for _ in range(5_000):
        deep = [deep]
    watch = SecretWarnings()
    watch.look({"messages": deep})
    assert watch.count == 1
