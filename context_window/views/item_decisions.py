"""The decisions of a plan, kept up to date with the fold: a plan costs what is new or has changed since the last one. Decides nothing.

1. The fold lists the positions whose form has changed. All items of their units are looked at: a unit is protected, or summarised, as one.
2. What is protected can change while its form stays. So the frontier, the first message and the results that rules keep are looked at,
   those of the last plan and those of this one.
3. All other decisions stay as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain

from session.units import FREE, HELD, KIND_CALL, NONE, PRIORITY, SUMMARY

from ..counting.item_tokens import Measurer
from ..events.item_kinds import describe
from ..trimming.fold import Fold
from ..trimming.plan import NEVER_SENT, Action, Decision, Reason
from ..trimming.request_size import UntrimmedItems
from .item_forms import action_of
from .measured_items import MeasuredItems


class ItemDecisions:
    """The decision about each item of a log.

    Attributes:
        untrimmed: The items of the request without a trim, with their tokens.
        summary_places: By id of each summary in the view that is not where the log has it: the position before which it is shown.
        protected: Tokens of the items that no trim could take now (`ViewContents.protected_places`), as they are in the log.
    """

    def __init__(self, fold: Fold, items: MeasuredItems, measurer: Measurer) -> None:
        """
        Args:
            fold: The fold.
            items: The items of its log.
            measurer: Measures items.
        """
        self._fold = fold
        self._items = items
        self._measurer = measurer
        self._decisions: list[Decision] = []
        self._changed: set[int] = set()  # positions whose form has changed since the last `update`
        self._loosely_protected: set[int] = set()  # positions that were protected then, and may lose that while their form stays
        self.untrimmed = UntrimmedItems(fold)
        self.summary_places: dict[str, int] = {}
        self.protected = 0
        self._protected_tokens = array("q")  # by position: its part of `protected`

    def note_changed(self, places: Iterable[int]) -> None:
        """Note that the form of these items has changed."""
        if self._decisions:
            self._changed.update(places)

    def update(self) -> tuple[Decision, ...]:
        """Return the decisions about all items of the log."""
        fold, groups, decisions = self._fold, self._fold.groups, self._decisions
        new = range(len(decisions), len(fold))
        earlier, self._loosely_protected = self._loosely_protected, self._loosely_protected_places()
        heads = {groups.head[place] for place in chain(new, self._changed)}
        places = earlier.union(self._loosely_protected, *map(groups.members, heads))
        for place in new:
            decisions.append(self._decision(place))
            self.untrimmed.append()
            self._protected_tokens.append(0)
        for place in places:
            if place < new.start:
                decisions[place] = self._decision(place)
            decision = decisions[place]
            if place in fold.moved:
                if fold.hidden_reason(place) is None:
                    self.summary_places[decision.item_id] = fold.moved[place]
                else:
                    self.summary_places.pop(decision.item_id, None)
            self.untrimmed.set(place, NONE if decision.reason in NEVER_SENT else decision.before)
        self._changed.clear()
        self._sum_protected(places)
        return tuple(decisions)

    def _sum_protected(self, places: Iterable[int]) -> None:
        """Bring the sum of protected tokens up to date for these items, which come as whole units."""
        fold, groups, tokens = self._fold, self._fold.groups, self._protected_tokens
        heads = {groups.head[place] for place in self._spared_places() if place >= groups.frontier or fold.hidden_reason(place) is None}
        for head in {groups.head[place] for place in places}:
            members = list(groups.members(head))
            visible = {member for member in members if fold.hidden_reason(member) is None}
            is_protected = head in heads or any(groups.protection[member] != FREE for member in visible)
            for member in members:
                part = self._decisions[member].before if is_protected and member in visible else 0
                self.protected += part - tokens[member]
                tokens[member] = part

    def reason_to_keep(self, place: int) -> Reason:
        """Return the reason why an item is in the view unchanged."""
        fold, groups = self._fold, self._fold.groups
        if not fold.is_protected(place):
            return Reason.NOT_BY_STRATEGY if fold.limits.final else Reason.FITS
        if self._items.items[place].pinned:
            return Reason.PINNED
        if groups.protection[place] == HELD:
            return Reason.SYSTEM
        if groups.protection[place] == SUMMARY:
            return Reason.SUMMARY
        head = groups.head[place]
        if groups.unit_protection[head] == HELD:
            return Reason.SYSTEM if groups.always_protected.isdisjoint(groups.members(head)) else Reason.PINNED
        if fold.in_frontier(head):
            return Reason.FRONTIER
        return Reason.FIRST_MESSAGE if head == fold.first_message else Reason.KEPT_BY_RULE

    def _loosely_protected_places(self) -> set[int]:
        """Return the items that are protected for another reason than what they are."""
        groups = self._fold.groups
        heads = {groups.head[place] for place in self._spared_places()}
        return {member for head in heads for member in groups.members(head)}

    def _spared_places(self) -> Iterator[int]:
        """Yield the last user message, the first message, the frontier, and the results that rules keep."""
        fold, groups = self._fold, self._fold.groups
        users = (place for place in (groups.last_user, fold.first_message) if place != NONE)
        results = () if fold.results is None else fold.results.kept()
        return chain(users, range(groups.frontier, len(fold)), results)

    def _is_replaced(self, place: int) -> bool:
        """True if summaries stand for the hidden item, whether or not a trim hid it before they came."""
        groups = self._fold.groups
        head = groups.head[place]
        return groups.unit_protection[head] != HELD and self._fold.is_summarised(head)

    def _decision(self, place: int) -> Decision:
        fold, item, changed_places = self._fold, self._items.items[place], self._items.noted
        action = action_of(fold, place)
        if action is Action.KEEP and place in changed_places:
            action = Action.REPLACE_REFUSED
        has_no_content, is_call = action in (Action.EXTRACT, Action.CLEAR, Action.DROP), fold.groups.kind[place] == KIND_CALL
        if action is Action.DROP and self._is_replaced(place):
            reason = Reason.COMPACTED
        else:
            reason = fold.hidden_reason(place) or fold.change_reason(place) or self._reason_in_full(place)
        return Decision(
            item.id,
            describe(item),
            PRIORITY[fold.groups.rank[place]],
            action,
            reason,
            before=self._measurer.measure(item).tokens - fold.free_tokens(place),
            after=fold.tokens(place),
            images=() if has_no_content else fold.replaced_images(place),
            cut=fold.cut(place) if not has_no_content or (is_call and action is not Action.EXTRACT) else None,
            superseded_by=self._superseder_id(place) if reason is Reason.SUPERSEDED else None,
            lines=fold.digests.lines[place] if action is Action.EXTRACT else None,
            digest_before=fold.digests.before[place] if action is Action.EXTRACT else None,
            refused=() if has_no_content else changed_places.get(place, ()),
        )

    def _reason_in_full(self, place: int) -> Reason:
        return Reason.PROVIDER_REFUSED if place in self._items.noted else self.reason_to_keep(place)

    def _superseder_id(self, place: int) -> str | None:
        results = self._fold.results
        return None if results is None else self._items.items[results.superseder(place)].id
