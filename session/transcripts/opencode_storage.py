"""Reads opencode's sessions where it keeps them, each in the form of an export: `{info, messages: [{info, parts}]}`.

- `opencode*.db`, since 1.2 (https://github.com/anomalyco/opencode/issues/18633): tables `session`, `message` and `part` hold JSON. Since
  2.0, `session_v2` and `session_message` (https://github.com/ccusage/ccusage/issues/1644): of a session that is in both, the older
  tables are a stale copy. `opencode.db/SESSION` names one session.
- `storage/session/PROJECT/SESSION.json`, before 1.2. Its messages are in `storage/message/SESSION`, their parts in `storage/part/MESSAGE`.

`opencode.py` makes items of an export, and `request_readers.py` requests.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from session.errors import TranscriptError

from .databases import HEADER, beside, object_of, opened, rows
from .opencode_v2 import export_message, is_answer
from .source import Source, decode, open_file
from .values import JsonObject, count_at, id_at, text_at

MODERN = "session_v2"
"""The table of sessions of 2.x."""
STEP = "step-finish"
"""The type of the parts that have tokens."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session in opencode's storage.

    Attributes:
        info: Its description. `tokens` and `cost` are the sums that a database has.
        messages: Reads its messages. The value of a damaged one, or of a damaged part, is None. Takes False to read only the parts
            that have tokens.
    """

    info: JsonObject
    messages: Callable[[bool], list[JsonObject]]


def is_database(path: Path) -> bool:
    """Return True if the path names a database of opencode, or a session in one."""
    return _has_database_name(path) or (path.name.startswith("ses_") and _has_database_name(path.parent))


def is_stored(path: Path) -> bool:
    """Return True if the path names a database of opencode, or a session in its folder."""
    return is_database(path) or (path.suffix == ".json" and [folder.name for folder in path.parents][1:3] == ["session", "storage"])


def is_storage_file(source: Source) -> bool:
    """Return True if the file is one of opencode's storage, by its name or its first bytes."""
    return is_stored(source.path) or (source.path.suffix not in (".json", ".jsonl") and source.bytes(len(HEADER)) == HEADER)


def files_of(path: Path) -> list[Path]:
    """Return the files whose change means that the storage has changed."""
    if is_database(path):
        file, _ = _file_and_session(path)
        return [file, beside(file, "-wal")]
    return [path, *_json_files(_messages_folder(path))]


@contextmanager
def stored_sessions(path: Path) -> Iterator[list[StoredSession]]:
    """Return the sessions that a path names, in the order in which they began: a session's sub-agents belong to it.

    Raises:
        TranscriptError: The storage cannot be read.
    """
    if path.suffix == ".json":
        yield [_of_folder(path)]
        return
    file, session_id = _file_and_session(path)
    try:
        with opened(file) as database:
            sessions = list(_of_database(database))
            if session_id and not any(session.info["id"] == session_id for session in sessions):
                raise TranscriptError(file, f"holds no session {session_id}")
            yield _family(sessions, session_id) if session_id else sessions
    except (sqlite3.Error, OSError, UnicodeError) as error:  # UnicodeError: a damaged name of a column
        tool = "opencode" if is_stored(path) else "a tool"
        raise TranscriptError(path, f"is not a database of {tool} that we can read: {error}") from None


def damaged_values(messages: Iterable[JsonObject]) -> int:
    """Return the number of messages and parts that are damaged."""
    return sum((message["info"] is None) + _parts(message).count(None) for message in messages)


def _parts(message: JsonObject) -> list[object]:
    parts = message["parts"]
    return parts if isinstance(parts, list) else []


def _has_database_name(path: Path) -> bool:
    return path.name.startswith("opencode") and path.suffix == ".db"


def _file_and_session(path: Path) -> tuple[Path, str]:
    return (path.parent, path.name) if path.name.startswith("ses_") and _has_database_name(path.parent) else (path, "")


def _of_database(database: sqlite3.Connection) -> Iterator[StoredSession]:
    """Yield the sessions of a database, in order. Of a session in several tables of sessions, the newest row counts."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}  # a view can go on forever
    newest: dict[str, tuple[str, JsonObject]] = {}
    for table in (MODERN, "session"):
        for row in rows(database, table) if table in tables else ():
            newest.setdefault(text_at(row, "id"), (table, row))
    if not {MODERN, "session"} & tables:
        raise sqlite3.DatabaseError("it has no table of sessions")
    conditions = {table: _of_session(database, table) for table in ("session_message", "message", "part") if table in tables}
    for session_id, (table, row) in sorted(newest.items(), key=lambda entry: (count_at(entry[1][1], "time_created"), entry[0])):
        yield StoredSession(_info(row), _reader(database, session_id, conditions, is_modern=table == MODERN))


def _of_session(database: sqlite3.Connection, table: str) -> str:
    """Return the condition for the rows of one session. Without an index, one is made beside the database, in the connection's own tables:
    to go through a table once for each session takes time with their square.
    """
    if database.execute(_INDEXED, (table,)).fetchone():
        return "WHERE session_id = ?"
    database.execute(f"CREATE TEMP TABLE of_{table} AS SELECT rowid AS at, session_id FROM main.{table}")  # noqa: S608 - one of ours
    database.execute(f"CREATE INDEX temp.by_{table} ON of_{table} (session_id)")
    return f"WHERE rowid IN (SELECT at FROM temp.of_{table} WHERE session_id = ?)"  # noqa: S608 - one of ours


_INDEXED = """SELECT 1 FROM pragma_index_list(?) AS list, pragma_index_xinfo(list.name) AS part
    WHERE NOT list.partial AND part.seqno = 0 AND part.name = 'session_id' AND part.coll = 'BINARY'"""


def _reader(
    database: sqlite3.Connection, session_id: str, conditions: Mapping[str, str], *, is_modern: bool
) -> Callable[[bool], list[JsonObject]]:
    """Return the function that reads the messages of a session: those of 2.x if it has an answer there or is a session of 2.x."""

    def read(wants_all: bool) -> list[JsonObject]:
        messages = list(_modern_messages(database, session_id, conditions)) if "session_message" in conditions else []
        if messages and (is_modern or any(is_answer(message) for message in messages)):
            return messages
        has_older = {"message", "part"} <= conditions.keys()
        older = _messages(database, session_id, conditions, wants_all=wants_all) if has_older else []
        return older or messages

    return read


def _info(row: JsonObject) -> JsonObject:
    """Return the description of a session as an export has it."""
    tokens: JsonObject = {name: count_at(row, f"tokens_{name}") for name in ("input", "output", "reasoning")}
    tokens["cache"] = {name: count_at(row, f"tokens_cache_{name}") for name in ("read", "write")}
    tokens["total"] = sum(count_at(row, name) for name in row if name.startswith("tokens_"))  # the output is without the reasoning
    parent = text_at(row, "parent_id")
    return {
        **{name: row.get(name) for name in ("id", "directory", "version", "title", "cost")},
        "time": {name: row.get(f"time_{name}") for name in ("created", "updated")},
        "model": object_of(row.get("model")) or {},
        "revert": object_of(row.get("revert")),
        "tokens": tokens,
    } | ({"parentID": parent} if parent else {})


def _modern_messages(database: sqlite3.Connection, session_id: str, conditions: Mapping[str, str]) -> Iterator[JsonObject]:
    for row in rows(database, "session_message", conditions["session_message"], session_id):
        value = object_of(row.get("data"))
        yield {"info": None, "parts": []} if value is None else export_message(row, value)


def _messages(database: sqlite3.Connection, session_id: str, conditions: Mapping[str, str], *, wants_all: bool) -> list[JsonObject]:
    condition, values = ("", []) if wants_all else (" AND data LIKE ?", [f'%"{STEP}"%'])
    parts = rows(database, "part", conditions["part"] + condition, session_id, *values)
    messages = rows(database, "message", conditions["message"], session_id)
    return _joined(
        ((text_at(row, "id"), row.get("data")) for row in messages),
        ((text_at(row, "message_id"), text_at(row, "id"), row.get("data")) for row in parts),
    )


def _of_folder(path: Path) -> StoredSession:
    info = object_of(_text(path))

    def read(wants_all: bool) -> list[JsonObject]:
        messages = _json_files(_messages_folder(path))
        parts = (
            (message.stem, part.stem, text)
            for message in messages
            for part in _json_files(path.parents[2] / "part" / message.stem)
            if f'"{STEP}"' in (text := _text(part)) or wants_all
        )
        damaged: list[JsonObject] = [{"info": None, "parts": []}] if info is None else []
        return damaged + _joined(((message.stem, _text(message)) for message in messages), parts)

    return StoredSession({} if info is None else info | {"id": path.stem}, read)


def _joined(rows: Iterable[tuple[str, object]], parts: Iterable[tuple[str, str, object]]) -> list[JsonObject]:
    """Return messages with their parts.

    Args:
        rows: Ids of messages and their descriptions, as JSON.
        parts: Ids of messages, ids of their parts and the parts, as JSON.
    """
    by_message: dict[str, list[object]] = {}
    for message, part_id, text in parts:
        part = object_of(text)
        by_message.setdefault(message, []).append(None if part is None else {"id": part_id} | part)
    messages: list[JsonObject] = []
    for message, text in rows:
        info = object_of(text)
        messages.append({"info": None if info is None else info | {"id": message}, "parts": by_message.get(message, [])})
    return messages


def _family(sessions: list[StoredSession], session_id: str) -> list[StoredSession]:
    """Return a session and its sub-agents, and theirs."""
    children: dict[str, set[str]] = {}
    for session in sessions:
        children.setdefault(id_at(session.info, "parentID"), set()).add(id_at(session.info, "id"))
    ids, more = {session_id}, {session_id}
    while more:
        more = set().union(*(children.get(parent, set()) for parent in more)) - ids
        ids |= more
    return [session for session in sessions if session.info["id"] in ids]


def _messages_folder(path: Path) -> Path:
    return path.parents[2] / "message" / path.stem


def _json_files(folder: Path) -> list[Path]:
    """Return the JSON files in a folder, in order. Links are not followed, since nobody has named their targets."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.name.endswith(".json") and entry.is_file(follow_symlinks=False))
    except OSError:
        return []


def _text(path: Path) -> str:
    with open_file(path) as file:
        return decode(file.read())
