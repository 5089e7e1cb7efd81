"""A session saved with `Session.to_dict`, as one JSON document on one line or many. Its shape is checked by `session/serial.py`."""

from __future__ import annotations

from pathlib import Path

from session.errors import FormatError, TranscriptError
from session.session import Session

from .account import ITEM, LineRecord, TranscriptAccount
from .reading import open_file, parse

NAME = "session_json"


def claims(value: object) -> bool:
    """Whether the value is a saved session."""
    return isinstance(value, dict) and "version" in value and isinstance(value.get("items"), list)


def is_document(path: Path) -> bool:
    """Whether the file as a whole is a saved session. Costs nothing for files that do not begin with a brace."""
    with open_file(path) as file:
        if not file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return False
    return claims(_document(path))


def read(path: Path, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - a saved session is always the whole file
    """The one session in the file. Its lines are no records of their own: the account has one for the document.

    Raises:
        TranscriptError: The document is damaged; the error names the place in it.
    """
    try:
        session = Session.from_dict(_document(path))
    except FormatError as error:
        raise TranscriptError(path, f"a saved session that cannot be read: {error}") from None
    except RecursionError:
        raise TranscriptError(path, "a saved session that cannot be read: nested too deeply") from None
    record = LineRecord(path.name, 1, ITEM, "the whole document", session.id, tuple(item.id for item in session.items))
    return TranscriptAccount(NAME, (session,), 1, (record,))


def _document(path: Path) -> object:
    with open_file(path) as file:
        try:
            raw = file.read()
        except OSError as error:
            raise TranscriptError(path, f"cannot be read: {error}") from None
    values, problem = parse(raw.removeprefix(b"\xef\xbb\xbf"))
    return values[0] if values and problem is None else None
