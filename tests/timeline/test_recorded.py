"""Timelines of recorded logs agree with `usage` and `spend`, figure by figure."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from context_window import ContextWindow, ContextWindowManager
from context_window.spend import read_ledger
from context_window.spend.tables import sum_of
from context_window.timeline import log_reports
from session.errors import TranscriptError
from session.transcripts import TranscriptAccount, read_account
from tests.support.shared import TRANSCRIPTS, needs_transcripts

pytestmark = [needs_transcripts, pytest.mark.no_cover]

FOLDERS = sorted(folder.name for folder in TRANSCRIPTS.iterdir() if folder.is_dir()) if TRANSCRIPTS.is_dir() else []


def accounts(folder: str) -> list[tuple[Path, TranscriptAccount]]:
    logs = []
    for path in sorted((TRANSCRIPTS / folder).rglob("*")):
        if path.is_file():
            try:
                logs.append((path, read_account(path)))
            except TranscriptError:
                continue
    return logs


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_last_point_is_usage_and_the_sums_are_those_of_spend(folder: str) -> None:
    """The last point has the figures of `usage`, the sums are those of `spend`, and a reported prompt is the total of its point."""
    for path, account in accounts(folder):
        session = account.sessions[0]
        timeline = ContextWindowManager().timeline(session, log_reports(path, account))
        report = ContextWindowManager().usage(session)
        last = timeline.points[-1]
        assert (last.tokens, last.overhead) == (tuple(row.tokens for row in report.rows), report.overhead), path
        assert [point.number for point in timeline.points] == list(range(1, len(timeline.points) + 1))
        for point in timeline.points:
            assert min(*point.tokens, point.overhead, point.unlogged, point.overhead - point.unlogged) >= 0
            if point.is_reported:
                assert point.request is not None
                assert point.total == point.request.prompt
        requests = read_ledger([path]).requests
        if requests:
            assert timeline.spent_in_log == sum_of("total", requests), path


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_parts_are_the_money_and_the_shares_are_plausible(folder: str) -> None:
    """The parts by category sum to the session's money exactly, and no tool or item costs more than its category."""
    window = ContextWindow(max_tokens=30_000, keep_first_message=True)
    for path, account in accounts(folder):
        why = ContextWindowManager(context_window=window).why(account.sessions[0], log_reports(path, account))
        assert sum(why.parts.values(), Decimal(0)) == why.timeline.spent.cost, path
        assert min(why.parts.values()) >= 0
        categories = sum(why.parts[name] for name in ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"))
        assert sum((tool.cost for tool in why.tools), Decimal(0)) <= categories + Decimal("1e-9")
        assert sum((item.cost for item in why.items), Decimal(0)) <= categories + Decimal("1e-9")
        assert why.savings.managed_prompt_tokens <= why.savings.prompt_tokens
        if not why.savings.trims:
            assert why.savings.saved == 0
