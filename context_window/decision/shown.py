"""What a decided view looks like: the session that is sent, and the plan that explains it. Decides nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import TypeAlias

from session.items import Item
from session.removed import Removed
from session.units import FREE, HELD, KIND_CALL, KIND_NOTICE, KIND_SILENT, KIND_USER, NONE, PRIORITY

from ..errors import Culprit
from .decide import RULES
from .edits import NOT_TOLD, Edit
from .plan import NEVER_SENT, Action, Decision, Plan, Reason, describe
from .request_texts import needs_closing
from .view import View

CULPRITS = 5
"""Largest items that the error about an overflow names."""
Row: TypeAlias = tuple[int, bool, int, int, Item]
"""An item of a view: the position before which it stands, true if it stands at its own, its rank among others there, its own position (-1
for a message that a rule adds), and the item."""


@dataclass(slots=True)
class Shown:
    """The items of a decided view, in order. They are shared with the sessions that show the view, and only ever grow.

    `ends` and `breaks` are as in `Plan`. `removed` has the positions of the first and the last item that the line about removed items
    counts, None if it counts none. `edited` has the items in other forms than the log's, by position, with their edits; while an edit
    stays, so does the object.
    """

    items: list[Item]
    ends: frozenset[str]
    breaks: frozenset[str]
    removed: tuple[int, int] | None
    edited: dict[int, tuple[Edit, Item]]
    _last: int  # position of the last item; -1 for a digest, or if there is none
    _view: View
    _changes: int
    _length: int

    @classmethod
    def of(cls, view: View, earlier: Shown | None = None) -> Shown:
        """Return what the view shows; `earlier` is what it showed before."""
        response, edited = view.log.groups.response, {} if earlier is None else earlier.edited
        rows = sorted(_rows(view, edited), key=lambda row: row[:3])
        breaks, last = set[str](), NONE
        for *_, at, item in rows:
            if last != NONE != at and NONE not in (response[last], response[at]) and response[last] != response[at]:
                breaks.add(item.id)
            last = at
        told = [at for at, edit in view.edits.items() if edit.gone is not None and edit.gone not in NOT_TOLD]
        removed = (min(told), max(told)) if told else None
        return cls([row[-1] for row in rows], _ends(view, rows), frozenset(breaks), removed, edited, last, view, view.changes, len(view))

    def extended(self, view: View) -> Shown:
        """Return what the view shows now: the same items and what was appended since, if nothing else has changed."""
        if view is not self._view or view.changes != self._changes or not all(view.shown[self._length :]):
            return Shown.of(view, self)
        response, breaks = view.log.groups.response, set[str]()
        for at in range(self._length, len(view)):
            last = self._last
            if last != NONE and NONE not in (response[last], response[at]) and response[last] != response[at]:
                breaks.add(view.log.items[at].id)
            self.items.append(view.log.items[at])
            self._last = at
        self._length = len(view)
        self.breaks |= breaks
        return self


def last_id_before(view: View, index: int) -> str | None:
    """Return the id of the view's last item before a position of the log; None if there is none."""
    rows = [row for row in _rows(view, {}) if row[0] < index]
    return max(rows, key=lambda row: row[:3])[-1].id if rows else None


def _rows(view: View, edited: dict[int, tuple[Edit, Item]]) -> Iterator[Row]:
    """Yield the items of the view, in any order. Items in other forms than the log's are kept in `edited`."""
    log = view.log
    for at in view.visible():
        edit = view.edits.get(at)
        if edit is None:
            yield log.moved.get(at, at), at not in log.moved, at, at, log.items[at]
        elif edit.before == NONE:
            if at not in edited or edited[at][0] != edit:
                edited[at] = edit, edit.of(log.items[at], None if edit.source == NONE else log.items[edit.source])
            yield log.moved.get(at, at), at not in log.moved, at, at, edited[at][1]
    for rule in RULES:
        for before, rank, item in rule.additions(view):
            yield before, False, rank, NONE, item


def _ends(view: View, rows: Sequence[Row]) -> frozenset[str]:
    """Return the answers that in the log are followed by an output without a call, or by a summary which the view shows elsewhere."""
    log, response, ends = view.log, view.log.groups.response, set[str]()
    orphans = (at for at, edit in view.edits.items() if edit.gone is Reason.ORPHAN)
    for silent in (*view.visible(log.moved), *orphans):
        index = bisect_left(rows, silent, key=lambda row: row[0]) - 1
        while index >= 0 and rows[index][3] in log.moved:
            index -= 1
        if index >= 0 and (before := rows[index][3]) != NONE and response[before] != NONE:
            ends.add(rows[index][4].id)
    return frozenset(ends)


def plan_of(
    view: View,
    shown: Shown,
    originals: Sequence[Item],
    noted: Mapping[int, tuple[int, ...]],
    *,
    calibrated: bool,
    removed: Removed | None,
    usage_noted_after: str | None,
) -> Plan:
    """Return the decision about each item of the log, and its reason.

    `noted` has, by position, the parts of an item that are shown as notes because the provider refused them.
    """
    decisions = tuple(_decision(view, at, item, noted.get(at, ())) for at, item in enumerate(originals))
    return Plan(
        decisions,
        budget=view.limits.budget,
        overhead_before=_untrimmed_overhead(view, decisions),
        overhead=view.overhead + view.correction,
        breaks=shown.breaks,
        ends=shown.ends,
        summary_places={originals[at].id: before for at, before in view.log.moved.items() if view.shown[at]},
        calibrated=calibrated,
        protected=sum(decisions[at].before for at in view.protected()),
        removed=removed,
        usage_noted_after=usage_noted_after,
        state_note=view.state_note,
    )


def _decision(view: View, index: int, item: Item, refused: tuple[int, ...]) -> Decision:
    log, edit = view.log, view.edit(index)
    action, is_call = edit.action, log.groups.kind[index] == KIND_CALL
    if action is Action.KEEP and refused:
        action = Action.REPLACE_REFUSED
    has_no_content = action in (Action.EXTRACT, Action.CLEAR, Action.DROP)
    head = log.groups.head[index]
    if action is Action.DROP and log.groups.unit_protection[head] != HELD and log.is_summarised(head):
        reason = Reason.COMPACTED
    else:
        reason = edit.gone or edit.reason or (Reason.PROVIDER_REFUSED if refused else reason_to_keep(view, index))
    return Decision(
        item.id,
        describe(item),
        PRIORITY[log.groups.rank[index]],
        action,
        reason,
        before=log.measures.measure(item).tokens - log.free.get(index, 0),
        after=view.costs[index],
        images=() if has_no_content else edit.images,
        cut=edit.cut if not has_no_content or (is_call and action is not Action.EXTRACT) else None,
        superseded_by=log.items[log.results.superseder(index)].id if reason is Reason.SUPERSEDED else None,
        lines=edit.lines if action is Action.EXTRACT else None,
        digest_before=edit.before if action is Action.EXTRACT else None,
        restores=log.items[edit.source].id if action is Action.RESTORE else None,
        refused=() if has_no_content else refused,
    )


def reason_to_keep(view: View, index: int) -> Reason:
    """Return the reason why an item is in the view unchanged."""
    log, groups = view.log, view.log.groups
    head, protection = groups.head[index], groups.protection[index]
    if not groups.unit_protection[head] and not view.is_spared(head):
        return Reason.NOT_BY_STRATEGY if view.limits.final else Reason.FITS
    if log.items[index].pinned:
        return Reason.PINNED
    if protection != FREE:
        return Reason.SYSTEM if protection == HELD else Reason.SUMMARY
    if groups.unit_protection[head] == HELD:
        return Reason.SYSTEM if groups.always_protected.isdisjoint(groups.members(head)) else Reason.PINNED
    if log.in_frontier(head):
        return Reason.FRONTIER
    if log.is_waiting(head):
        return Reason.WAITING
    return Reason.FIRST_MESSAGE if head == view.first_message else Reason.KEPT_BY_RULE


def culprits(view: View) -> list[Culprit]:
    """Return the largest items of the view, and why each is kept."""
    largest = nlargest(CULPRITS, view.visible(), key=view.costs.__getitem__)
    items = view.log.items
    return [Culprit(items[at].id, describe(items[at]), view.costs[at], reason_to_keep(view, at).value) for at in largest]


def _untrimmed_overhead(view: View, decisions: Sequence[Decision]) -> int:
    """Return the overhead of the request from which nothing was taken, in tokens, including the correction."""
    log, limits, groups = view.log, view.limits, view.log.groups
    costs = [NONE if decision.reason in NEVER_SENT else decision.before for decision in decisions]
    sent = [at for at, cost in enumerate(costs) if cost != NONE]
    spoken = [(log.moved.get(at, at), at not in log.moved, at) for at in sent if groups.kind[at] != KIND_SILENT]
    is_headless = bool(spoken) and groups.kind[min(spoken)[2]] not in (KIND_USER, KIND_NOTICE)
    opening = limits.note if log.had_note else limits.preamble if is_headless else 0
    waiting = sum(groups.kind[at] == KIND_CALL and not groups.answered[at] for at in sent)
    usage_note = limits.usage_note if view.usage_noted != NONE else 0
    overhead = limits.overhead + opening + limits.closing * needs_closing(view) + usage_note + limits.synthetic * waiting
    correction = 0 if view.totals is None else view.totals.untrimmed_correction(view, costs)
    return max(-sum(max(0, cost) for cost in costs), overhead + correction)
