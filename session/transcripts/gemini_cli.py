"""Gemini CLI's chat logs: one document `{sessionId, projectHash, messages}`. Each message is an entry of the account.

What becomes what:

- `user` messages: what the user said. "Please continue", which the tool says for the user, is CONTEXT.
- `gemini` messages: one response each: its thoughts, its text, its calls; then the calls' results. Of the reported tokens,
  those read from a cache are part of the input, and thoughts come on top of the output.
- `info`, `warning` and `error` messages are for the user.

Newer versions write the same as lines: a header, one message a line, a message again where it has changed, and `$rewindTo`
with the id of the message that the user went back to. There the entries are the lines.
"""

from __future__ import annotations

from session.items import FunctionCall, FunctionCallOutput, Message, MessageCategory, Reasoning
from session.parts import Part, Text

from .account import TranscriptAccount
from .blocks import media_of
from .draft import Draft, Record, finish
from .feeding import Calls, feed_entries, feed_lines
from .reading import read_lines
from .source import Source
from .usages import Counts
from .values import Clock, JsonObject, count_at, id_at, json_text, list_at, object_at, seconds, text_at

NAME = "gemini_cli"

GOOGLE = {"provider": "google"}
CONTINUE = "System: Please continue."
"""What the tool says in the user's role when the model stopped before its work was done."""
TYPES = frozenset({"user", "gemini", "info", "warning", "error"})


def claims(value: object) -> bool:
    """Whether the value is a chat of Gemini CLI, or the header of one written in lines."""
    if not isinstance(value, dict) or not isinstance(value.get("sessionId"), str) or "type" in value:
        return False
    if "projectHash" in value:
        return "messages" not in value or isinstance(value["messages"], list)
    return any(isinstance(one, dict) and text_at(one, "type") in TYPES and "content" in one for one in list_at(value, "messages"))


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - there are none
    """The one session in the file.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    draft = Draft(NAME, source, source.path.stem)
    chat = _Chat()
    if _is_lines(source):
        chat.latest = _latest_lines(source)
        feed_lines(source.lines(), draft, chat.line)
    else:
        document = source.document
        whole: JsonObject = document if isinstance(document, dict) else {}
        chat.about(draft, whole)
        feed_entries(list_at(whole, "messages"), draft, chat.message)
    return finish(NAME, source, [draft], equals=1)


def _is_lines(source: Source) -> bool:
    first = next(iter(read_lines(source.path)), None)
    head = first.values[0] if first is not None and first.values else None
    return isinstance(head, dict) and "messages" not in head


def _latest_lines(source: Source) -> dict[str, int]:
    """By a message's id: the line where it stands as it was in the end."""
    return {
        own: line.number
        for line in read_lines(source.path)
        for value in line.values
        if isinstance(value, dict) and (own := id_at(value, "id"))
    }


class _Chat:
    """Reads the messages of one session.

    Attributes:
        latest: By a message's id: the line that counts, in logs of lines.
    """

    def __init__(self) -> None:
        self.latest: dict[str, int] = {}
        self._calls = Calls()
        self._clock = Clock()
        self._marks: dict[str, int] = {}

    def about(self, draft: Draft, header: JsonObject) -> None:
        """What is known of the session."""
        if own := text_at(header, "sessionId"):
            draft.id = draft.metadata["session_id"] = own
        for name, key in (("project_hash", "projectHash"), ("summary", "summary")):
            if found := text_at(header, key):
                draft.metadata[name] = found
        if text_at(header, "kind") == "subagent":
            draft.metadata["sidechain"] = True
        self._clock.at(seconds(header.get("startTime")))

    def line(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Reads one line of a log of lines."""
        own = id_at(value, "id")
        if "$rewindTo" in value:
            target = value["$rewindTo"]
            if isinstance(target, str) and target in self._marks:
                draft.undo(self._marks[target], f"rewound on line {record.place}")
            record.skip("the user went back to an earlier place")
        elif isinstance(change := value.get("$set"), dict):
            self.about(draft, change)
            record.skip("what is known of the session")
        elif "type" not in value:
            self.about(draft, value)
            record.skip("what is known of the session")
        elif self.latest.get(own, record.place) != record.place:
            record.merge(f"the message stands again on line {self.latest[own]}")
        else:
            self._marks[own] = draft.mark()
            self.message(draft, record, value)

    def message(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Reads one message."""
        self._clock.at(seconds(value.get("timestamp")))
        kind = text_at(value, "type")
        notes: list[str] = []
        if kind == "user":
            self._user(draft, record, value, notes)
        elif kind == "gemini":
            self._answer(draft, record, value, notes)
        elif kind in TYPES:
            record.skip(f"a note for the user: {kind}")
        elif kind:
            record.skip(f"unknown message type {kind!r}"[:100])
        else:
            draft.damage(record, "a message without a type")
        for note in notes:
            if note.endswith("damaged"):
                draft.damage(record, note)
            else:
                record.skip(note)

    def _user(self, draft: Draft, record: Record, value: JsonObject, notes: list[str]) -> None:
        parts = _parts(value.get("content"), notes)
        if not parts:
            return
        item_id = draft.new_id(id_at(value, "id"), record)
        if parts == (Text(CONTINUE),):
            context, extra = MessageCategory.CONTEXT, {"source": "continuation"}
            draft.put(record, Message("user", parts, category=context, extra=extra, id=item_id, created_at=self._clock.now))
        else:
            draft.put(record, Message("user", parts, id=item_id, created_at=self._clock.now))

    def _answer(self, draft: Draft, record: Record, value: JsonObject, notes: list[str]) -> None:
        own, response = id_at(value, "id"), f"M{record.place}"
        time = self._clock.now
        if model := text_at(value, "model"):
            draft.metadata["model"] = model
        thoughts = "\n\n".join(filter(None, map(_thought, list_at(value, "thoughts"))))
        if thoughts:
            draft.put(record, Reasoning(thoughts, extra=GOOGLE, id=draft.new_id(own, record), created_at=time), response)
        if parts := _parts(value.get("content"), notes):
            draft.put(record, Message("assistant", parts, id=draft.new_id(own, record), created_at=time), response)
        for call in list_at(value, "toolCalls"):
            if isinstance(call, dict):
                self._call(draft, record, call, response, notes)
            else:
                draft.damage(record, "a call is no object")
        if usage := _usage(object_at(value, "tokens")):
            draft.report(response, usage)

    def _call(self, draft: Draft, record: Record, call: JsonObject, response: str, notes: list[str]) -> None:
        """A call, and its output where it has one."""
        own, given = id_at(call, "id"), text_at(call, "id")
        tool, item_id = text_at(call, "name") or "unknown", draft.new_id(own, record)
        call_id = self._calls.made(given, tool, item_id)
        self._calls.answered(given, record)  # the result is in the same place: nobody else answers it
        arguments = call.get("args")
        item = FunctionCall(tool, json_text({} if arguments is None else arguments), call_id, id=item_id, created_at=self._clock.now)
        draft.put(record, item, response)
        result, status = call.get("result"), text_at(call, "status")
        if not result:
            notes.append(f"a call without a result ({status or 'no status'})")
            return
        parts = _parts(result, notes)
        time = self._clock.at(seconds(call.get("timestamp")))
        failed = status in ("error", "cancelled")
        draft.put(record, FunctionCallOutput(tool, parts, call_id, is_error=failed, id=draft.new_id("", record), created_at=time))


def _thought(value: object) -> str:
    """A thought: its subject and what is said of it."""
    if not isinstance(value, dict):
        return ""
    return "\n".join(filter(None, (text_at(value, "subject"), text_at(value, "description"))))


def _parts(content: object, notes: list[str]) -> tuple[Part, ...]:
    """The parts of a message or a result: a text, one of Gemini's parts, or a list of them."""
    found: list[Part] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            found += [Text(block)] if block else []
        elif isinstance(block, dict):
            found += _part(block, notes)
        elif block is not None:
            notes.append(f"left out a part that is a {type(block).__name__}")
    return tuple(found)


def _part(block: JsonObject, notes: list[str]) -> list[Part]:
    if answer := object_at(block, "functionResponse"):
        told = object_at(answer, "response")
        plain = text_at(told, "output", "error") if len(told) == 1 else ""
        text = plain or (json_text(told) if told not in ({}, {"output": ""}) else "")
        return [*([Text(text)] if text else []), *_parts(answer.get("parts"), notes)]
    if "text" in block:
        text = "" if block.get("thought") is True else text_at(block, "text")
        return [Text(text)] if text else []
    held, named = object_at(block, "inlineData"), object_at(block, "fileData")
    if held or named:
        mime = text_at(held or named, "mimeType")
        url = f"data:{mime};base64,{text_at(held, 'data')}" if held else text_at(named, "fileUri")
        part = media_of(url, mime, notes)
        return [part] if part is not None else []
    if "functionCall" not in block:
        notes.append(f"left out a part with {', '.join(map(repr, list(block)[:3])) or 'nothing in it'}"[:100])
    return []


def _usage(tokens: JsonObject) -> Counts | None:
    """The usage of an answer; None where nothing was reported."""
    prompt, cached = count_at(tokens, "input"), count_at(tokens, "cached")
    tool, output = count_at(tokens, "tool"), count_at(tokens, "output") + count_at(tokens, "thoughts")
    if not (prompt or cached or tool or output):
        return None
    return Counts(max(prompt - cached, 0) + tool, cached, 0, output)
