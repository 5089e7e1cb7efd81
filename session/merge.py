"""Merges two logs: ordered by time, each item once, calls with their outputs. `Session` puts the result in place."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from hashlib import sha256
from math import inf
from typing import Any, TypeAlias

from .copies import is_empty
from .edits import earliest_times
from .errors import FormatError, short
from .identity import ORIGINAL_ID, is_digest, is_same, with_id
from .items import Compaction, FunctionCall, FunctionCallOutput, Item, Message
from .rewrite import Excerpt, IndexedLog, Piece, assemble, index_log
from .serial import item_to_dict
from .session_log import SessionLog
from .stack import with_room
from .units import KIND_OUTPUT, NONE, ReadableLog

_Block: TypeAlias = tuple[list[int], float]
"""Positions that stay together, and the earliest time from the first of them on."""


@dataclass(frozen=True, slots=True)
class _Insertion:
    """New items that are inserted together, and where.

    Attributes:
        positions: Their positions in the other log.
        time: The run comes before our blocks that are younger than this.
        low: Number of our blocks that come before the run in any case.
        high: Number of our blocks that may come before the run.
    """

    positions: list[int]
    time: float
    low: int
    high: int


def check_session(other: object, where: str) -> None:
    """Raise FormatError unless the value is a session."""
    if not isinstance(other, SessionLog):
        raise FormatError(where, f"{short(other)} is not a session")


def merge_logs(mine: ReadableLog, theirs: ReadableLog) -> Excerpt | None:
    """Return both logs as one, or None if the other has nothing new. O(n log n).

    1. Each log keeps its order, and at equal times our items come first. An item's time is the earliest one from it on: so a summary or
       a replaced system message, which is younger than the items after it, stays before them.
    2. Nothing is inserted into a response, nor between a response and the outputs right after it.
    3. An item in both logs appears once and connects them: items after it in the other log come after it in ours. An item that only
       shares its id with one of ours is a different item and gets a new id (see `identity.py`).
    4. An output for a call that already has one here is left out. An output for a call that waits here comes as early after it as
       possible.
    5. An item keeps its reported usage only if the prompt it counts is the beginning of the merged log: up to this item both logs are
       the same, and the other log had lost nothing before. Otherwise the usage counts another prompt and is removed.
    """
    ours, other = index_log(mine), index_log(theirs)
    shared, new_ids = _match(mine, other)
    repeated_outputs = {output for output, call in other.calls.items() if call in shared and ours.groups.answered[shared[call]]}
    fresh = set(range(len(other.items))) - shared.keys() - repeated_outputs
    if not fresh:
        return None
    common_call_ids = _call_ids(ours, range(len(ours.items))) & _call_ids(other, fresh)
    our_blocks, other_blocks = _blocks(ours, common_call_ids), _blocks(other, common_call_ids)
    responses = _response_names(ours, other, shared)
    order: list[tuple[IndexedLog, int]] = []
    block_count = 0
    for run in _runs(other, other_blocks, shared, fresh, our_blocks):
        while block_count < len(our_blocks) and (
            block_count < run.low or (block_count < run.high and our_blocks[block_count][1] <= run.time)
        ):
            order += ((ours, index) for index in our_blocks[block_count][0])
            block_count += 1
        order += ((other, index) for index in run.positions)
    for positions, _ in our_blocks[block_count:]:
        order += ((ours, index) for index in positions)
    common_prefix = _common_prefix(order, other, shared)
    pieces: list[Piece] = []
    for number, (log, index) in enumerate(order):
        if log is ours:
            pieces.append(ours.piece(index))
        else:
            item = _with_new_ids(other.items[index], new_ids)
            if item.usage is not None and not theirs.settled <= number < common_prefix:
                item = changed(item, usage=None)
            pieces.append((item, responses.get(other.response(index))))
    fresh_breaks = (other.items[index].id for index in fresh if other.items[index].id in other.breaks)
    return assemble(pieces, ours.breaks | {new_ids.get(item_id, item_id) for item_id in fresh_breaks})


def _common_prefix(order: list[tuple[IndexedLog, int]], other: IndexedLog, shared: dict[int, int]) -> int:
    """Return how many leading items the merged log has in common with the other log.

    `order` has each item of the merged log as a position in one of the two logs, `shared` our position of each item that both have, by its
    position in the other one.
    """
    other_positions = {our_position: index for index, our_position in shared.items()}
    length = 0
    for log, index in order:
        if (index if log is other else other_positions.get(index)) != length:
            break
        length += 1
    return length


def _match(mine: ReadableLog, other: IndexedLog) -> tuple[dict[int, int], dict[str, str]]:
    """Return (other position -> our position of the same item, other id -> our id where they differ)."""
    ids = {item.id for item in other.items}
    shared: dict[int, int] = {}
    new_ids: dict[str, str] = {}
    for index, item in enumerate(other.items):
        item_id = local_id(mine, item, ids)
        if item_id != item.id:
            new_ids[item.id] = item_id
            ids.add(item_id)
        if (our_position := mine.position(item_id)) is not None:
            shared[index] = our_position
    return shared, new_ids


def local_id(mine: ReadableLog, item: Item, reserved: Container[str] = ()) -> str:
    """Return the id that another log's item has in this session, or would get: its own, unless a different item here has that id.

    `reserved` holds ids that other new items will have.
    """

    def is_here(item_id: object) -> bool:
        recorded = mine.get_by_id(item_id) if isinstance(item_id, str) else None
        if recorded is None or (is_digest(recorded) and not is_digest(item)):  # a call's output would be left without its call
            return False
        return is_same(recorded, item)

    if is_here(item.id):
        return item.id
    if is_here(original := item.extra.get(ORIGINAL_ID)):  # it came from here, through a log in which its id was in use
        return str(original)
    if mine.position(item.id) is None:
        return item.id
    return _replacement_id(item, lambda item_id: is_here(item_id) or (mine.position(item_id) is None and item_id not in reserved))


def _replacement_id(item: Item, is_free: Callable[[str], bool]) -> str:
    """Return an id for an item whose own id is in use. It depends on the content alone, so merging again gives the same id.

    An id is free if no item has it, or this very item does.
    """
    bare: dict[str, Any] = {"extra": {}, "usage": None, "pinned": False, "agent_id": None, "created_at": 0.0}
    if isinstance(item, FunctionCall):
        bare["metadata"] = {}
    if isinstance(item, Compaction):
        bare["replaces"] = ()
    content = with_room(lambda: json.dumps(item_to_dict(changed(item, **bare)), sort_keys=True))
    number = 0
    while True:
        item_id = sha256(f"{number} {content}".encode()).hexdigest()[:12]  # as long as those of `new_id`
        if is_free(item_id):
            return item_id
        number += 1


def _with_new_ids(item: Item, new_ids: Mapping[str, str]) -> Item:
    """Return the item with its id in the merged log, and with those of the items that it replaces."""
    if isinstance(item, Compaction) and any(item_id in new_ids for item_id in item.replaces):
        item = changed(item, replaces=tuple(new_ids.get(item_id, item_id) for item_id in item.replaces))
    return with_id(item, new_ids.get(item.id, item.id))


def final_message(theirs: ReadableLog, agent_id: str | None) -> Message | None:
    """Return the last assistant message with content, assigned to `agent_id` if that is given; None if there is no such message.

    Its usage is removed: it counts the other session's prompt.
    """
    for item in reversed(theirs.items):
        if isinstance(item, Message) and item.role == "assistant" and not item.is_summary and not is_empty(item):
            return changed(item, usage=None, agent_id=item.agent_id if agent_id is None else agent_id)
    return None


def insert_while_calls_run(mine: ReadableLog, message: Message) -> Excerpt | None:
    """Return the log with a message added at the end of its last response. None if no call of this agent waits there.

    At the end of the log the message would be a response of its own, and the calls before it would count as interrupted.
    """
    log = index_log(mine)
    calls = log.in_flight()
    if not calls or log.items[calls[0]].agent_id != message.agent_id:
        return None
    response = log.response(calls[0])
    end = next((index for index in range(calls[-1], len(log.items)) if log.response(index) != response), len(log.items))
    pieces = [*map(log.piece, range(end)), (message, response), *map(log.piece, range(end, len(log.items)))]
    return assemble(pieces, log.breaks)


def _call_ids(log: IndexedLog, positions: Iterable[int]) -> set[str]:
    items = (log.items[index] for index in positions)
    return {item.call_id for item in items if isinstance(item, FunctionCall | FunctionCallOutput)}


def _blocks(log: IndexedLog, common_call_ids: set[str]) -> list[_Block]:
    """Return the log as blocks into which nothing is inserted, each with the earliest time from it on.

    A call whose id both logs use stays in one block with its output, so that no output answers the other log's call.
    """
    times, groups = earliest_times(log.items), log.groups
    ends = {call: output for output, call in log.calls.items() if log.items[output].call_id in common_call_ids}  # type: ignore[union-attr]
    blocks: list[_Block] = []
    reach = NONE
    for index in range(len(log.items)):
        before = index - 1
        is_output = groups.kind[index] == KIND_OUTPUT
        follows = index and (
            (groups.response[index] != NONE and groups.response[index] == groups.response[before])
            or (is_output and (groups.response[before] != NONE or groups.kind[before] == KIND_OUTPUT))
        )
        if index <= reach or follows:
            blocks[-1][0].append(index)
        else:
            blocks.append(([index], times[index]))
        reach = max(reach, ends.get(index, NONE))
    return blocks


def _runs(log: IndexedLog, blocks: list[_Block], shared: dict[int, int], fresh: set[int], our_blocks: list[_Block]) -> Iterator[_Insertion]:
    """Yield the new items of the other log in its order, in runs separated by the items that both logs have."""
    block_of = {index: block for block, (positions, _) in enumerate(our_blocks) for index in positions}
    low = 0
    starts: list[tuple[list[int], float, int]] = []
    highs: list[int] = []
    for positions, time in blocks:
        is_separated = True
        for index in positions:
            if index in shared:
                low = max(low, block_of[shared[index]] + 1)
                highs += [block_of[shared[index]]] * (len(starts) - len(highs))
                is_separated = True
            elif index in fresh:
                if is_separated:
                    starts.append(([], -inf if log.calls.get(index) in shared else time, low))
                    is_separated = False
                starts[-1][0].append(index)
    highs += [len(our_blocks)] * (len(starts) - len(highs))
    for (run, time, least), high in zip(starts, highs, strict=True):
        yield _Insertion(run, time, least, high)


def _response_names(ours: IndexedLog, other: IndexedLog, shared: dict[int, int]) -> dict[Hashable, Hashable]:
    """Return the name in the merged log of each response of the other log: our name for it if we have one of its items."""
    names: dict[Hashable, Hashable] = {other.response(index): ("other", other.response(index)) for index in range(len(other.items))}
    names.update({other.response(index): ours.response(mine) for index, mine in shared.items() if ours.response(mine) is not None})
    names[None] = None
    return names
