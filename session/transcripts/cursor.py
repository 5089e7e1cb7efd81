"""Reads Cursor's agent transcripts: JSONL, messages in Anthropic's form. They hold no usage, and calls have no ids.

`{"role", "message": {"content": [text, tool_use]}}`, and `{"type": "turn_ended", "status"}` after a turn. Cursor's databases, `store.db` of
a session and `state.vscdb` of the editor, hold the same and more in forms that it does not publish; they are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .account import TranscriptAccount
from .message_logs import MessageLog
from .places import Place
from .source import Source
from .values import JsonObject, object_at, text_at

NAME = "cursor"
FOLDER = "agent-transcripts"
PLACES = (Place("~/.cursor", f"projects/*/{FOLDER}/**/*.jsonl"),)
"""The same on Linux, macOS and Windows: https://jazzyalex.github.io/agent-sessions/guides/cursor-agent-local-history.html."""
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


def folder_of(path: Path, folders: Iterable[Path]) -> Path | None:
    """Return the folder that a transcript is of, which its place names with hyphens for everything but letters and digits.

    Args:
        path: The transcript.
        folders: The folders in question.
    """
    parts = path.parts
    slug = parts[parts.index(FOLDER) - 1] if FOLDER in parts[1:] else ""
    return next((folder for folder in folders if slug and _slug(str(folder)) == _slug(slug)), None)


def _slug(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def _message_of(value: JsonObject) -> JsonObject | None:
    return {**object_at(value, "message"), "role": value.get("role")} if claims(value) else None
