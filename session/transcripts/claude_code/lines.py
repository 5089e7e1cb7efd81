"""JSON values, one after the other, turned into entries: what each record gave, or why it gave nothing.

What a record means here hangs only on the records before it; what hangs on later ones is in `threads.py` and `arrange.py`.
"""

from __future__ import annotations

from dataclasses import replace

from session.door import clean
from session.errors import FormatError
from session.items import Compaction, Item
from session.parts import Part, Text
from session.transcripts.account import DAMAGED, ITEM, MERGED
from session.transcripts.blocks import is_result, part_of, parts_of
from session.transcripts.values import JsonObject, count_at, id_at, list_at, object_at, seconds, text_at

from .attachments import shown
from .entry import BOUNDARY, CAVEAT, COMMAND, QUEUED, Entry, Ids
from .injected import is_command, source_of
from .notices import API_ERROR, EMPTY, reason_for
from .queue import Queue
from .said import Writer, usage_of

SYNTHETIC = "<synthetic>"
"""The model's name on lines that the tool wrote in its place. They are sent like any other, but no request gave them."""


class Lines:
    """Turns the records of one file into entries, in order.

    Attributes:
        entries: One for each record, and one more for a sub-agent's message inside a progress record.
        warnings: What a user should know.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.warnings: list[str] = []
        self._ids = Ids()
        self._by_uuid: dict[str, Entry] = {}
        self._names: dict[str, str] = {}  # one copy of every uuid and session id, however often it is named
        self._calls: dict[str, tuple[str, str]] = {}
        self._roots: dict[str, str] = {}
        self._latest: dict[str, Entry] = {}  # by thread
        self._queue = Queue()
        self._time = 0.0
        self._session = ""

    def feed(self, line: int, value: object) -> None:
        """Takes the next record of the file."""
        if not isinstance(value, dict):
            self._broken(line, "not a JSON object")
            return
        kind = text_at(value, "type")
        if not kind:
            self._broken(line, "a JSON object without a type")
            return
        before = len(self.entries)
        try:
            self._record(line, kind, value)
        except FormatError as error:
            del self.entries[before:]
            self._broken(line, str(error))
        except RecursionError:
            del self.entries[before:]
            self._broken(line, "nested too deeply to be read")

    def _broken(self, line: int, reason: str) -> None:
        self.entries.append(Entry(line, "", "", self._session, "", fate=DAMAGED, reason=reason))
        self.warnings.append(f"line {line}: {reason}")

    def _record(self, line: int, kind: str, value: JsonObject) -> None:
        entry = self._entry(line, value, self._thread(line, value))
        if (time := seconds(value.get("timestamp"))) is not None:
            self._time = time
        if kind in ("user", "assistant"):
            self._message(entry, kind, value)
        elif kind == "attachment":
            self._attachment(entry, object_at(value, "attachment"))
        elif kind == "system":
            self._system(entry, value)
        elif kind == "queue-operation":
            self._queue_operation(entry, value)
        else:
            entry.reason = reason_for(kind, "")
        self._keep(entry)
        if kind == "progress":
            self._progress(line, object_at(value, "data"))

    def _entry(self, line: int, value: JsonObject, thread: str) -> Entry:
        self._session = self._name(id_at(value, "sessionId", "session_id")) or self._session
        parent = self._name(id_at(value, "parentUuid", "logicalParentUuid"))
        return Entry(line, self._name(id_at(value, "uuid")), parent, self._session, thread)

    def _name(self, text: str) -> str:
        text = clean(text)
        return self._names.setdefault(text, text)

    def _thread(self, line: int, value: JsonObject) -> str:
        """The sidechain a record belongs to: by its agent, else by the record that began the chain."""
        if value.get("isSidechain") is not True:
            return ""
        uuid, parent = id_at(value, "uuid"), id_at(value, "parentUuid")
        thread = text_at(value, "agentId") or self._roots.get(parent) or uuid[:8] or f"L{line}"
        if uuid:
            self._roots[uuid] = thread
        return self._name(thread)

    def _keep(self, entry: Entry) -> None:
        """Files the entry, unless it is a copy of one that is there: then it is merged into that."""
        first = self._by_uuid.get(entry.uuid) if entry.uuid else None
        if first is not None and entry.items and _same(first.items, entry.items):
            entry.items, entry.fate, entry.reason = (), MERGED, f"a copy of line {first.line}"
            entry.response, entry.typed = "", False
        for item in entry.items:
            self._ids.take(item.id)
        if entry.items:
            entry.fate = ITEM
        self.entries.append(entry)
        if entry.fate != MERGED and entry.uuid:
            self._by_uuid.setdefault(entry.uuid, entry)
        if entry.items or entry.mark:
            self._latest[entry.thread] = entry

    def _writer(self, entry: Entry) -> Writer:
        return Writer(self._ids.base(entry.uuid, entry.line), self._time, entry.thread or None, entry.response, self._calls)

    def _done(self, entry: Entry, writer: Writer) -> None:
        entry.items = tuple(writer.items)
        entry.reason = "; ".join(writer.notes)
        self.warnings += [f"line {entry.line}: {note}" for note in writer.notes if note.endswith("damaged")]
        if not entry.items:
            entry.reason = entry.reason or EMPTY
            if writer.notes and all(note.startswith("a copy of") for note in writer.notes):
                entry.fate = MERGED

    def _message(self, entry: Entry, kind: str, value: JsonObject) -> None:
        message = value.get("message")
        if not isinstance(message, dict):
            raise FormatError("message", "is no object")
        if not isinstance(message.get("content"), str | list):
            raise FormatError("message.content", "is neither a text nor a list")
        if kind == "assistant":
            self._answer(entry, value, message)
        else:
            self._user(entry, value, message["content"], text_at(message, "role"))

    def _answer(self, entry: Entry, value: JsonObject, message: JsonObject) -> None:
        if value.get("isApiErrorMessage") is True:
            entry.reason = API_ERROR
            return
        model = self._name(text_at(message, "model"))
        before = self._latest.get(entry.thread)
        entry.response = self._name(id_at(message, "id") or id_at(value, "requestId"))
        if not entry.response:  # without an id, what the model said without a break is one answer
            entry.response = before.response if before and before.response.startswith("L") else f"L{entry.line}"
        writer = self._writer(entry)
        if model != SYNTHETIC:
            entry.model, entry.usage = model, usage_of(message, writer.notes)
        writer.answer(message["content"], "synthetic" if model == SYNTHETIC else None)
        self._done(entry, writer)

    def _user(self, entry: Entry, value: JsonObject, content: object, role: str) -> None:
        writer = self._writer(entry)
        parts: list[Part] = []
        for place, block in enumerate(content if isinstance(content, list) else [content]):
            if isinstance(block, dict) and is_result(block.get("type")):
                writer.output(block, place)
            elif (part := part_of(block, writer.notes)) is not None:
                parts.append(part)
        parts = [part for part in parts if not isinstance(part, Text) or part.text]
        text = next((part.text for part in parts if isinstance(part, Text)), "")
        if role in ("system", "developer"):
            writer.system(tuple(parts))
        elif value.get("isCompactSummary") is True:
            self._compaction(entry, text)
            return
        elif parts:
            entry.typed = self._said(entry, value, parts, text, writer)
            self._queue.drop(text)
        self._done(entry, writer)

    def _said(self, entry: Entry, value: JsonObject, parts: list[Part], text: str, writer: Writer) -> bool:
        """Writes what stands in the user's role; True where it begins a turn."""
        before = self._by_uuid.get(entry.parent) if entry.parent else self._latest.get(entry.thread)
        mark = before.mark if before else ""
        origin = text_at(object_at(value, "origin"), "kind")
        if origin not in ("", "human"):
            return writer.said(parts, origin.replace("-", " "))
        if is_command(text):
            if mark == CAVEAT:  # carried out by the tool itself: the model was not asked
                return writer.said(parts, "local command")
            entry.mark = COMMAND
            writer.user(tuple(parts), "slash command")
            return True
        if text_at(value, "sourceToolUseID"):
            return writer.said(parts, "skill")
        if value.get("isMeta") is not True:
            if source_of(text) == "local command":
                entry.mark = CAVEAT if "aveat" in text[:40] else ""
            return writer.said(parts, None)
        if mark == COMMAND and source_of(text) is None:  # what the command stands for: the user asked for it
            writer.user(tuple(parts), "slash command")
            return False
        source = source_of(text)
        entry.mark = CAVEAT if source == "local command" else ""
        return writer.said(parts, source or "meta")

    def _compaction(self, entry: Entry, text: str) -> None:
        """A summary stands for what was before it. Which items those are is settled in `arrange.py`."""
        boundary = self._by_uuid.get(entry.parent) or self._latest.get(entry.thread)
        extra: dict[str, object] = {"source": "compaction"}
        if boundary is not None and boundary.mark == BOUNDARY:
            boundary.fate, boundary.reason = MERGED, f"its summary is on line {entry.line}"
            entry.told = boundary.told or {}
            extra |= {name: value for name in ("trigger", "pre_tokens") if (value := entry.told.get(name))}
        base = self._ids.base(entry.uuid, entry.line)
        entry.items = (Compaction(text, id=base, created_at=self._time, agent_id=entry.thread or None, extra=extra),)

    def _attachment(self, entry: Entry, attachment: JsonObject) -> None:
        writer = self._writer(entry)
        found = shown(attachment, writer.notes)
        if isinstance(found, str):
            entry.reason = found
            return
        if found.typed:
            writer.user(found.parts)
            entry.typed, entry.mark = True, QUEUED
            self._queue.drop(next((part.text for part in found.parts if isinstance(part, Text)), ""))
        else:
            writer.context(found.parts, text_at(attachment, "type"), found.path)
        self._done(entry, writer)

    def _system(self, entry: Entry, value: JsonObject) -> None:
        subtype = text_at(value, "subtype")
        message = object_at(value, "message")
        entry.reason = reason_for("system", subtype)
        writer = self._writer(entry)
        if subtype == "system_prompt" or message.get("role") == "system":
            content = value.get("content") if subtype == "system_prompt" and "content" in value else message.get("content")
            if parts := parts_of(content, writer.notes):
                writer.system(parts)
        elif subtype == "local_command":
            writer.context(parts_of(value.get("content"), writer.notes), "local command")
        elif subtype == "compact_boundary":
            entry.mark = BOUNDARY
            about = object_at(value, "compactMetadata")
            kept = object_at(about, "preservedSegment")
            entry.told = {"trigger": text_at(about, "trigger"), "pre_tokens": count_at(about, "preTokens")}
            entry.told |= {"head": text_at(kept, "headUuid"), "tail": text_at(kept, "tailUuid")}
            return
        elif subtype == "microcompact_boundary":
            told = object_at(value, "microcompactMetadata")
            cleared, saved = len(list_at(told, "compactedToolIds")), count_at(told, "tokensSaved")
            entry.reason += f" ({cleared} of them, {saved} tokens)"
            self.warnings.append(f"line {entry.line}: from here on the model saw {cleared} older tool results cleared; they are whole here")
            return
        else:
            return
        self._done(entry, writer)

    def _queue_operation(self, entry: Entry, value: JsonObject) -> None:
        """A prompt that is taken out of the queue between a tool's result and the next answer went to the model there.

        (Newer versions write an attachment for it too: `threads.py` then takes that.)
        """
        operation = text_at(value, "operation")
        entry.reason = reason_for("queue-operation", "")
        latest = self._latest.get("")
        if operation == "enqueue":
            self._queue.put(entry, parts_of(value.get("content"), []))
        elif operation == "dequeue":
            self._queue.drop_first()
        elif operation == "popAll":
            self._queue.clear()
        elif operation == "remove" and latest is not None and not latest.typed and not latest.response:
            queued = self._queue.take_prompt()
            if queued is not None:
                writer = self._writer(entry)
                writer.user(queued.parts, "queued prompt")
                self._done(entry, writer)
                entry.typed = True
                queued.entry.fate, queued.entry.reason = MERGED, f"its prompt went to the model at line {entry.line}"

    def _progress(self, line: int, data: JsonObject) -> None:
        """A sub-agent's message, where the progress record carries one."""
        inner = object_at(data, "message")
        agent, kind = text_at(data, "agentId"), text_at(inner, "type")
        content = object_at(inner, "message").get("content")
        if text_at(data, "type") == "agent_progress" and agent and kind in ("user", "assistant") and isinstance(content, str | list):
            entry = self._entry(line, inner, self._name(agent))
            self._message(entry, kind, inner)
            self._keep(entry)


def _same(first: tuple[Item, ...], second: tuple[Item, ...]) -> bool:
    """Whether two records gave the same, ids and times aside."""
    return len(first) == len(second) and all(
        type(one) is type(other) and replace(other, id=one.id, created_at=one.created_at) == one
        for one, other in zip(first, second, strict=True)
    )
