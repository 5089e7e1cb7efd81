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
    if evidence == "command":
        return RecordedWindow(tokens, f"the window of {tokens:,} tokens that `/context` states", is_stated=False)
    if evidence == "compaction" and _is_count(at):
        return RecordedWindow(tokens, f"a window of {tokens:,} tokens, since the log was compacted at {at:,}", is_stated=False)
    if evidence == "request" and _is_count(at):
        return RecordedWindow(tokens, f"a window of {tokens:,} tokens, since the log has a request of {at:,}", is_stated=False)
    return None


def refutation(session: Session, recorded: RecordedWindow) -> str:
    """Return a clause on a prompt of the session's model that the provider took and that is larger than the window; empty if none is."""
    answers = (item for item in session.items if item.usage is not None and "model" not in item.extra)
    largest = max((item.usage.prompt for item in answers if item.usage is not None), default=0)
    return f"; {recorded.source}, cannot be right: the provider took a prompt of {largest:,}" if largest > recorded.tokens else ""


def _is_count(value: object) -> bool:
    return type(value) is int and 0 < value <= MAX_COUNT
