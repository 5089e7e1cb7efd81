"""The rows and the lines of the browser's pages, without a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.display.glyphs import ASCII, FREE, OVERHEAD, UNICODE, Glyphs
from context_window.display.lines import line_width, plain
from context_window.spend import spend_by
from context_window.spend.ledger import Ledger
from context_window.spend.tables import UNKNOWN
from context_window.top.entries import Entries, Entry
from context_window.top.layout import GAUGE_LINES, gauge_lines, page_lines
from context_window.top.pages import Gauge, Page, chosen, items_page, moment, projects_page, requests_page, sessions_page
from session.transcripts.reported_requests import Request
from tests.cli.test_cli_hostile import MARK, raw

from .logs import Session, library, written

NOW = datetime(2026, 3, 25, 12, tzinfo=UTC)
DAY = 86_400
TEXTS = st.sampled_from(("/a/b", f"/c{MARK}", "", "日本" * 30, "x" * 200))
AMOUNTS = st.sampled_from((0, 0, 1, 500, 40_000, 900_000))
REQUESTS = st.lists(
    st.builds(
        Request,
        st.just(""),
        st.none() | st.floats(NOW.timestamp() - 60 * DAY, NOW.timestamp()) | st.just(1e20),
        st.sampled_from(("claude_code", "codex")),
        st.sampled_from(("claude-sonnet-4-5", "gpt-5", f"no{MARK}", "")),
        TEXTS,
        TEXTS,
        st.sampled_from(("", "", "scout", MARK)),
        input_tokens=AMOUNTS,
        cache_read=AMOUNTS,
        cache_write=AMOUNTS,
        output_tokens=AMOUNTS,
    ),
    max_size=25,
)
GLYPHS = st.sampled_from((UNICODE, ASCII))


def entries_of(requests: list[Request]) -> tuple[Entry, ...]:
    ledger = Ledger(tuple(requests), 0, 1, (), origins=tuple(f"{index % 3}.jsonl" for index in range(len(requests))))
    return Entries().of(ledger)


def pages_of(requests: list[Request]) -> list[Page]:
    entries = entries_of(requests)
    return [projects_page(entries, NOW), sessions_page(entries, {entry.key: MARK for entry in entries[::2]}, NOW)]


@given(REQUESTS)
def test_the_sums_are_those_of_spend(requests: list[Request]) -> None:
    """Every project has the requests and the cost that `spend --by project` gives it, and its sessions add up to it."""
    entries = entries_of(requests)
    for row in spend_by("project", requests):
        own = [entry for entry in entries if entry.key.project == row.name]
        assert sum(entry.spent().requests for entry in own) == row.requests
        assert sum((entry.spent().cost for entry in own), Decimal(0)) == row.cost
    page = projects_page(entries, NOW)
    assert sorted(row.key for row in page.rows) == sorted({request.project or UNKNOWN for request in requests})
    assert sum(int(row.cells[4].text.replace(",", "")) for row in page.rows) == len(requests)


@given(REQUESTS, st.integers(20, 140), GLYPHS)
def test_a_page_fits_the_screen_and_steers_nothing(requests: list[Request], width: int, glyphs: Glyphs) -> None:
    """No line is wider than the screen from 80 columns on, none has a control character, and ASCII terminals get ASCII."""
    for page in pages_of(requests):
        for order in range(len(page.orders)):
            lines = page_lines(page, chosen(page, order, ""), width, glyphs)
            texts = [plain(line) for line in lines]
            assert len(lines) == len(page.rows) + 1
            assert all(line_width(line) <= width for line in lines) or width < 78
            assert raw("\n".join(texts)) == []
            assert glyphs is UNICODE or "".join(texts).isascii()


@given(REQUESTS, st.sampled_from(("", "A", "gpt", "nowhere")))
def test_a_filter_leaves_the_rows_that_have_the_text(requests: list[Request], needle: str) -> None:
    for page in pages_of(requests):
        for order in range(len(page.orders)):
            rows = chosen(page, order, needle)
            assert len({row.key for row in rows}) == len(rows)
            assert {row.key for row in rows} == {
                row.key for row in page.rows if any(needle.lower() in cell.text.lower() for cell in row.cells)
            }
            assert [row.ranks[order] for row in rows] == sorted(row.ranks[order] for row in rows)


@given(REQUESTS, REQUESTS)
def test_sums_of_unchanged_sessions_are_kept(before: list[Request], after: list[Request]) -> None:
    """A second look at the same requests returns the same objects, and at others what a first look would."""
    ledgers = [Ledger(tuple(found), 0, 1, (), origins=("a",) * len(found)) for found in (before, before, after)]
    kept = Entries()
    first, again, other = (kept.of(ledger) for ledger in ledgers)
    assert all(one is two for one, two in zip(first, again, strict=True))
    assert other == Entries().of(ledgers[2])


@given(
    st.integers(0, 3_000_000),
    st.none() | st.integers(1, 2_000_000),
    st.lists(AMOUNTS, min_size=5, max_size=5),
    st.integers(0, 130),
    GLYPHS,
)
def test_a_window_is_always_as_many_lines(used: int, window: int | None, amounts: list[int], width: int, glyphs: Glyphs) -> None:
    names = [name for name in glyphs.cells if name != FREE]
    for parts in ({}, dict(zip(names, amounts, strict=True))):
        gauge = Gauge(f"words {MARK}", sum(amounts) if parts else used, window, parts)
        lines = gauge_lines(gauge, width, glyphs)
        assert len(lines) == GAUGE_LINES
        assert all(line_width(line) <= max(width, 12) for line in lines)
        assert raw("".join(map(plain, lines))) == []
    assert len(gauge_lines(None, width, glyphs)) == GAUGE_LINES


def test_the_bar_shows_the_categories_without_colours() -> None:
    lines = gauge_lines(Gauge("now", 75, 100, {"SYSTEM": 25, "DIALOG": 25, OVERHEAD: 25}), 80, UNICODE)
    assert plain(lines[0]) == "now: 75 of 100 tokens, 75%"
    assert plain(lines[1]) == "■" * 20 + "▦" * 20 + "◆" * 20 + "·" * 20
    assert plain(lines[2]) == "◆ overhead 25 · ■ system 25 · ▦ dialog 25"


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(hours=1), "11:00:00"),
        (timedelta(days=1), "03-24 12:00"),
        (timedelta(days=400), "2025-02-18"),
    ],
)
def test_a_time_is_as_short_as_it_can_be(ago: timedelta, shown: str) -> None:
    assert moment((NOW - ago).timestamp(), NOW) == shown
    assert moment(None, NOW) == moment(float("1e30"), NOW) == ""


def test_columns_are_left_out_before_texts_are_cut(tmp_path: Path) -> None:
    till = Session("s-till", asks="Mend the till, which rings whenever somebody opens the door.")
    till.turn()
    written(till, tmp_path / "logs")
    found = library(tmp_path / "logs", tmp_path)
    assert found.look()
    page = sessions_page(found.entries, {found.entries[0].key: "A title of more than twenty columns"}, NOW)
    heads = {width: plain(page_lines(page, page.rows, width, UNICODE)[0]).split() for width in (40, 78, 118)}
    assert heads == {
        40: ["date", "session", "cost", "$"],
        78: ["date", "session", "model", "requests", "full", "cost", "$"],
        118: ["date", "session", "model", "requests", "full", "cost", "$"],
    }


def test_sub_agents_have_a_column_and_a_session_of_two_logs_is_one(tmp_path: Path) -> None:
    """Requests of a sub-agent's log are among those of the session that started it, which has the costs of both."""
    main = Session("s-main")
    main.turn()
    main.turn(file="door.py")
    written(main, tmp_path / "logs")
    agent = Session("s-main", asks="Look for doors.")
    agent.says("There is one.")
    lines = [line.replace('"isSidechain": false', '"isSidechain": true, "agentId": "scout"') for line in agent.lines]
    agent.lines = lines
    agent.write(tmp_path / "logs" / "s-main" / "subagents", "agent-scout.jsonl")
    found = library(tmp_path / "logs", tmp_path)
    assert found.look()
    (entry,) = found.entries
    assert [Path(log).name for log in entry.logs] == ["s-main.jsonl", "agent-scout.jsonl"]
    opened = found.open(entry)
    assert [conversation.agent for conversation in opened.conversations] == ["", "scout"]
    page = requests_page(opened, NOW)
    assert [head.name for head in page.heads][2] == "agent"
    assert sorted(row.cells[2].text for row in page.rows) == ["", "", "", "scout"]
    assert len(page.rows) == entry.spent().requests + 1
    assert any(row.cells[-1].text.endswith("Read output: src/till.py") for row in page.rows)
    items = items_page(opened.conversations[1], 1, "/work/shop")
    assert [row.cells[1].text for row in chosen(items, 2, "user message")] == ["user message: Look for doors."]
