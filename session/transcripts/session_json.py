"""Reads a session saved with `Session.to_dict` as a JSON document. `session/serial.py` checks its structure.

It reads the requests of `context-window chat` too: a line each, `{"context_window_request": id, "time", "model", "session", "project",
"usage"}`, in the file where the chat keeps its sessions. So an answer counts once, however many sessions it is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from session.errors import FormatError, TranscriptError
from session.serial import session_from_values
from session.session import Session

from .account import ITEM, LineRecord, TranscriptAccount
from .places import Place
from .requests import Request
from .source import Source
from .values import JsonObject, count_at, id_at, moment, object_at, text_at

NAME = "session_json"
CHAT = "context-window"
"""The tool that the chat's requests are of."""
REQUEST = "context_window_request"
REQUESTS = "requests.jsonl"
PLACES = (
    Place("~/.local/state/context-window", REQUESTS, "CONTEXT_WINDOW_HOME"),
    Place("~/Library/Application Support/context-window", REQUESTS),
    *(Place("", f"context-window/{REQUESTS}", variable) for variable in ("XDG_STATE_HOME", "LOCALAPPDATA")),
)


def claims(value: object) -> bool:
    """Return True if the value is a saved session, or a request of the chat."""
    return isinstance(value, dict) and (("version" in value and isinstance(value.get("items"), list)) or REQUEST in value)


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - the file holds a single session
    """Return the session in the file. The account has a single record, for the whole document.

    Raises:
        TranscriptError: The document is damaged, and the error names the place in it. Or it has the chat's requests, but no session.
    """
    if source.name == REQUESTS:
        raise TranscriptError(source.path, "has the requests of the chat, but no conversation: pass it to `context-window spend`")
    try:
        session = session_from_values(Session, source.document, source.folder)
    except FormatError as error:
        raise TranscriptError(source.path, f"cannot read the saved session: {error}") from None
    if source.problem is not None:  # no release writes such values, so the file was edited
        raise TranscriptError(source.path, f"cannot read the saved session: {source.problem}")
    record = LineRecord(source.name, 1, ITEM, "the whole document", session.id, tuple(item.id for item in session.items))
    return TranscriptAccount(NAME, (session,), 1, (record,))


class Requests:
    """The requests of the chat."""

    MARKS = (b'"usage"',)

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the request of a line.

        Raises:
            TranscriptError: It is a saved session.
        """
        if REQUEST not in value:
            raise TranscriptError(self._path, f"is a log of {NAME}, whose usage by request cannot be read")
        usage = object_at(value, "usage")
        yield Request(
            f"{CHAT}:{id_at(value, REQUEST)}",
            moment(value.get("time")),
            CHAT,
            text_at(value, "model"),
            text_at(value, "project"),
            text_at(value, "session"),
            input_tokens=count_at(usage, "input_tokens"),
            cache_read=count_at(usage, "cache_read_tokens"),
            cache_write=count_at(usage, "cache_write_tokens"),
            output_tokens=count_at(usage, "output_tokens"),
        )
