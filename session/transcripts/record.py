"""A record while it is being read: its number in the file, its fate and its items. The finished account is in `account.py`."""

from __future__ import annotations

from dataclasses import dataclass, field

from session.items import Item

from .account import DAMAGED, MERGED, NOT_CONTEXT, Fate

UNKNOWN = "unknown"
"""Word in the reasons of all readers for a record or a part of it whose meaning they do not know."""


@dataclass(slots=True)
class Record:
    """One record of the file: a line, or an entry of its document.

    Attributes:
        number: The line's number, or the entry's number in the document, counted from 1.
        fate: What became of it.
        reasons: Reasons for the fate, and for omitted parts.
        items: The items made from it.
        text_bytes: Bytes of text in it.
        unknown_bytes: Those of them in values that the reader knows only in part or not at all.
    """

    number: int
    fate: Fate = NOT_CONTEXT
    reasons: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    text_bytes: int = 0
    unknown_bytes: int = 0

    def weigh(self, size: int, since: int, unread: int = 0) -> None:
        """Add the text of a value that was read.

        Args:
            size: Its text in bytes.
            since: How many reasons there were before it. It is unknown if a later one says that the reader did not know all of it.
            unread: Bytes of it that are in no item, though no reason says why.
        """
        self.text_bytes += size
        if self.fate is DAMAGED or any(UNKNOWN in reason for reason in self.reasons[since:]):
            self.unknown_bytes += size
        elif unread:
            self.unknown_bytes += min(unread, size)
            self.reasons.append(f"{unread:,} bytes of text in unknown fields")

    def skip(self, reason: str) -> None:
        """Record why the model never saw the record, or a part of it."""
        self.reasons.append(reason)

    def merge(self, reason: str) -> None:
        """Record that its content is in another record's item."""
        if self.fate is NOT_CONTEXT:
            self.fate = MERGED
        self.reasons.append(reason)
