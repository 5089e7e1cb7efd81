"""The slow twin of calibrated totals: `twin.py` with a provider's reports, everything computed anew from what was reported so far."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from context_window.trimming.limits import Limits
from session.items import AgentConfigUpdate
from session.session import Session
from tests.support.twin import Facts, Twin, cost, responses


@dataclass
class Reported:
    """A report that was believed, or what a report before it leads to.

    Attributes:
        place: Where the response to the request begins.
        tokens: Of the request.
        answered: Of the response.
        was: What each item in the request cost by the local count.
        counted: The local count of the whole request.
        edits: How often the request had been changed.
        exact: Whether it was reported.
        unsaid: Tokens of the response before that the local count has not.
    """

    place: int
    tokens: int
    answered: int
    was: dict[int, int]
    counted: int
    edits: int
    exact: bool
    unsaid: int = 0


@dataclass
class Heard:
    """A report, whatever became of it: of a request that was counted as so much, of a log that was.

    Attributes:
        tokens: The report.
        counted: The local count of the request.
        whole: Likewise, with all of the log in it.
        unsaid: Tokens of the response before that the local count has not.
        sent: The local count of what was sent, where it is known.
    """

    tokens: int
    counted: int
    whole: int
    unsaid: int
    sent: int | None = None

    def worth(self, amount: int) -> int:
        """Tokens of the local count at what they were worth here: at most one each."""
        return amount if self.tokens >= self.counted else (amount * Fraction(self.tokens, self.counted)).__floor__()


@dataclass
class AnchoredTwin(Twin):
    """A view whose total goes by what the provider reported."""

    last: Reported | None = None
    scores: list[Fraction] = field(default_factory=list)
    ratios: list[int] = field(default_factory=list)
    edit_count: int = 0
    heard: list[Heard | None] = field(default_factory=list)

    def edited(self, place: int) -> None:
        self.edit_count += 1
        super().edited(place)

    # The total

    def counted(self) -> int:
        return super().total()

    def costs(self) -> dict[int, int]:
        return {place: self.cost(place) for place in self.in_view()}

    def unsaid(self) -> int:
        """Tokens of the reported response that the local count has not."""
        if self.last is None:
            return 0
        response = next((one for one in self.responses() if one[0] == self.last.place), [])
        return max(0, self.last.answered - sum(cost(self.items[place]) for place in response))

    def new(self) -> int:
        """Tokens by the local count that were not in the reported request."""
        assert self.last is not None
        return sum(tokens for place, tokens in self.costs().items() if place >= self.last.place)

    def taken(self) -> int:
        """Tokens by the local count that were in the reported request and are there no more."""
        assert self.last is not None
        now = self.costs()
        before = {place: tokens for place, tokens in self.last.was.items() if place < self.last.place}
        back = sum(tokens for place, tokens in now.items() if place < self.last.place and place not in before)
        return sum(tokens - now.get(place, 0) for place, tokens in before.items()) - back

    def score(self) -> Fraction:
        """How far above its count what is new is taken to be, as a part of `scale`."""
        rule = self.limits.calibration
        assert rule is not None
        scores = sorted(self.scores[-rule.remembered :])
        rank = ceil(Fraction(rule.coverage, 1000) * (len(scores) + 1))
        if rank <= len(scores):
            return max(scores[rank - 1], Fraction(rule.least, 1000))
        return max([Fraction(max(rule.prior, rule.least), 1000), *scores])

    def ratio(self) -> Fraction:
        """What was seen of what is new, as a part of what was counted: the median, once there are five."""
        assert self.limits.calibration is not None
        ratios = sorted(self.ratios[-self.limits.calibration.remembered :])
        return Fraction(ratios[len(ratios) // 2], 1000) if len(ratios) >= 5 else Fraction(0)

    def bound(self, new: int, taken: int) -> int:
        """What the request costs at the most, beside what was not in the last report and cannot be counted."""
        assert self.last is not None
        assert self.limits.calibration is not None
        some = new + self.unsaid()
        above = max(some + ceil(self.score() * scale(self.last.tokens, some)), ceil(some * self.ratio())) if some > 0 else 0
        worth = min(Fraction(1), Fraction(self.last.tokens, max(1, self.last.counted)))
        off = (max(0, taken) * worth * self.limits.calibration.removed / 1000).__floor__() + min(0, taken)
        fixed = self.counted() - sum(self.costs().values()) - (self.last.counted - sum(self.last.was.values()))
        return self.last.tokens + above - off + fixed

    def total(self) -> int:
        if self.last is None:
            return self.counted()
        return max(0, self.bound(self.new(), self.taken()))

    def total_of(self, places: list[int]) -> int:
        if self.last is None:
            return super().total_of(places)
        new = taken = 0
        for place in self.in_view():
            if place not in places:
                new += self.cost(place) * (place >= self.last.place)
                taken += self.cost(place) * (place < self.last.place)
        return max(0, self.bound(self.new() - new, self.taken() + taken))

    def room(self, outputs: list[int]) -> int:
        whole = sum(map(self.cost, outputs))
        if self.last is None or not outputs:
            return super().room(outputs)
        new, taken = self.new(), self.taken()

        def over(lost: int) -> int:
            """By how much the budget is exceeded with so much lost of the outputs: the more is lost, the less."""
            worst = []
            if outputs[-1] >= self.last.place:  # type: ignore[union-attr]
                worst.append(self.bound(new - lost, taken))
            if outputs[0] < self.last.place:  # type: ignore[union-attr]
                worst.append(self.bound(new, taken + lost))
            return max(worst) - self.limits.budget

        return max(0, whole - bisect_left(range(whole + 1), 0, key=lambda lost: -over(lost)))

    # What is reported

    def asked(self) -> Reported:
        """The request as it is now, of which nothing is reported yet."""
        unsaid = self.unsaid()
        return Reported(self.length, 0, 0, self.costs(), self.counted(), self.edit_count, exact=False, unsaid=unsaid)

    def hear(self, asked: Reported, tokens: int, answered: int, new: int, sent: int | None) -> None:
        """The request that was asked cost so much; or where one was sent that was counted as something else, that one did."""
        whole = asked.counted - sum(asked.was.values()) + sum(map(cost, self.items[: asked.place]))
        self.heard.append(Heard(tokens, asked.counted, whole, asked.unsaid, sent))
        believed, sure = judged(self.heard)
        if not believed:
            known, self.last = self.last, None
            if known is not None and sure is not None:
                foretold = sure.tokens + sure.worth(asked.counted - sure.counted)
                self.last = Reported(asked.place, foretold, answered, asked.was, asked.counted, asked.edits, exact=False)
            return
        last, exact = self.last, sent in (None, asked.counted)
        if exact and last is not None and last.exact and last.edits == asked.edits and new > 0 and tokens > last.tokens:
            assert self.limits.calibration is not None
            observed = min(tokens - last.tokens, self.limits.calibration.beyond * new)
            thousandths = ceil(Fraction(1000 * (observed - new)) / scale(last.tokens, new))
            self.scores.append(Fraction(thousandths, 1000))
            self.ratios.append(1000 * observed // new)
        here = tokens if sent is None else tokens + Heard(tokens, sent, sent, 0).worth(asked.counted - sent)
        self.last = Reported(asked.place, here, answered, asked.was, asked.counted, asked.edits, exact)

    def forget(self) -> None:
        self.heard.append(None)
        self.last = None
        self.scores, self.ratios = [], []


def judged(heard: list[Heard | None]) -> tuple[bool, Heard | None]:
    """Whether the last report is gone by, and what is surely known after it. None in the list: all before is of something else.

    The rules are those of `doubts.py`.
    """
    balance, believed = 0, False
    sure: Heard | None = None
    before: Heard | None = None
    for one in heard:
        if one is None:
            sure = before = None
            continue
        if 4 * one.tokens <= (one.counted if one.sent is None else one.sent):
            believed, before = False, None
            sure = sure and replace(sure, tokens=sure.tokens + one.unsaid)
            continue
        if one.sent is not None:
            believed, before, sure = True, None, replace(one, counted=one.sent)
            continue
        lost, little = one.whole - one.counted, one.counted // 10 + 20
        if before is not None:
            balance = max(-little, min(little, balance + evidence(before, one)))
        elif sure is None and balance < little and lost > one.counted and one.tokens - one.counted > one.whole - one.tokens:
            balance = -little
        before = one
        if sure is None:
            believed, proven = balance >= 0, balance >= little
        else:
            more = replace(sure, tokens=sure.tokens + one.unsaid)
            above = one.tokens - more.tokens - more.worth(one.counted - sure.counted)
            near = above <= more.worth(lost) // 2 if balance >= 0 else above <= max(2 * little, (one.tokens - above) // 10)
            believed, proven = lost <= little or balance >= little or near, balance >= 0
            hidden = max(0, min(one.unsaid, one.tokens - one.whole + sure.counted - sure.tokens))
            sure = more if believed else replace(sure, tokens=sure.tokens + hidden)
        if believed and (lost <= 0 or proven):
            sure = one
    return believed, sure


def evidence(before: Heard, one: Heard) -> int:
    """Tokens that were lost between two reports: those that the second one lacks, less those that it still has."""
    lost = before.worth((one.whole - before.whole) - (one.counted - before.counted))
    if lost <= 0:
        return 0
    above = one.tokens - one.unsaid - before.tokens - before.worth(one.counted - before.counted)
    still = min(max(above, 0), lost)
    return (lost - still) - still


def scale(anchored: int, new: int) -> int:
    return new + anchored // 20 + 20


def fold_anchored(session: Session, limits: Limits, known: Facts | None = None) -> AnchoredTwin:
    """The view of the whole log, by what its items report."""
    twin = AnchoredTwin(list(session.items), session.response_breaks, limits, known={} if known is None else known)
    reporter: tuple[str | None, object] | None = None
    config: dict[str | None, tuple[object, object]] = {}
    said = {response[0]: response for response in responses(twin.items, twin.breaks)}
    place = 0
    while place < len(twin.items):
        if place not in said:
            item = twin.items[place]
            twin.grow(place + 1)
            if isinstance(item, AgentConfigUpdate):
                old = config.get(item.agent_id, (None, None))
                new = (old[0] if item.instructions is None else item.instructions, old[1] if item.tools is None else item.tools)
                if old != new:
                    config[item.agent_id] = new
                    twin.forget()
            place += 1
            settle(twin, session)
            continue
        if place >= session.settled:
            twin.trim()
        asked = twin.asked()
        fresh = twin.new() + asked.unsaid if twin.last is not None else 0
        heard = False
        for member in said[place]:
            item = twin.items[member]
            twin.grow(member + 1)
            if item.usage is not None and item.usage.total_input:  # else it says nothing of a request
                source = (item.agent_id, item.extra.get("model"))
                if reporter not in (None, source):
                    twin.forget()
                    heard = False
                reporter = source
                if not heard and asked.place >= session.settled:
                    sent = item.extra.get("counted", {"by": "another"})
                    known = sent["tokens"] if sent["by"] == "" else None
                    heard = True
                    twin.hear(asked, item.usage.total_input, item.usage.output_tokens, fresh, known)
            settle(twin, session)
        place = said[place][-1] + 1
    twin.trim()
    return twin


def settle(twin: AnchoredTwin, session: Session) -> None:
    """A view that is gone on with says itself what it costs."""
    if twin.length == session.settled and session.settled_tokens is not None:
        now = twin.asked()
        twin.heard.append(Heard(session.settled_tokens, now.counted, now.counted, 0, now.counted))
        twin.last = Reported(now.place, session.settled_tokens, 0, now.was, now.counted, now.edits, exact=False)
