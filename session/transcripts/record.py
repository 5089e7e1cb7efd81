"""A record while it is being read: its number in the file, its fate and its items. The finished account is in `account.py`."""

from __future__ import annotations

from dataclasses import dataclass, field

from session.items import Item

from .account import MERGED, NOT_CONTEXT, Fate


@dataclass(slots=True)
class Record:
    """One record of the file: a line, or an entry of its document.

    Attributes:
        number: The line's number, or the entry's number in the document, counted from 1.
        fate: What became of it.
        reasons: Reasons for the fate, and for omitted parts.
        items: The items made from it.
    """

    number: int
    fate: Fate = NOT_CONTEXT
    reasons: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)

    def skip(self, reason: str) -> None:
        """Record why the model never saw the record, or a part of it."""
        self.reasons.append(reason)

    def merge(self, reason: str) -> None:
        """Record that its content is in another record's item."""
        if self.fate is NOT_CONTEXT:
            self.fate = MERGED
        self.reasons.append(reason)
