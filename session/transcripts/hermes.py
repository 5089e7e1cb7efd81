"""Reads the sessions of Hermes Agent: its database `state.db` and the documents that it wrote before. Messages have OpenAI's form.

https://hermes-agent.nousresearch.com/docs/developer-guide/session-storage. A session that a compression ends goes on in another one, which
names it as its parent, as sub-agents do. The database has the sums of a session's usage, which become one request; documents have none.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from .account import TranscriptAccount
from .block_parser import text_or_json
from .chat_databases import Chat, ChatDatabase, Row, columns_of
from .databases import rows
from .draft import Draft, finish
from .places import Place
from .record import Record
from .record_feed import ReadRecord, feed_entries, skip_strangers
from .requests import Request, amounts_of
from .source import Source, parse
from .usage import Counts, dollars
from .values import JsonObject, count_at, list_at, moment, object_at, stated_at, text_at
from .writer import Writer, is_message

NAME = "hermes"
PLACES = (Place("~/.hermes", "state.db", "HERMES_HOME"), Place("~/.hermes", "profiles/*/state.db", "HERMES_HOME"))
STRUCTURED = "json:"
"""What a content begins with that is a list of blocks, after a NUL byte, which `decode` removes."""
VALUES = ("tool_calls", "reasoning_details")
"""Columns that hold JSON."""
TEXTS = ("role", "tool_call_id", "tool_name", "reasoning", "reasoning_content", "timestamp")
NOTE = "only the sum of its requests is known, which counts as one request"


def claims(value: object) -> bool:
    """Return True if the value is a document of Hermes."""
    return (
        isinstance(value, dict) and isinstance(value.get("messages"), list) and {"session_start", "platform", "session_id"} <= value.keys()
    )


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the session in a document, or those in a database.

    Raises:
        TranscriptError: There are no messages.
    """
    if columns_of(source.path):
        return DATABASE.read(source, with_sidechains=with_sidechains)
    document = source.document_object
    cwd = text_at(document, "cwd") or text_at(object_at(document, "model_config"), "cwd")
    names = {"session_id": text_at(document, "session_id"), "model": text_at(document, "model"), "cwd": cwd}
    draft = Draft(NAME, source, text_at(document, "session_id"), {name: value for name, value in names.items() if value})
    entries = list_at(document, "messages")
    if prompt := text_at(document, "system_prompt"):
        entries = [{"role": "system", "content": prompt}, *entries]
    feed_entries(entries, draft, _reader(draft))
    return finish(NAME, source, [draft], main_count=1)


def _reader(draft: Draft) -> ReadRecord:
    writer = Writer(draft)

    def read_message(_: Draft, record: Record, value: JsonObject) -> None:
        skip_strangers(record, value, "tool_calls", "reasoning_details")
        if value.get("role") == "session_meta":
            record.skip("session metadata")
        elif value.get("active") == 0:
            record.skip("the model no longer sees it")
        elif is_message(value):
            writer.write(record, {name: member for name, member in value.items() if name != "id"})
        else:
            record.skip(f"a message of unknown role {text_or_json(value.get('role'))}"[:100])

    return read_message


def _chat_of(database: sqlite3.Connection, _: Path, row: Row) -> Chat:
    session, parent = text_at(row, "id"), text_at(row, "parent_session_id")
    model, folder = text_at(row, "model"), text_at(row, "cwd")
    ended = [one for one in rows(database, "sessions", "WHERE id = ?", parent) if text_at(one, "end_reason") == "compression"]
    started = moment(row.get("started_at"))
    counts = Counts(*(count_at(row, f"{name}_tokens") for name in ("input", "cache_read", "cache_write", "output")))
    cost = dollars(row.get("actual_cost_usd")) or dollars(row.get("estimated_cost_usd")) or None
    requests: tuple[Request, ...] = ()
    if any(counts) or cost:
        stated = stated_at(row, "reasoning_tokens")
        reasoning = None if stated is None else min(stated, counts.output_tokens)
        amounts = amounts_of(counts)
        agent = session if parent and not ended else ""
        owner = parent if agent else session
        requests = (Request(f"hermes:{session}", started, NAME, model, folder, owner, agent, **amounts, reasoning=reasoning, cost=cost),)
    last = database.execute("SELECT MAX(timestamp) FROM messages WHERE session_id = ?", (session,)).fetchone()
    metadata = {"title": text_at(row, "title"), "model": model}
    return Chat(session, "" if ended else parent, folder, moment(last[0]) or started or 0.0, metadata, requests, note=NOTE)


def _messages_of(database: sqlite3.Connection, row: Row) -> list[JsonObject | None]:
    prompt = text_at(row, "system_prompt")
    first: list[JsonObject | None] = [{"role": "system", "content": prompt}] if prompt else []
    return [*first, *(_message_of(message) for message in rows(database, "messages", "WHERE session_id = ?", text_at(row, "id")))]


def _message_of(row: Row) -> JsonObject | None:
    """Return the message of a row in OpenAI's form; None if a part of it is damaged."""
    content = row.get("content")
    message: JsonObject = {name: row[name] for name in TEXTS if row.get(name) not in (None, "")}
    message |= {"content": content, "active": row.get("active")}
    if isinstance(content, str) and content.startswith(STRUCTURED):
        values, _ = parse(content.removeprefix(STRUCTURED))
        message["content"] = values[0] if len(values) == 1 and isinstance(values[0], list) else content
    for name in VALUES:
        if text := row.get(name):
            values, problem = parse(text) if isinstance(text, str) else ((), None)
            if len(values) != 1 or problem:
                return None
            message[name] = values[0]
    return message


DATABASE = ChatDatabase(NAME, "state.db", "finish_reason", _chat_of, _messages_of, _reader)
