"""What kinds of items are out of a view, or in it in a smaller form. A count costs what the view is long and what is new in the log."""

from __future__ import annotations

from collections import Counter

from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message

from .events import Kind, Kinds
from .following import Following

ORDER: tuple[Kind, ...] = ("message", "call", "output", "reasoning", "summary", "handoff", "config update")


class KindsOut:
    """The kinds of a log's items, as far as they have been counted."""

    __slots__ = ("_counted", "_in_log", "_lineage")

    def __init__(self) -> None:
        self._lineage: object = None
        self._counted = 0
        self._in_log: Counter[Kind] = Counter()

    def of(self, following: Following) -> Kinds:
        """How many items of each kind the view lacks or has in a smaller form: the log's but for those that it shows as they are."""
        fold, items = following.fold, following.items
        if following.lineage is not self._lineage or self._counted > len(fold):  # nothing that was counted need be there
            self._lineage, self._counted, self._in_log = following.lineage, 0, Counter()
        self._in_log.update(kind_of(items[place]) for place in range(self._counted, len(fold)))
        self._counted = len(fold)
        whole = Counter(kind_of(items[place]) for place in fold.shown if fold.why(place) is None)
        return tuple((kind, out) for kind in ORDER if (out := self._in_log[kind] - whole[kind]))


def kind_of(item: Item) -> Kind:
    """What an item is, as events call it."""
    match item:
        case FunctionCallOutput():
            return "output"
        case FunctionCall():
            return "call"
        case Message():
            return "summary" if item.is_summary else "message"
        case Compaction():
            return "summary"
        case AgentHandoff():
            return "handoff"
        case AgentConfigUpdate():
            return "config update"
        case _:
            return "reasoning"
