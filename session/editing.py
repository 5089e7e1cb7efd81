"""What a log becomes by an insertion or a truncation. `Session` puts it in place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from .copying import is_instruction
from .errors import DuplicateItemError, FormatError, short
from .estimate import estimate_item
from .excerpts import Excerpt, Piece, Reading, joined, read, whole_number
from .items import ITEM_TYPES, AgentConfigUpdate, AgentHandoff, Item
from .record import listed
from .session import Session
from .units import FREE, NONE, is_answer


def earliest_after(items: Iterable[Item]) -> list[float]:
    """By position, the earliest time from there on.

    A log need not be in order of time: a system message that was replaced, or a summary, is younger than what follows it. These
    times rise, and a place found by them is after every item that is not younger.
    """
    times = [item.created_at for item in items]
    for place in range(len(times) - 2, -1, -1):
        times[place] = min(times[place], times[place + 1])
    return times


def checked_new(session: Session, items: Iterable[Item]) -> list[Item]:
    """The items, all of which the session can take in.

    Raises:
        FormatError: Something is no item.
        DuplicateItemError: An id is taken, or given twice.
    """
    new = list(listed(items, "Session.insert"))
    ids = set()
    for item in new:
        if type(item) not in ITEM_TYPES:
            raise FormatError("Session.insert", f"{short(item)} is no item; pass a Message, a FunctionCall or another of the item classes")
        if item.id in ids or session.position(item.id) is not None:
            raise DuplicateItemError(item.id)
        ids.add(item.id)
    return new


def inserted(session: Session, new: list[Item]) -> Excerpt:
    """The log with these items, which are in order of time, each after the last one that is not younger: linear but for the search.

    Where that is within a response, it is after the response. One that came in before, and is an answer too, is part of it.
    """
    log = read(session)
    times = earliest_after(log.items)
    pieces: list[Piece] = []
    here = 0
    for item in new:
        place = max(here, bisect_right(times, item.created_at))
        pieces += map(log.piece, range(here, place))
        while pieces and place < len(log.items) and _goes_on(log.items[place], pieces[-1][0], log.breaks):
            pieces.append(log.piece(place))
            place += 1
        pieces.append((item, None))
        here = place
    pieces += map(log.piece, range(here, len(log.items)))
    return joined(pieces, log.breaks)


def _goes_on(item: Item, before: Item, breaks: frozenset[str]) -> bool:
    """Whether the item is part of the response that the one before it is part of."""
    return is_answer(before) and is_answer(item) and before.agent_id == item.agent_id and item.id not in breaks


def truncated(session: Session, max_items: int | None, max_tokens: int | None) -> Excerpt | None:
    """The log with its oldest units taken out until it keeps the limits; None where it keeps them already, or nothing can go.

    O(n). Protected units stay: see `Session.truncate`.

    Raises:
        FormatError: A limit is no whole number of 0 or more.
    """
    items_left = len(session.items) if max_items is None else whole_number(max_items, "truncate.max_items", 0)
    limit = None if max_tokens is None else whole_number(max_tokens, "truncate.max_tokens", 0)
    over_items = len(session.items) - items_left
    costs = [0] * len(session.items) if limit is None else list(map(estimate_item, session.items))
    over_tokens = 0 if limit is None else sum(costs) - limit
    if over_items <= 0 and over_tokens <= 0:
        return None
    log = read(session)
    kept = protected(log)
    gone: set[int] = set()
    for place in range(len(log.items)):  # a unit is as old as what completed it
        if over_items <= 0 and over_tokens <= 0:
            break
        head = log.groups.head[place]
        if log.groups.last[head] != place or head in kept:
            continue
        members = list(log.groups.members(head))
        gone.update(members)
        over_items -= len(members)
        over_tokens -= sum(costs[member] for member in members)
    return log.excerpt(place for place in range(len(log.items)) if place not in gone) if gone else None


def protected(log: Reading) -> set[int]:
    """The heads of units that no truncation takes."""
    groups = log.groups
    kept = {groups.head[place] for place in log.in_flight()}
    for place, item in enumerate(log.items):
        if groups.own[place] != FREE or stays(item):
            kept.add(groups.head[place])
    if groups.last_user != NONE:
        kept.add(groups.head[groups.last_user])
    return kept


def stays(item: Item) -> bool:
    """Whether the item is part of the log's structure: a system or developer message, a handoff, a config update."""
    return is_instruction(item) or isinstance(item, AgentHandoff | AgentConfigUpdate)
