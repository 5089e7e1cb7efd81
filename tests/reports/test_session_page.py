"""The report on one session: its figures are those of its timeline."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from context_window import ContextWindowManager, Session
from context_window.reports import session_page
from context_window.timeline import Marker, MarkerKind, Point, Timeline, log_reports
from session import FunctionCall, Usage
from session.transcripts import read_account
from session.transcripts.reported_requests import Request
from tests.support.html_tables import PageText
from tests.support.shared import TRANSCRIPTS, needs_transcripts

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'{{ 7*7 }}"
REQUEST = Request("", 1_774_440_000.0, "t", "claude-opus-4-6", "", "s", input_tokens=10, cache_read=4_000, output_tokens=7)


def timeline(*points: Point, budget: int = 10_000) -> Timeline:
    return Timeline("s", points, (), budget, None, "claude-opus-4-6", "a counter")


def point(number: int, total: int = 1_000, *markers: Marker, request: Request | None = REQUEST) -> Point:
    cost = None if request is None else Decimal("0.5")
    return Point(
        number, number, (0, 0, total, 0), 10, request=request, cost=cost, markers=markers, time=None if request is None else request.time
    )


def test_breaks_are_listed_with_their_price_and_cause() -> None:
    marker = Marker(MarkerKind.CACHE_BREAK, 12_345, HOSTILE, Decimal("0.25"))
    trim = Marker(MarkerKind.TRIM, 77)
    page = PageText(session_page(timeline(point(1), point(2, 1_000, marker, trim), replace(point(3), is_next=True)), title=HOSTILE).html)
    (breaks,) = [table for table in page.tables if "Cause" in table[0]]
    assert [row[1:] for row in breaks[1:]] == [["12,345", "0.2500", HOSTILE]]
    assert breaks[1][0].startswith("request 2")
    assert "0 compactions, 1 trim, 1 cache break" in page.text
    assert HOSTILE in page.text
    plain = PageText(session_page(timeline(point(1), point(2, 1_000, replace(marker, cause="c"), trim), point(3)), title="t").html)
    assert set(page.tags) == set(plain.tags)


@pytest.mark.parametrize(("budget", "is_drawn"), [(2_019, True), (2_020, True), (2_021, False)])
def test_the_budget_is_drawn_if_a_prompt_came_near_it(budget: int, is_drawn: bool) -> None:
    page = session_page(timeline(point(1), budget=budget), title="t")
    assert ('class="limit"' in page.html) == is_drawn
    assert f"the budget is {budget:,}" in PageText(page.html).text


def test_a_session_without_reports_says_that_figures_are_counted() -> None:
    session = Session()
    session.add_message("user", "hello")
    page = PageText(session_page(ContextWindowManager().timeline(session), title="t").html)
    assert "The log reports no usage: all figures are counted" in page.text
    assert [table[0][-1] for table in page.tables] == ["Events", "Largest new item"]


def test_requests_name_their_largest_new_items_and_say_why() -> None:
    session = Session()
    session.metadata["model"] = "claude-opus-4-6"
    for number in range(3):
        session.add_message("user", "word " * 90)
        session.append(
            FunctionCall("Read", json.dumps({"file_path": f"/x/{number}{HOSTILE}"}), f"d{number}", usage=Usage(10, 4_000, 20, 7))
        )
        session.add_function_output("Read", "line " * 900, f"d{number}")
    manager = ContextWindowManager("claude-opus-4-6")
    found = manager.timeline(session)
    explained = [request for _, request in manager.made_up(session)]
    page = PageText(session_page(found, title="t", items=session.items, explained=explained, back="../index.html").html)
    (rows,) = [table[1:] for table in page.tables if table[0][0].startswith("Request, ")]
    assert [row[0].startswith(f"request {number}") for number, row in enumerate(rows[:-1], 1)] == [True] * len(found.requests)
    for row, point in zip(rows, found.points, strict=True):
        sizes = [manager.plan_session(session)[at].before for at, _ in point.new_items]
        assert [tokens for _, tokens in point.new_items] == sizes == sorted(sizes, reverse=True)
        assert all(f"{tokens:,} " in row[0] for tokens in sizes)
    assert "Read output: " in rows[1][0]
    (causes,) = [table[1:] for table in page.tables if table[0][0] == "What it paid for"]
    shown = sum(Decimal(row[1]) for row in causes)
    assert abs(shown - found.spent.cost) <= Decimal("0.005") * len(causes)
    assert found.spent.cost > 0
    assert "script" not in page.tags[:-1]


def logs() -> list[Path]:
    return sorted(path for tool in ("claude_code", "codex", "pi", "opencode") for path in (TRANSCRIPTS / tool).rglob("*.json*"))[::6]


@needs_transcripts
def test_figures_of_recorded_sessions_are_those_of_the_timeline() -> None:
    """Every figure in the page is one that `context-window timeline` shows."""
    for log in logs():
        account = read_account(log)
        session = account.sessions[0]
        found = ContextWindowManager(session.metadata.get("model")).timeline(session, log_reports(log, account))
        page = PageText(session_page(found, title=log.name).html)
        window = next(table for table in page.tables if "overhead" in table[0])
        figures = found.to_dict()
        assert [[int(cell.replace(",", "")) for cell in row[1:7]] for row in window[1:]] == [
            [*each["categories"].values(), each["overhead"], each["total"]] for each in figures["points"]
        ]
        billed = [table for table in page.tables if "cache reads" in table[0]]
        reported = [each["reported"] for each in figures["points"] if each["reported"]]
        assert sum(int(row[1].replace(",", "")) for table in billed for row in table[1:]) == sum(r["cache_read_tokens"] for r in reported)
        assert all(f"{marker['tokens']:,} tokens" in page.text for each in figures["points"] for marker in each["markers"])
