"""The context window that a transcript's metadata has, and in words how it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from session.sanitize import MAX_COUNT

if TYPE_CHECKING:
    from session.session import Session


@dataclass(frozen=True, slots=True)
class RecordedWindow:
    """The window that a transcript's session had.

    Attributes:
        tokens: Tokens of the window.
        source: How it is known, in words.
        is_stated: True if the tool stated it. The tool has then taken off what it keeps for the answer.
    """

    tokens: int
    source: str
    is_stated: bool


def recorded_window(session: Session) -> RecordedWindow | None:
    """Return the window in the session's metadata, or None. Readers of transcripts put it there (`docs/guides/transcripts.md`)."""
    values = session.metadata.get("context_window")
    if not isinstance(values, dict) or not _is_count(values.get("tokens")):
        return None
    tokens, evidence, at = values["tokens"], values.get("evidence"), values.get("at")
    if evidence == "stated":
        return RecordedWindow(tokens, f"the window of {tokens:,} tokens that the log states", is_stated=True)
    if evidence == "compaction" and _is_count(at):
        return RecordedWindow(tokens, f"a window of {tokens:,} tokens, since the log was compacted at {at:,}", is_stated=False)
    if evidence == "request" and _is_count(at):
        return RecordedWindow(tokens, f"a window of {tokens:,} tokens, since the log has a request of {at:,}", is_stated=False)
    return None


def _is_count(value: object) -> bool:
    return type(value) is int and 0 < value <= MAX_COUNT
