"""The report on many sessions: its figures are those of `context-window spend`, and its charts add up to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.display.spend import money
from context_window.pages.shapes import TICKS_MAX
from context_window.reports import spend_page
from context_window.reports.periods import period_for, period_names, period_ticks
from context_window.reports.spend_page import GROUPINGS, ROWS_MAX
from context_window.spend import LogFault, SpendRow, find_logs, leading, read_ledger, spend_by
from session.transcripts.reported_requests import Request
from tests.support.html_tables import PageText
from tests.support.shared import TRANSCRIPTS, needs_transcripts

NOON = datetime(2026, 3, 25, 12, tzinfo=UTC).timestamp()
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'{{ 7*7 }}"

requests_ = st.lists(
    st.builds(
        Request,
        id=st.just(""),
        time=st.none() | st.floats(NOON - 9e6, NOON + 9e6) | st.just(1e18),
        tool=st.sampled_from(["codex", "pi"]),
        model=st.sampled_from(["claude-opus-4-6", "gpt-5.5", "nobody-knows-1", "", HOSTILE]),
        project=st.sampled_from(["/x/shop", "", HOSTILE]),
        session=st.sampled_from("abc"),
        input_tokens=st.integers(0, 10**6),
        cache_read=st.integers(0, 10**6),
        cache_write=st.integers(0, 10**6),
        cache_write_1h=st.integers(0, 10**6),
        output_tokens=st.integers(0, 10**6),
        reasoning=st.integers(0, 10**6),
    ),
    max_size=12,
)


def cells(row: SpendRow) -> list[str]:
    """The cells of a row, by another way than the template's."""
    written = row.cache_write + row.cache_write_1h
    amounts = (row.requests, row.input_tokens, row.cache_read, written, row.output_tokens, row.reasoning, row.total)
    return [row.name, money(row), *map("{:,}".format, amounts)]


def amount(cell: str) -> Decimal:
    return Decimal(cell.replace(",", ""))


@given(requests_)
def test_every_figure_is_that_of_the_command(requests: list[Request]) -> None:
    """Every figure in the page is one that `context-window spend` shows, and no name from a log becomes markup."""
    page = PageText(spend_page(requests, zone=UTC).html)
    tables = {table[0][0].lower(): table[1:] for table in page.tables if table[0][1] == "US dollars"}
    for grouping in GROUPINGS:
        assert sorted(tables[grouping]) == sorted(map(cells, spend_by(grouping, requests, zone=UTC)))
    assert set(page.tags) == set(PageText(spend_page([replace(r, model="m", project="p") for r in requests], zone=UTC).html).tags)


@given(requests_)
def test_charts_add_up_to_the_table(requests: list[Request]) -> None:
    """A period's amounts in the charts sum to its row, and a period without requests is empty."""
    page = PageText(spend_page(requests, zone=UTC).html)
    days = [table for table in page.tables if table[0][-1] == "Events"]
    rows = {row[0]: row for row in page.tables[-1][1:]}
    timed = [name for name in rows if name != "(unknown)"]
    assert bool(days) == bool(timed)
    for table in days:
        is_money = "output" not in table[0]
        for name, *amounts, _ in table[1:]:
            stated = "0.00" if name not in rows else rows[name][1 if is_money else -1].rstrip("+±").replace("unknown", "0")
            assert sum(map(amount, amounts[:-1])) == pytest.approx(amount(stated), abs=Decimal("0.05") if is_money else 0)
            assert amount(amounts[-1]) == pytest.approx(amount(stated), abs=Decimal("0.01"))
        assert {name for name, *_ in table[1:]} >= set(timed)


@given(st.lists(st.dates(), min_size=1, max_size=6))
def test_periods_follow_each_other_and_are_few(days: Sequence[date]) -> None:
    """A chart has at most a few hundred periods in forty years, and each day is in one of them."""
    names = period_names(days)
    assert names == sorted(set(names))
    assert {row.name for row in spend_by(period_for(days), [_request(day) for day in days], zone=UTC)} <= {*names, "(unknown)"}
    assert len(names) <= 500
    ticks = period_ticks(period_for(days), names)
    assert len(ticks) == len(names)
    assert 1 <= len([tick for tick in ticks if tick]) <= TICKS_MAX


def _request(day: date) -> Request:
    try:
        time = datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()
    except (OverflowError, ValueError):
        time = None
    return Request("", time, "t", "m", "", "")


def test_long_tables_sum_up_the_rest_and_faults_are_named() -> None:
    requests = [Request("", NOON, "t", "m", f"/p{number}", "s", output_tokens=number) for number in range(ROWS_MAX + 5)]
    page = PageText(spend_page(requests, zone=UTC, repeated=2, faults=[LogFault(HOSTILE, "no such file")]).html)
    projects = next(table for table in page.tables if table[0][0] == "Project")
    assert projects[-1][0] == "(5 others)"
    assert f"{HOSTILE}: no such file" in page.text
    assert "2 reports of requests that other logs repeat were left out" in page.text
    assert "unknown" in page.text


@needs_transcripts
def test_recorded_logs() -> None:
    ledger = read_ledger(find_logs([str(TRANSCRIPTS)]))
    page = PageText(spend_page(ledger.requests, zone=UTC, faults=ledger.faults).html)
    tables = {table[0][0]: table[1:] for table in page.tables}
    expected = leading(sorted(spend_by("session", ledger.requests), key=lambda row: (-row.cost, -row.total, row.name)), ROWS_MAX)
    assert tables["Session"] == list(map(cells, expected))
