"""What became of every line of a transcript. Values only: the readers fill them, the CLI and the tests read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from session.session import Session

Fate = Literal["item", "merged", "not context", "damaged"]
ITEM: Fate = "item"
MERGED: Fate = "merged"
NOT_CONTEXT: Fate = "not context"
DAMAGED: Fate = "damaged"

WARNINGS_MAX = 20
"""Warnings that a session carries; a file with more damage than that says how much more."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """What became of one line.

    Attributes:
        file: The file's name, without its folder.
        line: Its place in the file, counted from 1.
        fate: "item": it gave the items below. "merged": what it says is in another line's item. "not context": the model
            was never shown it. "damaged": it cannot be read.
        reason: Why, in words; for a line that became items, what was left out of it, or an empty text.
        session: The id of the session it belongs to.
        items: The ids of the items it gave, in its own order.
    """

    file: str
    line: int
    fate: Fate
    reason: str
    session: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TranscriptAccount:
    """The sessions of a transcript, and what became of each of its lines.

    Attributes:
        format: The name of the format, as in `session.metadata["source"]["format"]`.
        sessions: The main session first, then its sidechains in the order in which they began.
        equals: How many sessions at the head of `sessions` are main ones; more than one only where a file holds unrelated sessions.
        lines: One record for each line, in order; after those of the file itself, those of the sidechains' own files.
    """

    format: str
    sessions: tuple[Session, ...]
    equals: int
    lines: tuple[LineRecord, ...]

    def counts(self) -> dict[Fate, int]:
        """How many lines had each fate."""
        return dict(Counter(record.fate for record in self.lines))


def shortened(warnings: Iterable[str]) -> list[str]:
    """The first warnings, and how many more there are."""
    told = list(warnings)
    return told if len(told) <= WARNINGS_MAX else [*told[:WARNINGS_MAX], f"{len(told) - WARNINGS_MAX} more lines like these"]
