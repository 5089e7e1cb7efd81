"""The fold over a log: what is in the view, and what a trim takes out of it. Numbers only.

Items come in with `add`, one by one and measured. Where the model was called, `add` trims for good; `conclude` trims as
if it were called now, provisionally: the next item makes that final if it begins a response, and undoes it otherwise.
Every change a trim makes goes through `_set`, which can take it back. The steps are those of DESIGN.md, in their order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from session.items import Item, Message
from session.units import (
    CONTEXT,
    DIALOG,
    HELD,
    KIND_CALL,
    KIND_ORPHAN,
    KIND_OUTPUT,
    KIND_REASONING,
    KIND_USER,
    NONE,
    PRIORITY,
    SYSTEM,
    SYSTEM_OUTPUT,
    Grouping,
)

from .limits import Limits, portion
from .plan import Cut, Reason

TRIM_ORDER = (SYSTEM_OUTPUT, DIALOG, CONTEXT)
"""What a trim takes from, lowest priority first. SYSTEM is never touched."""

IN_VIEW = 0
_REASONS = (None, *Reason)
_CODES = {reason: code for code, reason in enumerate(_REASONS) if reason is not None}

PLAIN, CLEARED = 0, 1
_ABSENT = object()


class Measured(NamedTuple):
    """What an item costs, in tokens.

    Attributes:
        tokens: The item as it is in the log.
        images: Its image parts: the place among the parts, and the tokens that a placeholder saves (may be negative).
    """

    tokens: int
    images: tuple[tuple[int, int], ...] = ()


class Measures(Protocol):
    """What the fold asks for only when it needs it: forms that an item might take. Places are positions in the log."""

    def cleared(self, place: int) -> int:
        """Tokens of an output with a placeholder for content. No less than it has now where it may not be cleared."""

    def shortened(self, place: int, limit: int) -> Cut:
        """The longest cut of an output that makes it cost at most `limit` tokens, else the shortest there is."""


@dataclass(slots=True)
class _Tally:
    """The sums of the view, and how far into the queues trims have come. Copied before a provisional trim."""

    tokens: list[int] = field(default_factory=lambda: [0] * len(PRIORITY))
    items: list[int] = field(default_factory=lambda: [0] * len(PRIORITY))
    images: int = 0
    unanswered: int = 0
    altered: int = 0
    first: int = 0  # every position before this is SYSTEM or out of the view
    cleared_to: int = 0
    dropped_to: list[int] = field(default_factory=lambda: [0] * len(PRIORITY))
    aside: tuple[int, ...] = ()  # passed over by `dropped_to` because they were protected then
    shown: list[int] | None = None  # positions in the view; None while all are
    pictured: list[int] = field(default_factory=list)  # items with images in the view, and some that had
    thoughts: list[int] = field(default_factory=list)
    compacted: list[int] = field(default_factory=list)

    def move(self, tokens: int, rank: int, to: int) -> None:
        """An item of so many tokens counts for another category from now on."""
        self.tokens[rank] -= tokens
        self.items[rank] -= 1
        self.tokens[to] += tokens
        self.items[to] += 1

    def __copy__(self) -> _Tally:
        twin = _Tally()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(twin, name, list(value) if name in ("tokens", "items", "dropped_to") else value)
        return twin


class Fold:
    """The state of one log's view.

    Attributes:
        groups: The units of the log.
        version: Another number after every change to what was in the view before.
    """

    def __init__(self, limits: Limits, measures: Measures, *, settled: int = 0) -> None:
        """
        Args:
            limits: What to trim to.
            measures: What costs are asked of.
            settled: At the request points before this position nothing is decided.
        """
        self.limits = limits
        self.groups = Grouping()
        self.version = 0
        self._measures = measures
        self._settled = settled
        self._tokens = array("q")
        self._gone = bytearray()  # the reason's code, or IN_VIEW
        self._form = bytearray()  # PLAIN or CLEARED
        self._cuts: dict[int, Cut] = {}
        self._replaced: dict[int, tuple[int, ...]] = {}
        self._images: dict[int, tuple[tuple[int, int], ...]] = {}
        self._queues: list[list[int]] = [[] for _ in PRIORITY]
        self._tally = _Tally()
        self._why: dict[int, Reason] = {}
        self._before: _Tally | None = None  # what a provisional trim started from
        self._journal: list[tuple[Any, int, Any]] = []
        self._concluded = False
        self._hidden = False

    # What the view is now

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def total(self) -> int:
        """Tokens of the request with this view."""
        return self.overhead + sum(self._tally.tokens)

    @property
    def overhead(self) -> int:
        """Tokens of the request beside the items of the view: what converters must add is in it."""
        limits = self.limits
        additions = limits.synthetic * self._tally.unanswered
        if limits.preamble and self._needs_preamble():
            additions += limits.preamble
        return limits.overhead + additions

    @property
    def category_tokens(self) -> list[int]:
        """By rank: tokens in the view."""
        return list(self._tally.tokens)

    @property
    def category_items(self) -> list[int]:
        """By rank: items in the view."""
        return list(self._tally.items)

    @property
    def images(self) -> int:
        """Image parts in the view."""
        return self._tally.images

    @property
    def altered(self) -> int:
        """How many items of the log are not in the view, or not as they were."""
        return self._tally.altered

    @property
    def shown(self) -> Sequence[int]:
        """The positions in the view, in order."""
        return range(len(self)) if self._tally.shown is None else self._tally.shown

    def tokens(self, place: int) -> int:
        """What the item costs in the view."""
        return 0 if self._gone[place] else self._tokens[place]

    def gone(self, place: int) -> Reason | None:
        """Why the item is not in the view; None where it is."""
        return _REASONS[self._gone[place]]

    def is_cleared(self, place: int) -> bool:
        """Whether the output's content is a placeholder."""
        return self._form[place] == CLEARED

    def cut(self, place: int) -> Cut | None:
        """Where the output is truncated."""
        return self._cuts.get(place)

    def replaced_images(self, place: int) -> tuple[int, ...]:
        """The parts that are images' placeholders."""
        return self._replaced.get(place, ())

    def why(self, place: int) -> Reason | None:
        """Why an item in the view is not what it was."""
        return self._why.get(place)

    def is_protected(self, place: int) -> bool:
        """Whether no trim, were it made now, could drop the item."""
        head = self.groups.head[place]
        return bool(self.groups.held[head]) or self._in_frontier(head)

    # The log grows

    def add(self, item: Item, measured: Measured, *, breaks: bool = False, replaces: Sequence[int] = ()) -> None:
        """Takes the next item of the log.

        Args:
            item: The item.
            measured: What it costs.
            breaks: Whether it begins a response of its own in any case.
            replaces: The positions that a compaction stands for.
        """
        groups = self.groups
        here = len(self._tokens)
        if groups.starts_response(item, breaks):
            if not self._concluded and here >= self._settled:
                self._trim()
            self._commit()
        else:
            self._roll_back()
        self._concluded = False
        open_response = groups.open_response
        moved = groups.feed(item, breaks)
        if open_response not in (NONE, groups.open_response):
            for place in range(open_response, here):  # queued when complete: till then its units may change
                self._queues[groups.rank[place]].append(place)
        tally = self._tally
        for place, rank in moved:
            if not self._gone[place]:
                tally.move(self._tokens[place], rank, groups.rank[place])
        self._tokens.append(measured.tokens)
        self._form.append(PLAIN)
        kind, rank = groups.kind[here], groups.rank[here]
        if kind == KIND_ORPHAN:
            self._gone.append(_CODES[Reason.ORPHAN])
            tally.altered += 1
            if tally.shown is None:
                tally.shown = list(range(here))
            return
        self._gone.append(IN_VIEW)
        tally.tokens[rank] += measured.tokens
        tally.items[rank] += 1
        if tally.shown is not None:
            tally.shown.append(here)
        if not groups.in_response:
            self._queues[rank].append(here)
        if measured.images:
            self._images[here] = measured.images
            tally.images += len(measured.images)
            tally.pictured.append(here)
        if replaces:
            tally.compacted = sorted({*tally.compacted, *replaces})
        if kind == KIND_CALL:
            tally.unanswered += 1
        elif kind == KIND_OUTPUT:
            self._answer(groups.last_answered)
        elif kind == KIND_REASONING and self.limits.binds_thinking:
            tally.thoughts.append(here)
        elif isinstance(item, Message) and item.role in ("system", "developer"):
            self._edited(NONE)  # the system prompt stands before everything
        self._refresh()

    def conclude(self) -> None:
        """Trims as if the model were called now."""
        if not self._concluded:
            self._before = copy(self._tally)
            self._trim()
            self._concluded = True

    def _answer(self, call: int) -> None:
        """An output has come: its call waits no more, and if the unit was dropped, all of it is back."""
        groups, tally = self.groups, self._tally
        if self._gone[call]:
            for place in groups.members(groups.head[call]):
                if self._gone[place] and self.gone(place) is not Reason.BOUND_REASONING:
                    self._show(place)
        else:
            tally.unanswered -= 1
        if groups.response[call] != groups.starts[-1]:  # an answer that comes late takes the place of a synthetic one
            self._edited(self._wire_place(call))

    # One trim: the steps of DESIGN.md

    def _trim(self) -> None:
        limits, tally = self.limits, self._tally
        self._take_compacted()
        self._take_images()
        if limits.items_max is not None and sum(tally.items) > limits.items_max:
            self._take_units(limits.items_target, lambda: sum(tally.items), tally.items, (Reason.TOO_MANY_ITEMS, Reason.TOO_MANY_ITEMS), clears=False)
        if self.total > limits.trigger:
            self._take_units(limits.target, lambda: self.total, tally.tokens, (Reason.OVER_SHARE, Reason.OVER_BUDGET), clears=True)
        if self.total > limits.budget:
            self._truncate()
        self._refresh()

    def _take_compacted(self) -> None:
        """What a compaction stands for goes, whole units only; what is protected waits until it is not."""
        groups, tally = self.groups, self._tally
        if not tally.compacted:
            return
        replaced = set(tally.compacted)
        waiting = []
        for place in tally.compacted:
            head = groups.head[place]
            if self._gone[place] or groups.held[head] == HELD:
                continue
            if self._in_frontier(head) or not replaced.issuperset(groups.members(head)):
                waiting.append(place)
            else:
                self._drop(head, Reason.COMPACTED)
        tally.compacted = waiting

    def _take_images(self) -> None:
        """All images but the newest become placeholders, once there are too many; protected ones wait."""
        limits, tally, groups = self.limits, self._tally, self.groups
        if tally.images <= limits.images_max:
            return
        tally.pictured = [place for place in tally.pictured if self._live_images(place)]
        live = [(place, image) for place in tally.pictured for image in self._live_images(place)]
        for place, (part, saved) in live[: max(0, len(live) - limits.images_kept)]:
            if not (self._in_frontier_item(place) or groups.own[place] or groups.held[groups.head[place]] == HELD):
                self._replace_image(place, part, saved)

    def _take_units(
        self, goal: int, amount: Callable[[], int], sums: list[int], reasons: tuple[Reason, Reason], *, clears: bool
    ) -> None:
        """Pass one takes from categories above their share of the goal, pass two from all."""
        shares = [portion(share, goal) for share in self.limits.shares]
        outputs = self._clearable() if clears else iter(())
        units = {rank: self._droppable(rank) for rank in TRIM_ORDER}
        for reason, floors in zip(reasons, (shares, [NONE] * len(shares)), strict=True):
            for rank in TRIM_ORDER:
                while amount() > goal and sums[rank] > floors[rank]:
                    output = next(outputs, None) if rank == SYSTEM_OUTPUT else None
                    if output is not None:
                        self._clear(output, reason)
                        continue
                    head = next(units[rank], None)
                    if head is None:
                        break
                    self._drop(head, reason)

    def _truncate(self) -> None:
        """The outputs after the last response share the room that the rest leaves: the small stay whole, the large get equal parts."""
        groups = self.groups
        outputs = [
            place
            for place in range(groups.frontier, len(self))
            if groups.kind[place] == KIND_OUTPUT and not self._gone[place] and not groups.own[place]
        ]
        outputs.sort(key=self._tokens.__getitem__)
        room = self.limits.budget - self.total + sum(self._tokens[place] for place in outputs)
        for left, place in zip(range(len(outputs), 0, -1), outputs, strict=True):
            if self._tokens[place] > room // left:
                saved = self._saved(place)
                cut = self._measures.shortened(place, room // left + saved)
                if cut.tokens - saved < self._tokens[place]:
                    self._alter(place, cut.tokens - saved, Reason.LAST_RESORT)
                    self._set(self._cuts, place, cut)
            room -= self._tokens[place]

    # What may be taken, in the order of taking

    def _droppable(self, rank: int) -> Iterator[int]:
        """Heads of units, oldest first (by the place that completed them). What is asked for must be taken."""
        groups, tally, queue = self.groups, self._tally, self._queues[rank]
        if self.limits.newest_first:
            for place in reversed(queue[: bisect_left(queue, groups.frontier)]):
                if self._is_unit(place) and not self._in_frontier(groups.head[place]):
                    yield groups.head[place]
            return
        for place in tally.aside:
            if groups.rank[place] == rank and not self._in_frontier(groups.head[place]):
                tally.aside = tuple(other for other in tally.aside if other != place)
                if self._is_unit(place):
                    yield groups.head[place]
        while tally.dropped_to[rank] < len(queue) and (place := queue[tally.dropped_to[rank]]) < groups.frontier:
            tally.dropped_to[rank] += 1
            if not self._is_unit(place):
                continue
            if self._in_frontier(groups.head[place]):
                tally.aside += (place,)  # the last user message: it may go when another one is the last
            else:
                yield groups.head[place]

    def _clearable(self) -> Iterator[int]:
        """Outputs whose placeholder is smaller, oldest unit first. What is asked for must be taken."""
        groups, tally, queue = self.groups, self._tally, self._queues[SYSTEM_OUTPUT]
        if self.limits.newest_first:
            for place in reversed(queue[: bisect_left(queue, groups.frontier)]):
                yield from reversed(list(self._clearable_in(place)))
            return
        while tally.cleared_to < len(queue) and (place := queue[tally.cleared_to]) < groups.frontier:
            yield from self._clearable_in(place)
            tally.cleared_to += 1

    def _clearable_in(self, place: int) -> Iterator[int]:
        if self._is_unit(place):
            for member in self.groups.members(self.groups.head[place]):
                if self.groups.kind[member] == KIND_OUTPUT and not self._form[member] and not self._gone[member]:
                    if self._measures.cleared(member) < self._tokens[member]:
                        yield member

    def _is_unit(self, place: int) -> bool:
        """Whether a queued position still stands for a unit that can be taken from: it completes it, and something is left of it."""
        groups = self.groups
        head = groups.head[place]
        return groups.last[head] == place and not groups.held[head] and not all(self._gone[member] for member in groups.members(head))

    def _in_frontier(self, head: int) -> bool:
        groups = self.groups
        return groups.last[head] >= groups.frontier or (groups.last_user != NONE and groups.head[groups.last_user] == head)

    def _in_frontier_item(self, place: int) -> bool:
        return place >= self.groups.frontier or place == self.groups.last_user

    def _live_images(self, place: int) -> list[tuple[int, int]]:
        if self._gone[place] or self._form[place]:
            return []
        return [image for image in self._images[place] if image[0] not in self.replaced_images(place)]

    def _saved(self, place: int) -> int:
        return sum(saved for part, saved in self._images.get(place, ()) if part in self.replaced_images(place))

    def _wire_place(self, place: int) -> int:
        """Where a request shows a change of this item: outputs stand right after the calls of their response."""
        groups = self.groups
        if groups.kind[place] not in (KIND_CALL, KIND_OUTPUT):
            return place
        return max(member for member in groups.members(groups.head[place]) if groups.kind[member] == KIND_CALL)

    # The changes

    def _drop(self, head: int, reason: Reason) -> None:
        members = [member for member in self.groups.members(head) if not self._gone[member]]
        for member in members:
            self._hide(member, reason)
        self._edited(members[0])

    def _clear(self, place: int, reason: Reason) -> None:
        self._tally.images -= len(self._live_images(place)) if place in self._images else 0
        self._alter(place, self._measures.cleared(place), reason)
        self._set(self._form, place, CLEARED)

    def _replace_image(self, place: int, part: int, saved: int) -> None:
        self._alter(place, self._tokens[place] - saved, Reason.TOO_MANY_IMAGES)
        self._set(self._replaced, place, (*self.replaced_images(place), part))
        self._tally.images -= 1

    def _alter(self, place: int, tokens: int, reason: Reason) -> None:
        """An item in the view is from now on shown in another form."""
        if not self._is_altered(place):
            self._tally.altered += 1
        self._tally.tokens[self.groups.rank[place]] += tokens - self._tokens[place]
        self._set(self._tokens, place, tokens)
        self._set(self._why, place, reason)
        self._edited(self._wire_place(place))

    def _hide(self, place: int, reason: Reason) -> None:
        tally, groups = self._tally, self.groups
        if place in self._images:
            tally.images -= len(self._live_images(place))
        if not self._is_altered(place):
            tally.altered += 1
        self._set(self._gone, place, _CODES[reason])
        tally.tokens[groups.rank[place]] -= self._tokens[place]
        tally.items[groups.rank[place]] -= 1
        tally.unanswered -= groups.kind[place] == KIND_CALL and not groups.answered[place]
        self._hidden = True

    def _show(self, place: int) -> None:
        tally, groups = self._tally, self.groups
        self._gone[place] = IN_VIEW
        tally.tokens[groups.rank[place]] += self._tokens[place]
        tally.items[groups.rank[place]] += 1
        tally.unanswered += groups.kind[place] == KIND_CALL and not groups.answered[place]
        tally.altered -= not self._is_altered(place)
        tally.first = min(tally.first, place)
        if place in self._images:
            tally.images += len(self._live_images(place))
            if place not in tally.pictured:
                insort(tally.pictured, place)
        if tally.shown is not None:
            insort(tally.shown, place)
        self.version += 1

    def _edited(self, place: int) -> None:
        """The request changes at this place: where reasoning is bound to what precedes it, all reasoning after it goes."""
        self.version += 1
        thoughts = self._tally.thoughts
        if thoughts and thoughts[-1] > place:
            kept = bisect_right(thoughts, place)
            self._tally.thoughts = thoughts[:kept]
            for thought in thoughts[kept:]:
                if not self._gone[thought] and self.groups.own[thought] != HELD:
                    self._hide(thought, Reason.BOUND_REASONING)

    def _is_altered(self, place: int) -> bool:
        return bool(self._gone[place] or self._form[place] or place in self._replaced or place in self._cuts)

    def _needs_preamble(self) -> bool:
        """Whether the first item of the view that is not SYSTEM is something else than a user message."""
        tally, groups = self._tally, self.groups
        while tally.first < len(self) and (self._gone[tally.first] or groups.rank[tally.first] == SYSTEM):
            tally.first += 1
        return tally.first < len(self) and groups.kind[tally.first] != KIND_USER

    def _refresh(self) -> None:
        if self._hidden:
            self._tally.shown = [place for place in self.shown if not self._gone[place]]
            self._hidden = False

    # Provisional trims

    def _set(self, where: Any, place: int, value: Any) -> None:
        """`where[place] = value`, remembered while a trim is provisional."""
        if self._before is not None:
            old = where[place] if not isinstance(where, dict) else where.get(place, _ABSENT)
            self._journal.append((where, place, old))
        where[place] = value

    def _commit(self) -> None:
        self._before = None
        self._journal.clear()

    def _roll_back(self) -> None:
        if self._before is None:
            return
        self._tally, self._before = self._before, None
        if self._journal:
            self.version += 1
        for where, place, old in reversed(self._journal):
            if old is _ABSENT:
                del where[place]
            else:
                where[place] = old
        self._journal.clear()
