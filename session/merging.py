"""One log made of two: by time, each item once, calls with their outputs. `Session` puts it in place."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from math import inf
from typing import TypeAlias

from .copying import is_empty
from .editing import earliest_after
from .errors import FormatError, short
from .excerpts import Excerpt, Piece, Reading, joined, read
from .items import Compaction, FunctionCall, FunctionCallOutput, Item, Message
from .sameness import ORIGINAL_ID, is_same, other_id, under
from .session import Session
from .units import KIND_OUTPUT, NONE

_Block: TypeAlias = tuple[list[int], float]
"""Positions, and the earliest time from the first of them on."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Items that come in together, and where they belong.

    Attributes:
        places: Their positions in the other log.
        time: At the latest before what is younger than this.
        low: The number of blocks here that come before them in any case.
        high: The number of blocks here that may come before them.
    """

    places: list[int]
    time: float
    low: int
    high: int


def check_other(other: object, where: str) -> None:
    """Refuses what is no session.

    Raises:
        FormatError: It is none.
    """
    if not isinstance(other, Session):
        raise FormatError(where, f"{short(other)} is no session")


def merged(mine: Session, theirs: Session) -> Excerpt | None:
    """Both logs as one, in O(n log n); None where the other holds nothing new.

    1. Each log keeps its order. Where that is not the order of time, an item goes by the earliest time from it on: a summary, or a
       system message that was replaced, stays before what it was put before. At equal times this log's items come first.
    2. Nothing is put into a response, nor between it and the outputs right after it.
    3. An item that both hold is taken once, and ties the two together: what follows it in the other log follows it here. One that
       only has the id of an item here is another item, and gets an id of its own (see `sameness`).
    4. An answer to a call that has one here is left out; one to a call that waits here comes as soon after it as may be.
    5. What a provider reported comes along with an item while this log is the very log that it was reported of: up to the item, all
       is as in the other log, which had lost nothing before. Else it counts another prompt, and is left behind.
    """
    here, there = read(mine), read(theirs)
    shared, renamed = _known(mine, there)
    answered = {output for output, call in there.calls.items() if call in shared and here.groups.answered[shared[call]]}
    fresh = set(range(len(there.items))) - shared.keys() - answered
    if not fresh:
        return None
    used_twice = _call_ids(here, range(len(here.items))) & _call_ids(there, fresh)
    ours, theirs_in_blocks = _blocks(here, used_twice), _blocks(there, used_twice)
    responses = _responses(here, there, shared)
    order: list[tuple[Reading, int]] = []
    taken = 0
    for run in _runs(there, theirs_in_blocks, shared, fresh, ours):
        while taken < len(ours) and (taken < run.low or (taken < run.high and ours[taken][1] <= run.time)):
            order += ((here, place) for place in ours[taken][0])
            taken += 1
        order += ((there, place) for place in run.places)
    for places, _ in ours[taken:]:
        order += ((here, place) for place in places)
    alike = _alike(order, there, shared)
    pieces: list[Piece] = []
    for number, (log, place) in enumerate(order):
        if log is here:
            pieces.append(here.piece(place))
        else:
            item = _here(there.items[place], renamed)
            if item.usage is not None and not theirs.settled <= number < alike:
                item = changed(item, usage=None)
            pieces.append((item, responses.get(there.response(place))))
    broken = (there.items[place].id for place in fresh if there.items[place].id in there.breaks)
    return joined(pieces, here.breaks | {renamed.get(item_id, item_id) for item_id in broken})


def _alike(order: list[tuple[Reading, int]], there: Reading, shared: dict[int, int]) -> int:
    """How many leading items of the merged log, each a position in one of the two, are those that lead the other log."""
    known = {ours: place for place, ours in shared.items()}
    found = 0
    for log, place in order:
        if (place if log is there else known.get(place)) != found:
            break
        found += 1
    return found


def _known(mine: Session, there: Reading) -> tuple[dict[int, int], dict[str, str]]:
    """By position in the other log, where an item stands here that is the same; by id there, the id here where it is another one."""
    ids = {item.id for item in there.items}
    shared: dict[int, int] = {}
    renamed: dict[str, str] = {}
    for place, item in enumerate(there.items):
        item_id = id_here(mine, item, ids)
        if item_id != item.id:
            renamed[item.id] = item_id
            ids.add(item_id)
        if (known := mine.position(item_id)) is not None:
            shared[place] = known
    return shared, renamed


def id_here(mine: Session, item: Item, taken: Container[str] = ()) -> str:
    """The id that another log's item has in this session, or would get: its own, unless that is another item's here.

    Args:
        mine: The session.
        item: The item of another log.
        taken: Ids that others will have.
    """

    def is_here(item_id: object) -> bool:
        known = mine.get_by_id(item_id) if isinstance(item_id, str) else None
        return known is not None and is_same(known, item)

    if is_here(item.id):
        return item.id
    if is_here(original := item.extra.get(ORIGINAL_ID)):  # it came from here, by way of a log where its id was taken
        return str(original)
    if mine.position(item.id) is None:
        return item.id
    return other_id(item, lambda item_id: is_here(item_id) or (mine.position(item_id) is None and item_id not in taken))


def _here(item: Item, ids: Mapping[str, str]) -> Item:
    """The item under its id here, naming what it replaces by theirs."""
    if isinstance(item, Compaction) and any(one in ids for one in item.replaces):
        item = changed(item, replaces=tuple(ids.get(one, one) for one in item.replaces))
    return under(item, ids.get(item.id, item.id))


def result_of(theirs: Session, agent_id: str | None) -> Message:
    """The last thing that the other session's assistant said, as a message of `agent_id` where one is given.

    What the provider reported for it is left behind: it counts the other session's prompt.

    Raises:
        FormatError: The assistant said nothing there.
    """
    for item in reversed(theirs.items):
        if isinstance(item, Message) and item.role == "assistant" and not item.is_summary and not is_empty(item):
            return changed(item, usage=None, agent_id=item.agent_id if agent_id is None else agent_id)
    raise FormatError("merge_result.other", "no assistant message in it says anything; let its agent answer first")


def beside_calls(mine: Session, message: Message) -> Excerpt | None:
    """The log with a message of this agent at the end of its last response; None where that waits for no output, or is another's.

    At the end of the log the message would be a response of its own, and the calls of the one before it count as interrupted.
    """
    log = read(mine)
    calls = log.in_flight()
    if not calls or log.items[calls[0]].agent_id != message.agent_id:
        return None
    response = log.response(calls[0])
    end = next((place for place in range(calls[-1], len(log.items)) if log.response(place) != response), len(log.items))
    pieces = [*map(log.piece, range(end)), (message, response), *map(log.piece, range(end, len(log.items)))]
    return joined(pieces, log.breaks)


def _call_ids(log: Reading, places: Iterable[int]) -> set[str]:
    found = (log.items[place] for place in places)
    return {item.call_id for item in found if isinstance(item, FunctionCall | FunctionCallOutput)}


def _blocks(log: Reading, used_twice: set[str]) -> list[_Block]:
    """The log in pieces that nothing is put into, each with the earliest time from it on.

    Where a call id of both logs is used, a block goes on to the output: an answer must not find the other log's call.
    """
    times, groups = earliest_after(log.items), log.groups
    ends = {call: output for output, call in log.calls.items() if log.items[output].call_id in used_twice}  # type: ignore[union-attr]
    blocks: list[_Block] = []
    reach = NONE
    for place in range(len(log.items)):
        before = place - 1
        is_output = groups.kind[place] == KIND_OUTPUT
        follows = place and (
            (groups.response[place] != NONE and groups.response[place] == groups.response[before])
            or (is_output and (groups.response[before] != NONE or groups.kind[before] == KIND_OUTPUT))
        )
        if place <= reach or follows:
            blocks[-1][0].append(place)
        else:
            blocks.append(([place], times[place]))
        reach = max(reach, ends.get(place, NONE))
    return blocks


def _runs(log: Reading, blocks: list[_Block], shared: dict[int, int], fresh: set[int], ours: list[_Block]) -> Iterator[_Run]:
    """The new items of the other log, in its order, parted where it holds one of ours."""
    number = {place: block for block, (places, _) in enumerate(ours) for place in places}
    low = 0
    found: list[tuple[list[int], float, int]] = []
    highs: list[int] = []
    parted = True
    for places, time in blocks:
        parted = True
        for place in places:
            if place in shared:
                low = max(low, number[shared[place]] + 1)
                highs += [number[shared[place]]] * (len(found) - len(highs))
                parted = True
            elif place in fresh:
                if parted:
                    found.append(([], -inf if log.calls.get(place) in shared else time, low))
                    parted = False
                found[-1][0].append(place)
    highs += [len(ours)] * (len(found) - len(highs))
    for (run, time, least), high in zip(found, highs, strict=True):
        yield _Run(run, time, least, high)


def _responses(here: Reading, there: Reading, shared: dict[int, int]) -> dict[Hashable, Hashable]:
    """What names each response of the other log here: as here, where one of its items is here."""
    names: dict[Hashable, Hashable] = {there.response(place): ("other", there.response(place)) for place in range(len(there.items))}
    names.update({there.response(place): here.response(ours) for place, ours in shared.items() if here.response(ours) is not None})
    names[None] = None
    return names
