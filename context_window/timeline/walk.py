"""Keeps the sums of a fold at each request while a session is read once. Counts nothing itself."""

from __future__ import annotations

from dataclasses import dataclass

from ..trimming.fold import Fold
from ..trimming.plan import Reason


@dataclass(frozen=True, slots=True)
class WindowState:
    """The untrimmed window when the model was called. Amounts are tokens.

    Attributes:
        length: Number of the log's items.
        tokens: Local counts by rank of the category.
        overhead: Local count of the rest of the request.
        correction: Tokens that earlier reports add to the local count.
        largest: Position of the largest item since the request before; -1 if there is none.
        largest_tokens: Its tokens.
        hidden: Tokens that left the window since the request before, with a summary and without.
        lost: Those of them that left without a summary.
        changes: Positions whose item was seen before and has other tokens now, with these; -1 if it left the window.
    """

    length: int
    tokens: tuple[int, ...]
    overhead: int
    correction: int
    largest: int
    largest_tokens: int
    hidden: int
    lost: int
    changes: tuple[tuple[int, int], ...]

    @property
    def counted(self) -> int:
        """Tokens of the request by the local count."""
        return sum(self.tokens) + self.overhead


class WindowWalk:
    """The states of one session's window.

    Attributes:
        states: The window at each request.
        final: The window at the end of the log.
        tokens: By position, the tokens of each item when it came into the window.
        ranks: By position, the rank of each item's category at the end of the log.
    """

    def __init__(self) -> None:
        self.states: list[WindowState] = []
        self.final: WindowState | None = None
        self.tokens: list[int] = []
        self.ranks: list[int] = []
        self._now: list[int] = []  # by position: tokens now, -1 if the item is not in the window
        self._undo: list[tuple[int, int]] = []  # changes of `_now` since the last `end` began
        self._changed: set[int] = set()  # positions that had changed since the last request when `end` was called
        self._kept = 0  # number of items at the last request

    def on_request(self, fold: Fold, _: int) -> None:
        """Keep the sums at a request."""
        self._take_back_end()
        self.states.append(self._state(fold, self._changed | fold.take_changed()))
        self._changed, self._kept = set(), len(self._now)

    def end(self, fold: Fold) -> None:
        """Keep the sums at the end of the log. If the log grows, the walk may go on."""
        self._take_back_end()
        self._changed |= fold.take_changed()
        self._undo = []
        self.final = self._state(fold, self._changed)
        self.ranks = list(fold.groups.rank)

    def _take_back_end(self) -> None:
        """Forget the end of the log: the next request counts from the request before it."""
        if self.final is not None:
            for place, tokens in reversed(self._undo):
                self._now[place] = tokens
            del self._now[self._kept :], self.tokens[self._kept :]
            self.final, self._undo = None, []

    def _state(self, fold: Fold, changed: set[int]) -> WindowState:
        """Return the sums. The work is in proportion to the items that are new or changed since the last call."""
        start, length = len(self._now), len(fold)
        changes, hidden, tokens_lost = [], 0, 0
        for place in sorted(changed):
            if place >= start:
                continue
            reason = fold.hidden_reason(place)
            tokens, before = (fold.tokens(place) if reason is None else -1), self._now[place]
            if tokens == before:
                continue
            changes.append((place, tokens))
            self._undo.append((place, before))
            self._now[place] = tokens
            if reason is not None:
                hidden += before
                tokens_lost += before if reason not in (Reason.COMPACTED, Reason.REPLACED_PROMPT) else 0
        largest = largest_tokens = -1
        for place in range(start, length):
            tokens = fold.tokens(place) if fold.hidden_reason(place) is None else -1
            self._now.append(tokens)
            self.tokens.append(max(0, tokens))
            if tokens > largest_tokens:
                largest, largest_tokens = place, tokens
        return WindowState(
            length,
            tuple(fold.tally.tokens),
            fold.overhead,
            fold.correction,
            largest,
            max(0, largest_tokens),
            hidden,
            tokens_lost,
            tuple(changes),
        )
