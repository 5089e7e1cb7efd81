"""Reads Factory droid's logs: JSONL, a `session_start`, then messages in Anthropic's form. They hold no usage.

`{"type": "message", "id", "parentId", "timestamp", "message": {"role", "content": [text, tool_use, tool_result]}}`
"""

from __future__ import annotations

from .account import TranscriptAccount
from .message_logs import MessageLog
from .places import Place
from .source import Source
from .values import JsonObject, object_at, text_at

NAME = "droid"
PLACES = (Place("~/.factory", "sessions/**/*.jsonl"),)
KNOWN = {"session_start": "session metadata", "todo_state": "a list for the screen", "session_end": "session metadata"}


def claims(value: object) -> bool:
    """Return True if the value is the first line of a log of droid."""
    return isinstance(value, dict) and value.get("type") == "session_start" and isinstance(value.get("id"), str) and "data" not in value


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - the file holds a single session
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    return MessageLog(NAME, claims, _message_of, KNOWN, _describe).read(source)


def _message_of(value: JsonObject) -> JsonObject | None:
    return {"id": value.get("id"), **object_at(value, "message")} if value.get("type") == "message" else None


def _describe(value: JsonObject) -> dict[str, str]:
    return {"session_id": text_at(value, "id"), "cwd": text_at(value, "cwd")} if claims(value) else {}
