"""Makes the points of a timeline from the walk over a session and the reports of its log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from session.items import AgentConfigUpdate, Compaction, Item, MessageCategory
from session.session import Session
from session.transcripts.reported_requests import Request

from ..decision.plan import describe
from ..settings.budget import Budget
from ..settings.usage_snapshot import rows_of
from ..spend.breaks import Between, cause_of, cost_of_break, lost_tokens
from ..spend.money import cost_of
from .matches import LogReports
from .points import Marker, MarkerKind, Point, Timeline
from .walk import WindowState, WindowWalk

NEW_ITEMS = 3
"""Items that a point names."""
TRIMMED_PART, TRIMMED_LEAST = 20, 1024
"""A prompt that is smaller than the one before by a twentieth and by this many tokens was trimmed by the tool. Thinking of earlier turns,
which some providers leave out, is usually less."""


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """A request, with or without a report, and the window's state when it was sent.

    Attributes:
        state: Index of the state in the walk.
        request: The report; None without one.
        is_in_log: As in `Point`.
    """

    state: int
    request: Request | None
    is_in_log: bool = True


def timeline_of(session: Session, walk: WindowWalk, reports: LogReports, budget: Budget) -> Timeline:
    """Return the timeline of a session.

    Args:
        session: The session.
        walk: The walk over it, at its end.
        reports: The reports of its log.
        budget: The budget and the counter of the walk.
    """
    assert walk.final is not None
    items, states = session.items, [*walk.states, walk.final]
    events = list(events_of(session, walk, reports))
    points: list[Point] = []
    last_state = -1
    before: Request | None = None
    for number, event in enumerate([*events, RequestEvent(len(states) - 1, None)], 1):
        passed, start = states[last_state + 1 : event.state + 1], states[last_state].length if last_state >= 0 else 0
        is_next = number > len(events)
        point = _point(items, states[event.state], passed, event, number, is_next=is_next)
        new = nlargest(NEW_ITEMS, ((walk.tokens[at], -at) for at in range(start, states[event.state].length)))
        markers = tuple(_markers(items, passed, start, before, event.request))
        points.append(replace(point, markers=markers, new_items=tuple((-at, tokens) for tokens, at in new if tokens)))
        before, last_state = event.request or before, max(last_state, event.state)
    return Timeline(
        session.id,
        tuple(points),
        reports.elsewhere,
        budget.tokens,
        budget.window,
        budget.model,
        budget.counter.name,
    )


def events_of(session: Session, walk: WindowWalk, reports: LogReports) -> Iterator[RequestEvent]:
    """Yield the requests in order: the reported ones, or every response if the log reports none."""
    if not reports.by_item:
        yield from (RequestEvent(state, None) for state in range(len(walk.states)))
        return
    starts = [state.length for state in walk.states]
    strays: dict[str, list[Request]] = {}
    for item_id, request in reports.strays:
        strays.setdefault(item_id, []).append(request)
    for position, item in enumerate(session.items):
        report = reports.by_item.get(item.id)
        if report is not None:
            state = max(0, bisect_right(starts, position) - 1)
            yield from (RequestEvent(state, stray, is_in_log=False) for stray in strays.get(item.id, ()))
            yield RequestEvent(state, report)
    yield from (RequestEvent(len(walk.states), stray, is_in_log=False) for stray in strays.get("", ()))


def _point(
    items: Sequence[Item], state: WindowState, passed: Sequence[WindowState], event: RequestEvent, number: int, *, is_next: bool
) -> Point:
    request, correction = event.request, state.correction
    prompt = 0 if request is None else request.prompt
    if prompt:
        correction = prompt - state.counted
    rows = rows_of(state.tokens, state.overhead, correction)
    added = max(passed, key=lambda window: window.largest_tokens, default=None)
    has_added = added is not None and added.largest >= 0
    next_item = items[state.length] if state.length < len(items) and not is_next else None
    time = (request.time if request is not None else None) or (next_item.created_at if next_item is not None else None)
    return Point(
        number,
        state.length,
        rows.tokens,
        rows.overhead,
        unlogged=max(0, correction),
        is_reported=prompt > 0,
        is_in_log=event.is_in_log,
        is_next=is_next,
        time=time or None,
        request=request,
        cost=None if request is None else cost_of(request),
        added=describe(items[added.largest]) if added is not None and has_added else "",
        added_tokens=added.largest_tokens if added is not None and has_added else 0,
    )


def _markers(
    items: Sequence[Item], passed: Sequence[WindowState], start: int, before: Request | None, request: Request | None
) -> list[Marker]:
    """Return what happened between a request and the one before it.

    Args:
        items: The log.
        passed: The states since the request before, this request's included.
        start: Number of the log's items at the request before.
        before: The last reported request before this one.
        request: The request's report.
    """
    news = items[start : passed[-1].length] if passed else ()
    hidden, tokens_lost = sum(state.hidden for state in passed), sum(state.lost for state in passed)
    compacted = any(isinstance(item, Compaction) for item in news)
    markers = [Marker(MarkerKind.COMPACTION, hidden - tokens_lost)] if compacted else []
    shrunk = 0 if compacted else max(tokens_lost, _shrunk(before, request))
    if shrunk:
        markers.append(Marker(MarkerKind.TRIM, shrunk))
    if before is not None and request is not None and (tokens := lost_tokens(before, request)):
        between = Between(compacted, start > 0 and any(map(_configures, news)), edited=shrunk > 0)
        markers.append(Marker(MarkerKind.CACHE_BREAK, tokens, cause_of(before, request, between), cost_of_break(request, tokens)))
    return markers


def _configures(item: Item) -> bool:
    """True if the item changes the system prompt or the tools."""
    return isinstance(item, AgentConfigUpdate) or item.category is MessageCategory.SYSTEM


def _shrunk(before: Request | None, request: Request | None) -> int:
    """Return the tokens by which the tool has made a prompt smaller, as far as two reports show it; 0 if it has not."""
    if before is None or request is None or before.agent != request.agent or before.model != request.model:
        return 0
    old, new = before.prompt, request.prompt
    return old - new if new and old - new >= max(TRIMMED_LEAST, old // TRIMMED_PART) else 0
