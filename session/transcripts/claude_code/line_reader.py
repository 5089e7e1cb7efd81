"""Turns the records of a file into entries: what each record became, or why it became nothing.

How a record is read here depends only on earlier records. `conversations.py` does what depends on later ones.
"""

from __future__ import annotations

from session.errors import FormatError
from session.items import Compaction
from session.parts import Part, Text
from session.sanitize import clean
from session.transcripts.account import DAMAGED, ITEM, MERGED
from session.transcripts.block_parser import is_result, parts_of, piece_of
from session.transcripts.record import Record
from session.transcripts.record_feed import EMPTY, text_size, unread_size
from session.transcripts.source import UNREADABLE
from session.transcripts.values import JsonObject, count_at, id_at, list_at, object_at, seconds, text_at

from .entry import API_ERROR, BOUNDARY, CAVEAT, COMMAND, QUEUED, Entry, EntryIds, PromptQueue, are_equal, is_command, skip_reason, source_of
from .message_reader import ItemWriter, read_attachment, usage_of

SYNTHETIC = "<synthetic>"
"""Model name on messages that the tool wrote in the model's place. They are sent like any other, but have no usage."""

LINK_MAX = 300
"""Characters of the address of a pull request."""


class ClaudeCodeLineReader:
    """Turns the records of one file into entries, in order.

    Attributes:
        entries: One for each record, and one more for a sub-agent's message inside a progress record.
        warnings: Problems that a user of the session should know about.
        version: The version of Claude Code in the first record that names one, else empty.
        pulls: By session and address, the pull requests that the tool links to it, and when it first did, in Unix seconds.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.warnings: list[str] = []
        self.version = ""
        self.pulls: dict[tuple[str, str], float] = {}
        self._ids = EntryIds()
        self._by_uuid: dict[str, Entry] = {}
        self._by_fields: dict[int, Entry] = {}
        self._first_uuid: dict[str, str] = {}  # by the uuid of a copy
        self._names: dict[str, str] = {}  # one copy of each uuid and session id, however often it occurs
        self._calls: dict[str, tuple[str, str]] = {}
        self._thread_of_uuid: dict[str, str] = {}
        self._latest: dict[str, Entry] = {}  # by thread
        self._queue = PromptQueue()
        self._known: set[int] = set()
        self._time = 0.0
        self._session = ""

    def read_record(self, line: int, value: object) -> None:
        """Read the next record of the file."""
        kind = text_at(value, "type") if isinstance(value, dict) else ""
        if not isinstance(value, dict) or not kind:
            self._add_damaged(line, "a JSON object without a type" if isinstance(value, dict) else "not a JSON object")
            return
        entry_count = len(self.entries)
        try:
            self._read_object(line, kind, value)
        except (FormatError, RecursionError) as error:
            del self.entries[entry_count:]
            self._add_damaged(line, str(error) if isinstance(error, FormatError) else UNREADABLE)
        _weigh(self.entries[entry_count:], value, self._known)

    def _add_damaged(self, line: int, reason: str) -> None:
        self.entries.append(Entry(line, "", "", self._session, "", fate=DAMAGED, reason=reason))
        self.warnings.append(f"line {line}: {reason}")

    def _read_object(self, line: int, kind: str, value: JsonObject) -> None:
        entry = self._new_entry(line, value, self._thread(line, value))
        if (time := seconds(value.get("timestamp"))) is not None:
            self._time = time
        self.version = self.version or text_at(value, "version")
        if kind in ("user", "assistant"):
            self._read_message(entry, kind, value)
        elif kind == "attachment":
            self._read_attachment(entry, object_at(value, "attachment"))
        elif kind == "system":
            self._read_system(entry, value)
        elif kind == "queue-operation":
            self._read_queue_operation(entry, value)
        else:
            entry.reason = skip_reason(kind, "")
            if kind == "pr-link" and (link := text_at(value, "prUrl")).startswith("https://") and len(link) <= LINK_MAX:
                self.pulls.setdefault((self._session, clean(link)), self._time)  # it is repeated when a session goes on
        self._adopt_original(entry, value)
        self._add(entry)
        if kind == "progress":
            self._read_progress(line, object_at(value, "data"))

    def _new_entry(self, line: int, value: JsonObject, thread: str) -> Entry:
        self._session = self._intern(id_at(value, "sessionId", "session_id")) or self._session
        parent = self._intern(id_at(value, "parentUuid", "logicalParentUuid"))
        return Entry(line, self._intern(id_at(value, "uuid")), self._first_uuid.get(parent, parent), self._session, thread)

    def _intern(self, text: str) -> str:
        text = clean(text)
        return self._names.setdefault(text, text)

    def _thread(self, line: int, value: JsonObject) -> str:
        """Return the sidechain that a record belongs to, named by its agent or else by the record that began it."""
        if value.get("isSidechain") is not True:
            return ""
        uuid, parent = id_at(value, "uuid"), id_at(value, "parentUuid")
        thread = text_at(value, "agentId") or self._thread_of_uuid.get(parent) or uuid[:8] or f"L{line}"
        if uuid:
            self._thread_of_uuid[uuid] = thread
        return self._intern(thread)

    def _adopt_original(self, entry: Entry, value: JsonObject) -> None:
        """Give a record the uuid of an earlier one if it is the same record under another uuid: same time, parent, fields and items.

        The records that follow the copy then follow the original. Otherwise they would look like a branch of their own.
        """
        if not entry.uuid or not text_at(value, "timestamp"):
            return
        fields = hash(tuple((name, field) for name, field in value.items() if name != "uuid" and isinstance(field, str | bool)))
        first = self._by_fields.setdefault(fields, entry)
        if first.uuid != entry.uuid and first.parent == entry.parent and are_equal(first.items, entry.items):
            self._first_uuid[entry.uuid] = entry.uuid = first.uuid

    def _add(self, entry: Entry) -> None:
        """Add the entry. If it is a copy of an earlier one, it is merged into that."""
        first = self._by_uuid.get(entry.uuid) if entry.uuid else None
        if first is not None and entry.items and are_equal(first.items, entry.items):
            entry.items, entry.fate, entry.reason = (), MERGED, f"a copy of line {first.line}"
            entry.response, entry.is_prompt = "", False
        for item in entry.items:
            self._ids.use(item.id)
        if entry.items:
            entry.fate = ITEM
        self.entries.append(entry)
        if entry.fate != MERGED and entry.uuid:
            self._by_uuid.setdefault(entry.uuid, entry)
        if entry.items or entry.mark:
            self._latest[entry.thread] = entry

    def _new_writer(self, entry: Entry) -> ItemWriter:
        return ItemWriter(self._ids.base(entry.uuid, entry.line), self._time, entry.thread or None, entry.response, self._calls)

    def _finish(self, entry: Entry, writer: ItemWriter) -> None:
        """Move the writer's items and reasons into the entry."""
        entry.items = tuple(writer.items)
        entry.reason = "; ".join(writer.reasons)
        self.warnings += [f"line {entry.line}: {reason}" for reason in writer.reasons if reason.endswith("damaged")]
        if not entry.items:
            entry.reason = entry.reason or EMPTY
            if writer.reasons and all(reason.startswith("a copy of") for reason in writer.reasons):
                entry.fate = MERGED

    def _read_message(self, entry: Entry, kind: str, value: JsonObject) -> None:
        message = value.get("message")
        if not isinstance(message, dict):
            raise FormatError("message", "is not an object")
        if not isinstance(message.get("content"), str | list):
            raise FormatError("message.content", "is neither a text nor a list")
        if kind == "assistant":
            self._read_response(entry, value, message)
        else:
            self._read_user(entry, value, message["content"], text_at(message, "role"))

    def _read_response(self, entry: Entry, value: JsonObject, message: JsonObject) -> None:
        if value.get("isApiErrorMessage") is True:
            entry.reason = API_ERROR
            return
        model = self._intern(text_at(message, "model"))
        previous = self._latest.get(entry.thread)
        entry.response = self._intern(id_at(message, "id") or id_at(value, "requestId"))
        if not entry.response:  # consecutive messages without an id are one response
            entry.response = previous.response if previous and previous.response.startswith("L") else f"L{entry.line}"
        writer = self._new_writer(entry)
        if model != SYNTHETIC:
            entry.model, entry.usage = model, usage_of(message, writer.reasons)
        writer.add_response(message["content"], "synthetic" if model == SYNTHETIC else None)
        self._finish(entry, writer)

    def _read_user(self, entry: Entry, value: JsonObject, content: object, role: str) -> None:
        writer = self._new_writer(entry)
        parts: list[Part] = []
        for index, block in enumerate(content if isinstance(content, list) else [content]):
            if isinstance(block, dict) and is_result(block.get("type")):
                writer.add_result(block, index)
                continue
            for piece in piece_of(block, writer.reasons):
                if isinstance(piece, Part):
                    parts.append(piece)
                else:
                    writer.reasons.append("left out a call or a thought in the user's role")
        parts = [part for part in parts if not isinstance(part, Text) or part.text]
        text = next((part.text for part in parts if isinstance(part, Text)), "")
        if role in ("system", "developer"):
            writer.add_system(tuple(parts))
        elif value.get("isCompactSummary") is True:
            self._read_compaction(entry, text)
            return
        elif parts:
            entry.is_prompt = self._write_user_parts(entry, value, parts, text, writer)
            self._queue.drop(text)
        self._finish(entry, writer)

    def _write_user_parts(self, entry: Entry, value: JsonObject, parts: list[Part], text: str, writer: ItemWriter) -> bool:
        """Write the content of a message in the user's role. Return True if it begins a turn."""
        previous = self._by_uuid.get(entry.parent) if entry.parent else self._latest.get(entry.thread)
        previous_mark = previous.mark if previous else ""
        origin = text_at(object_at(value, "origin"), "kind")
        if origin not in ("", "human"):
            return writer.add_user_parts(parts, origin.replace("-", " "))
        if is_command(text):
            if previous_mark == CAVEAT:  # run by the tool itself, without a request to the model
                return writer.add_user_parts(parts, "local command")
            entry.mark = COMMAND
            writer.add_user(tuple(parts), "slash command")
            return True
        if text_at(value, "sourceToolUseID"):
            return writer.add_user_parts(parts, "skill")
        if value.get("isMeta") is not True:
            if source_of(text) == "local command":
                entry.mark = CAVEAT if "aveat" in text[:40] else ""
            return writer.add_user_parts(parts, None)
        if previous_mark == COMMAND and source_of(text) is None:  # the expansion of the command, so the user asked for it
            writer.add_user(tuple(parts), "slash command")
            return False
        source = source_of(text)
        entry.mark = CAVEAT if source == "local command" else ""
        return writer.add_user_parts(parts, source or "meta")

    def _read_compaction(self, entry: Entry, text: str) -> None:
        """Read the summary of everything before it. `conversations.py` works out which items it replaces."""
        boundary = self._by_uuid.get(entry.parent) or self._latest.get(entry.thread)
        extra: dict[str, object] = {"source": "compaction"}
        if boundary is not None and boundary.mark == BOUNDARY:
            boundary.fate, boundary.reason = MERGED, f"its summary is on line {entry.line}"
            entry.compaction = boundary.compaction or {}
            extra |= {name: value for name in ("trigger", "pre_tokens") if (value := entry.compaction.get(name))}
        base = self._ids.base(entry.uuid, entry.line)
        entry.items = (Compaction(text, id=base, created_at=self._time, agent_id=entry.thread or None, extra=extra),)

    def _read_attachment(self, entry: Entry, attachment: JsonObject) -> None:
        writer = self._new_writer(entry)
        content = read_attachment(attachment, writer.reasons)
        if isinstance(content, str):
            entry.reason = content
            return
        if content.is_prompt:
            writer.add_user(content.parts)
            entry.is_prompt, entry.mark = True, QUEUED
            self._queue.drop(next((part.text for part in content.parts if isinstance(part, Text)), ""))
        else:
            writer.add_context(content.parts, text_at(attachment, "type"), content.path)
        self._finish(entry, writer)

    def _read_system(self, entry: Entry, value: JsonObject) -> None:
        subtype, message = text_at(value, "subtype"), object_at(value, "message")
        entry.reason = skip_reason("system", subtype)
        if subtype == "system_prompt" or message.get("role") == "system":
            writer = self._new_writer(entry)
            content = value.get("content") if subtype == "system_prompt" and "content" in value else message.get("content")
            if parts := parts_of(content, writer.reasons):
                writer.add_system(parts)
            self._finish(entry, writer)
        elif subtype == "local_command":
            writer = self._new_writer(entry)
            writer.add_context(parts_of(value.get("content"), writer.reasons), "local command")
            self._finish(entry, writer)
        elif subtype == "compact_boundary":
            entry.mark = BOUNDARY
            metadata = object_at(value, "compactMetadata")
            preserved = object_at(metadata, "preservedSegment")
            entry.compaction = {
                "trigger": text_at(metadata, "trigger"),
                "pre_tokens": count_at(metadata, "preTokens"),
                "head": text_at(preserved, "headUuid"),
                "tail": text_at(preserved, "tailUuid"),
            }
        elif subtype == "microcompact_boundary":
            metadata = object_at(value, "microcompactMetadata")
            count, tokens = len(list_at(metadata, "compactedToolIds")), count_at(metadata, "tokensSaved")
            entry.reason += f" ({count} results, {tokens} tokens)"
            self.warnings.append(
                f"line {entry.line}: from here on the model saw {count} older tool results cleared; the session has them in full"
            )

    def _read_queue_operation(self, entry: Entry, value: JsonObject) -> None:
        """Read a change of the queue. A prompt removed between a tool result and the next response went to the model there.

        (Newer versions also write an attachment for it: `conversations.py` then merges the prompt into that.)
        """
        operation = text_at(value, "operation")
        entry.reason = skip_reason("queue-operation", "")
        latest = self._latest.get("")
        if operation == "enqueue":
            self._queue.put(entry, parts_of(value.get("content"), []))
        elif operation == "dequeue":
            self._queue.drop_first()
        elif operation == "popAll":
            self._queue.clear()
        elif operation == "remove" and latest is not None and not latest.is_prompt and not latest.response:
            queued = self._queue.take_prompt()
            if queued is not None:
                writer = self._new_writer(entry)
                writer.add_user(queued.parts, "queued prompt")
                self._finish(entry, writer)
                entry.is_prompt = True
                queued.entry.fate, queued.entry.reason = MERGED, f"its prompt went to the model on line {entry.line}"

    def _read_progress(self, line: int, data: JsonObject) -> None:
        """Read a sub-agent's message inside a progress record."""
        inner = object_at(data, "message")
        agent, kind = text_at(data, "agentId"), text_at(inner, "type")
        content = object_at(inner, "message").get("content")
        if text_at(data, "type") == "agent_progress" and agent and kind in ("user", "assistant") and isinstance(content, str | list):
            entry = self._new_entry(line, inner, self._intern(agent))
            self._read_message(entry, kind, inner)
            self._add(entry)


def _weigh(entries: list[Entry], value: object, known: set[int]) -> None:
    """Weigh the text of a record, for which these entries stand. `known` is as for `unread_size`."""
    first = entries[0]
    record = Record(first.line, first.fate, [entry.reason for entry in entries if entry.reason])
    record.items = [item for entry in entries for item in entry.items]
    record.weigh(text_size(value), 0, unread := unread_size(value, record, "claude_code", known))
    first.text_bytes, first.unknown_bytes = record.text_bytes, record.unknown_bytes
    first.reason = record.reasons[-1] if unread else first.reason
