"""The report on many sessions: its figures are those of `context-window spend`, and its charts add up to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.display.spend import money
from context_window.pages.shapes import TICKS_MAX
from context_window.reports import Link, SessionKey, spend_page
from context_window.reports.periods import period_for, period_names, period_ticks
from context_window.reports.reasons import reason_tables
from context_window.reports.spend_page import GROUPINGS, ROWS_MAX
from context_window.reports.tree import PROJECTS_MAX, SESSIONS_MAX, session_tree
from context_window.spend import LogFault, SpendRow, find_logs, leading, read_ledger, spend_by
from context_window.spend.reasons import MCP, READ, SHELL, SKILL
from context_window.spend.tables import sum_of
from session.transcripts.makeup import Makeup, Part
from session.transcripts.reported_requests import Request
from tests.fuzz.outputs import ELEMENTS
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
    amounts = (row.requests, row.input_tokens, row.cache_read, written, row.output_tokens, row.known_reasoning, row.total)
    return [row.name, money(row), *("unknown" if amount is None else f"{amount:,}" for amount in amounts)]


def amount(cell: str) -> Decimal:
    return Decimal(cell.replace(",", ""))


texts = st.sampled_from(["", "git diff", "github", HOSTILE])
parts = st.builds(Part, st.sampled_from([READ, SHELL, MCP, SKILL]), texts, texts, *[st.integers(0, 10**6)] * 3)
explained_ = st.lists(
    st.builds(
        lambda request, made_of, lost, cause: replace(request, makeup=Makeup(tuple(made_of), lost, cause)),
        requests_.filter(bool).map(lambda requests: requests[0]),
        st.lists(parts, max_size=3),
        st.integers(0, 10**6),
        st.sampled_from(["", "a pause", HOSTILE]),
    ),
    min_size=1,
    max_size=6,
)


@given(explained_)
def test_reasons_add_up_to_the_total_of_the_page(requests: list[Request]) -> None:
    """Each table of why divides the money of the page: exactly, and to half a cent for each row as it is shown."""
    page = PageText(spend_page(requests, zone=UTC).html)
    total = sum_of("total", requests).cost
    tables = [table for table in page.tables if "Share" in table[0]]
    assert len(tables) == len(reason_tables(requests)) >= bool(total)
    for shown, table in zip(tables, reason_tables(requests), strict=True):
        assert abs(sum((row.cost for row in table.rows), Decimal(0)) - total) < Decimal("1e-12")
        assert abs(sum(amount(row[1]) for row in shown[1:]) - total) <= Decimal("0.005") * len(shown)
        assert all(
            any(text in row[0] for text in table.advice.values()) == (row[0] not in {r.name for r in table.rows}) for row in shown[1:]
        )
    assert set(page.tags) <= ELEMENTS


@given(requests_)
def test_the_tree_adds_up(requests: list[Request]) -> None:
    """Sessions add up to their project and projects to the page. Each is named by day or by that it has no time, never by its id alone."""
    titles = {SessionKey("codex", "a"): HOSTILE}
    links = {SessionKey("codex", "a"): [Link("sessions/1.html", ""), Link("sessions/2.html", HOSTILE)]}
    tree = session_tree(requests, zone=UTC, titles=titles, pages=links)
    assert sorted(map(str, (branch.sums for branch in tree))) == sorted(map(str, spend_by("project", requests)))
    for branch in tree:
        assert reduce(SpendRow.plus, (row.sums for row in branch.sessions), SpendRow(branch.name)) == branch.sums
        assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d|time unknown", row.name) for row in branch.sessions)
        assert all((HOSTILE in row.name.partition(": ")[2]) == (row.key == SessionKey("codex", "a")) for row in branch.sessions)
    page = PageText(spend_page(requests, zone=UTC, titles=titles, pages=links).html)
    shown = [row for table in page.tables if table[0][0] == "Session" for row in table[1:]]
    assert [row[1] for row in shown] == [money(row.sums) for branch in tree for row in branch.sessions]
    plain = {key: [link._replace(text="t") for link in pages] for key, pages in links.items()}
    assert page.tags == PageText(spend_page(requests, zone=UTC, titles=dict.fromkeys(titles, "t"), pages=plain).html).tags


def test_a_large_tree_sums_up_the_rest() -> None:
    request = Request("", NOON, "t", "claude-opus-4-6", "/p", "", output_tokens=1_000)
    requests = [replace(request, session=f"s{number}", project=f"/p{number % 3}") for number in range(3 * (SESSIONS_MAX + 2))]
    requests += [replace(request, project=f"/q{number}", output_tokens=9) for number in range(PROJECTS_MAX)]
    tree = session_tree(requests)
    assert [len(branch.sessions) for branch in tree] == [SESSIONS_MAX + 1] * 3 + [1] * (PROJECTS_MAX - 3) + [3]
    assert tree[-1].name == "(3 other projects)"
    assert sum(branch.count for branch in tree) == 3 * (SESSIONS_MAX + 2) + PROJECTS_MAX
    assert reduce(SpendRow.plus, (row.sums for branch in tree for row in branch.sessions), SpendRow("total")) == sum_of("total", requests)


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
    expected = leading(sorted(spend_by("project", ledger.requests), key=lambda row: (-row.cost, -row.total, row.name)), ROWS_MAX)
    assert tables["Project"] == list(map(cells, expected))
