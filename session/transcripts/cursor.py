"""Reads Cursor's agent transcripts: JSONL, messages in Anthropic's form. They hold no usage, and calls have no ids.

`{"role", "message": {"content": [text, tool_use]}}`, and `{"type": "turn_ended", "status"}` after a turn.
"""

from __future__ import annotations

from .account import TranscriptAccount
from .message_logs import MessageLog
from .source import Source
from .values import JsonObject, object_at, text_at

NAME = "cursor"
KNOWN = {"turn_ended": "the end of a turn"}


def claims(value: object) -> bool:
    """Return True if the value is a message of Cursor: its role stands beside `message`, not in it."""
    if not isinstance(value, dict) or "type" in value or text_at(value, "role") not in ("user", "assistant"):
        return False
    message = object_at(value, "message")
    return isinstance(message.get("content"), list) and "role" not in message


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have files of their own
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    return MessageLog(NAME, claims, _message_of, KNOWN, lambda _: {}).read(source)


def _message_of(value: JsonObject) -> JsonObject | None:
    return {**object_at(value, "message"), "role": value.get("role")} if claims(value) else None
