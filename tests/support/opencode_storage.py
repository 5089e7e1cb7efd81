"""Writes sessions as opencode stores them: in its folder, and in its database of three generations."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

Json = dict[str, Any]

SUMS = ("tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write")
MESSAGES = "id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT"
SESSIONS = f"id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, version TEXT, title TEXT, time_created INTEGER, time_updated INTEGER, \
    model TEXT, revert TEXT, cost REAL DEFAULT 0 NOT NULL, {', '.join(f'{name} INTEGER DEFAULT 0 NOT NULL' for name in SUMS)}"


def with_ids(document: Json) -> Json:
    """The export with an id for each part, as opencode writes them."""
    for message in document["messages"]:
        for index, part in enumerate(message["parts"]):
            part["id"] = f"prt_{message['info']['id']}_{index:03}"
    return document


def write_folder(folder: Path, document: Json) -> Path:
    """The session as files; the path of its own."""
    own = document["info"]["id"]
    log = _put(folder / "storage/session/p" / f"{own}.json", document["info"])
    for message in document["messages"]:
        name = message["info"]["id"]
        _put(folder / "storage/message" / own / f"{name}.json", message["info"])
        for part in message["parts"]:
            _put(folder / "storage/part" / name / f"{part['id']}.json", part)
    return log


def _put(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_database(path: Path, *documents: Json) -> Path:
    """The sessions in tables of 1.x. `sums` of a description go into its columns."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE session ({SESSIONS})")
        database.execute(f"CREATE TABLE message ({MESSAGES})")
        database.execute("CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)")
        for document in documents:
            own = _put_session(database, "session", document["info"])
            for message in document["messages"]:
                name = message["info"]["id"]
                data = json.dumps(_without(message["info"], "id"))
                database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (name, own, message["info"]["time"]["created"], data))
                for part in message["parts"]:
                    database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (part["id"], name, own, json.dumps(_without(part, "id"))))
    return path


def write_modern(path: Path, info: Json, rows: Iterable[tuple[str, Json]]) -> Path:
    """A session in tables of 2.x, beside whatever the database holds. A row is the type of a message and its content."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE IF NOT EXISTS session_v2 ({SESSIONS})")
        database.execute(f"CREATE TABLE IF NOT EXISTS session_message ({MESSAGES}, type TEXT, seq INTEGER)")
        own = _put_session(database, "session_v2", info)
        for seq, (kind, value) in enumerate(rows):
            row = (f"msg_{99 - seq}", own, 1, json.dumps(value), kind, seq)  # ids say nothing about the order
            database.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)", row)
    return path


def _put_session(database: sqlite3.Connection, table: str, info: Json) -> str:
    values = {
        **{name: info.get(name) for name in ("id", "directory", "version", "title")},
        "parent_id": info.get("parentID"),
        **{f"time_{name}": time for name, time in info.get("time", {}).items()},
        **{name: json.dumps(info[name]) for name in ("model", "revert") if name in info},
        **info.get("sums", {}),
    }
    names = ", ".join(values)
    database.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", [*values.values()])
    return str(info["id"])


def _without(value: Json, name: str) -> Json:
    return {key: member for key, member in value.items() if key != name}
