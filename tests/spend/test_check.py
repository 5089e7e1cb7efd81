"""`benchmarks.spend_check` over the recorded logs: our figures, those of its count over raw JSON, and ccusage's."""

from __future__ import annotations

import os

import pytest

from benchmarks.spend_check import ccusage_count, our_count, our_money, raw_count
from context_window.spend import find_logs, read_ledger
from tests.support.shared import TRANSCRIPTS, needs_transcripts

NO_USAGE = "has answers of a model, but no usage of them that can be read"
CCUSAGE = os.environ.get("CONTEXT_WINDOW_CCUSAGE")

needs_ccusage = pytest.mark.skipif(not CCUSAGE, reason="needs ccusage from npm: set CONTEXT_WINDOW_CCUSAGE to the path of the program")

pytestmark = needs_transcripts


def test_every_tool_of_the_recordings_agrees_with_the_raw_count() -> None:
    raw = raw_count(TRANSCRIPTS)
    assert len(raw) == 9
    ours = our_count(TRANSCRIPTS)
    assert ours.pop("aider")[0] > 0  # its history is no JSON: tests/transcripts/test_transcripts_aider.py counts it
    assert ours == raw
    faults = read_ledger(find_logs([str(TRANSCRIPTS)])).faults
    assert [fault.problem for fault in faults].count(NO_USAGE) == 4  # logs of runs that reported none


@needs_ccusage
def test_ccusage_counts_the_same_in_claude_code_logs() -> None:
    assert CCUSAGE is not None
    folder = TRANSCRIPTS / "claude_code"
    tokens, dollars = ccusage_count(folder, CCUSAGE)["claude_code"]
    assert our_count(folder)["claude_code"] == tokens
    assert our_money(folder)["claude_code"] == f"{dollars:.2f}"


@needs_ccusage
def test_ccusage_lacks_one_request_of_codex() -> None:
    """One total grows by 88,404 tokens more than the request beside it, which ccusage adds up."""
    assert CCUSAGE is not None
    folder = TRANSCRIPTS / "codex"
    tokens, _ = ccusage_count(folder, CCUSAGE)["codex"]
    assert sum(our_count(folder)["codex"]) - sum(tokens) == 88_404
