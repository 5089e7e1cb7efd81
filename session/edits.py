"""The new log after an insertion or a truncation. `Session` puts it in place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from .copies import is_instruction
from .errors import DuplicateItemError
from .estimate import estimate_item
from .items import ITEM_TYPES, AgentConfigUpdate, AgentHandoff, Item, checked_iterable, no_item
from .rewrite import Excerpt, IndexedLog, Piece, assemble, checked_count, index_log
from .units import FREE, NONE, ReadableLog, is_answer


def earliest_times(items: Iterable[Item]) -> list[float]:
    """Return, for each position, the earliest time from there on.

    A log need not be ordered by time: a replaced system message or a summary is younger than the items after it. The earliest times
    do rise, so a binary search in them finds a position after every item that is not younger.
    """
    times = [item.created_at for item in items]
    for index in range(len(times) - 2, -1, -1):
        times[index] = min(times[index], times[index + 1])
    return times


def check_new_items(session: ReadableLog, items: Iterable[Item]) -> list[Item]:
    """Return the items as a list. Raises FormatError if one is not an item, DuplicateItemError if an id is in use or occurs twice."""
    new = list(checked_iterable(items, "Session.insert"))
    ids = set()
    for item in new:
        if type(item) not in ITEM_TYPES:
            raise no_item("Session.insert", item)
        if item.id in ids or session.position(item.id) is not None:
            raise DuplicateItemError(item.id)
        ids.add(item.id)
    return new


def insert_by_time(session: ReadableLog, new: list[Item]) -> Excerpt:
    """Return the log with new items inserted, each after the last item that is not younger.

    If that position is inside a response, the item goes after the response. An item inserted before it may be part of that response. The
    cost is linear, plus one binary search for each new item.
    """
    log = index_log(session)
    times = earliest_times(log.items)
    pieces: list[Piece] = []
    copied = 0
    for item in new:
        index = max(copied, bisect_right(times, item.created_at))
        pieces += map(log.piece, range(copied, index))
        while pieces and index < len(log.items) and _continues_response(log.items[index], pieces[-1][0], log.breaks):
            pieces.append(log.piece(index))
            index += 1
        pieces.append((item, None))
        copied = index
    pieces += map(log.piece, range(copied, len(log.items)))
    return assemble(pieces, log.breaks)


def _continues_response(item: Item, before: Item, breaks: frozenset[str]) -> bool:
    """True if the item is in the same response as the item before it."""
    return is_answer(before) and is_answer(item) and before.agent_id == item.agent_id and item.id not in breaks


def truncate_log(session: ReadableLog, max_items: int | None, max_tokens: int | None) -> Excerpt | None:
    """Return the log without its oldest units, as many as must go to meet the limits; None if nothing must or can go.

    O(n). `Session.truncate` says which units stay, and what it raises.
    """
    item_limit = len(session.items) if max_items is None else checked_count(max_items, "truncate.max_items", 0)
    token_limit = None if max_tokens is None else checked_count(max_tokens, "truncate.max_tokens", 0)
    over_items = len(session.items) - item_limit
    costs = [0] * len(session.items) if token_limit is None else list(map(estimate_item, session.items))
    over_tokens = 0 if token_limit is None else sum(costs) - token_limit
    if over_items <= 0 and over_tokens <= 0:
        return None
    log = index_log(session)
    protected = _protected_units(log)
    dropped: set[int] = set()
    for index in range(len(log.items)):  # a unit is as old as its last item
        if over_items <= 0 and over_tokens <= 0:
            break
        head = log.groups.head[index]
        if log.groups.last[head] != index or head in protected:
            continue
        members = list(log.groups.members(head))
        dropped.update(members)
        over_items -= len(members)
        over_tokens -= sum(costs[member] for member in members)
    return log.excerpt(index for index in range(len(log.items)) if index not in dropped) if dropped else None


def _protected_units(log: IndexedLog) -> set[int]:
    """Return the heads of the units that no truncation drops."""
    groups = log.groups
    heads = {groups.head[index] for index in log.in_flight()}
    for index, item in enumerate(log.items):
        if groups.protection[index] != FREE or is_structural(item):
            heads.add(groups.head[index])
    if groups.last_user != NONE:
        heads.add(groups.head[groups.last_user])
    return heads


def is_structural(item: Item) -> bool:
    """True if the item is part of the log's structure: a system or developer message, a handoff, or a config update."""
    return is_instruction(item) or isinstance(item, AgentHandoff | AgentConfigUpdate)
