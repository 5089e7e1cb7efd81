"""`TrackedConversation`: a framework's conversation as it is kept between two requests. Also: ids of items and of tool calls."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from session.errors import short
from session.items import FunctionCall, FunctionCallOutput, Item
from session.session import Session
from session.units import is_answer

from .message_hashes import EMPTY_HASH, NO_MESSAGES, MessageHashes
from .past_refusals import PastRefusal

M = TypeVar("M")


@dataclass(slots=True)
class ConversationCalls:
    """The tool calls of a conversation, with the tool of each by call id.

    `unanswered` are ids of the calls without a result, in their order, except those of earlier responses once a later one calls; `waiting`
    has these too. `is_responding` is True if the last item is a call, or follows one in its response.
    """

    names: dict[str, str] = field(default_factory=dict)
    unanswered: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    is_responding: bool = False

    def copy(self) -> ConversationCalls:
        """Return a copy."""
        return ConversationCalls(dict(self.names), list(self.unanswered), set(self.waiting), self.is_responding)

    def complete(self, item: Item) -> Item:
        """Return the next item of the conversation. If it lacks a call id, or a result the name of its tool, it is a copy that has them.

        A result without a call id answers the first unanswered call of its tool, or of any tool if it names none.
        """
        if isinstance(item, FunctionCall):
            if not self.is_responding:
                self.unanswered.clear()
            self.is_responding = True
            call_id = item.call_id or f"call {len(self.names) + 1}"
            self.names[call_id] = item.name
            self.unanswered.append(call_id)
            self.waiting.add(call_id)
            return item if item.call_id else replace(item, call_id=call_id)
        self.is_responding = self.is_responding and is_answer(item)
        if not isinstance(item, FunctionCallOutput):
            return item
        call_id = item.call_id or self.waiting_call(item) or f"no call {len(self.names)}"
        self.waiting.discard(call_id)
        if call_id in self.unanswered:
            self.unanswered.remove(call_id)
        name = item.name or self.names.get(call_id, "tool")
        return item if item.call_id and item.name else replace(item, call_id=call_id, name=name)

    def waiting_call(self, output: FunctionCallOutput) -> str | None:
        """Return the id of the unanswered call that an output belongs to; None if there is none."""
        if output.call_id:
            return output.call_id if output.call_id in self.waiting else None
        return next((call_id for call_id in self.unanswered if output.name in ("", self.names[call_id])), None)

    def fault(self, item: Item, id_field: str, *, are_ids_unique: bool) -> str:
        """Return why providers refuse this as the next item, and what to do; an empty text if they do not.

        The adapter has `id_field` and `are_ids_unique`.
        """
        if isinstance(item, FunctionCall):
            if item.call_id in (self.names if are_ids_unique else self.waiting):
                return f"a second call has the id {short(item.call_id)}; give each its own"
            return (
                f"the call of {short(item.name)} has no id; give it one that its result can name" if id_field and not item.call_id else ""
            )
        if not isinstance(item, FunctionCallOutput) or (self.waiting_call(item) is not None and (item.call_id or not id_field)):
            return ""
        named = f"lacks {id_field}" if id_field and not item.call_id else f"names the call {short(item.call_id or item.name)}"
        waiting = ", ".join(map(short, sorted(self.waiting)[:3])) or "none"
        return f"a result {named}, but the calls that wait for one here are {waiting}; name its call, and put it right after that, once"


@dataclass(eq=False, slots=True)
class TrackedConversation(Generic[M]):
    """A conversation as of the last request: its log, its framework's messages and the items of each.

    `received` are the messages that the framework passed last, with their hashes; it may pass fewer: those that were returned before.
    `keys` are hashes under which the conversation is found: of message lists that continue as this log. `refusals` are the refused prompts
    and pauses that the log has accepted, if they are shared with other processes. `now` is when its next items are created, in seconds; 0
    before the first pause.
    """

    session: Session
    system_hash: bytes
    messages: list[M] = field(default_factory=list)
    items: list[list[Item]] = field(default_factory=list)
    messages_hash: bytes = EMPTY_HASH
    received: MessageHashes = NO_MESSAGES
    calls: ConversationCalls = field(default_factory=ConversationCalls)
    keys: set[tuple[bytes, bytes]] = field(default_factory=set)
    refusals: list[PastRefusal] = field(default_factory=list)
    now: float = 0.0


def item_ids(messages_hash: bytes) -> Iterator[str]:
    """Yield ids for the items of a message. They depend only on the messages up to it, so they are the same in every process."""
    number = 0
    while True:
        yield hashlib.sha256(messages_hash + number.to_bytes(4, "big")).hexdigest()[:12]
        number += 1
