"""Keeps the sums of a view at each request while a session is read once. Counts nothing itself."""

from __future__ import annotations

from dataclasses import dataclass

from ..decision.plan import Reason
from ..decision.view import View


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
        self._window: list[int] = []  # by position: tokens at the last request, -1 if the item was not in the window
        self._changes = 0  # how often the request had been changed then

    def on_request(self, view: View, _: int) -> None:
        """Keep the sums at a request."""
        self.states.append(self._state(view))

    def end(self, view: View) -> None:
        """Keep the sums at the end of the log."""
        self.final = self._state(view)
        self.ranks = list(view.log.groups.rank)

    def _state(self, view: View) -> WindowState:
        """Return the sums at a request. Items that were seen before are looked at again only if the request changed before its end."""
        start, length = len(self._window), len(view)
        first = start if view.changes == self._changes else 0
        window = [tokens if is_shown else -1 for tokens, is_shown in zip(view.costs[first:], view.shown[first:], strict=True)]
        changes = [(at, after) for at, (before, after) in enumerate(zip(self._window[first:], window, strict=False)) if before != after]
        window = self._window[:first] + window
        self._changes = view.changes
        hidden = tokens_lost = 0
        for at, tokens in changes:
            if tokens < 0:
                hidden += self._window[at]
                is_lost = view.edits[at].gone not in (Reason.COMPACTED, Reason.REPLACED_PROMPT)
                tokens_lost += self._window[at] if is_lost else 0
        largest = max(range(start, length), key=window.__getitem__, default=-1)
        self.tokens += [max(0, tokens) for tokens in window[start:]]
        self._window = window
        return WindowState(
            length,
            tuple(view.tokens),
            view.overhead,
            view.correction,
            largest if largest >= 0 and window[largest] >= 0 else -1,
            max(0, window[largest]) if largest >= 0 else 0,
            hidden,
            tokens_lost,
            tuple(changes),
        )
