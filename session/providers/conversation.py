"""Turn a log into the steps of a conversation: user messages, responses, each call with its output. All converters use it.

The order of steps is decided here, and what a request has that the log lacks. Each converter writes the steps in its own format. A
conversion starts from nothing each time: requests share nothing with the log or with one another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf
from typing import Any, TypeAlias, cast

from session.errors import FormatError
from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Text
from session.providers import additions
from session.sanitize import clean_json
from session.session import Session
from session.stack import with_room
from session.units import KIND_NOTICE, KIND_ORPHAN, KIND_OUTPUT, KIND_SILENT, KIND_USER, Grouping, is_answer

ResponseItem: TypeAlias = Reasoning | Message | FunctionCall
Json: TypeAlias = dict[str, Any]
RAW_ARGUMENTS = "arguments"
"""The key that wraps arguments which are not a JSON object."""
WriteItem: TypeAlias = Callable[[Message | FunctionCall], list[Json]]
"""Writes a text or a call of a response as blocks."""


@dataclass(slots=True)
class Response:
    """One response of the model with the outputs of its calls.

    Attributes:
        items: Reasoning, assistant messages and calls, in the order the model made them.
        outputs: The outputs, by the item id of the call. An interrupted call has none.
        resumes: True if it answers a request that did not end in a response (orphans aside).
        last: The position in the log of the last of all these.
    """

    items: list[ResponseItem] = field(default_factory=list)
    outputs: dict[str, FunctionCallOutput] = field(default_factory=dict)
    resumes: bool = False
    last: int = 0

    @property
    def calls(self) -> list[FunctionCall]:
        """The calls, in the order they were made."""
        return [item for item in self.items if isinstance(item, FunctionCall)]


Step: TypeAlias = Response | Message | Compaction
"""A response, a compaction, or a message: of the user, a summary of role assistant, or a system message that keeps its place."""

USAGE_NOTE_STEP = Message("user", additions.USAGE_NOTE, id="usage note", created_at=0.0)
"""The line about usage."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A log as steps.

    Attributes:
        system: The system prompt: the messages of role system or developer from anywhere in the log, and config updates as messages; none
            if messages keep their places. Instructions that an update replaced are left out (rule 9 of `session/units.py`).
        steps: Everything else, in order. An output is with its call, however late it came; an output without a call is left out. A handoff
            is a note in the user's voice. The line about usage is a step before the next response, or at the end.
        settled_steps: Number of leading steps that the first `Session.settled` items complete.
        is_request: True if the log does not end in a response (orphans aside): the model is to answer it.
        removed_line: The line about removed items; None for a log, and without steps. The converter must begin with it.
        opening: The same in formats that take no model's message at the beginning: `additions.PREAMBLE` stands before one.
    """

    system: list[Message]
    steps: list[Step]
    settled_steps: int
    is_request: bool
    removed_line: str | None
    opening: str | None


def dialogue_of(session: Session, *, system_in_place: bool = False) -> Dialogue:
    """Return a session as a dialogue.

    Args:
        session: A log or a view.
        system_in_place: True for providers that take messages of role system or developer anywhere: they become steps. One between a call
            and its output moves behind the response. A config update comes right after the messages that the log begins with.
    """
    groups, reader = Grouping(), _DialogueReader(session.usage_noted_after)
    breaks, ends = session.response_breaks, session.request_ends
    for position, item in enumerate(session.items):
        is_followed = groups.is_followed
        groups.feed(item, item.id in breaks, ends=item.id in ends)
        reader.read(item, position, groups, resumes=is_followed)
    replaced = set(groups.replaced)
    entries = [entry for entry in reader.entries if not (entry.is_prompt and entry.position in replaced)]
    others = [entry for entry in entries if not entry.is_prompt]
    if reader.is_note_due and groups.is_followed:
        entries.append(_DialogueEntry(len(groups) - 1, USAGE_NOTE_STEP))
        others.append(entries[-1])
    removed = session.removed if others else None
    settled = session.settled
    return Dialogue(
        [] if system_in_place else [entry.step for entry in entries if entry.is_prompt and isinstance(entry.step, Message)],
        [entry.step for entry in (_in_place(entries, reader.first_update) if system_in_place else others)],
        sum(1 for _ in takewhile(lambda entry: entry.last < settled, others)) if settled else 0,
        groups.is_followed,
        None if removed is None else removed.line,
        opening_of(session),
    )


def opening_of(session: Session) -> str | None:
    """Return `Dialogue.opening` of a session. Reads only the items at its beginning."""
    line = None if session.removed is None else session.removed.line
    groups, has_blank = Grouping(), False
    for item in session.items:
        groups.feed(item)
        kind = groups.kind[-1]
        if kind not in (KIND_SILENT, KIND_ORPHAN):
            return line or (None if kind in (KIND_USER, KIND_NOTICE) else additions.PREAMBLE)
        has_blank = has_blank or (isinstance(item, Message) and item.role == "user")
    return line if has_blank or session.usage_noted_after is not None else None


@dataclass(frozen=True, slots=True)
class _DialogueEntry:
    """A step or instructions, with the position in the log of its first item."""

    position: int
    step: Step
    is_prompt: bool = False
    is_update: bool = False

    @property
    def last(self) -> int:
        return self.step.last if isinstance(self.step, Response) else self.position


class _DialogueReader:
    """Reads a log into entries, item by item.

    Attributes:
        entries: The entries, in order.
        is_note_due: True if the line about usage stands before the next response.
        first_update: The position of the first config update with instructions; infinite without one.
    """

    def __init__(self, noted_after: str | None) -> None:
        self.entries: list[_DialogueEntry] = []
        self.is_note_due = False
        self.first_update = inf
        self._noted_after = noted_after
        self._response = Response()
        self._called: dict[int, tuple[Response, str]] = {}  # by position of the call: its response and its item id

    def read(self, item: Item, position: int, groups: Grouping, *, resumes: bool) -> None:
        if is_answer(item):
            if groups.response_starts[-1] == position:
                self._begin_response(position, resumes=resumes)
            self._response.items.append(cast(ResponseItem, item))
            self._response.last = position
            if isinstance(item, FunctionCall):
                self._called[position] = self._response, item.id
        elif isinstance(item, FunctionCallOutput):
            if groups.kind[position] == KIND_OUTPUT:
                response, call_item_id = self._called[groups.last_answered]
                response.outputs[call_item_id] = item
                response.last = position
        elif (entry := self._entry(item, position)) is not None:
            self.entries.append(entry)
        self.is_note_due = self.is_note_due or item.id == self._noted_after

    def _begin_response(self, position: int, *, resumes: bool) -> None:
        if self.is_note_due:
            self.entries.append(_DialogueEntry(position - 1, USAGE_NOTE_STEP))
            self.is_note_due = False
        self._response = Response(resumes=resumes)
        self.entries.append(_DialogueEntry(position, self._response))

    def _entry(self, item: Item, position: int) -> _DialogueEntry | None:
        """Return the entry of an item that is neither part of a response nor an output; None for an update without instructions."""
        if isinstance(item, Message):
            return _DialogueEntry(position, _escaped(item), is_prompt=item.role in ("system", "developer"))
        if isinstance(item, AgentHandoff):
            note = additions.handoff_note(item.to_agent, item.from_agent, item.reason)
            return _DialogueEntry(position, Message("user", note, id=item.id, created_at=item.created_at))
        if isinstance(item, Compaction):
            return _DialogueEntry(position, item)
        if not (isinstance(item, AgentConfigUpdate) and (item.instructions or "").strip()):
            return None
        self.first_update = min(self.first_update, position)
        prompt = Message("system", item.instructions or "", id=item.id, created_at=item.created_at)
        return _DialogueEntry(position, prompt, is_prompt=True, is_update=True)


def _in_place(entries: list[_DialogueEntry], first_update: float) -> list[_DialogueEntry]:
    """Return the entries with the config updates right after the instructions that the log begins with."""
    leading = list(takewhile(lambda entry: entry.is_prompt and entry.position < first_update, entries))
    later = entries[len(leading) :]
    return [*leading, *(entry for entry in later if entry.is_update), *(entry for entry in later if not entry.is_update)]


def _escaped(message: Message) -> Message:
    """Return the message with a user's text that equals the line about usage changed, so that no reader takes it for the line."""
    if message.role != "user" or not any(isinstance(part, Text) and part.text.startswith(additions.USAGE_NOTE) for part in message.content):
        return message
    parts = [Text(additions.escaped(part.text, additions.USAGE_NOTE)) if isinstance(part, Text) else part for part in message.content]
    return replace(message, content=tuple(parts))


def copied(value: Any) -> Any:
    """Return a copy of JSON values that shares nothing that could be changed."""
    if isinstance(value, dict):
        return {key: copied(member) if isinstance(member, dict | list) else member for key, member in value.items()}
    if isinstance(value, list):
        return [copied(member) if isinstance(member, dict | list) else member for member in value]
    return value


def safe(text: str, unsafe: str, length: int, default: str) -> str:
    """Return the text with "_" for each character that matches `unsafe`, cut to `length` characters; `default` for an empty text."""
    return re.sub(unsafe, "_", text)[:length] or default


class WireIds:
    """Makes call ids safe and unique, in the order of the calls: appending to a log changes no earlier id.

    ids = WireIds(r"[^a-zA-Z0-9_-]", 64)
    ids.take("fc|1"), ids.take("fc|1")      # "fc_1", "fc_1_2"
    """

    def __init__(self, unsafe: str, length: int) -> None:
        """Take a pattern for the characters to replace, and the maximum characters of an id."""
        self._unsafe = unsafe
        self._length = length
        self._used: set[str] = set()
        self._repeats: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        """Return the id to send for the next call, whose own id is `call_id`."""
        base = unique = safe(call_id, self._unsafe, self._length, "call")
        number = self._repeats.get(base, 1)
        while unique in self._used:
            number += 1
            unique = f"{base[: self._length - len(str(number)) - 1]}_{number}"
        self._repeats[base] = number
        self._used.add(unique)
        return unique


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return the arguments as a JSON object: `{}` for a blank text, `{"arguments": text}` for anything that is not an object.

    Not an object: broken JSON, lists and other values, NaN and infinities, nesting or integers that Python refuses.
    """
    if not arguments.strip():
        return {}
    try:
        value = clean_json(_loaded(arguments), "arguments")
    except (ValueError, RecursionError, FormatError):
        return {RAW_ARGUMENTS: arguments}
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:  # the caller may have used most of the stack
        return with_room(lambda: json.loads(text))


def blocks_in_order(response: Response, write_thought: Callable[[Reasoning], list[Json]], write_other: WriteItem) -> list[Json]:
    """Return the blocks of a response in the order the model made them. A thought is left out unless a block follows it (A4)."""
    blocks: list[Json] = []
    pending: list[Json] = []
    for item in response.items:
        if isinstance(item, Reasoning):
            pending += write_thought(item)
        elif item_blocks := write_other(item):
            blocks += [*pending, *item_blocks]
            pending = []
    return blocks


def append_blocks(messages: list[Json], role: str, field_name: str, blocks: list[Json]) -> None:
    """Append blocks to the last message if it has the same role (A1, G3), else to a new message. Without blocks, do nothing (A6).

    A text of the user that a reader would take for `additions.CLOSING` is changed: at the beginning of a message after the model's.
    """
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1][field_name].extend(blocks)
        return
    if messages and role == "user" and isinstance(text := blocks[0].get("text"), str):
        blocks[0]["text"] = additions.escaped(text, additions.CLOSING)
    messages.append({"role": role, field_name: blocks})


def append_closing(messages: list[Json], field_name: str, block: Json) -> None:
    """Append a block as a user message if the last message is the model's: a request may not end there (A1, G3)."""
    if messages and messages[-1]["role"] != "user":
        messages.append({"role": "user", field_name: [block]})


def escape_first(messages: list[Json], field_name: str) -> None:
    """Change the first text of the conversation if a reader would take it for an opening."""
    first = messages[0][field_name][0]
    if isinstance(text := first.get("text"), str) and (escaped := additions.escaped(text, additions.PREAMBLE, at_opening=True)) != text:
        first["text"] = escaped


def open_conversation(messages: list[Json], opening: Json) -> None:
    """Insert the line about removed items before the first message that is no system prompt, in formats that mix the two.

    `opening` is the line as a message; its content is None if there is no line: then a text there that a reader would take for it is
    changed.
    """
    index = opening_index(messages)
    if index == len(messages):
        return
    if opening["content"] is not None:
        messages.insert(index, opening)
    elif is_user_text(first := messages[index]) and (text := additions.escaped(first["content"], at_opening=True)) != first["content"]:
        messages[index] = {**first, "content": text}


def append_message(messages: list[Json], message: Json) -> None:
    """Append a message in these formats. A user's text that a reader would take for the closing line is changed."""
    if _ends_in_answer(messages) and message.get("role") == "user" and isinstance(message["content"], str):
        message["content"] = additions.escaped(message["content"], additions.CLOSING)
    messages.append(message)


def close_answer(messages: list[Json], closing: Json) -> None:
    """Append the closing line, as a message in these formats, if the messages end in the assistant's turn."""
    if _ends_in_answer(messages):
        messages.append(closing)


def _ends_in_answer(messages: list[Json]) -> bool:
    return bool(messages) and messages[-1].get("role") == "assistant"


def opening_index(messages: Iterable[Mapping[str, Any]]) -> int:
    """Return the index of the first message that is no system prompt."""
    return sum(1 for _ in takewhile(lambda message: message.get("role") in ("system", "developer"), messages))


def is_user_text(message: Mapping[str, Any]) -> bool:
    """True if a message is nothing but a text of the user, as the line about removed items is."""
    return message.get("role") == "user" and isinstance(message.get("content"), str) and message.keys() <= {"type", "role", "content"}
