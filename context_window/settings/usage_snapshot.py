"""The latest usage figures: the tokens of the view, analysis or trim that came last. Counts nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple, cast
from weakref import ref

from session.items import Item, MessageCategory
from session.session import Session
from session.units import PRIORITY, RANK

from ..errors import ArgumentError

NO_TOKENS = (0,) * len(PRIORITY)


class Rows(NamedTuple):
    """Tokens of a usage report by rank of the category, and outside the items. None is negative, and together they are the total."""

    tokens: tuple[int, ...]
    overhead: int

    @property
    def by_category(self) -> dict[MessageCategory, int]:
        """The tokens by category, in falling priority."""
        return dict(zip(PRIORITY, self.tokens, strict=True))


def rows_of(tokens: Sequence[int], overhead: int, correction: int) -> Rows:
    """Return local counts adjusted so that they sum to the corrected total.

    The correction changes the overhead, as in a plan: most of it is a system prompt and tools that are in no log. Where the overhead is too
    small for that, the rest lowers every row by the same proportion.
    """
    rest = overhead + correction
    if rest >= 0:
        return Rows(tuple(tokens), rest)
    local_total = sum(tokens)
    total = local_total + rest
    scaled = [count * total // local_total for count in tokens]
    for row in sorted(range(len(scaled)), key=lambda row: -(tokens[row] * total % local_total))[: total - sum(scaled)]:
        scaled[row] += 1
    return Rows(tuple(scaled), 0)


class SessionContents:
    """The contents of a session at the time when its tokens were counted.

    It holds the items but only a weak reference to the session. The session may grow afterwards, and everything that the manager keeps
    about it must go when it goes.
    """

    __slots__ = ("_breaks", "_ends", "_metadata", "_session", "_settled", "_usage_noted_after", "items", "lineage", "session_id")

    def __init__(self, session: Session, items: Sequence[Item], lineage: object) -> None:
        self.session_id = session.id
        self.items = items
        self.lineage = lineage
        self._breaks = session.response_breaks
        self._ends = session.request_ends
        self._settled = session.settled
        self._metadata = session.metadata
        self._usage_noted_after = session.usage_noted_after
        self._session = ref(session if session.origin is None else session.origin)

    def session(self) -> Session | None:
        """Return the session, or the log that the view was made of, if it still exists. Its contents may have changed."""
        return self._session()

    def frozen(self) -> Session:
        """Return a new session with these contents. Its `lineage` is that of the session."""
        return Session.showing(
            Session(id=self.session_id, metadata=self._metadata),
            cast(list[Item], self.lineage),
            breaks=self._breaks,
            settled=self._settled,
            ends=self._ends,
            length=len(self.items),
            usage_noted_after=self._usage_noted_after,
        )


@dataclass(frozen=True, slots=True)
class UsageFigures:
    """Tokens in use.

    Attributes:
        tokens: Local count by rank of the category.
        overhead: Local count of the rest of the request.
        correction: Tokens by which the request costs more than that, according to the provider's reports.
        contents: The session or view that was counted; None if there was none.
        reported: The report behind the correction, in tokens; None if there is no correction.
        settled: The saved view's own token count behind the correction; None if the correction has another source.
        provider: The provider's count of the same request; None if it was not asked or did not answer.
    """

    tokens: tuple[int, ...] = NO_TOKENS
    overhead: int = 0
    correction: int = 0
    contents: SessionContents | None = None
    reported: int | None = None
    settled: int | None = None
    provider: int | None = None

    @property
    def total(self) -> int:
        """Tokens of the request."""
        return self.overhead + sum(self.tokens) + self.correction

    @property
    def rows(self) -> Rows:
        """`total` broken down by category and overhead."""
        return rows_of(self.tokens, self.overhead, self.correction)

    def used(self, category: MessageCategory) -> int:
        """Return the tokens that a category uses."""
        return self.rows.tokens[RANK[category]]


class UsageSnapshot:
    """Holds the latest figures.

    Several threads may write. The figures are replaced as a whole, so a reader never sees a mix of two requests.
    """

    def __init__(self) -> None:
        self.figures = UsageFigures()
        self._lock = Lock()

    def replace(self, figures: UsageFigures) -> None:
        """Store these figures in place of the previous ones."""
        with self._lock:
            self.figures = figures

    def add_provider_count(self, figures: UsageFigures, tokens: int) -> None:
        """Add the provider's count to these figures, unless newer ones have replaced them."""
        with self._lock:
            if self.figures is figures:
                self.figures = replace(figures, provider=tokens)

    def add(self, category: MessageCategory, tokens: int) -> None:
        """Add tokens to a category."""
        with self._lock:
            self._set(category, self.figures.tokens[RANK[category]] + tokens)

    def reset(self, category: MessageCategory | None = None) -> None:
        """Set a category to zero; with None, forget all figures."""
        with self._lock:
            if category is None:
                self.figures = UsageFigures()
            else:
                self._set(category, 0)

    def _set(self, category: MessageCategory, tokens: int) -> None:
        rank = RANK[category]
        amounts = (*self.figures.tokens[:rank], tokens, *self.figures.tokens[rank + 1 :])
        self.figures = replace(self.figures, tokens=amounts, provider=None)


def checked_category(category: object) -> MessageCategory:
    """Return the category itself, or the one with this name. Raises ArgumentError if there is no such category."""
    by_name = {member.value: member for member in MessageCategory}
    if isinstance(category, str) and category in by_name:
        return by_name[category]
    raise ArgumentError("category", category, f"there is no such category; pass one of {', '.join(by_name)}")
