"""What recorded logs report, against the logs' own totals and prices. Every figure against a count over the raw JSON: `test_check.py`."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from benchmarks.spend_check import values
from context_window.spend import cost_of, find_logs, read_ledger, spend_by
from context_window.spend.money import rates_of
from tests.support.shared import TRANSCRIPTS, needs_transcripts

pytestmark = needs_transcripts


@pytest.mark.parametrize(("tool", "share"), [("pi", 0), ("opencode", 1)])
def test_stated_costs_are_those_of_our_price_list(tool: str, share: int) -> None:
    """Every recorded request of pi costs what it states. opencode of that time charges reasoning twice: in the output, and beside it."""
    requests = [r for r in read_ledger(find_logs([str(TRANSCRIPTS / tool)])).requests if r.cost]
    assert len(requests) > 60
    for request in requests:
        rates = rates_of(request)
        assert rates is not None
        ours = (cost_of(replace(request, cost=None)) or 0) + share * (request.reasoning or 0) * rates.output
        assert request.cost is not None
        assert abs(ours - request.cost) <= Decimal("1e-6")


def test_copilot_has_the_sums_of_its_last_event() -> None:
    """One session was killed: only the output of its answers is known."""
    rows = spend_by("model", read_ledger(find_logs([str(TRANSCRIPTS / "copilot_cli")])).requests)
    assert [(row.name, row.input_tokens, row.output_tokens, row.reasoning) for row in rows] == [
        ("claude-sonnet-4.6", 0, 19_254, 0),
        ("gpt-5.3-codex-spark", 12_847, 101, 94),
        ("gpt-5.4-mini", 15_517, 45, 30),
    ]


def test_mini_swe_agent_has_the_runs_own_totals() -> None:
    logs = find_logs([str(TRANSCRIPTS / "mini_swe_agent")])
    runs = [run for log in logs for run in values(log) if isinstance(run, dict)]
    stats = {run["instance_id"]: run["info"]["model_stats"] for run in runs}
    requests = read_ledger(logs).requests
    assert {row.name: row.requests for row in spend_by("session", requests)} == {name: own["api_calls"] for name, own in stats.items()}
    stated = [request for request in requests if request.cost is not None]  # one run's requests state none: its total is an estimate
    rows = spend_by("session", stated)
    assert len(rows) == len(runs) - 1
    assert all(abs(row.cost - Decimal(str(stats[row.name]["instance_cost"]))) < Decimal("1e-9") for row in rows)


def test_the_agent_sdk_has_the_totals_of_its_last_report() -> None:
    (log,) = find_logs([str(TRANSCRIPTS / "openhands_llm_logs" / "**" / "events.jsonl")])
    states = [event["value"]["usage_to_metrics"] for event in values(log) if "usage_to_metrics" in event.get("value", ())]
    last = states[-1]["default"]["accumulated_token_usage"]
    (row,) = spend_by("tool", read_ledger([log]).requests)
    assert row.requests == len(states)
    assert row.input_tokens + row.cache_read == last["prompt_tokens"]
    assert (row.cache_read, row.output_tokens) == (last["cache_read_tokens"], last["completion_tokens"])


def test_runs_of_openhands_that_state_only_their_price_have_it() -> None:
    (log,) = find_logs([str(TRANSCRIPTS / "openhands" / "**" / "*output.jsonl")])
    stated = [Decimal(str(run["metrics"]["accumulated_cost"])) for run in values(log)]
    (row,) = spend_by("tool", read_ledger([log]).requests)
    assert (row.cost, row.requests, row.total) == (sum(stated), len(stated), 0)


@pytest.mark.parametrize(("tool", "cents"), [("pi", "30.33"), ("cline", "2.04"), ("opencode", "1.59")])
def test_money_is_what_the_log_states(tool: str, cents: str) -> None:
    (row,) = spend_by("tool", read_ledger(find_logs([str(TRANSCRIPTS / tool)])).requests)
    assert row.cost.quantize(Decimal("0.01")) == Decimal(cents)
    assert row.unpriced == 0
