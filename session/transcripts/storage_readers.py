"""Finds the reported usage in logs that are more than one stream of values: opencode's database and its folder, Cline's tasks in VS Code.

Such a log is known by its name, since its content does not name its format:

- `opencode*.db`: opencode since 1.2, https://github.com/anomalyco/opencode/issues/18633. Tables `session`, `message` and `part` hold JSON.
- `storage/session/PROJECT/SESSION.json`: opencode before 1.2. Its messages are in `storage/message/SESSION`, and their steps in
  `storage/part/MESSAGE`.
- `ui_messages.json`: a task of Cline in VS Code, https://docs.cline.bot/troubleshooting/task-history-recovery.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from session.errors import TranscriptError

from . import cline
from .request_readers import OpencodeReader, Request
from .source import COMPLETE, decode, open_file, parse
from .usage import dollars
from .values import JsonObject, count_at, moment, object_at, text_at

STEP = "step-finish"
"""The type of the parts that have tokens."""
CLINE_TASK = "ui_messages.json"


def is_storage(path: Path) -> bool:
    """Return True if the path names a log of this module."""
    is_session = path.suffix == ".json" and [folder.name for folder in path.parents][1:3] == ["session", "storage"]
    return path.name == CLINE_TASK or is_database(path) or is_session


def is_database(path: Path) -> bool:
    """Return True if the path names a database of opencode."""
    return path.name.startswith("opencode") and path.suffix == ".db"


def files_of(path: Path) -> list[Path]:
    """Return the files whose change means that such a log has changed: the log, and what belongs to it."""
    if is_database(path):
        return [path, path.with_name(path.name + "-wal")]
    return [path] if path.name == CLINE_TASK else [path, *_messages(path)]


def read_storage(path: Path) -> tuple[list[Request], int]:
    """Return the reports of such a log, and how many of its values are damaged.

    Raises:
        TranscriptError: It cannot be read.
    """
    if path.name == CLINE_TASK:
        return _read_cline(path)
    values = _of_database(path) if is_database(path) else _of_folder(path)
    reports: list[Request] = []
    damaged = 0
    for session, messages, faults in values:
        reports += OpencodeReader().read({"info": session, "messages": messages})
        damaged += faults
    return reports, damaged


Session = tuple[JsonObject, list[object], int]
"""A session of opencode: its description, its messages as in an export, and the number of damaged values."""


def _of_database(path: Path) -> Iterator[Session]:
    open_file(path).close()  # raises an error with the fault of a path that cannot be read
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as database:
            sessions = database.execute("SELECT id, parent_id, directory FROM session ORDER BY id").fetchall()
            for session_id, parent, directory in sessions:
                info: JsonObject = {"id": session_id, "directory": directory} | ({"parentID": parent} if parent else {})
                rows = database.execute("SELECT id, data FROM message WHERE session_id = ? ORDER BY id", (session_id,)).fetchall()
                query = "SELECT message_id, data FROM part WHERE session_id = ? AND data LIKE ? ORDER BY id"
                yield (info, *_joined(rows, database.execute(query, (session_id, f'%"{STEP}"%')).fetchall()))
    except sqlite3.Error as error:
        raise TranscriptError(path, f"is not a database of opencode that we can read: {error}") from None


def _of_folder(path: Path) -> Iterator[Session]:
    info = _object(_text(path))
    storage = path.parents[2]
    rows = [(message.stem, _text(message)) for message in _messages(path)]
    steps = [
        (message, text) for message, _ in rows for part in _json_files(storage / "part" / message) if f'"{STEP}"' in (text := _text(part))
    ]
    messages, damaged = _joined(rows, steps)
    yield ({} if info is None else info) | {"id": path.stem}, messages, damaged + (info is None)


def _joined(rows: list[tuple[str, str]], steps: list[tuple[str, str]]) -> tuple[list[object], int]:
    """Return messages with their steps, and the number of damaged values.

    Args:
        rows: Ids of messages and their descriptions, as JSON.
        steps: Ids of messages and their steps, as JSON.
    """
    parts: dict[str, list[object]] = {}
    damaged = 0
    for message, text in steps:
        step = _object(text)
        damaged += step is None
        if step is not None and step.get("type") == STEP:
            parts.setdefault(message, []).append(step)
    messages: list[object] = []
    for message, text in rows:
        info = _object(text)
        damaged += info is None
        if info is not None:
            messages.append({"info": info | {"id": message}, "parts": parts.get(message, [])})
    return messages, damaged


def _messages(path: Path) -> list[Path]:
    return _json_files(path.parents[2] / "message" / path.stem)


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


def _object(text: object) -> JsonObject | None:
    """Return the object that the text is, or None if it is damaged."""
    values, problem = parse(text) if isinstance(text, str) else ((), None)
    return values[0] if len(values) == 1 and problem in COMPLETE and isinstance(values[0], dict) else None


def _read_cline(path: Path) -> tuple[list[Request], int]:
    """Return the requests of a task. Each has an entry whose text is JSON, with the amounts once the answer has come."""
    try:
        entries = json.loads(_text(path), strict=False)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, list):
        raise TranscriptError(path, "is not the list of messages that Cline writes")
    reports = []
    damaged = 0
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("say") != "api_req_started":
            continue
        amounts = _object(entry.get("text"))
        damaged += amounts is None
        if amounts is not None:
            reports.append(_of_cline(entry, amounts, path.parent.name))
    return reports, damaged


def _of_cline(entry: JsonObject, amounts: JsonObject, task: str) -> Request:
    time = moment(entry.get("ts"))
    return Request(
        f"cline:{task}:{entry.get('ts')}" if time is not None else "",
        time,
        cline.NAME,
        text_at(object_at(entry, "modelInfo"), "modelId"),
        "",
        task,
        input_tokens=count_at(amounts, "tokensIn"),
        cache_read=count_at(amounts, "cacheReads"),
        cache_write=count_at(amounts, "cacheWrites"),
        output_tokens=count_at(amounts, "tokensOut"),
        cost=dollars(amounts.get("cost")),
    )
