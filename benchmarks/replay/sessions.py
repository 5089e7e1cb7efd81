"""The recorded sessions that are replayed: which files, which sessions, which third is held out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from benchmarks.accuracy import TRANSCRIPTS, is_held_out
from context_window.counting.item_tokens import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter
from session import Session
from session.errors import SessionError
from session.items import Compaction, Item, Message
from session.transcripts import read_transcripts

from .terms import text_of

ITEMS_LEAST = 60
TOKENS_LEAST = 15_000
"""Shorter sessions are left out: a model with the smallest window would have shown them whole."""

MEASURER = Measurer(TiktokenCounter())
"""Counts the tokens of every policy's views alike: o200k, and each item's frame."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session, up to its first compaction.

    Attributes:
        name: The file and the session's id.
        tool: The tool that wrote the log.
        session: The session.
        items: Its items before the first compaction.
        tokens: Their tokens.
    """

    name: str
    tool: str
    session: Session
    items: tuple[Item, ...]
    tokens: int

    @property
    def held_out(self) -> bool:
        """True if no constant of a strategy may be fitted on it."""
        return is_held_out(self.name)


def recordings(paths: Sequence[Path] = ()) -> Iterator[Recording]:
    """Yield the sessions in the files and folders that are long enough, each once. Without paths: in the recorded transcripts."""
    known: set[bytes] = set()
    for file in files_in(paths or [TRANSCRIPTS]):
        try:
            sessions = read_transcripts(file)
        except SessionError:
            continue
        for session in sessions:
            recording = _recording(session, file)
            if recording is not None and (digest := _digest(recording.items)) not in known:
                known.add(digest)
                yield recording


def files_in(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and all files in the folders, in order."""
    return [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]) if not file.is_dir()]


def _recording(session: Session, file: Path) -> Recording | None:
    """Return the part of a session that is replayed; None if it is too short."""
    items = session.items
    end = next((place for place, item in enumerate(items) if is_summary(item)), len(items))
    if end < ITEMS_LEAST:
        return None
    tokens = sum(tokens_of(item) for item in items[:end])
    if tokens < TOKENS_LEAST:
        return None
    source = session.metadata.get("source")
    tool = str(source.get("format") or file.parent.name) if isinstance(source, dict) else file.parent.name
    return Recording(f"{file.name}/{session.id}", tool, session, tuple(items[:end]), tokens)


def is_summary(item: Item) -> bool:
    """True if the item stands for earlier ones: from here on the log is not what the model saw."""
    return isinstance(item, Compaction) or (isinstance(item, Message) and item.is_summary)


def tokens_of(item: Item) -> int:
    """Return the tokens of an item in a request."""
    return MEASURER.measure(item).tokens


def _digest(items: Iterable[Item]) -> bytes:
    digest = sha256()
    for item in items:
        digest.update(text_of(item).encode("utf-8", "replace") + b"\0")
    return digest.digest()
