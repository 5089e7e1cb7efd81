"""The fold over a log: items come in one by one, measured, and where the model was called the view is trimmed. Numbers only.

At the points where responses begin `add` trims for good. `conclude` trims as if the model were called now, provisionally:
the next item makes that final if it begins a response, and undoes it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from session.items import Item, Message
from session.units import KIND_CALL, KIND_ORPHAN, KIND_OUTPUT, KIND_REASONING, KIND_SILENT, NONE

from .limits import Limits
from .state import Measured, Measures, ViewState
from .steps import trim


class Fold(ViewState):
    """The view of a log that grows."""

    def __init__(self, limits: Limits, measures: Measures, *, settled: int = 0) -> None:
        """
        Args:
            limits: What to trim to.
            measures: What costs are asked of.
            settled: At the request points before this position nothing is decided.
        """
        super().__init__(limits, measures)
        self._settled = settled
        self._concluded = False

    def add(self, item: Item, measured: Measured, *, breaks: bool = False, replaces: Sequence[int] = ()) -> None:
        """Takes the next item of the log.

        Args:
            item: The item.
            measured: What it costs.
            breaks: Whether it begins a response of its own in any case.
            replaces: The positions that a compaction stands for.
        """
        groups = self.groups
        here = len(groups)
        starts = groups.starts_response(item, breaks)
        if starts:
            if not self._concluded and here >= self._settled:
                trim(self)
            self.commit()
        else:
            self.roll_back()
        self._concluded = False
        response = groups.open_response
        moved = groups.feed(item, starts)
        if response not in (NONE, groups.open_response):
            for place in range(response, here):  # queued when complete: till then its units may change
                self.queues[groups.rank[place]].append(place)
        for place, rank in moved:
            self.recategorise(place, rank)
        kind, rank = groups.kind[here], groups.rank[here]
        if kind == KIND_ORPHAN:
            self.turn_away(measured)
            return
        self.enter(measured, rank)
        if not groups.in_response:
            self.queues[rank].append(here)
        if replaces:
            self.summarise(replaces)
        if kind == KIND_CALL:
            self.tally.unanswered += 1
        elif kind == KIND_OUTPUT:
            self._answer(groups.last_answered)
            self.settle()
        elif kind == KIND_REASONING and self.limits.binds_thinking:
            self.tally.thoughts.append(here)
        elif kind == KIND_SILENT and isinstance(item, Message) and item.role != "user":
            self.edited(NONE)  # the system prompt stands before everything
            self.settle()

    def conclude(self) -> None:
        """Trims as if the model were called now."""
        if not self._concluded:
            self.begin()
            trim(self)
            self._concluded = True

    def _answer(self, call: int) -> None:
        """An output has come: its call waits no more, and if the unit was dropped, it is back."""
        groups = self.groups
        if self.gone(call):
            self.bring_back(groups.head[call])
            return
        self.tally.unanswered -= 1
        if groups.response[call] != groups.starts[-1]:  # it takes the place of a synthetic answer
            self.edited(self.wire_place(call))
