"""A session saved with `Session.to_dict`, as one JSON document on one line or many. Its shape is checked by `session/serial.py`."""

from __future__ import annotations

from session.errors import FormatError, TranscriptError
from session.serial import session_from_values

from .account import ITEM, LineRecord, TranscriptAccount
from .source import Source

NAME = "session_json"


def claims(value: object) -> bool:
    """Whether the value is a saved session."""
    return isinstance(value, dict) and "version" in value and isinstance(value.get("items"), list)


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - a saved session is always the whole file
    """The one session in the file. Its lines are no records of their own: the account has one for the document.

    Raises:
        TranscriptError: The document is damaged; the error names the place in it.
    """
    try:
        session = session_from_values(source.document, source.folder)
    except FormatError as error:
        raise TranscriptError(source.path, f"a saved session that cannot be read: {error}") from None
    if source.problem is not None:  # no release saves such values: somebody changed the file
        raise TranscriptError(source.path, f"a saved session that cannot be read: {source.problem}")
    record = LineRecord(source.name, 1, ITEM, "the whole document", session.id, tuple(item.id for item in session.items))
    return TranscriptAccount(NAME, (session,), 1, (record,))
