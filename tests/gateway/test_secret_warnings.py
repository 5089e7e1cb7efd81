"""`--warn-secrets`: a key in a request is told of before it is sent, once, with its place, and without it."""

from __future__ import annotations

import base64
import hashlib
import json
import time
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


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "t", "name": "write", "input": {"data": KEYS[4], "path": "a"}},
        {"type": "tool_use", "id": "t", "name": "write", "input": {"id": "a", "signature": [KEYS[4]]}},
        {"type": "tool_use", "id": "t", "name": "write", "input": {KEYS[4]: 1}},
        {"functionCall": {"name": "write", "args": {"data": {"id": KEYS[4]}}}},
        {"functionResponse": {"name": "read", "response": {"data": KEYS[4]}}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": KEYS[4]}},
        {"inlineData": {"mimeType": "text/plain", "data": base64.b64encode(KEYS[4].encode()).decode()}},
        {"type": "text", "text": f"data: {KEYS[4]}"},
        {"type": "text", "text": f"data:image/png;base64,AAAA and {KEYS[4]}"},
        {"type": "text", "text": f"data:text/plain;base64,{base64.b64encode(KEYS[4].encode()).decode()}"},
    ],
)
def test_what_a_tool_takes_and_a_document_says_is_text(block: dict[str, Any]) -> None:
    """whatever its fields are called, and however it begins"""
    watch = SecretWarnings()
    watch.look({"messages": [{"role": "assistant", "content": [block]}]})
    assert watch.count == 1


def test_a_request_without_a_conversation_is_searched(caplog: pytest.LogCaptureFixture) -> None:
    body = json.dumps({"model": "text-embedding-3-small", "input": [OUTPUT]}).encode()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000, warn_secrets=True) as address:
        post(address, "/openai/v1/embeddings", body)
    assert upstream.bodies == [body]
    assert [message.partition(", in ")[2] for message in warnings(caplog)] == ["input[0], line 2", "input[0], line 3"]


@pytest.mark.parametrize("number", ["NaN", "1e400", "01"])
def test_a_request_that_is_no_json_is_searched(number: str, caplog: pytest.LogCaptureFixture) -> None:
    """Some upstreams read it nevertheless."""
    body = f'{{"input": {json.dumps(OUTPUT)}, "temperature": {number}}}'.encode()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 10_000, warn_secrets=True) as address:
        post(address, "/openai/v1/embeddings", body)
    assert upstream.bodies == [body]
    assert len(warnings(caplog)) == 2


def test_a_text_of_thousands_of_keys_is_no_flood(caplog: pytest.LogCaptureFixture) -> None:
    """The lines before each key were counted from the beginning, and each key was a line on the terminal."""
    made_up = [f"sk-ant-api03-{hashlib.sha256(str(number).encode()).hexdigest()}" for number in range(20_000)]

    def seconds(count: int) -> float:
        watch, begun = SecretWarnings(), time.process_time()
        watch.look({"messages": [{"role": "user", "content": "\n".join(made_up[:count])}]})
        assert watch.count == count
        return time.process_time() - begun

    assert any(seconds(20_000) < 6 * seconds(5_000) for _ in range(3))
    told = warnings(caplog)
    assert told[0] == "a request holds an Anthropic key, in messages[0] (user), line 1"
    assert told[9].endswith("line 10")
    assert told[10] == "a request holds 19,990 more keys and passwords"
