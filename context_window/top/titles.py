"""Finds words for a session: the title that its log has, or the first words of its user. Reads only the beginning of a log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from session.errors import SessionError
from session.opening import open_regular
from session.transcripts import read_account
from session.transcripts.detect import DATABASES
from session.transcripts.opencode_storage import is_stored, stored_sessions
from session.transcripts.storage_readers import is_database
from session.transcripts.values import text_at

from ..reports.names import title_of as title_of_session

HEAD = 256 * 1024
"""Bytes at the beginning of a log in which the words are looked for."""
LONGEST = 200
"""Characters of a title."""
_TITLE = re.compile(rb'(?<!\\)"(?:customTitle|aiTitle)"\s*:\s*("(?:[^"\\]|\\.){1,2000}")')


def place_of(log: str, session_id: str) -> Path:
    """Return the path that names a session in its log: of a database, a path below it.

    Args:
        log: The log's path.
        session_id: The session's id. One that is no name would lead elsewhere, so it is left out.
    """
    path = Path(log)
    return path / session_id if is_database(path) and Path(session_id).name == session_id else path


def title_of(log: str, session_id: str) -> str:
    """Return words for a session of a log; empty if there are none.

    Args:
        log: The log's path.
        session_id: The session's id.
    """
    path = Path(log)
    try:
        if is_stored(path):
            with stored_sessions(place_of(log, session_id)) as sessions:
                return _line(next((text_at(found.info, "title") for found in sessions if found.info.get("id") == session_id), ""))
        if path.name in DATABASES:
            place = place_of(log, session_id)
            chats = DATABASES[path.name][1].chats(place)
            titles = [chat.metadata.get("title", "") for chat in chats if chat.id == session_id]
            return _line("".join(titles)) or _first_words(place, session_id)
        with open_regular(path) as file:
            head = file.read(HEAD + 1)
        if (named := _TITLE.findall(head)) and (title := _line(str(json.loads(named[-1])))):
            return title
        if len(head) <= HEAD:
            return _first_words(path, session_id)
        with TemporaryDirectory() as folder:
            beginning = Path(folder, path.name)
            beginning.write_bytes(head[: head.rfind(b"\n") + 1])
            return _first_words(beginning, session_id)
    except (SessionError, OSError, ValueError):
        return ""


def _first_words(path: Path, session_id: str) -> str:
    sessions = read_account(path).sessions
    return title_of_session(next((found for found in sessions if found.id == session_id), sessions[0]), LONGEST)


def _line(text: str) -> str:
    return " ".join(text[: 4 * LONGEST].split())[:LONGEST]
