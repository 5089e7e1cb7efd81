"""Turn a log into the steps of a conversation: user messages, responses, each call with its output. All converters use it.

The order of steps is decided here. Each converter writes them in its own format.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeAlias, cast

from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Text
from session.providers import additions
from session.removed import Removed
from session.session import Session
from session.units import KIND_NOTE, KIND_ORPHAN, KIND_OUTPUT, KIND_SILENT, KIND_USER, Grouping, is_answer

from .handed_out import own_message

ResponseItem: TypeAlias = Reasoning | Message | FunctionCall
Json: TypeAlias = dict[str, Any]
WriteItem: TypeAlias = Callable[[Message | FunctionCall], list[Json]]
"""Writes a text or a call of a response as blocks."""


@dataclass(slots=True)
class Response:
    """One response of the model with the outputs of its calls.

    Attributes:
        items: Reasoning, assistant messages and calls, in the order the model made them.
        outputs: The outputs, by the item id of the call. An interrupted call has none.
        resumes: True if it answers a request that did not end in a response (orphans aside).
    """

    items: list[ResponseItem] = field(default_factory=list)
    outputs: dict[str, FunctionCallOutput] = field(default_factory=dict)
    resumes: bool = False

    @property
    def calls(self) -> list[FunctionCall]:
        """The calls, in the order they were made."""
        return [item for item in self.items if isinstance(item, FunctionCall)]


Step: TypeAlias = Response | Message | Compaction
"""A response, a compaction, or a message: of the user, a summary of role assistant, or a system message that keeps its place."""


USAGE_NOTE_STEP = Message("user", additions.USAGE_NOTE, id="usage note", created_at=0.0)
"""The line about usage."""


class Conversation:
    """A log as steps. It grows with the log, and each item is read once.

    A handoff is a note in the user's voice. The instructions of a config update are a system message. Instructions that an update replaced
    are left out, and so are updates without instructions (rule 9 of `session/units.py`). The line about usage is a step before a response.
    It is no step at the end: other items may come before it (`is_note_due`).

    Attributes:
        system: The system prompt: the messages of role system or developer from anywhere in the log, and config updates as messages; none
            if messages keep their places.
        steps: Everything else, in order. An output is with its call, however late it came; an output without a call is left out.
        last_places: For each step, the position in the log of its last item.
        noted_after: Id of the item after which the line about usage stands, before the next response; None if there is no such line.
    """

    def __init__(self, *, system_in_place: bool = False, noted_after: str | None = None) -> None:
        """
        Args:
            noted_after: As the attribute.
            system_in_place: True for providers that take messages of role system or developer anywhere: they become steps. One between a
                call and its output moves behind the response. A config update comes right after the messages that the log begins with.
        """
        self.system: list[Message] = []
        self.steps: list[Step] = []
        self.last_places: list[int] = []
        self.noted_after = noted_after
        self._is_note_due = False
        self._system_in_place = system_in_place
        self._first_places: list[int] = []  # for each step, the position of its first item: in order after the updates
        self._groups = Grouping()
        self._calls: dict[int, tuple[Response, str]] = {}  # by position of the call: its response and its item id
        self._prompts: dict[int, str] = {}  # by position: the item ids of instructions
        self._replaced = 0  # number of replaced instructions that were left out
        self._leading = 0  # number of steps before the first update that are system messages, with nothing else before them
        self._updates = 0  # number of steps after these that are updates
        self._has_updates = False
        self._first_changed = 0

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def is_request(self) -> bool:
        """True if the log does not end in a response (orphans aside): the model is to answer it."""
        return self._groups.is_followed

    @property
    def is_note_due(self) -> bool:
        """True if the line about usage ends the request."""
        return self._is_note_due and self.is_request

    def opening(self, removed: Removed | None) -> str | None:
        """Return the user's text that the converter must begin with: the line about removed items, or `additions.PREAMBLE`, or None.

        Formats that take a model's message at the beginning need the line only: `removed_line`.
        """
        return self.removed_line(removed) or (additions.PREAMBLE if preamble_due(self._groups) else None)

    def removed_line(self, removed: Removed | None) -> str | None:
        """Return the line about items that the view has lost; None for a log, and without steps."""
        return removed.line if self.steps and removed is not None else None

    @classmethod
    def opening_of(cls, session: Session) -> str | None:
        """Return the user's text that a converter begins this session with. Only the items at its beginning are read."""
        conversation = cls()
        for item in session.items:
            conversation._feed(item)
            if first_kind(conversation._groups) is not None:
                break
        return conversation.opening(session.removed)

    def take_first_changed(self) -> int:
        """Return the number of leading steps that have not changed since the last call of this method."""
        first_changed, self._first_changed = self._first_changed, len(self.steps)
        return first_changed

    def is_open(self, step: Step) -> bool:
        """True if the next items may join this step, one of the last: it is a response that goes on, or lacks the output of a call."""
        if not isinstance(step, Response):
            return False
        return (self._groups.in_response and step is self.steps[-1]) or any(call.id not in step.outputs for call in step.calls)

    def extend(self, session: Session) -> None:
        """Read the items that the session has gained."""
        breaks, ends = session.response_breaks, session.request_ends
        for item in session.items[len(self) :]:
            self._feed(item, breaks=item.id in breaks, ends=item.id in ends)

    def _feed(self, item: Item, *, breaks: bool = False, ends: bool = False) -> None:
        groups, place = self._groups, len(self)
        resumes = groups.is_followed
        groups.feed(item, breaks, ends=ends)
        if is_answer(item):
            if groups.response_starts[-1] == place:
                if self._is_note_due:
                    self._append(USAGE_NOTE_STEP, place - 1)
                    self._is_note_due = False
                self._append(Response(resumes=resumes), place)
            response = self.steps[-1]
            assert isinstance(response, Response)
            response.items.append(cast(ResponseItem, item))
            self._note_change(len(self.steps) - 1, place)
            if isinstance(item, FunctionCall):
                self._calls[place] = response, item.id
        elif isinstance(item, FunctionCallOutput):
            if groups.kind[place] == KIND_OUTPUT:
                response, call_item_id = self._calls[groups.last_answered]
                response.outputs[call_item_id] = item
                begin = groups.response[groups.last_answered]
                self._note_change(bisect_left(self._first_places, begin, self._leading + self._updates), place)
        elif isinstance(item, Message):
            self._feed_message(item, place)
        elif isinstance(item, Compaction):
            self._append(item, place)
        elif isinstance(item, AgentHandoff):
            note = additions.handoff_note(item.to_agent, item.from_agent, item.reason)
            self._append(Message("user", note, id=item.id, created_at=item.created_at), place)
        elif isinstance(item, AgentConfigUpdate):
            self._feed_update(item, place)
        self._is_note_due = self._is_note_due or item.id == self.noted_after

    def _feed_message(self, message: Message, place: int) -> None:
        if message.role not in ("system", "developer"):
            self._append(_escaped(message), place)
            return
        self._prompts[place] = message.id
        if not self._system_in_place:
            self.system.append(message)
            return
        self._leading += not self._has_updates and self._leading == len(self.steps)
        self._append(message, place)

    def _feed_update(self, update: AgentConfigUpdate, place: int) -> None:
        if (update.instructions or "").strip():
            prompt = Message("system", update.instructions or "", id=update.id, created_at=update.created_at)
            self._prompts[place] = update.id
            if self._system_in_place:
                index = self._leading + self._updates
                self.steps.insert(index, prompt)
                self._first_places.insert(index, place)
                self.last_places.insert(index, place)
                self._first_changed = min(self._first_changed, index)
                self._updates += 1
                self._has_updates = True
            else:
                self.system.append(prompt)
        for replaced in self._groups.replaced[self._replaced :]:
            if (item_id := self._prompts.pop(replaced, None)) is not None:
                self._leave_out(item_id)
        self._replaced = len(self._groups.replaced)

    def _leave_out(self, prompt_id: str) -> None:
        """Remove instructions that an update replaced."""
        if not self._system_in_place:
            self.system = [message for message in self.system if message.id != prompt_id]
            return
        index = next(at for at, step in enumerate(self.steps) if isinstance(step, Message) and step.id == prompt_id)
        del self.steps[index], self._first_places[index], self.last_places[index]
        self._first_changed = min(self._first_changed, index)
        if index < self._leading:
            self._leading -= 1
        elif index < self._leading + self._updates:
            self._updates -= 1

    def _append(self, step: Step, place: int) -> None:
        self.steps.append(step)
        self._first_places.append(place)
        self.last_places.append(place)

    def _note_change(self, index: int, place: int) -> None:
        """Note that the item at this position of the log has joined a step."""
        self.last_places[index] = place
        self._first_changed = min(self._first_changed, index)


def _escaped(message: Message) -> Message:
    """Return the message with a user's text that equals the line about usage changed, so that no reader takes it for the line."""
    if message.role != "user" or not any(isinstance(part, Text) and part.text.startswith(additions.USAGE_NOTE) for part in message.content):
        return message
    parts = [Text(additions.escaped(part.text, additions.USAGE_NOTE)) if isinstance(part, Text) else part for part in message.content]
    return replace(message, content=tuple(parts))


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
    """Change the first text of the conversation if a reader would take it for an opening. Its message is replaced by a copy."""
    first = messages[0][field_name][0]
    if isinstance(text := first.get("text"), str) and (escaped := additions.escaped(text, additions.PREAMBLE, at_opening=True)) != text:
        own_message(messages, 0)[field_name][0]["text"] = escaped


def open_conversation(messages: list[Json], opening: Json) -> None:
    """Insert the line about removed items before the first message that is no system prompt, in formats that mix the two.

    Args:
        messages: The messages. Without the line, a text there that a reader would take for it is changed.
        opening: The line as a message; its content is None if there is no line.
    """
    place = opening_place(messages)
    if place == len(messages):
        return
    if opening["content"] is not None:
        messages.insert(place, opening)
    elif is_user_text(first := messages[place]) and (text := additions.escaped(first["content"], at_opening=True)) != first["content"]:
        messages[place] = {**first, "content": text}


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


def opening_place(messages: Iterable[Mapping[str, Any]]) -> int:
    """Return the place of the first message that is no system prompt."""
    return sum(1 for _ in takewhile(lambda message: message.get("role") in ("system", "developer"), messages))


def is_user_text(message: Mapping[str, Any]) -> bool:
    """True if a message is nothing but a text of the user, as the line about removed items is."""
    return message.get("role") == "user" and isinstance(message.get("content"), str) and message.keys() <= {"type", "role", "content"}


def preamble_due(groups: Grouping) -> bool:
    """True if the first message of the conversation is not the user's. Without a line about removed items, it begins with `PREAMBLE`.

    Plans reserve its tokens by the same rule.
    """
    return first_kind(groups) not in (None, KIND_USER, KIND_NOTE)


def first_kind(groups: Grouping) -> int | None:
    """Return the kind of the first item that becomes a message; None if there is none."""
    return next((kind for kind in groups.kind if kind not in (KIND_SILENT, KIND_ORPHAN)), None)
