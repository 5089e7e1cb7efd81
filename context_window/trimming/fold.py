"""The fold over a log: items come in one by one, measured, and where the model was called the view is trimmed. Numbers only.

At the points where responses begin `add` trims for good. `conclude` trims as if the model were called now, provisionally:
the next item makes that final if it begins a response, and undoes it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from session.items import FunctionCallOutput, Item, Message
from session.units import KIND_CALL, KIND_ORPHAN, KIND_OUTPUT, KIND_REASONING, KIND_SILENT, NONE, RANK, is_answer, is_summary

from .anchor import Anchor, Increments
from .doubts import Asked, Doubts
from .limits import Limits
from .state import ViewState
from .steps import extend, trim
from .tally import Measured, Measures


class Fold(ViewState):
    """The view of a log that grows.

    Attributes:
        resets: How often what was reported had to be forgotten.
    """

    def __init__(self, limits: Limits, measures: Measures, *, settled: int = 0) -> None:
        """
        Args:
            limits: What to trim to.
            measures: What costs are asked of.
            settled: At the request points before this position nothing is decided.
        """
        super().__init__(limits, measures)
        self.resets = 0
        self._settled = settled
        self._concluded = False
        self._asked = Asked()
        self._doubts = Doubts()
        self._heard = NONE  # the response whose report came last
        self._logged = 0

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
        goes_on = False
        if starts:
            if not self._concluded and here >= self._settled:
                self._trim()
            elif not self._concluded:
                self.roll_back()
            self.commit()
            if self.limits.calibration is not None:
                self._asked = self._ask()
        elif not (goes_on := not replaces and self._goes_on(item, measured)):
            self.roll_back()
        edits = self.tally.edits
        self._concluded = False
        response = groups.open_response
        moved = groups.feed(item, starts)
        if response not in (NONE, groups.open_response):
            for place in range(response, here):  # queued when complete: till then its units may change
                self.queues[groups.rank[place]].append(place)
        for place, rank in moved:
            self.recategorise(place, rank)
        kind, rank = groups.kind[here], groups.rank[here]
        self._logged += measured.tokens
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
        if goes_on and self._before is not None:
            self._before.edits += self.tally.edits - edits

    def conclude(self) -> None:
        """Trims as if the model were called now."""
        if not self._concluded:
            self._trim(is_final=False)
            self._concluded = True

    def _trim(self, *, is_final: bool = True) -> None:
        if self.exhausted is None or not extend(self, self.exhausted):
            self.roll_back()
            if not is_final:
                self.begin()
            trim(self)

    def _goes_on(self, item: Item, measured: Measured) -> bool:
        """True if a provisional trim that took all there is can stay while this item comes in, and be made good for it (`extend`).

        A trim made anew would take the same and for the same reasons: what can be taken stays what it is, what cannot costs more,
        and of the item's category nothing was taken for a reason that its amount decides. Where that is not certain, it is made anew.
        """
        groups, before = self.groups, self._before
        if self.exhausted is None or before is None or not groups.starts or measured.images or is_answer(item) or is_summary(item):
            return False
        rank, edited = RANK[item.category], len(groups)
        if isinstance(item, FunctionCallOutput):
            call = groups.waiting_call(item.call_id)
            if call == NONE or measured.tokens < self.limits.synthetic:
                return False
            head = groups.head[call]
            rank, edited = groups.rank[head], groups.last_call[head]
            if self._gone[call]:
                if any(place in self._gone_now or place in self._images or self._summarised[place] for place in groups.members(head)):
                    return False
                edited = head
        elif isinstance(item, Message) and item.role == "user":
            if NONE < groups.last_user < groups.frontier:
                return False  # it is protected no more
        elif isinstance(item, Message):
            edited = NONE
        return rank not in self.passed_below and not (before.thoughts and before.thoughts[-1] > edited)

    def go_on_by(self, limits: Limits) -> None:
        """Other amounts hold from the last request on; what was decided before it stays, since it was sent so."""
        self._reopen()
        self.limits = limits

    def _reopen(self) -> None:
        """Takes back what was decided as if the model were called: what that went by is another thing now."""
        self.roll_back()
        self._concluded = False

    # What the provider reports

    @property
    def is_reported(self) -> bool:
        """Whether the request that the log's last response answers was reported."""
        return bool(self.groups.starts) and self._heard == self.groups.starts[-1]

    @property
    def is_as_asked(self) -> bool:
        """Whether nothing has changed the request that the log's last response answers: a report of it that comes now is as good as one
        that came with the response."""
        tally = self.tally if self._before is None else self._before
        return self.limits.calibration is None or tally.edits == self._asked.edits

    def report(self, tokens: int, answered: int, counted: int | None = None) -> None:
        """The provider has reported the request that the log's last response answers. Once a response, before the next begins.

        A report that cannot be of this view is not gone by: of a log that was sent otherwise than decided here, or by another's count.

        Args:
            tokens: Of the request.
            answered: Of the response.
            counted: The local count of the request that was sent, where it is known: it may have been another view than this one.
        """
        self._reopen()
        start, known, asked = self.groups.starts[-1], self.anchor, self._asked
        if self.limits.calibration is None or start < self._settled or start == self._heard:
            return
        self._heard = start
        believed = self._doubts.hear(tokens, asked, counted)
        exact = counted is None or counted == asked.counted
        if believed:
            if exact and known is not None and known.exact and known.edits == asked.edits and asked.fresh > 0 and tokens > known.tokens:
                self.increments.learn(known.tokens, asked.fresh, tokens - known.tokens)
            cost = tokens if exact else self._doubts.foretold(asked.counted)
            assert cost is not None
            self._anchor(Anchor(start, cost, tokens, cost - asked.counted, answered, exact=exact, edits=asked.edits))
        else:  # what is known goes on, from here
            foretold = self._doubts.foretold(asked.counted)
            self.anchor = None
            if known is not None and foretold is not None:
                self._anchor(Anchor(start, foretold, known.reported, foretold - asked.counted, answered, exact=False, edits=asked.edits))

    def go_on_from(self, tokens: int) -> None:
        """The log so far is a view that was made elsewhere, and costs so much."""
        if self.limits.calibration is not None:
            self._doubts.be_sure(tokens, self.counted)
            self._anchor(Anchor(len(self), tokens, None, tokens - self.counted, 0, exact=False, edits=self.tally.edits))

    def forget_reports(self) -> None:
        """What was reported so far says nothing of what comes: other tools, another agent or model."""
        self._reopen()
        self.resets += self.anchor is not None
        self.anchor = None
        self._heard = NONE
        self._doubts.forget()
        self.increments = Increments(self.increments.rule)

    def go_by(self, other: Fold) -> None:
        """Takes over what another fold of the same log knows of reports: this one's view is not what was sent."""
        self._reopen()
        self.increments, self.anchor = other.increments, None
        if other.anchor is not None:
            self._anchor(other.anchor)

    def _ask(self) -> Asked:
        """The request that is about to be answered."""
        tally, counted = self.tally, self.counted
        whole = counted + self._logged - tally.total if tally.altered else counted
        unsaid = 0 if self.anchor is None else self.anchor.unsaid(tally.said)
        return Asked(counted, unsaid, tally.fresh + unsaid, whole, tally.edits)

    def _anchor(self, anchor: Anchor) -> None:
        """What is in the view from the anchor's place on is what has come since."""
        tally, groups = self.tally, self.groups
        self.anchor = anchor
        since = range(anchor.place, len(self))
        tally.fresh = sum(map(self.tokens, since))
        tally.said = sum(self._tokens[place] for place in since if groups.response[place] == anchor.place)
        tally.removed = 0

    def _answer(self, call: int) -> None:
        """An output has come: its call waits no more, and if the unit was dropped, it is back."""
        groups = self.groups
        if self.gone(call):
            self.bring_back(groups.head[call])
            return
        for tally in self.tallies():
            tally.unanswered -= 1
        if groups.response[call] != groups.starts[-1]:  # it takes the place of a synthetic answer
            self.edited(self.wire_place(call))
