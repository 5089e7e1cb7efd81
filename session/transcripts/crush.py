"""Reads crush's database, `.crush/crush.db` in the folder of each project. Messages have `parts`, a list of `{"type", "data"}`.

A summary (`is_summary_message`) replaces the messages before it. A session has the sum of its costs, its sub-agents' included, but of
tokens only those of its last request: so it becomes one request without tokens. crush lists its projects in `projects.json`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from session.errors import TranscriptError
from session.items import Compaction

from .account import TranscriptAccount
from .block_parser import text_or_json
from .chat_databases import Chat, ChatDatabase, Row
from .compactions import KeepRule
from .databases import is_file, rows
from .draft import Draft
from .places import Place
from .record import Record
from .record_feed import ReadRecord, skip_strangers
from .requests import Request
from .source import Source, parse
from .usage import dollars
from .values import JsonObject, moment, object_at, objects_at, text_at
from .writer import Writer, is_message

NAME = "crush"
PLACES = (Place("$data/crush", "projects.json"),)
FIELDS = ("id", "role", "model", "created_at", "is_summary_message")
NOTE = "only the sum of its costs is known, which counts as one request without tokens"


def claims(_: object) -> bool:
    """Return False: a database is known by its columns."""
    return False


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the sessions in the database.

    Raises:
        TranscriptError: There are no messages.
    """
    return DATABASE.read(source, with_sidechains=with_sidechains)


def databases_in(projects: Path) -> Iterator[Path]:
    """Yield the databases of the projects that crush's list names."""
    try:
        listed = Source(projects).document_object
    except TranscriptError:
        return
    for project in objects_at(listed, "projects"):
        folder = text_at(project, "data_dir")
        path = Path(text_at(project, "path") or "/", folder or ".crush", DATABASE.file)
        if is_file(path):
            yield path


def _reader(draft: Draft) -> ReadRecord:
    writer = Writer(draft)

    def read_message(_: Draft, record: Record, value: JsonObject) -> None:
        skip_strangers(record, value, "parts")
        parts = [(text_at(part, "type"), object_at(part, "data")) for part in objects_at(value, "parts")]
        content = [block for kind, data in parts for block in _blocks(kind, data, record)]
        calls = [
            {"id": data.get("id"), "function": {"name": data.get("name"), "arguments": data.get("input")}}
            for kind, data in parts
            if kind == "tool_call"
        ]
        message = {"role": value.get("role"), "id": value.get("id"), "timestamp": value.get("created_at"), "content": content}
        if not is_message(message):
            record.skip(f"a message of unknown role {text_or_json(value.get('role'))}"[:100])
        elif value.get("is_summary_message"):
            text = "\n".join(text_at(data, "text") for kind, data in parts if kind == "text")
            item_id, time = draft.new_id(text_at(value, "id"), record), moment(value.get("created_at")) or 0.0
            draft.compact(record, Compaction(text, id=item_id, created_at=time), KeepRule(draft.mark()))
        else:
            writer.write(record, {**message, "tool_calls": calls} if calls else message)

    return read_message


def _blocks(kind: str, data: JsonObject, record: Record) -> Iterator[JsonObject]:
    """Yield a block in the form of a provider, or none for a call and for what the model never sees."""
    match kind:
        case "text":
            yield {"type": "text", "text": data.get("text")}
        case "reasoning":
            yield {"type": "thinking", "thinking": text_at(data, "thinking"), "signature": text_at(data, "signature")}
        case "tool_result":
            media = _media(data.get("data"), text_at(data, "mime_type"), "") if data.get("data") else []
            content = [{"type": "text", "text": text_at(data, "content")}, *media]
            call = {"tool_use_id": data.get("tool_call_id"), "name": data.get("name")}
            yield {"type": "tool_result", **call, "content": content, "is_error": data.get("is_error") is True}
        case "image_url":
            yield {"type": "image_url", "image_url": {"url": data.get("url"), "detail": data.get("detail")}}
        case "binary":
            yield from _media(data.get("Data"), text_at(data, "MIMEType"), text_at(data, "Path"))
        case "tool_call":
            pass
        case "finish":
            record.skip("the end of an answer")
        case _:
            record.skip(f"left out a part of unknown type {kind!r}"[:100])


def _media(data: object, media_type: str, name: str) -> list[JsonObject]:
    if media_type.startswith("image/"):
        return [{"type": "image", "data": data, "mimeType": media_type}]
    return [{"type": "file", "file": {"file_data": data, "mime_type": media_type, "filename": name}}]


def _chat_of(database: sqlite3.Connection, file: Path, row: Row) -> Chat:
    session, parent = text_at(row, "id"), text_at(row, "parent_session_id")
    folder = str(file.absolute().parent.parent) if file.parent.name == ".crush" else ""
    model, cost = _model_of(database, session), dollars(row.get("cost"))
    created, updated = (moment(row.get(name)) for name in ("created_at", "updated_at"))
    requests = () if parent or not cost else (Request(f"crush:{session}", created, NAME, model, folder, session, cost=cost),)
    return Chat(session, parent, folder, updated or 0.0, {"title": text_at(row, "title"), "model": model}, requests, note=NOTE)


def _model_of(database: sqlite3.Connection, session: str) -> str:
    """Return the model of the session's last answer; empty if no answer names one."""
    question = "SELECT model FROM messages WHERE session_id = ? AND role = 'assistant' AND model != '' ORDER BY created_at DESC, rowid DESC"
    found = database.execute(question, (session,)).fetchone()
    return found[0] if found is not None and isinstance(found[0], str) else ""


def _messages_of(database: sqlite3.Connection, row: Row) -> list[JsonObject | None]:
    messages = rows(database, "messages", "WHERE session_id = ?", text_at(row, "id"), by="created_at rowid")
    return [_message_of(message) for message in messages]


def _message_of(row: Row) -> JsonObject | None:
    """Return a message with its parts; None if they are damaged."""
    text = row.get("parts")
    values, _ = parse(text) if isinstance(text, str) else ((), None)
    if len(values) != 1 or not isinstance(values[0], list):
        return None
    return {**{name: row.get(name) for name in FIELDS}, "parts": values[0]}


DATABASE = ChatDatabase(NAME, "crush.db", "parts", _chat_of, _messages_of, _reader)
