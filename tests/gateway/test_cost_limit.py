"""With `--max-cost`, requests are refused once those before have cost the limit; what is under way is finished."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from typing import Any

import anthropic
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.gateway.cost_limit import FRAMES, LATER, NO_MODEL, NO_PRICE, Charge, CostLimit
from context_window.gateway.ledger import GatewayLedger
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.support.gateways import gateway
from tests.support.stubs.answers import Say
from tests.support.stubs.anthropic import AnthropicStub

MODEL = "claude-sonnet-4-6"
INPUT, OUTPUT = Decimal("0.000003"), Decimal("0.000015")
"""Its prices per token."""
CHAT = "/openai/v1/chat/completions"
URL = "https://api.example.com"


def fields(size: int, answer: int) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": answer, "messages": [{"role": "user", "content": "x" * size}]}


def charge_of(limit: CostLimit, asked: dict[str, Any]) -> Charge | str | None:
    return limit.charge(URL, "/v1/messages", asked, json.dumps(asked).encode())


def spend(limit: CostLimit, tokens: int) -> None:
    charge = charge_of(limit, fields(10, 10))
    assert isinstance(charge, Charge)
    charge.note({"input_tokens": tokens}, 0, 0)


REQUESTS = st.lists(st.tuples(st.integers(1, 50_000), st.integers(1, 5_000), st.integers(0, 4), st.booleans()), min_size=1, max_size=25)


@given(REQUESTS, st.floats(0.01, 0.5))
def test_a_request_is_sent_exactly_below_the_limit(requests: list[tuple[int, int, int, bool]], dollars: float) -> None:
    """However many are under way, in whatever order they end, and whether they report usage or break off: by what has ended."""
    most = Decimal(dollars)
    limit, spent, under_way = CostLimit(most, None), Decimal(0), list[tuple[Charge, dict[str, int]]]()
    for size, answer, ending, breaks_off in requests:
        charge = charge_of(limit, fields(10, 10))
        assert isinstance(charge, Charge) == (spent < most)
        if isinstance(charge, Charge):
            under_way.append((charge, {"input_tokens": size, "output_tokens": answer}))
        for _ in range(min(ending, len(under_way))):
            ended, usage = under_way.pop(0)
            after = 100 if breaks_off else FRAMES
            ended.note(usage, 500, after)
            output = usage["output_tokens"] + (after if breaks_off else 0)
            spent += usage["input_tokens"] * INPUT + output * OUTPUT


def test_every_kind_of_request_counts() -> None:
    """Those of conversations that the provider holds, and those to an address that the gateway does not know, too."""
    usage = {"input_tokens": 20_000, "output_tokens": 100}
    each = 20_000 * INPUT + 100 * OUTPUT
    body = {"model": MODEL, "max_output_tokens": 500, "input": [{"role": "user", "content": "y" * 30_000}]}
    held = {**body, "previous_response_id": "resp_1"}
    calls = [("/openai/v1/responses", held), ("/openai/v1/unknown", body), ("/anthropic/v1/messages", fields(30_000, 500))] * 2
    answers = says(200, json.dumps({"usage": usage}).encode())
    with upstream_that(answers) as upstream, gateway(upstream.url, None, max_cost=3 * each) as address:
        statuses = [post(address, path, json.dumps(body).encode()).status_code for path, body in calls]
        assert httpx.get(f"{address}/openai/v1/models").status_code == 402  # nothing more is sent
    assert statuses == [200] * 3 + [402] * 3
    assert len(upstream.bodies) == 3


def test_no_request_waits_for_another() -> None:
    def slowly(handler: Any, body: bytes) -> None:
        time.sleep(0.5)
        says(200, json.dumps({"usage": {"input_tokens": 1, "output_tokens": 1}}).encode())(handler, body)

    asked = json.dumps(fields(30_000, 10**9)).encode()
    with (
        upstream_that(slowly) as upstream,
        gateway(upstream.url, None, max_cost=Decimal("0.01")) as address,
        ThreadPoolExecutor(12) as pool,
    ):
        begun = time.monotonic()
        statuses = list(pool.map(lambda _: post(address, "/anthropic/v1/messages", asked).status_code, range(12)))
    assert statuses == [200] * 12
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        (CHAT, b'{"model": NaN}', NO_MODEL),
        ("/anthropic/v1/messages/batches", b'{"requests": []}', LATER),
        ("/openai/v1/fine_tuning/jobs", b'{"model": "gpt-4.1"}', LATER),
        ("/openai/v1/audio/transcriptions", b"--part\r\n", LATER),
        ("/openai/v1/files", b"--part\r\n", None),
        ("/openai/v1/conversations", b"{}", None),
        ("/openai/v1/embeddings", b'{"model": "no such model"}', None),
        ("/google/v1beta/models/gemini-embedding-001:batchEmbedContents", b"{}", None),
        ("/openai/v1/responses", b'{"model": "gpt-5", "background": true}', LATER),
        ("/google/v1beta/models/gemini-2.5-pro:batchGenerateContent", b"{}", LATER),
        ("/google/v1beta/models/gemini-2.5-pro:generateContent", b"{}", None),
        ("/anthropic/v1/messages/count_tokens", b'{"model": "no such model"}', None),
        ("/openai/v1/responses/resp_1/cancel", b"", None),
    ],
)
def test_what_cannot_be_counted_is_refused(path: str, body: bytes, reason: str | None) -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, None, max_cost=Decimal(5)) as address:
        answer = post(address, path, body)
    assert len(upstream.bodies) == (reason is None)
    assert answer.status_code == (200 if reason is None else 402)
    assert reason is None or reason in answer.text


def test_a_model_without_a_price_is_refused_unless_it_runs_here() -> None:
    asked = {"model": "llama-of-mine", "messages": []}
    limit = CostLimit(Decimal(5), None)
    problem = charge_of(limit, asked)
    assert isinstance(problem, str) and NO_PRICE in problem  # noqa: PT018
    assert limit.charge("http://localhost:11434/v1", "/chat/completions", asked, b"{}") is None


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b'data: {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}\n\n',
        b'data: {"usage": {"total_tokens": 900}}\n\n',
    ],
    ids=["none", "broken off", "unreadable"],
)
def test_an_answer_without_a_last_report_is_charged_by_its_size(start: bytes) -> None:
    """OpenAI's streams report it only if they are asked to; others break off. None is compressed in a way that could not be read."""
    stream = start + b'data: {"choices": [{"delta": {"content": "word"}}]}\n\n' * 2_000
    body = json.dumps({"model": "gpt-5", "stream": True, "messages": []}).encode()
    streamed = says(200, stream, {"content-type": "text/event-stream"})
    with upstream_that(streamed) as upstream, gateway(upstream.url, None, max_cost=Decimal("0.05")) as address:
        statuses = [post(address, CHAT, body, {"accept-encoding": "br"}).status_code for _ in range(5)]
    assert statuses == [200] * 3 + [402] * 2  # 2,000 tokens of $10 a million each
    assert all(dict(headers)["accept-encoding"] == "identity" for headers in upstream.headers)


@pytest.mark.parametrize(("terms", "times"), [({}, 1), ({"service_tier": "priority"}, 2)])
def test_terms_that_cost_more_are_charged(terms: dict[str, str], times: int) -> None:
    limit = CostLimit(Decimal(times) * Decimal("1.25"), None)  # dollars for a million tokens of gpt-5.1
    charge = charge_of(limit, {"model": "gpt-5.1", **terms})
    assert isinstance(charge, Charge)
    charge.note({"input_tokens": 999_999}, 0, 0)
    assert limit.problem() is None
    charge.note({"input_tokens": 1}, 0, 0)
    assert limit.problem() is not None


def test_beyond_the_limit_of_dollars_requests_are_refused_with_the_reason() -> None:
    """With the provider's kind of error. What has come before is answered, and the last line has the cost."""
    ledger = GatewayLedger()
    with AnthropicStub(lambda _: [Say("Fine.")]) as stub, gateway(stub.url, None, ledger=ledger, max_cost=Decimal("0.03")) as address:
        client = anthropic.Anthropic(base_url=f"{address}/anthropic", api_key="made up", max_retries=0)

        def ask_until_refused() -> None:
            for number in range(10):
                client.messages.create(model=MODEL, max_tokens=10, messages=[{"role": "user", "content": f"{number} " + "words " * 4_000}])

        with pytest.raises(anthropic.APIStatusError) as refused:
            ask_until_refused()
        assert re.search(r"have cost \$0\.0[3-9], and the gateway was started with a spending limit of \$0\.03", str(refused.value))
        assert refused.value.status_code == 402
        assert json.loads(refused.value.response.text)["error"]["type"] == "billing_error"
        assert 1 <= len(stub.requests) < 5
    assert ledger.line().startswith("gateway: saved about $0.00 of $0.0")


def test_a_limit_of_a_day_counts_what_was_spent_before_and_ends_with_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """At midnight it begins anew; a limit of the gateway does not."""
    monkeypatch.setattr("context_window.gateway.cost_limit.today", lambda: date(2026, 3, 25))
    limits = CostLimit(Decimal("0.50"), Decimal("0.35")), CostLimit(Decimal("0.50"), None)
    for limit in limits:
        spend(limit, 50_000)
    of_day, of_gateway = (limit.problem() for limit in limits)
    assert of_day == "today's requests have cost $0.50, and the gateway was started with a spending limit of $0.50 (--max-cost)"
    assert of_gateway is None
    spend(limits[1], 120_000)
    assert "the requests through this gateway" in (limits[1].problem() or "")
    monkeypatch.setattr("context_window.gateway.cost_limit.today", lambda: date(2026, 3, 26))
    assert limits[0].problem() is None
    assert limits[1].problem() is not None
