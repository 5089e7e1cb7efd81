"""Whether what a log's items report is of its views. Whole numbers only, so that it is the same everywhere.

Where a log was sent otherwise than decided here, as a whole or by another's rules, its reports are of fuller requests than the views.
"""

from __future__ import annotations

from typing import NamedTuple

PART = 10
"""Of what a view has, it may have lost one part in so many before it matters whether reports are of it."""


class Asked(NamedTuple):
    """A request as it was when its answer began. Amounts are tokens.

    Attributes:
        counted: The local count of it.
        unsaid: What was reported of the response before, and is not in the local count.
        fresh: The local count of what has come since the report before, with `unsaid`.
        whole: The local count of the same request with all of the log in it.
        edits: How often the request had been changed by then.
    """

    counted: int = 0
    unsaid: int = 0
    fresh: int = 0
    whole: int = 0
    edits: int = 0


class _Cost(NamedTuple):
    """What a request was reported to have, in tokens, and what it was counted as."""

    tokens: int
    counted: int

    def of(self, amount: int) -> int:
        """So many tokens of the local count in the provider's: as many, or less where it counts less."""
        return amount if self.tokens >= self.counted else amount * self.tokens // self.counted


class Doubts:
    """What there is to say for and against the reports so far.

    1. While a view has lost little of the log, reports are gone by: the two differ by no more than that.
    2. Else a report is gone by where it is nearer to what the view is foretold to cost than to what the log is: much nearer where those
       before speak against views. And it is in any case where those before speak clearly for views: a figure that jumps, because of
       what is in no log, is not doubted for long.
    3. What is foretold goes by the last report that is sure to be of a view: nothing was lost by then; or what the view had lost since
       the report before was mostly gone from the figures too, not once, but on balance.
    4. Before there is a sure one, reports are gone by until the balance is against them. It is so from the start where the view has
       less than half of the log, and the first of them is nearer to the log.
    """

    def __init__(self) -> None:
        self._balance = 0  # tokens that views had lost: those that were gone from the reports, less those that were not
        self._sure: _Cost | None = None
        self._last: tuple[_Cost, int] | None = None  # with the count of the whole log

    def hear(self, tokens: int, asked: Asked, sent: int | None = None) -> bool:
        """Whether a report is to be gone by.

        Not where it is less than a fourth of the count: some tools report what was not cached alone.

        Args:
            tokens: What was reported.
            asked: The request that it would be of.
            sent: The local count of the request that it is of, where that is known: it may have been another one.
        """
        if 4 * tokens <= (asked.counted if sent is None else sent):
            self._pass_over(asked)
            return False
        if sent is not None:
            self.be_sure(tokens, sent)
            return True
        return self._judge(tokens, asked)

    def _judge(self, tokens: int, asked: Asked) -> bool:
        """Whether a report can be of this request."""
        counted, lost = asked.counted, asked.whole - asked.counted
        little = counted // PART + 20
        if self._last is not None:
            gone = self._gone(*self._last, tokens, asked)
            self._balance = max(-little, min(little, self._balance + gone))
        elif self._sure is None and self._balance < little and lost > counted and 2 * tokens > counted + asked.whole:
            self._balance = -little
        self._last = _Cost(tokens, counted), asked.whole
        if self._sure is None:
            believed, enough = self._balance >= 0, little
        else:
            said = self._sure.tokens + asked.unsaid
            sure = _Cost(said, self._sure.counted)
            foretold = said + sure.of(counted - sure.counted)
            above = tokens - foretold
            near = above <= (sure.of(lost) // 2 if self._balance >= 0 else max(2 * little, foretold // PART))
            believed = lost <= little or self._balance >= little or near
            if not believed:  # not more has been said than is in the report and in no log
                said = max(self._sure.tokens, min(said, tokens - (asked.whole - sure.counted)))
            self._sure, enough = _Cost(said, sure.counted), 0
        if believed and (lost <= 0 or self._balance >= enough):
            self._sure = _Cost(tokens, counted)
        return believed

    def be_sure(self, tokens: int, counted: int) -> None:
        """A request of this count is known to have so many tokens."""
        self._sure, self._last = _Cost(tokens, counted), None

    def forget(self) -> None:
        """What comes is of another model, agent or tools. How the log is sent does not depend on that."""
        self._sure = self._last = None

    def foretold(self, counted: int) -> int | None:
        """Tokens of a request of this count, by the last sure report; None where there is none."""
        return None if self._sure is None else self._sure.tokens + self._sure.of(counted - self._sure.counted)

    def _pass_over(self, asked: Asked) -> None:
        """A report was of nothing that can be told."""
        self._last = None
        if self._sure is not None:
            self._sure = _Cost(self._sure.tokens + asked.unsaid, self._sure.counted)

    @staticmethod
    def _gone(last: _Cost, whole: int, tokens: int, asked: Asked) -> int:
        """Of what the view has lost since the last report: the tokens that are gone from this one, less those that are still there."""
        lost = last.of(asked.whole - whole - (asked.counted - last.counted))
        there = tokens - last.tokens - asked.unsaid - last.of(asked.counted - last.counted)
        return lost - 2 * max(0, min(lost, there)) if lost > 0 else 0
