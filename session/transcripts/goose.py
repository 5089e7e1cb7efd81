"""Reads Goose's sessions: its database `sessions.db`, and before it files of JSONL, with a line that describes the session.

Both hold the same messages, `{role, created, content: [text, toolRequest, toolResponse, …], metadata}`. A compaction hides the messages
before it from the model (`agentVisible`) and adds a summary that only the model sees.

A ledger has the usage of each request since 1.51; before, a session has sums, which become one request. Input tokens include cached ones.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from session.items import Compaction

from .account import TranscriptAccount
from .call_ids import UNKNOWN_TOOL
from .chat_databases import Chat, ChatDatabase, Row, columns_of
from .compactions import KeepRule
from .databases import object_of, rows
from .draft import Draft, finish
from .places import Place
from .record import Record
from .record_feed import ReadRecord, feed_lines
from .requests import Request, amounts_of
from .source import Source, parse
from .usage import Counts, dollars, split_total
from .values import JsonObject, count_at, list_at, moment, object_at, objects_at, seconds, text_at
from .writer import Writer, is_message

NAME = "goose"
PLACES = (
    *(Place(f"$data/{folder}", f"sessions/{name}") for folder in ("goose", "Block/goose") for name in ("sessions.db", "*.jsonl")),
    Place("", "data/sessions/sessions.db", "GOOSE_PATH_ROOT"),
)
SCREEN = frozenset(
    {
        "actionRequired",
        "contextLengthExceeded",
        "conversationCompacted",
        "summarizationRequested",
        "systemNotification",
        "toolConfirmationRequest",
    }
)
"""Types of blocks that the model never sees."""
CALLS = frozenset({"toolRequest", "frontendToolRequest", "toolResponse"})
TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def claims(value: object) -> bool:
    """Return True if the value is the first line of a file of Goose, or a message with a call or a result."""
    return _is_header(value) or (isinstance(value, dict) and any(text_at(part, "type") in CALLS for part in objects_at(value, "content")))


def _is_header(value: object) -> bool:
    return isinstance(value, dict) and "message_count" in value and "description" in value and "total_tokens" in value


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the session in a file, or those in a database.

    Raises:
        TranscriptError: There are no messages.
    """
    if columns_of(source.path):
        return DATABASE.read(source, with_sidechains=with_sidechains)
    draft = Draft(NAME, source, source.path.stem)
    read_message = _reader(draft)

    def read_line(_: Draft, record: Record, value: JsonObject) -> None:
        if _is_header(value):
            draft.describe(cwd=text_at(value, "working_dir"), title=text_at(value, "description"))
            record.skip("session metadata")
        else:
            read_message(draft, record, value)

    feed_lines(source.lines(), draft, read_line)
    return finish(NAME, source, [draft], main_count=1)


def _reader(draft: Draft) -> ReadRecord:
    """Return the reader of the messages of a session. A hidden message that a later summary replaces is marked as `summarized`."""
    writer = Writer(draft)
    visible: set[str] = set()
    hidden = 0

    def read_message(_: Draft, record: Record, value: JsonObject) -> None:
        nonlocal hidden
        metadata = object_at(value, "metadata")
        is_hidden = metadata.get("agentVisible") is False
        if is_hidden and value.get("summarized") is not True:
            record.skip("hidden from the model")
            return
        if not (is_message(value) and isinstance(value.get("content"), list)):
            record.skip(f"a message of unknown role {text_at(value, 'role')!r}"[:100])
            return
        content = [block for part in list_at(value, "content") for block in _blocks(part, record)]
        start = draft.mark()
        if hidden and _is_summary(metadata):
            text = "\n".join(text_at(block, "text") for block in content)
            draft.compact(record, Compaction(text, id=draft.new_id("", record)), KeepRule(start, frozenset(visible)))
            hidden = 0
        else:
            thoughts = [text_at(block, "text") for block in content if block.get("type") == "reasoning"]
            fields: JsonObject = {"reasoning_content": "\n".join(thoughts)} if thoughts else {}
            fields |= {"role": value.get("role"), "id": value.get("id"), "timestamp": value.get("created")}
            writer.write(record, {**fields, "content": [block for block in content if block.get("type") != "reasoning"]})
            hidden += is_hidden
        if not is_hidden:
            visible.update(item.id for mark in range(start, draft.mark()) if (item := draft.item_at(mark)) is not None)

    return read_message


def _blocks(part: object, record: Record) -> Iterator[JsonObject]:
    """Yield a block in Anthropic's form, or none if the model does not see it."""
    kind = text_at(part, "type") if isinstance(part, dict) else ""
    if not isinstance(part, dict):
        record.skip("a block of unknown form")
    elif kind in SCREEN:
        record.skip("for the screen")
    elif kind in CALLS - {"toolResponse"}:
        call = object_at(object_at(part, "toolCall"), "value")
        name = text_at(call, "name") or UNKNOWN_TOOL
        yield {"type": "tool_use", "id": part.get("id"), "name": name, "input": call.get("arguments", {})}
    elif kind == "toolResponse":
        result = object_at(part, "toolResult")
        value = result.get("value", result.get("error"))
        contents = value.get("content") if isinstance(value, dict) else value
        failed = text_at(result, "status") == "error" or (isinstance(value, dict) and value.get("isError") is True)
        seen = [block for content in contents for block in _seen(content, record)] if isinstance(contents, list) else contents
        yield {"type": "tool_result", "tool_use_id": part.get("id"), "content": seen, "is_error": failed}
    elif kind == "redactedThinking":
        yield {"type": "redacted_thinking", "data": part.get("data")}
    else:
        yield part


def _seen(content: object, record: Record) -> Iterator[object]:
    """Yield a block of a result, unless it is for the user only."""
    if not isinstance(content, dict):
        yield content
        return
    audience = list_at(object_at(content, "annotations"), "audience")
    if audience and "assistant" not in audience:
        record.skip("left out a part of a result that is for the user")
    elif text := text_at(object_at(content, "resource"), "text"):
        yield {"type": "text", "text": text}
    else:
        yield {name: value for name, value in content.items() if name != "annotations"}


def _chat_of(database: sqlite3.Connection, _: Path, row: Row) -> Chat:
    session, folder = text_at(row, "id"), text_at(row, "working_dir")
    model = text_at(object_of(row.get("model_config_json")) or {}, "model_name")
    ledger = list(rows(database, "usage_ledger", "WHERE session_id = ?", session, by="rowid"))
    requests = []
    for entry in ledger:
        time = moment(entry.get("created_timestamp"))
        requests.append(_request(entry, f"{session}:{entry.get('id')}", time, model, folder, session))
    answers = tuple(one for entry, one in zip(ledger, requests, strict=True) if not entry.get("is_compaction"))
    sums, note = _sums(row) if not ledger else (None, "")
    if sums is not None:
        requests = [_request(sums, session, seconds(row.get("created_at")), model, folder, session)]
    parent = text_at(row, "parent_session_id")
    metadata = {"title": text_at(row, "name", "description"), "model": model}
    return Chat(session, parent, folder, seconds(row.get("updated_at")) or 0.0, metadata, tuple(requests), answers, note)


def _messages_of(database: sqlite3.Connection, row: Row) -> list[JsonObject | None]:
    return _marked([_message_of(message) for message in rows(database, "messages", "WHERE session_id = ?", text_at(row, "id"), by="rowid")])


def _message_of(row: Row) -> JsonObject | None:
    """Return the message of a row in the form of a file's; None if its content is damaged."""
    text = row.get("content_json")
    values, _ = parse(text) if isinstance(text, str) else ((), None)
    if len(values) != 1 or not isinstance(values[0], list):
        return None
    fields = {"id": row.get("message_id"), "role": row.get("role"), "created": row.get("created_timestamp")}
    return {**fields, "content": values[0], "metadata": object_of(row.get("metadata_json")) or {}}


def _marked(messages: list[JsonObject | None]) -> list[JsonObject | None]:
    """Return the messages, with a mark on those that are hidden from the model and stand before a summary, which only the model sees."""
    sees = [object_at(message or {}, "metadata") for message in messages]
    last = max((number for number, one in enumerate(sees) if _is_summary(one)), default=0)
    marked: list[JsonObject | None] = []
    for number, message in enumerate(messages):
        is_old = number < last and sees[number].get("agentVisible") is False
        marked.append({**message, "summarized": True} if message is not None and is_old else message)
    return marked


def _is_summary(metadata: JsonObject) -> bool:
    """Return True for a message that only the model sees."""
    return metadata.get("userVisible") is False and metadata.get("agentVisible") is not False


def _sums(row: JsonObject) -> tuple[JsonObject | None, str]:
    """Return the usage of a whole session, or of its last request if that is all there is, with a note; None if there is neither."""
    for prefix, note in (
        ("accumulated_", "only the sum of its requests is known, which counts as one request"),
        ("", "only the usage of its last request is known"),
    ):
        amounts: JsonObject = {name: row.get(f"{prefix}{name}") for name in (*TOKENS, "total_tokens")}
        if any(count_at(amounts, name) for name in amounts) or dollars(row.get("accumulated_cost")):
            return {**amounts, "cost": row.get("accumulated_cost")}, note
    return None, ""


def _request(amounts: JsonObject, name: str, time: float | None, model: str, folder: str, session: str) -> Request:
    counts = split_total(*(count_at(amounts, token) for token in TOKENS))
    if not any(counts):
        counts = Counts(count_at(amounts, "total_tokens"))
    model = text_at(amounts, "model") or model
    return Request(f"goose:{name}", time, NAME, model, folder, session, **amounts_of(counts), cost=dollars(amounts.get("cost")))


DATABASE = ChatDatabase(NAME, "sessions.db", "content_json", _chat_of, _messages_of, _reader)


class Requests:
    """A file states sums in its first line. They become one request.

    Attributes:
        note: A sentence on that.
    """

    def __init__(self, path: Path) -> None:
        self.note = ""
        self._session = path.stem

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the request of the first line."""
        sums, note = _sums(value) if _is_header(value) else (None, "")
        if sums is not None:
            self.note = note
            yield _request(sums, self._session, None, "", text_at(value, "working_dir"), self._session)
