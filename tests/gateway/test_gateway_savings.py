"""The last line says in money what the gateway has saved, or cost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.savings import COMPACTED, OwnCompaction, Savings, own_compaction
from context_window.gateway.unmanaged import Cost, LeftOut
from context_window.spend.money import cost_of
from session.transcripts.reported_requests import Request

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
