"""The account of a transcript: what became of every line. Only values; the readers fill them, the CLI and the tests read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from session.session import Session

Fate = Literal["item", "merged", "not context", "damaged"]
ITEM: Fate = "item"
MERGED: Fate = "merged"
NOT_CONTEXT: Fate = "not context"
DAMAGED: Fate = "damaged"


@dataclass(frozen=True, slots=True)
class LineRecord:
    """The fate of one line.

    Attributes:
        file: The file's name, without its folder.
        line: The line's number, or the entry's number in a document, counted from 1.
        fate: "item": it became the items below. "merged": its content is in another line's item. "not context": the model
            never saw it. "damaged": it cannot be read.
        reason: The reason for the fate. For a line that became items: the omitted parts, or an empty text.
        session: Id of the session that the line belongs to.
        items: Ids of the items made from it, in the line's order.
        text_bytes: Bytes of text in the line.
        unknown_bytes: Those of them in values that the reader knows only in part or not at all.
    """

    file: str
    line: int
    fate: Fate
    reason: str
    session: str
    items: tuple[str, ...] = ()
    text_bytes: int = 0
    unknown_bytes: int = 0


UNKNOWN_SHARE = 0.05
"""Share of a log's text in unknown records above which the session's first warning says so."""


def unknown_warnings(lines: Sequence[LineRecord]) -> Iterator[str]:
    """Yield a warning if more than a small part of the text of these lines is in records that the reader does not know."""
    unknown = [line for line in lines if line.unknown_bytes]
    size, total = sum(line.unknown_bytes for line in unknown), sum(line.text_bytes for line in lines)
    if size > total * UNKNOWN_SHARE:
        share = f"{len(unknown):,} of {len(lines):,} records, with {size:,} of {total:,} bytes of text"
        first = f"line {unknown[0].line}: {unknown[0].reason}"
        yield f"not read in full: {share}, are unknown in part or whole, the first of them on {first}"


@dataclass(frozen=True, slots=True)
class TranscriptAccount:
    """The sessions of a transcript, and what became of each of its lines.

    Attributes:
        format: The name of the format, as in `session.metadata["source"]["format"]`.
        sessions: The main session first, then its sidechains in the order in which they began.
        main_count: Number of main sessions at the head of `sessions`. More than one only if a file holds unrelated sessions.
        lines: One record per line, in order. Lines of the sidechains' own files follow those of the main file.
    """

    format: str
    sessions: tuple[Session, ...]
    main_count: int
    lines: tuple[LineRecord, ...]

    def counts(self) -> dict[Fate, int]:
        """Return the number of lines with each fate."""
        return dict(Counter(record.fate for record in self.lines))
