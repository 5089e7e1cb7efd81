"""`/metrics`: what Prometheus reads of a gateway."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.test_gateway_http import MESSAGES, WAIT, says, upstream_that
from tests.support.gateways import gateway

SECRET = "in-no-metric-4711"


def asked(method: str, url: str, **options: Any) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=WAIT) as client:
        return client.request(method, url, **options)


def values(address: str) -> dict[tuple[str | None, ...], float]:
    """Return the samples by name and labels' values, as Prometheus' own reader finds them."""
    answer = asked("GET", f"{address}/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert SECRET not in answer.text
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    return {
        (sample.name.removeprefix("context_window_gateway_"), *map(sample.labels.get, sorted(sample.labels))): sample.value
        for sample in samples
    }


def conversation(words: int) -> bytes:
    messages = [{"role": ("user", "assistant")[turn % 2], "content": f"{turn} " + "word " * words} for turn in range(21)]
    return json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages, "metadata": {"user_id": SECRET}}).encode()


def test_the_totals_are_those_of_the_requests() -> None:
    with upstream_that(says(429, b"{}")) as upstream, gateway(upstream.url, 8_000) as address:
        assert values(address)["conversation_requests_total",] == 0
        headers = {"x-api-key": SECRET}
        bodies = [conversation(5), conversation(1_000)]
        for body in bodies:
            asked("POST", address + MESSAGES, content=body, headers=headers)
        asked("GET", f"{address}/openai/v1/{SECRET}", headers=headers)
        found = values(address)
        assert found["conversation_requests_total",] == 2
        assert found["shortened_requests_total",] == 1
        assert found["received_bytes_total",] == sum(map(len, bodies))
        assert found["forwarded_bytes_total",] == sum(map(len, upstream.bodies[:2])) < sum(map(len, bodies))
        assert found["answers_total", "429", "anthropic"] == 2
        assert found["answers_total", "429", "openai"] == 1
        assert found["decision_seconds_count",] == 2
        assert found["decision_seconds_sum",] > 0


def test_what_could_not_be_done_is_counted_by_its_kind() -> None:
    with gateway("http://127.0.0.1:9", None) as address:
        body = json.dumps({"model": SECRET, "messages": [{"role": "user", "content": "a"}]}).encode()
        assert asked("POST", f"{address}/openai/v1/chat/completions", content=body).status_code == 502
        found = values(address)
        assert found["unmanaged_requests_total", "UnknownModelError"] == 1
        assert found["answers_total", "502", "openai"] == 1


@pytest.mark.parametrize("headers", [{"origin": "http://a.example"}, {"host": "a.example"}, {"sec-fetch-site": "cross-site"}])
def test_a_browser_page_does_not_get_them(headers: dict[str, str]) -> None:
    with gateway("http://127.0.0.1:9", None) as address:
        answer = asked("GET", f"{address}/metrics", headers=headers)
    assert answer.status_code == 403
    assert "conversation_requests" not in answer.text
