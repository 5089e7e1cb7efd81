"""Reads the pi coding agent's session logs: JSONL, a header of type `session`, then one entry per line.

- `message` entries: user messages, responses and tool results. `bashExecution` and messages of extensions are CONTEXT.
  Responses that broke off (`aborted`, `error`) are not context: pi does not send them again, as the reported usage of later
  requests shows.
- `compaction`: a `Compaction` of everything before the first entry that it kept. `branch_summary`, `custom_message`: CONTEXT.
- Entries with `id` and `parentId` form a tree. The session is the path from its root to the last entry; entries on other
  branches are not context.

The extension pi-subagents keeps what a sub-agent did in `subagent-artifacts/`, besides the sub-agent's own log if it has one: messages as
records of a `recordType`, and a stream of events: https://github.com/nicobailon/pi-subagents/pull/370.
"""

from __future__ import annotations

from typing import Any

from session.errors import short
from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Part, Text

from .account import TranscriptAccount
from .block_parser import text_or_json
from .call_ids import UNKNOWN_TOOL, CallIds
from .compactions import KeepRule
from .draft import Draft, finish
from .media import bytes_of, media_part
from .places import Place
from .record import Record
from .record_feed import feed_lines
from .source import Source, parse, read_lines
from .usage import Counts
from .values import Clock, JsonObject, count_at, id_at, millis, object_at, seconds, text_at

NAME = "pi"
PLACES = (Place("~/.openclaw", "agents/*/sessions/*.jsonl", "OPENCLAW_STATE_DIR"),)
"""OpenClaw writes the same form."""

PI_TYPES = frozenset({"thinking_level_change", "model_change", "compaction", "branch_summary", "custom_message", "session_info"})
"""Types of entries that only pi has."""
STREAM_TYPES = frozenset(
    [
        *("message_start", "message_update", "turn_start", "turn_end", "agent_start", "agent_end", "tool_execution_start"),
        *("tool_execution_update", "tool_execution_end", "tool_start", "tool_end", "stdout", "stderr", "truncated"),
    ]
)
"""Types of events of a sub-agent; those with messages repeat them."""
TOOL_TYPES = frozenset({"thinking_level_change", "session_info", "label", "custom"}) | STREAM_TYPES
"""Types of entries that the model never sees."""
ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})
FEW = 5
"""Messages on other branches that may be left out without a warning."""
INCOMPLETE = ("aborted", "error")
"""Stop reasons of responses that broke off."""

UNSAID = "?"
"""Stands for the parent of an entry that does not name one."""


def claims(value: object) -> bool:
    """Return True if the value is a line of pi."""
    if not isinstance(value, dict) or not isinstance(value.get("timestamp"), str):
        return False
    kind = kind_of(value)
    if kind == "message":
        return text_at(object_at(value, "message"), "role") in ROLES
    if kind == "session":
        return isinstance(value.get("cwd"), str) and isinstance(value.get("id"), str)
    return kind in PI_TYPES and "data" not in value and "payload" not in value


def kind_of(value: JsonObject) -> str:
    """Return the type of an entry, also of one of a sub-agent's artifacts."""
    kind = text_at(value, "type") or (text_at(value, "recordType") if "runId" in value else "")
    return "message" if kind == "message_end" else kind


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - pi has no sub-agents
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    draft = Draft(NAME, source, source.path.stem)
    reader = _PiEntryReader(_abandoned_entries(source))
    feed_lines(source.lines(), draft, reader.read_entry)
    if len(reader.left_out) > FEW:
        draft.warn(reader.left_out[0], f"left out {len(reader.left_out)} messages, from here on, on branches that the user left")
    return finish(NAME, source, [draft], main_count=1)


def _abandoned_entries(source: Source) -> set[int]:
    """Return the indices of the entries that are not on the path to the last one; none in logs without a tree."""
    index_of: dict[str, int] = {}
    parents: list[tuple[bool, str]] = []  # of each entry: whether it is in the tree, and the id of its parent
    for line in read_lines(source.path):
        for value in line.values:
            if isinstance(value, dict):
                entry_id = id_at(value, "id") if text_at(value, "type") != "session" else ""
                if entry_id:
                    index_of[entry_id] = len(parents)
                parent = value.get("parentId", UNSAID)  # null at the root
                parents.append((bool(entry_id), parent if isinstance(parent, str) else "" if parent is None else UNSAID))
    abandoned = {index for index, (is_in_tree, _) in enumerate(parents) if is_in_tree}
    if not abandoned:
        return abandoned
    index = max(abandoned)
    while index in abandoned:
        abandoned.remove(index)
        parent = parents[index][1]
        if not parent:
            break
        parent_index = index_of.get(parent, index)
        index = parent_index if parent_index < index else index - 1  # damaged or unsaid: guess the previous entry
        while index >= 0 and index not in abandoned:
            index -= 1
    return abandoned


class _PiEntryReader:
    """Reads the entries of one file.

    Attributes:
        left_out: The records of messages that are on other branches.
    """

    def __init__(self, abandoned: set[int]) -> None:
        self.left_out: list[Record] = []
        self._abandoned = abandoned
        self._call_ids = CallIds()
        self._clock = Clock()
        self._index = -1
        self._marks: list[int] = []  # of each entry: the end of the draft before it
        self._mark_of_id: dict[str, int] = {}  # the same by the entry's id

    def read_entry(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Read one entry."""
        self._index += 1
        entry_id, kind = id_at(value, "id"), kind_of(value)
        self._marks.append(draft.mark())
        self._mark_of_id.setdefault(entry_id, draft.mark())
        if self._index in self._abandoned:
            record.skip("on a branch that the user left")
            self.left_out += [record] if kind == "message" else []
            return
        message = value.get("message")
        self._clock.at(seconds(value.get("timestamp")))
        match kind:
            case "message" if isinstance(message, dict):
                self._clock.at(millis(message.get("timestamp")), seconds(value.get("timestamp")))
                self._read_message(draft, record, message, entry_id)
            case "message":
                draft.damage(record, "its message is not an object")
            case "":
                draft.damage(record, "a JSON object without a type")
            case "session":
                self._read_header(draft, record, value)
            case "model_change":
                self._describe_model(draft, value)
                record.skip("a change of the model")
            case "compaction":
                self._read_compaction(draft, record, value)
            case "branch_summary":
                self._put_user(draft, record, text_at(value, "summary"), entry_id, "branch summary")
            case "custom_message":
                self._put_user(draft, record, value.get("content"), entry_id, text_at(value, "customType") or "extension")
            case _:
                record.skip(f"{'an entry for the tool:' if kind in TOOL_TYPES else 'unknown type'} {kind}"[:100])

    def _read_header(self, draft: Draft, record: Record, value: JsonObject) -> None:
        if session_id := text_at(value, "id"):
            draft.id = draft.metadata["session_id"] = session_id
        draft.describe(
            cwd=text_at(value, "cwd"),
            forked_from=text_at(value, "branchedFrom") or text_at(value, "parentSession"),
            version=count_at(value, "version"),
        )
        self._describe_model(draft, value)
        record.skip("session metadata")

    def _describe_model(self, draft: Draft, value: JsonObject) -> None:
        draft.describe(model=text_at(value, "modelId"), provider=text_at(value, "provider"))

    def _read_message(self, draft: Draft, record: Record, message: JsonObject, entry_id: str) -> None:
        role = text_at(message, "role")
        if role == "user":
            self._put_user(draft, record, message.get("content"), entry_id, None)
        elif role == "assistant":
            self._read_response(draft, record, message, entry_id)
        elif role == "toolResult":
            self._read_output(draft, record, message, entry_id)
        elif role == "bashExecution":
            if message.get("excludeFromContext") is True:
                record.skip("a command that the user hid from the model")
                return
            code = message.get("exitCode")
            exit_line = f"\n(exit code {code})" if isinstance(code, int) and code else ""
            text = f"$ {text_at(message, 'command')}\n{text_at(message, 'output')}{exit_line}"
            self._put_user(draft, record, text, entry_id, "shell command")
        elif role in ("custom", "hookMessage"):
            self._put_user(draft, record, message.get("content"), entry_id, text_at(message, "customType") or "extension")
        else:
            record.skip(f"a message with unknown role {role!r}"[:100])

    def _put_user(self, draft: Draft, record: Record, content: object, entry_id: str, source: str | None) -> None:
        """Put a message in the user's role, with its source if the tool wrote it."""
        reasons: list[str] = []
        if parts := _parts(content, reasons):
            draft.put_user(record, parts, entry_id, self._clock.now, source)
        draft.add_reasons(record, reasons)

    def _read_response(self, draft: Draft, record: Record, message: JsonObject, entry_id: str) -> None:
        stop_reason = text_at(message, "stopReason")
        if stop_reason in INCOMPLETE:
            record.skip(f"an incomplete response ({stop_reason}), which pi does not send again")
            return
        provider, response = text_at(message, "provider"), f"L{record.number}-{self._index}"
        draft.describe(model=text_at(message, "model"), provider=provider)
        content = message.get("content")
        reasons: list[str] = []
        for block in content if isinstance(content, list) else [content]:
            kind = text_at(block, "type") if isinstance(block, dict) else "text"
            text = text_at(block, "text") if isinstance(block, dict) else block
            fields: dict[str, Any] = {"id": draft.new_id(entry_id, record), "created_at": self._clock.now}
            if isinstance(block, dict) and kind == "toolCall":
                draft.put(record, self._call(block, fields), response)
            elif isinstance(block, dict) and kind == "thinking":
                if (reasoning := _reasoning(block, provider or text_at(message, "api"), fields)) is not None:
                    draft.put(record, reasoning, response)
            elif kind == "text" and isinstance(text, str):
                if text:
                    draft.put(record, Message("assistant", text, **fields), response)
            else:
                reasons.append(f"left out a block of unknown type {short(kind)}")
        draft.add_reasons(record, reasons)
        draft.report(response, usage_of(object_at(message, "usage")))

    def _call(self, block: JsonObject, fields: dict[str, Any]) -> FunctionCall:
        tool = text_at(block, "name") or UNKNOWN_TOOL
        call_id = self._call_ids.add_call(text_at(block, "id"), tool, fields["id"])
        signature = id_at(block, "thoughtSignature")
        metadata = {"thought_signature": signature} if signature else {}
        return FunctionCall(tool, text_or_json(block.get("arguments")), call_id, metadata=metadata, **fields)

    def _read_output(self, draft: Draft, record: Record, message: JsonObject, entry_id: str) -> None:
        call = self._call_ids.add_result(text_at(message, "toolCallId"), record, text_at(message, "toolName"))
        if call is None:
            return
        call_id, tool = call
        reasons: list[str] = []
        parts, is_error = _parts(message.get("content"), reasons), message.get("isError") is True
        item_id = draft.new_id(entry_id, record)
        draft.put(record, FunctionCallOutput(tool, parts, call_id, is_error=is_error, id=item_id, created_at=self._clock.now))
        draft.add_reasons(record, reasons)

    def _read_compaction(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Put a summary that replaces everything before the first entry that was kept."""
        kept_id, kept_index = id_at(value, "firstKeptEntryId"), value.get("firstKeptEntryIndex")
        if kept_id:
            start = self._mark_of_id.get(kept_id, draft.mark())
        else:
            start = self._marks[kept_index] if isinstance(kept_index, int) and 0 <= kept_index < len(self._marks) else draft.mark()
        extra: dict[str, object] = {"source": "compaction"}
        if tokens := count_at(value, "tokensBefore"):
            extra["pre_tokens"] = tokens
        item_id = draft.new_id(id_at(value, "id"), record)
        item = Compaction(text_at(value, "summary"), extra=extra, id=item_id, created_at=self._clock.now)
        draft.compact(record, item, KeepRule(start))


def _parts(content: object, reasons: list[str]) -> tuple[Part, ...]:
    """Return the texts and images of a message's content."""
    parts: list[Part] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            parts += [Text(block)] if block else []
        elif isinstance(block, dict) and block.get("type") == "text":
            parts += [Text(text)] if (text := text_at(block, "text")) else []
        elif isinstance(block, dict) and block.get("type") == "image":
            image = media_part(bytes_of(block.get("data")), text_at(block, "mimeType"), reasons, kind="image")
            parts += [image] if image is not None else []
        elif block is not None:
            kind = block.get("type") if isinstance(block, dict) else type(block).__name__
            reasons.append(f"left out a block of unknown type {short(kind)}")
    return tuple(parts)


def _reasoning(block: JsonObject, provider: str, fields: dict[str, Any]) -> Reasoning | None:
    """Return a thought with its signature in the provider's form, or None if it is empty."""
    text, signature = text_at(block, "thinking"), id_at(block, "thinkingSignature")
    if signature.startswith("{"):  # from OpenAI: the whole reasoning item as JSON
        values, _ = parse(signature)
        data = id_at(values[0], "encrypted_content") if values and isinstance(values[0], dict) else ""
        return Reasoning(text, data=data or None, extra={"provider": "openai"}, **fields) if text or data else None
    if not (text or signature):
        return None
    family = next((name for name in ("google", "openai") if name in provider), "")
    extra = {"provider": family} if family else {}
    if block.get("redacted") is True:
        return Reasoning(data=signature or None, extra=extra, **fields)
    return Reasoning(text, signature or None, extra=extra, **fields)


def usage_of(reported: JsonObject) -> Counts | None:
    """Return the usage of a response, or None if nothing was reported."""
    numbers = [count_at(reported, name) for name in ("input", "cacheRead", "cacheWrite", "output")]
    return Counts(*numbers) if any(numbers) else None
