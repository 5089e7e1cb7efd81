"""What is used of the budget: the figures of the last view, analysis or trim, and what they are of. Counts nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple
from weakref import ref

from session.items import Item, MessageCategory
from session.session import Session
from session.units import PRIORITY, RANK

from .errors import BudgetError

NOTHING = (0,) * len(PRIORITY)


class Rows(NamedTuple):
    """Tokens that sum to a total, none of them negative.

    Attributes:
        tokens: By rank.
        overhead: Of the request beside its items.
    """

    tokens: tuple[int, ...]
    overhead: int

    @property
    def by_category(self) -> dict[MessageCategory, int]:
        """The tokens by category, in falling priority."""
        return dict(zip(PRIORITY, self.tokens, strict=True))


def rows_of(tokens: Sequence[int], overhead: int, correction: int) -> Rows:
    """Local counts made to sum to a corrected total.

    What is more than was counted here is overhead: a system prompt and tools that are in no log are most of it. Where it is less, every
    row was counted too high by the same part.
    """
    if correction >= 0:
        return Rows(tuple(tokens), overhead + correction)
    counts = [*tokens, overhead]
    whole = sum(counts)
    scaled = [count * (whole + correction) // whole for count in counts]
    left = whole + correction - sum(scaled)
    for row in sorted(range(len(counts)), key=lambda row: -(counts[row] * (whole + correction) % whole))[:left]:
        scaled[row] += 1
    return Rows(tuple(scaled[:-1]), scaled[-1])


class Shown:
    """What a session held when it was noted.

    It keeps the items, not the session: that may grow, and it may go, with all that the manager keeps of it.

    Attributes:
        session_id: The session's.
        items: What it held.
        lineage: Its token then.
    """

    __slots__ = ("_breaks", "_session", "_settled", "items", "lineage", "session_id")

    def __init__(self, session: Session, items: Sequence[Item], lineage: object) -> None:
        self.session_id = session.id
        self.items = items
        self.lineage = lineage
        self._breaks = session.response_breaks
        self._settled = session.settled
        self._session = ref(session)

    def session(self) -> Session | None:
        """The session, where it is still there; it may hold something else by now."""
        return self._session()

    def frozen(self) -> Session:
        """A session that holds what was held then."""
        return Session.showing(Session(id=self.session_id), list(self.items), breaks=self._breaks, settled=self._settled)


@dataclass(frozen=True, slots=True)
class Noted:
    """What is used. Amounts are tokens.

    Attributes:
        tokens: By rank, as counted here.
        overhead: Of the request beside its items, likewise.
        correction: What the provider's reports say that the request costs more than that.
        shown: What they are of; None for nothing.
        reported: What was reported of the request that the correction goes by; None where there is no correction.
        settled: What a view said that it costs, where the correction goes by that.
        provider: What the provider counts for the same request, where it was asked and has answered.
    """

    tokens: tuple[int, ...] = NOTHING
    overhead: int = 0
    correction: int = 0
    shown: Shown | None = None
    reported: int | None = None
    settled: int | None = None
    provider: int | None = None

    @property
    def total(self) -> int:
        """What the request costs."""
        return self.overhead + sum(self.tokens) + self.correction

    @property
    def rows(self) -> Rows:
        """The same in rows that sum to it."""
        return rows_of(self.tokens, self.overhead, self.correction)

    def used(self, category: MessageCategory) -> int:
        """What a category holds."""
        return self.rows.tokens[RANK[category]]


class Ledger:
    """Holds what was noted last. Several threads may write; who reads `noted` reads figures that belong together."""

    def __init__(self) -> None:
        self.noted = Noted()
        self._lock = Lock()

    def note(self, noted: Noted) -> None:
        """Takes the place of everything before."""
        with self._lock:
            self.noted = noted

    def note_provider(self, noted: Noted, tokens: int) -> None:
        """Adds the provider's count to what was noted, unless something else has been since."""
        with self._lock:
            if self.noted is noted:
                self.noted = replace(noted, provider=tokens)

    def add(self, category: MessageCategory, tokens: int) -> None:
        """Adds to a category."""
        with self._lock:
            self._set(category, self.noted.tokens[RANK[category]] + tokens)

    def reset(self, category: MessageCategory | None = None) -> None:
        """Sets a category, or everything, to nothing."""
        with self._lock:
            if category is None:
                self.noted = Noted()
            else:
                self._set(category, 0)

    def _set(self, category: MessageCategory, tokens: int) -> None:
        rank = RANK[category]
        self.noted = replace(self.noted, tokens=(*self.noted.tokens[:rank], tokens, *self.noted.tokens[rank + 1 :]), provider=None)


def known_category(category: object) -> MessageCategory:
    """The category, where it is one or the name of one.

    Raises:
        BudgetError: There is no such category.
    """
    if isinstance(category, MessageCategory):
        return category
    try:
        return MessageCategory(category)
    except ValueError:
        names = ", ".join(one.value for one in MessageCategory)
        raise BudgetError("category", category, f"there is no such category; pass one of {names}") from None
