"""The last line says in money what the gateway has saved, or cost; and requests can have a limit of dollars."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.gateway.cost_limit import CostLimit
from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.savings import COMPACTED, OwnCompaction, Savings, own_compaction
from context_window.gateway.unmanaged import Cost, LeftOut
from context_window.spend.money import cost_of
from session.transcripts.reported_requests import Request
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.support.gateways import gateway
from tests.support.stubs.answers import Say
from tests.support.stubs.anthropic import AnthropicStub

MODEL = "claude-sonnet-4-6"


def reported(read: int, written: int, time: float = 1.76e9) -> Request:
    """A request as a provider reports it."""
    return Request("", time, "", MODEL, "", "", cache_read=read, cache_write=written, output_tokens=10)


@given(st.lists(st.tuples(st.integers(1, 40_000), st.integers(0, 100_000)), min_size=1, max_size=30))
def test_a_client_that_never_compacts_pays_what_was_appended(grown: list[tuple[int, int]]) -> None:
    """Below its limit, the client's own way costs each request's old tokens as read and its new ones as written, whatever was left out.
    A request that lacks nothing costs what was reported."""
    own, size, earlier = OwnCompaction("Claude Code", 10**9), 0, None
    for new, most in grown:
        size += new
        left_out = min(most, size - 1)
        request = reported(0, size - left_out)
        cost = own.cost(request, LeftOut(left_out, new, is_trim=False), earlier)
        assert own.size == size
        assert cost == cost_of(reported(size - new, new) if left_out else request)
        earlier = request


def test_a_client_compacts_at_its_limit() -> None:
    """The summary is paid for, and afterwards the prompt is the first one's and what a compaction leaves."""
    own = OwnCompaction("Claude Code", 100_000)
    first, second = reported(0, 30_000), reported(30_000, 80_000)
    assert own.cost(first, LeftOut(0, 0, is_trim=False), None) == cost_of(first)
    cost = own.cost(second, LeftOut(0, 80_000, is_trim=False), first)
    assert own.size == 30_000 + COMPACTED
    summary = Request("", 1.76e9, "", MODEL, "", "", input_tokens=80_000, cache_read=30_000, output_tokens=2_000)
    after, asked = cost_of(reported(30_000, COMPACTED)), cost_of(summary)
    assert after is not None
    assert asked is not None
    assert cost == after + asked


def test_clients_are_known_by_their_user_agents() -> None:
    claude, codex = own_compaction("claude-cli/2.1.0", MODEL), own_compaction("codex_cli_rs/0.171", "gpt-5")
    assert claude is not None
    assert codex is not None
    assert (claude.name, claude.limit, codex.name) == ("Claude Code", 167_000, "Codex")
    assert own_compaction("curl/8", MODEL) is own_compaction("claude-cli/2", "no such model") is None


@pytest.mark.parametrize(
    ("managed", "own", "text"),
    [
        ("2.00", "3.00", "saved about $2.00 of $4.00 ($1.00 less than with Claude Code's own compaction); 1 trim"),
        ("5.00", "3.00", "cost about $1.00 more than $4.00 ($2.00 more than with Claude Code's own compaction); 1 trim"),
    ],
)
def test_the_line_is_honest(managed: str, own: str, text: str) -> None:
    savings = Savings(trims=1)
    savings.add(Cost(Decimal(managed), Decimal(4), is_sendable=True), ("Claude Code", Decimal(own)))
    assert savings.text() == text
    assert Savings().text() == ""


def test_a_conversation_that_has_outgrown_the_window_is_told_of() -> None:
    """While it is so, and what to do."""
    ledger = GatewayLedger(requests=1)
    ledger.savings.outgrown.add(1)
    assert "; a conversation has outgrown the model's window: run /compact behind the gateway" in ledger.line()
    ledger.savings.outgrown.add(2)
    assert "2 conversations have outgrown" in ledger.line()
    ledger.savings.outgrown.clear()
    assert "outgrown" not in ledger.line()


def body(number: int) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 10, "messages": [{"role": "user", "content": f"{number} " + "words " * 4_000}]}


def ask_until_refused(client: anthropic.Anthropic) -> tuple[int, anthropic.APIStatusError]:
    """Return how many requests were answered, and the refusal of the next one."""
    for number in range(10):
        try:
            client.messages.create(**body(number))
        except anthropic.APIStatusError as error:
            return number, error
    raise AssertionError("nothing was refused")


def test_beyond_the_limit_of_dollars_requests_are_refused_with_the_reason() -> None:
    """With the provider's kind of error. What has come before is answered, and the last line has the cost."""
    ledger = GatewayLedger()
    with AnthropicStub(lambda _: [Say("Fine.")]) as stub, gateway(stub.url, None, ledger=ledger, max_cost=Decimal("0.03")) as address:
        client = anthropic.Anthropic(base_url=f"{address}/anthropic", api_key="made up", max_retries=0)
        answered, error = ask_until_refused(client)
        assert re.search(r"have cost \$0\.0[3-9], and the gateway was started with a limit of \$0\.03", str(error))
        assert error.status_code == 402
        assert json.loads(error.response.text)["error"]["type"] == "billing_error"
        assert 1 <= answered == len(stub.requests) < 5
        assert post(address, path="/anthropic/v1/messages", body=b"{}").status_code != 402  # it carries no conversation
    assert ledger.line().startswith("gateway: saved about $0.00 of $0.0")


def test_a_conversation_that_cannot_be_read_has_the_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent as it came, and costs as much."""

    def fails(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr("context_window.gateway.anthropic_messages.AnthropicWire.conversation", fails)
    with upstream_that(says(200, b"{}")) as upstream:
        for spent, status in ((Decimal(0), 200), (Decimal(5), 402)):
            with gateway(upstream.url, None, max_cost=Decimal(5), spent_today=spent) as address:
                assert post(address, body=json.dumps(body(1)).encode()).status_code == status
    assert len(upstream.bodies) == 1


def test_a_limit_of_a_day_counts_what_was_spent_before_and_ends_with_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """At midnight it begins anew; a limit of the gateway does not."""
    monkeypatch.setattr("context_window.gateway.cost_limit.today", lambda: date(2026, 3, 25))
    of_day, of_gateway = CostLimit(Decimal(5), Decimal(3)), CostLimit(Decimal(5), None)
    assert of_day.problem(Decimal("1.99")) is None
    assert of_day.problem(Decimal(2)) == (
        "today's requests have cost $5.00, and the gateway was started with a limit of $5.00 (--max-cost)"
    )
    assert of_gateway.problem(Decimal("4.99")) is None
    assert "through this gateway" in (of_gateway.problem(Decimal(5)) or "")
    monkeypatch.setattr("context_window.gateway.cost_limit.today", lambda: date(2026, 3, 26))
    assert of_day.problem(Decimal(2)) is None
    assert of_day.problem(Decimal("6.99")) is None
    assert of_day.problem(Decimal(7)) is not None
    assert of_gateway.problem(Decimal(5)) is not None
