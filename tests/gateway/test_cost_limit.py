"""With `--max-cost`, what all requests together cost stays below the limit, but for the last one."""

from __future__ import annotations

import asyncio
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

from context_window.gateway.cost_limit import LATER, NO_MODEL, NO_PRICE, Charge, CostLimit
from context_window.gateway.ledger import GatewayLedger
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.support.gateways import gateway
from tests.support.stubs.answers import Say
from tests.support.stubs.anthropic import AnthropicStub

MODEL = "claude-sonnet-4-6"
INPUT, OUTPUT = Decimal("0.000003"), Decimal("0.000015")
"""Its prices per token."""
CHAT = "/openai/v1/chat/completions"


def fields(size: int, answer: int) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": answer, "messages": [{"role": "user", "content": "x" * size}]}


def spend(limit: CostLimit, tokens: int) -> None:
    asked = fields(10, 10)
    charge = asyncio.run(limit.charge("/v1/messages", asked, json.dumps(asked).encode()))
    assert isinstance(charge, Charge)
    charge.note({"input_tokens": tokens})
    limit.end(charge)


REQUESTS = st.lists(
    st.tuples(st.integers(1, 50_000), st.integers(1, 5_000), st.floats(0, 1), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=25
)


@given(REQUESTS, st.floats(0.01, 0.5))
def test_all_but_the_last_request_together_stay_below_the_limit(requests: list[tuple[int, int, float, int, int]], dollars: float) -> None:
    """However many are under way, whenever their costs become known; and once a request is refused, the limit is reached."""
    most, sent = Decimal(dollars), list[Charge]()

    async def run() -> None:
        limit = CostLimit(most, None)

        async def ask(size: int, answer: int, used: float, begins: int, lasts: int) -> None:
            for _ in range(begins):
                await asyncio.sleep(0)
            asked = fields(size, answer)
            charge = await limit.charge("/v1/messages", asked, json.dumps(asked).encode())
            if not isinstance(charge, Charge):
                assert sum(each.cost for each in sent) >= most
                return
            sent.append(charge)
            for _ in range(lasts):
                await asyncio.sleep(0)
            charge.note({"input_tokens": int(used * size), "output_tokens": int(used * answer)})
            await asyncio.sleep(0)
            limit.end(charge)

        await asyncio.wait_for(asyncio.gather(*(ask(*each) for each in requests)), 20)

    asyncio.run(run())
    assert sum((each.cost for each in sent[:-1]), Decimal(0)) < most


def test_requests_at_once_do_not_pass_the_limit_together() -> None:
    """Neither those of conversations that the provider holds, nor those to an address that the gateway does not know."""
    usage = {"input_tokens": 20_000, "output_tokens": 100}
    each = 20_000 * INPUT + 100 * OUTPUT

    def slowly(handler: Any, body: bytes) -> None:
        time.sleep(0.1)
        says(200, json.dumps({"usage": usage}).encode())(handler, body)

    body = {"model": MODEL, "max_output_tokens": 500, "input": [{"role": "user", "content": "y" * 30_000}]}
    held = {**body, "previous_response_id": "resp_1"}
    calls = [("/openai/v1/responses", held), ("/openai/v1/unknown", body), ("/anthropic/v1/messages", fields(30_000, 500))] * 4
    with (
        upstream_that(slowly) as upstream,
        gateway(upstream.url, None, max_cost=3 * each) as address,
        ThreadPoolExecutor(12) as pool,
    ):
        statuses = list(pool.map(lambda call: post(address, call[0], json.dumps(call[1]).encode()).status_code, calls))
        assert httpx.get(f"{address}/openai/v1/models").status_code == 402  # nothing more is sent
    assert sorted(statuses) == [200] * 3 + [402] * 9
    assert len(upstream.bodies) == 3


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/openai/v1/files", b"--part\r\n", NO_MODEL),
        (CHAT, b'{"model": NaN}', NO_MODEL),
        ("/anthropic/v1/messages/batches", b'{"requests": []}', NO_MODEL),
        (CHAT, b'{"model": "no such model"}', NO_PRICE),
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


def test_an_answer_without_usage_is_charged_by_its_size() -> None:
    """OpenAI's streams report it only if they are asked to. None is compressed in a way that could not be read."""
    stream = b'data: {"choices": [{"delta": {"content": "word"}}]}\n\n' * 2_000
    body = json.dumps({"model": "gpt-5", "stream": True, "messages": []}).encode()
    streamed = says(200, stream, {"content-type": "text/event-stream"})
    with upstream_that(streamed) as upstream, gateway(upstream.url, None, max_cost=Decimal("0.05")) as address:
        statuses = [post(address, CHAT, body, {"accept-encoding": "br"}).status_code for _ in range(5)]
    assert statuses == [200] * 3 + [402] * 2  # 2,000 tokens of $10 a million each
    assert all(dict(headers)["accept-encoding"] == "identity" for headers in upstream.headers)


@pytest.mark.parametrize(("terms", "times"), [({}, 1), ({"service_tier": "priority"}, 2)])
def test_terms_that_cost_more_are_charged(terms: dict[str, str], times: int) -> None:
    charge = Charge("gpt-5.1", terms, b"{}")
    charge.note({"input_tokens": 1_000_000, "output_tokens": 0})
    usual = Charge("gpt-5.1", {}, b"{}")
    usual.note({"input_tokens": 1_000_000, "output_tokens": 0})
    assert charge.cost == times * usual.cost > 0


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
        assert re.search(r"have cost \$0\.0[3-9], and the gateway was started with a limit of \$0\.03", str(refused.value))
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
    assert of_day == "today's requests have cost $0.50, and the gateway was started with a limit of $0.50 (--max-cost)"
    assert of_gateway is None
    spend(limits[1], 120_000)
    assert "the requests through this gateway" in (limits[1].problem() or "")
    monkeypatch.setattr("context_window.gateway.cost_limit.today", lambda: date(2026, 3, 26))
    assert limits[0].problem() is None
    assert limits[1].problem() is not None
