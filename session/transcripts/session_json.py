"""Reads a session saved with `Session.to_dict` as a JSON document. `session/serial.py` checks its structure."""

from __future__ import annotations

from session.errors import FormatError, TranscriptError
from session.serial import session_from_values
from session.session import Session

from .account import ITEM, LineRecord, TranscriptAccount
from .source import Source

NAME = "session_json"


def claims(value: object) -> bool:
    """Return True if the value is a saved session."""
    return isinstance(value, dict) and "version" in value and isinstance(value.get("items"), list)


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - the file holds a single session
    """Return the session in the file. The account has a single record, for the whole document.

    Raises:
        TranscriptError: The document is damaged. The error names the place in it.
    """
    try:
        session = session_from_values(Session, source.document, source.folder)
    except FormatError as error:
        raise TranscriptError(source.path, f"cannot read the saved session: {error}") from None
    if source.problem is not None:  # no release writes such values, so the file was edited
        raise TranscriptError(source.path, f"cannot read the saved session: {source.problem}")
    record = LineRecord(source.name, 1, ITEM, "the whole document", session.id, tuple(item.id for item in session.items))
    return TranscriptAccount(NAME, (session,), 1, (record,))
