"""`TrackedConversation`: a framework's conversation as it is kept between two requests. Also: ids of items and of tool calls."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from session.items import FunctionCall, FunctionCallOutput, Item
from session.session import Session
from session.units import is_answer

from .message_hashes import EMPTY_HASH, NO_MESSAGES, MessageHashes
from .past_refusals import PastRefusal

M = TypeVar("M")


@dataclass(slots=True)
class ConversationCalls:
    """The tool calls of a conversation.

    Attributes:
        names: The tool of each call, by call id.
        unanswered: Ids of the calls without a result, in their order. Calls of earlier responses are not among them once a later one calls.
        is_responding: True if the last item is a call, or follows one in its response.
    """

    names: dict[str, str] = field(default_factory=dict)
    unanswered: list[str] = field(default_factory=list)
    is_responding: bool = False

    def copy(self) -> ConversationCalls:
        """Return a copy."""
        return ConversationCalls(dict(self.names), list(self.unanswered), self.is_responding)

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
            return item if item.call_id else replace(item, call_id=call_id)
        self.is_responding = self.is_responding and is_answer(item)
        if not isinstance(item, FunctionCallOutput):
            return item
        calls = (call_id for call_id in self.unanswered if item.name in ("", self.names[call_id]))
        call_id = item.call_id or next(calls, f"no call {len(self.names)}")
        if call_id in self.unanswered:
            self.unanswered.remove(call_id)
        name = item.name or self.names.get(call_id, "tool")
        return item if item.call_id and item.name else replace(item, call_id=call_id, name=name)


@dataclass(eq=False, slots=True)
class TrackedConversation(Generic[M]):
    """A conversation as of the last request.

    Attributes:
        session: The whole conversation, as a log.
        system_hash: Hash of the system prompt that is sent outside the messages.
        messages: The framework's messages, all of them.
        items: The items of each message.
        messages_hash: Hash of all messages, in order.
        received: The messages that the framework passed last, with their hashes. It may pass fewer: those that were returned before.
        calls: The tool calls of all messages.
        keys: Hashes under which the conversation is found: of message lists that continue as this log.
        refusals: Refused prompts and pauses that the log has accepted, if they are shared with other processes.
        now: When its next items are created, in seconds. It is 0 before the first pause.
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
