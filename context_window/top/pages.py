"""The pages of the browser as rows: projects, the sessions of one, the requests of one of these, the items in a window. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from session.units import PRIORITY

from ..display.glyphs import BAD, OVERHEAD, QUIET, STRONG, STYLES
from ..display.lines import Span, width_of
from ..display.spend import money
from ..display.timeline import SIGNS, cents, digits_of
from ..models import describe_model
from ..spend.names import local_time
from ..spend.tables import added
from ..timeline.contents import WindowContents
from ..timeline.points import Marker, MarkerKind, Point
from .conversations import Conversation, Opened
from .entries import Entry, EntryKey

NEXT = "next"
"""Ends the key of the row for the request that would come next: it stays the same as a session grows."""
WEEK = 7
"""Days of the middle period."""
MODEL, AGENT = 16, 14
"""Columns of the screen for names."""
OF_OVERHEAD = "system prompt, tool definitions, framing: not in the log"


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column.

    Attributes:
        name: Its title.
        is_left: True to align it to the left, as texts are.
        least: Of the column that says what a row is and takes what room there is: columns of the screen that it gets as long as others can
            be left out. 0 for all other columns.
        keeps_end: True to cut its texts off at their beginning, as suits paths.
        most: Columns of the screen that its texts take at most; 0 for as many as they need.
        priority: If there is too little room, columns with the lowest priority are left out first. 0 means never.
    """

    name: str
    is_left: bool = False
    least: int = 0
    keeps_end: bool = False
    most: int = 0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Gauge:
    """A window and what fills it, in tokens.

    Attributes:
        words: What this is.
        used: Tokens of the prompt.
        window: The model's window; None if it is unknown.
        parts: Tokens by category and of the overhead; empty if only their sum is known.
    """

    words: str
    used: int
    window: int | None
    parts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a page.

    Attributes:
        key: What it is about. It stays the same when the figures change.
        cells: One per column.
        ranks: One per order of the page: rows with smaller ones come first.
        gauge: The window that it is about; None if there is none.
    """

    key: str
    cells: tuple[Span, ...]
    ranks: tuple[Any, ...]
    gauge: Gauge | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A table of rows.

    Attributes:
        noun: What a row is, in one word.
        heads: The columns.
        orders: Words for the orders of the rows.
        rows: The rows, in no order.
        widths: Columns of the screen that each column takes.
        note: A sentence about the whole.
    """

    noun: str
    heads: tuple[Head, ...]
    orders: tuple[str, ...]
    rows: tuple[Row, ...]
    widths: tuple[int, ...]
    note: str = ""


def chosen(page: Page, order: int, needle: str) -> list[Row]:
    """Return the rows that have the text in a cell, in any case of letters, in the order with this number."""
    lower = needle.lower()
    rows = [row for row in page.rows if not lower or any(lower in cell.text.lower() for cell in row.cells)]
    return sorted(rows, key=lambda row: row.ranks[order % len(page.orders)])


def _page(noun: str, heads: Sequence[Head], orders: Sequence[str], rows: Iterable[Row], note: str = "") -> Page:
    rows = tuple(rows)
    widths = tuple(max(width_of(head.name), *(width_of(row.cells[index].text) for row in rows), 0) for index, head in enumerate(heads))
    widths = tuple(min(width, head.most) if head.most else width for width, head in zip(widths, heads, strict=True))
    return Page(noun, tuple(heads), tuple(orders), rows, widths, note)


def projects_page(entries: Iterable[Entry], now: datetime) -> Page:
    """Return the projects, with what they cost today, in seven days and in all.

    Args:
        entries: All sessions.
        now: The time in the machine's zone.
    """
    projects: dict[str, list[Entry]] = {}
    for entry in entries:
        projects.setdefault(entry.key.project, []).append(entry)
    heads = [
        Head("project", is_left=True, least=24, keeps_end=True),
        Head("today $", priority=2),
        Head(f"{WEEK} days $", priority=1),
        Head("all $"),
        Head("requests", priority=3),
        Head("last used", is_left=True, priority=4),
    ]
    rows = (_project(name, found, now) for name, found in projects.items())
    return _page("project", heads, ["last used", "cost", "cost today", "name"], rows)


def _project(name: str, entries: Sequence[Entry], now: datetime) -> Row:
    starts = now.date(), now.date() - timedelta(WEEK - 1), None
    today, week, total = (added("", (entry.spent(since) for entry in entries)) for since in starts)
    latest = max(entries, key=lambda entry: entry.time or 0.0)
    costs = [Span(money(row) if row.requests else "", QUIET if row is not total else "") for row in (today, week, total)]
    cells = Span(name), *costs, Span(f"{total.requests:,}"), Span(moment(latest.time, now), QUIET)
    ranks = (-(latest.time or 0.0), name), (-total.cost, name), (-today.cost, -week.cost, name), (name,)
    return Row(name, cells, ranks, _gauge(latest, "its latest session"))


def sessions_page(entries: Iterable[Entry], titles: Mapping[EntryKey, str], now: datetime) -> Page:
    """Return the sessions of a project.

    Args:
        entries: The sessions.
        titles: Words for them. One without any shows its id.
        now: The time in the machine's zone.
    """
    heads = [
        Head("date", is_left=True, priority=4),
        Head("session", is_left=True, least=18),
        Head("model", is_left=True, most=MODEL, priority=1),
        Head("requests", priority=2),
        Head("full", priority=3),
        Head("cost $"),
    ]
    rows = (_session(entry, titles.get(entry.key, ""), now) for entry in entries)
    return _page("session", heads, ["last used", "cost", "requests", "prompt"], rows)


def entry_name(key: EntryKey) -> str:
    """Return a text that tells sessions apart."""
    return "\0".join(key)


def _session(entry: Entry, title: str, now: datetime) -> Row:
    total, last = entry.spent(), entry.last
    gauge = _gauge(entry, "the last request")
    cells = (
        Span(moment(entry.time, now), QUIET),
        Span(title or entry.key.session, "" if title else QUIET),
        Span(last.model, QUIET),
        Span(f"{total.requests:,}"),
        Span(_fill(gauge.used, gauge.window)),
        Span(money(total)),
    )
    name = entry_name(entry.key)
    time = -(entry.time or 0.0)
    return Row(name, cells, ((time, name), (-total.cost, time, name), (-total.requests, time, name), (-gauge.used, time, name)), gauge)


def requests_page(opened: Opened, now: datetime) -> Page:
    """Return the requests of a session: those of its main conversation, and those of its sub-agents.

    Args:
        opened: The session.
        now: The time in the machine's zone.
    """
    heads = [
        Head("#"),
        Head("time", is_left=True, priority=3),
        Head("agent", is_left=True, most=AGENT, priority=2),
        Head("prompt"),
        Head("full", priority=1),
        Head("cost $"),
        Head("what happened before", is_left=True, least=24),
    ]
    digits = digits_of(point.cost for one in opened.conversations for point in one.timeline.points)
    has_agents = any(conversation.agent for conversation in opened.conversations)
    rows = [row for index, one in enumerate(opened.conversations) for row in _requests(index, one, opened.entry.key.project, now, digits)]
    if not has_agents:
        heads.pop(2)
        rows = [Row(row.key, (*row.cells[:2], *row.cells[3:]), row.ranks, row.gauge) for row in rows]
    return _page("request", heads, ["newest", "oldest", "cost", "prompt"], rows, "; ".join(opened.problems))


def _requests(index: int, conversation: Conversation, project: str, now: datetime, digits: int) -> Iterable[Row]:
    points = [point for point in conversation.timeline.points if not (point.is_next and conversation.agent)]
    times = accumulate((point.time or 0.0 for point in points), max)
    for point, time in zip(points, times, strict=True):
        place = (not point.is_next, -time, index, -point.number)
        cost = Span("") if point.is_next else Span(cents(point.cost, digits))
        fill = _fill(point.total, conversation.timeline.window)
        cells = (
            Span(NEXT if point.is_next else f"{point.number:,}", STRONG if point.is_next else QUIET),
            Span("now" if point.is_next else moment(point.time, now), QUIET),
            Span(conversation.agent),
            Span(f"{point.total:,}"),
            Span(fill),
            cost,
            _happened(point, conversation.contents, project),
        )
        ranks = place, (point.is_next, time, index, point.number), (-(point.cost or 0), place), (-point.total, place)
        yield Row(request_name(index, point), cells, ranks, gauge_of(conversation, point))


def request_name(index: int, point: Point) -> str:
    """Return a text that tells the requests of a session apart.

    Args:
        index: The number of the conversation.
        point: The request.
    """
    return f"{index} {NEXT if point.is_next else point.number}"


def _happened(point: Point, contents: WindowContents | None, project: str) -> Span:
    """Return the events before a request, or else the largest item that is new, with its tokens and its file or command."""
    if point.markers:
        return Span("; ".join(map(_marked, point.markers)), BAD)
    largest = point.new_items[:1] if contents is not None else ()
    what = next((contents.items[at].what for at, tokens in largest if contents and tokens == point.added_tokens), point.added)
    return Span(f"+ {point.added_tokens:,} {_within(what, project)}" if point.added else "", QUIET)


def _within(what: str, project: str) -> str:
    """Return what an item is, with paths in the project without its folder."""
    folder = project.rstrip("/\\")
    return what.replace(f"{folder}/", "").replace(f"{folder}\\", "") if folder else what


def _marked(marker: Marker) -> str:
    words = {
        MarkerKind.COMPACTION: f"compaction, {marker.tokens:,} tokens left",
        MarkerKind.TRIM: f"trim, {marker.tokens:,} tokens left",
        MarkerKind.CACHE_BREAK: f"cache break: {marker.cause}, {marker.tokens:,} tokens again",
    }
    cost = f" for ${cents(marker.cost)}" if marker.cost else ""
    return f"{SIGNS[marker.kind]} {words[marker.kind]}{cost}"


def items_page(conversation: Conversation, number: int, project: str) -> Page:
    """Return the items in the window at a request.

    Args:
        conversation: The conversation.
        number: The request's number.
        project: The folder in which the assistant worked. Paths below it are shown without it.
    """
    heads = [
        Head("category", is_left=True, priority=3),
        Head("item", is_left=True, least=44),
        Head("tokens"),
        Head("of prompt", priority=1),
        Head("requests", priority=2),
        Head("cost $"),
    ]
    point = conversation.timeline.points[number - 1]
    gauge = gauge_of(conversation, point)
    items = [] if conversation.contents is None else conversation.contents.at(number)
    digits = digits_of(item.cost for _, item in items)
    note = "" if conversation.contents else "the log does not tell what was in this window"
    rows = [
        Row(
            f"{position} {item.item_id}",
            (
                Span(item.category.lower().replace("_", " "), STYLES[item.category]),
                Span(_within(item.what, project)),
                Span(f"{tokens:,}"),
                Span(_percent(tokens, point.total), QUIET),
                Span(f"{item.requests:,}", QUIET),
                Span(cents(item.cost, digits)),
            ),
            ((-tokens, position), (-item.cost, position), (position,), (-position,)),
            gauge,
        )
        for position, (tokens, item) in enumerate(items)
    ]
    if point.overhead:
        cells = OVERHEAD, OF_OVERHEAD, f"{point.overhead:,}", _percent(point.overhead, point.total), "", ""
        styles = STYLES[OVERHEAD], "", "", QUIET, "", ""
        ranks = (-point.overhead, -1), (1, -1), (-1,), (1,)
        rows.append(Row(OVERHEAD, tuple(map(Span, cells, styles)), ranks, gauge))
    return _page("item", heads, ["tokens", "cost", "oldest", "newest"], rows, note)


def gauge_of(conversation: Conversation, point: Point) -> Gauge:
    """Return the window at a request."""
    parts = {category.value: tokens for category, tokens in zip(PRIORITY, point.tokens, strict=True)} | {OVERHEAD: point.overhead}
    words = "the request that would come next" if point.is_next else f"request {point.number:,}"
    known = parts if conversation.contents is not None else {}
    return Gauge(words, point.total, conversation.timeline.window, known)


def _gauge(entry: Entry, words: str) -> Gauge:
    last = entry.last
    used = last.largest_prompt or last.prompt
    return Gauge(words, used, describe_model(last.model).window if last.model else None, {})


def _fill(used: int, window: int | None) -> str:
    """Return how full a window is; nothing if that is unknown, or if the prompt shows that the window was a larger one."""
    return _percent(used, window) if window and used <= window else ""


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else ""


def moment(time: float | None, now: datetime) -> str:
    """Return a time for a narrow column: today by the clock, this year by day and clock, else by day.

    Args:
        time: Unix seconds; None if it is unknown.
        now: The time in the machine's zone.
    """
    then = local_time(time, now.tzinfo)
    if then is None:
        return ""
    if then.date() == now.date():
        return f"{then:%H:%M:%S}"
    return f"{then:%m-%d %H:%M}" if then.year == now.year else f"{then:%Y-%m-%d}"
