"""Reads Gemini CLI's chat logs: documents `{sessionId, projectHash, messages}`. Each message is one record of the account.

- `user` messages: the user's. "Please continue", which the tool sends on the user's behalf, is CONTEXT.
- `gemini` messages: one response each: its thoughts, its text, its calls; then the results of the calls. The reported input
  tokens include those read from the cache; the output tokens do not include thoughts.
- `info`, `warning` and `error` messages: for the user, not context.

Newer versions write the same as JSONL, and each line is one record: a header, then one message per line. A message that
changed is written again. `$rewindTo` names the message that the user went back to.
"""

from __future__ import annotations

from session.items import FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Part, Text

from .account import TranscriptAccount
from .call_ids import UNKNOWN_TOOL, CallIds
from .draft import Draft, finish
from .media import linked_media
from .record import Record
from .record_feed import feed_entries, feed_lines
from .source import Source, read_lines
from .usage import Counts
from .values import Clock, JsonObject, count_at, id_at, json_text, list_at, object_at, objects_at, seconds, text_at

NAME = "gemini_cli"

PROVIDER = {"provider": "google"}
CONTINUE = "System: Please continue."
"""Text that the tool sends in the user's role when the model stopped too early."""
TYPES = frozenset({"user", "gemini", "info", "warning", "error"})


def claims(value: object) -> bool:
    """Return True if the value is a chat of Gemini CLI, or the header line of one."""
    if not isinstance(value, dict) or not isinstance(value.get("sessionId"), str) or "type" in value:
        return False
    if "projectHash" in value:
        return "messages" not in value or isinstance(value["messages"], list)
    return any(text_at(message, "type") in TYPES and "content" in message for message in objects_at(value, "messages"))


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have files of their own
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    draft = Draft(NAME, source, source.path.stem)
    if _has_header_line(source):
        feed_lines(source.lines(), draft, _GeminiMessageReader(_latest_lines(source)).read_line)
    else:
        reader, document = _GeminiMessageReader({}), source.document_object
        reader.read_header(draft, document)
        feed_entries(list_at(document, "messages"), draft, reader.read_message)
    return finish(NAME, source, [draft], main_count=1)


def _has_header_line(source: Source) -> bool:
    first_line = next(iter(read_lines(source.path)), None)
    header = first_line.values[0] if first_line is not None and first_line.values else None
    return isinstance(header, dict) and "messages" not in header


def _latest_lines(source: Source) -> dict[str, int]:
    """Return the line with the latest version of each message, by the message's id."""
    return {
        message_id: line.number
        for line in read_lines(source.path)
        for value in line.values
        if isinstance(value, dict) and (message_id := id_at(value, "id"))
    }


class _GeminiMessageReader:
    """Reads the messages of one session."""

    def __init__(self, latest_lines: dict[str, int]) -> None:
        self._latest_lines = latest_lines
        self._call_ids = CallIds()
        self._clock = Clock()
        self._marks: dict[str, int] = {}  # by message id: the end of the draft before it

    def read_header(self, draft: Draft, header: JsonObject) -> None:
        """Read the metadata of the session."""
        if session_id := text_at(header, "sessionId"):
            draft.id = draft.metadata["session_id"] = session_id
        draft.describe(
            project_hash=text_at(header, "projectHash"),
            summary=text_at(header, "summary"),
            sidechain=text_at(header, "kind") == "subagent",
        )
        self._clock.at(seconds(header.get("startTime")))

    def read_line(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Read one line of a JSONL log."""
        message_id = id_at(value, "id")
        if "$rewindTo" in value:
            target = value["$rewindTo"]
            if isinstance(target, str) and target in self._marks:
                draft.undo(self._marks[target], f"rewound on line {record.number}")
            record.skip("the user went back to an earlier message")
        elif isinstance(change := value.get("$set"), dict) or "type" not in value:
            self.read_header(draft, change if isinstance(change, dict) else value)
            record.skip("session metadata")
        elif self._latest_lines.get(message_id, record.number) != record.number:
            record.merge(f"line {self._latest_lines[message_id]} has a newer version of the message")
        else:
            self._marks[message_id] = draft.mark()
            self.read_message(draft, record, value)

    def read_message(self, draft: Draft, record: Record, message: JsonObject) -> None:
        """Read one message."""
        self._clock.at(seconds(message.get("timestamp")))
        kind = text_at(message, "type")
        reasons: list[str] = []
        if kind == "user":
            if parts := _parts(message.get("content"), reasons):
                source = "continuation" if parts == (Text(CONTINUE),) else None
                draft.put_user(record, parts, id_at(message, "id"), self._clock.now, source)
        elif kind == "gemini":
            self._read_response(draft, record, message, reasons)
        elif kind in TYPES:
            record.skip(f"a message to the user: {kind}")
        elif kind:
            record.skip(f"unknown message type {kind!r}"[:100])
        else:
            draft.damage(record, "a message without a type")
        draft.add_reasons(record, reasons)

    def _read_response(self, draft: Draft, record: Record, message: JsonObject, reasons: list[str]) -> None:
        message_id, response = id_at(message, "id"), f"M{record.number}"
        time = self._clock.now
        draft.describe(model=text_at(message, "model"))
        thoughts = "\n\n".join(filter(None, map(_thought, list_at(message, "thoughts"))))
        if thoughts:
            draft.put(record, Reasoning(thoughts, extra=PROVIDER, id=draft.new_id(message_id, record), created_at=time), response)
        if parts := _parts(message.get("content"), reasons):
            draft.put(record, Message("assistant", parts, id=draft.new_id(message_id, record), created_at=time), response)
        for call in list_at(message, "toolCalls"):
            if isinstance(call, dict):
                self._read_call(draft, record, call, response, reasons)
            else:
                draft.damage(record, "a tool call that is not an object")
        draft.report(response, usage_of(object_at(message, "tokens")))

    def _read_call(self, draft: Draft, record: Record, call: JsonObject, response: str, reasons: list[str]) -> None:
        """Put a call, and its output if it has one."""
        tool, item_id = text_at(call, "name") or UNKNOWN_TOOL, draft.new_id(id_at(call, "id"), record)
        call_id = self._call_ids.add_call(text_at(call, "id"), tool, item_id)
        self._call_ids.add_result(text_at(call, "id"), record)  # the result is part of the call's own object
        arguments = call.get("args")
        item = FunctionCall(tool, json_text({} if arguments is None else arguments), call_id, id=item_id, created_at=self._clock.now)
        draft.put(record, item, response)
        result, status = call.get("result"), text_at(call, "status")
        if not result:
            reasons.append(f"a call without a result ({status or 'no status'})")
            return
        parts = _parts(result, reasons)
        time = self._clock.at(seconds(call.get("timestamp")))
        is_error = status in ("error", "cancelled")
        draft.put(record, FunctionCallOutput(tool, parts, call_id, is_error=is_error, id=draft.new_id("", record), created_at=time))


def _thought(value: object) -> str:
    """Return the subject and the description of a thought."""
    if not isinstance(value, dict):
        return ""
    return "\n".join(filter(None, (text_at(value, "subject"), text_at(value, "description"))))


def _parts(content: object, reasons: list[str]) -> tuple[Part, ...]:
    """Return the parts of a message or a result: a text, one of Gemini's parts, or a list of them."""
    parts: list[Part] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            parts += [Text(block)] if block else []
        elif isinstance(block, dict):
            parts += _parts_of_block(block, reasons)
        elif block is not None:
            reasons.append(f"left out a part of unknown form: a {type(block).__name__}")
    return tuple(parts)


def _parts_of_block(block: JsonObject, reasons: list[str]) -> list[Part]:
    if function_response := object_at(block, "functionResponse"):
        result = object_at(function_response, "response")
        plain_text = text_at(result, "output", "error") if len(result) == 1 else ""
        text = plain_text or (json_text(result) if result not in ({}, {"output": ""}) else "")
        return [*([Text(text)] if text else []), *_parts(function_response.get("parts"), reasons)]
    if "text" in block:
        text = "" if block.get("thought") is True else text_at(block, "text")
        return [Text(text)] if text else []
    inline_data, file_data = object_at(block, "inlineData"), object_at(block, "fileData")
    if inline_data or file_data:
        media_type = text_at(inline_data or file_data, "mimeType")
        url = f"data:{media_type};base64,{text_at(inline_data, 'data')}" if inline_data else text_at(file_data, "fileUri")
        part = linked_media(url, media_type, reasons)
        return [part] if part is not None else []
    if "functionCall" not in block:
        reasons.append(f"left out a part with unknown {', '.join(map(repr, list(block)[:3])) or 'no content'}"[:100])
    return []


def usage_of(tokens: JsonObject) -> Counts | None:
    """Return the usage of a response, or None if nothing was reported."""
    prompt, cached = count_at(tokens, "input"), count_at(tokens, "cached")
    tool, output = count_at(tokens, "tool"), count_at(tokens, "output") + count_at(tokens, "thoughts")
    if not (prompt or cached or tool or output):
        return None
    return Counts(max(prompt - cached, 0) + tool, cached, 0, output)
