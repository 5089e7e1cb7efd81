"""The budget is true by the provider's count: the gateway learns from the usage in answers where it counts too little."""

from __future__ import annotations

import json
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from context_window.gateway.shared_refusals import SharedRefusals
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.gateway.test_gateway_shared_views import cache_breaks, growing
from tests.support.gateways import gateway

Json = dict[str, Any]
BUDGET = 4_000
CHARACTERS = 2
"""Characters of a request for one of the provider's tokens: two for each that the gateway counts."""


def run(
    turns: int, *, reports: bool, is_streamed: bool = False, refusals: SharedRefusals | None = None, budget: int = BUDGET
) -> list[tuple[bool, int, Json]]:
    """Send a growing conversation. Return of each request whether it was shortened, the provider's count of it, and its body."""
    received: list[bytes] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        received.append(body)
        report = {"usage": {"input_tokens": len(body) // CHARACTERS, "output_tokens": 5}} if reports else {}
        if is_streamed:
            event = {"type": "message_start", "message": report}
            says(200, f"event: message_start\ndata: {json.dumps(event)}\n\n".encode(), {"content-type": "text/event-stream"})(handler, body)
        else:
            says(200, json.dumps(report).encode())(handler, body)

    sent = [json.dumps(growing(turn)).encode() for turn in range(1, turns)]
    with upstream_that(answer) as upstream, gateway(upstream.url, budget, refusals=refusals) as managed:
        for body in sent:
            assert post(managed, body=body).status_code == 200
    return [(ours != theirs, len(ours) // CHARACTERS, json.loads(ours)) for theirs, ours in zip(sent, received, strict=True)]


@cache
def blind() -> int:
    """Return the provider's count of the largest request that a gateway shortens without reports."""
    return max(count for is_short, count, _ in run(40, reports=False) if is_short)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_no_shortened_request_exceeds_its_budget_by_the_providers_count(is_streamed: bool) -> None:
    """No managed request is more than 5 % above its budget by the provider's count. Without reports they are: we count too little."""
    assert blind() > 1.2 * BUDGET
    informed = [count for is_short, count, _ in run(40, reports=True, is_streamed=is_streamed) if is_short]
    assert informed
    assert max(informed) <= 1.05 * BUDGET


def test_a_count_breaks_the_cache_no_more_often_than_a_smaller_budget(tmp_path: Any) -> None:
    """Requests extend those before, but for trims: with the budget's true size there are at most as many as its size calls for."""
    refusals = SharedRefusals(str(tmp_path / "r.db"), wait_seconds=60.0)
    requests = run(60, reports=True, refusals=refusals, budget=6_000)
    assert cache_breaks([body for *_, body in requests]) <= 12
    again = run(60, reports=False, refusals=refusals, budget=6_000)
    refusals.close()
    assert [body for *_, body in again] == [body for *_, body in requests]
