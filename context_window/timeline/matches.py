"""Finds each reported request in a session: the response that carries the same counts, in the order of the log."""

from __future__ import annotations

import os
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from session.errors import TranscriptError
from session.items import Item
from session.session import Session
from session.transcripts.account import TranscriptAccount
from session.transcripts.reported_requests import Request, read_requests

Counts = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class LogReports:
    """The requests that a log reports, for one of its sessions.

    Attributes:
        by_item: The session's requests by the id of the item that carries the report.
        strays: Requests of the session to which it has no response, each with the id of the item whose request came next; an empty id if
            none did.
        elsewhere: The log's other requests.
    """

    by_item: dict[str, Request] = field(default_factory=dict)
    strays: tuple[tuple[str, Request], ...] = ()
    elsewhere: tuple[Request, ...] = ()


def log_reports(path: str | os.PathLike[str], account: TranscriptAccount, session: Session | None = None) -> LogReports:
    """Return the requests that a log reports, for one of its sessions.

    Args:
        path: The log.
        account: Its sessions, from `read_account`.
        session: One of them. Default: the first.

    Raises:
        TranscriptError: The log can no longer be read.
    """
    session = account.sessions[0] if session is None else session
    try:
        requests = read_requests(path).requests
    except TranscriptError:  # only some formats report each request; usage may still be in the items
        requests = tuple(_request_of(item, other, account.format) for other in account.sessions for item in _reporting(other.items))
    return match_requests(requests, session, [other for other in account.sessions if other is not session])


def reports_of_items(session: Session) -> LogReports:
    """Return the usage that the session's own items carry, as requests."""
    source = session.metadata.get("source")
    tool = source.get("format") if isinstance(source, dict) else None
    return LogReports({item.id: _request_of(item, session, str(tool or "")) for item in _reporting(session.items)})


def match_requests(requests: Sequence[Request], session: Session, others: Iterable[Session] = ()) -> LogReports:
    """Return the requests of a log, matched with the responses of a session.

    Args:
        requests: The log's requests, in its order.
        session: The session.
        others: The log's other sessions.
    """
    items = list(_reporting(session.items))
    matches = _matches(requests, items)
    if not matches:
        return LogReports(elsewhere=tuple(requests))
    agents = Counter(requests[index].agent for index in matches)
    agent = agents.most_common(1)[0][0]
    unmatched = [index for index in range(len(requests)) if index not in matches]
    of_others = _matches([requests[index] for index in unmatched], [item for other in others for item in _reporting(other.items)])
    strays = [index for position, index in enumerate(unmatched) if position not in of_others and requests[index].agent == agent]
    _match_by_order(requests, items, strays, matches)
    next_items = _next_items(len(requests), matches, items)
    return LogReports(
        {items[position].id: requests[index] for index, position in matches.items()},
        tuple((next_items[index], requests[index]) for index in strays if index not in matches),
        tuple(requests[index] for index in unmatched if index not in matches and index not in set(strays)),
    )


def _reporting(items: Iterable[Item]) -> Iterable[Item]:
    """Return the items that carry reported usage."""
    return (item for item in items if item.usage is not None)


def _counts_of(request: Request) -> Counts:
    return request.input_tokens, request.cache_read, request.cache_write + request.cache_write_1h, request.output_tokens


def _item_counts(item: Item) -> Counts:
    usage = item.usage
    assert usage is not None
    return usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens


def _matches(requests: Sequence[Request], items: Sequence[Item]) -> dict[int, int]:
    """Return by the index of a request the index of the first unused item with the same counts."""
    positions: dict[Counts, deque[int]] = defaultdict(deque)
    for position, item in enumerate(items):
        positions[_item_counts(item)].append(position)
    matches: dict[int, int] = {}
    for index, request in enumerate(requests):
        if free_positions := positions.get(_counts_of(request)):
            matches[index] = free_positions.popleft()
    return matches


def _match_by_order(requests: Sequence[Request], items: Sequence[Item], strays: Iterable[int], matches: dict[int, int]) -> None:
    """Match a request whose counts no item has with the one unused item between its neighbours: a log's totals may say more than it."""
    used, missing = set(matches.values()), set(strays)
    before = -1
    for index in range(len(requests)):
        if index in missing and index not in matches and before + 1 < len(items) and before + 1 not in used:
            matches[index] = before + 1
            used.add(before + 1)
        before = matches.get(index, before)


def _next_items(count: int, matches: dict[int, int], items: Sequence[Item]) -> list[str]:
    """Return by the index of a request the id of the item that carries the next matched report."""
    following, ids = "", [""] * count
    for index in reversed(range(count)):
        ids[index] = following
        if index in matches:
            following = items[matches[index]].id
    return ids


def _request_of(item: Item, session: Session, tool: str) -> Request:
    """Return the usage that an item carries as a request."""
    input_tokens, cache_read, cache_write, output_tokens = _item_counts(item)
    model = item.extra.get("model", session.metadata.get("model"))
    return Request(
        item.id,
        item.created_at or None,
        tool,
        model if isinstance(model, str) else "",
        "",
        session.id,
        input_tokens=input_tokens,
        cache_read=cache_read,
        cache_write=cache_write,
        output_tokens=output_tokens,
    )
