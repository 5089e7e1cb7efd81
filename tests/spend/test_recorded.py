"""What recorded logs report, figure by figure, against a count over their raw JSON and against the logs' own totals."""

from __future__ import annotations

from decimal import Decimal

import pytest

from context_window.spend import cost_of, find_logs, read_ledger, spend_by
from tests.support import raw_usage
from tests.support.shared import TRANSCRIPTS, needs_transcripts

pytestmark = needs_transcripts

FOLDERS = {
    "claude_code": "claude_code",
    "codex": "codex",
    "gemini_cli": "gemini_chat",
    "pi": "pi",
    "cline": "cline",
    "opencode": "opencode",
}


@pytest.mark.parametrize("tool", FOLDERS)
def test_figures_agree_with_an_independent_count(tool: str) -> None:
    logs = find_logs([str(TRANSCRIPTS / FOLDERS[tool])])
    ledger = read_ledger(logs)
    (row,) = spend_by("tool", ledger.requests)
    assert row.name == tool
    assert (row.input_tokens, row.cache_read, row.cache_write + row.cache_write_1h, row.output_tokens) == getattr(raw_usage, tool)(logs)
    assert ledger.faults == ()


def test_copilot_has_the_sums_of_its_last_event() -> None:
    rows = spend_by("model", read_ledger(find_logs([str(TRANSCRIPTS / "copilot_cli")])).requests)
    assert [(row.name, row.input_tokens, row.output_tokens, row.reasoning) for row in rows] == [
        ("gpt-5.3-codex-spark", 12_847, 101, 94),
        ("gpt-5.4-mini", 15_517, 45, 30),
    ]


@pytest.mark.parametrize(("tool", "cents"), [("pi", "30.33"), ("cline", "2.04"), ("opencode", "1.59")])
def test_money_is_what_the_log_states(tool: str, cents: str) -> None:
    (row,) = spend_by("tool", read_ledger(find_logs([str(TRANSCRIPTS / FOLDERS[tool])])).requests)
    assert row.cost.quantize(Decimal("0.01")) == Decimal(cents)
    assert row.unpriced == 0


def test_the_price_list_agrees_with_what_pi_was_charged() -> None:
    from dataclasses import replace

    for request in read_ledger(find_logs([str(TRANSCRIPTS / "pi")])).requests:
        priced = cost_of(replace(request, cost=None))
        assert priced is not None
        assert request.cost is not None
        assert abs(priced - request.cost) < Decimal("0.000001")
