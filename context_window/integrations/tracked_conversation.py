"""`TrackedConversation`: a framework's conversation as it is kept between two requests. Also: ids of items."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from session.items import FunctionCall, FunctionCallOutput, Item
from session.session import Session

from .message_hashes import EMPTY_HASH, NO_MESSAGES, MessageHashes
from .past_refusals import PastRefusal

M = TypeVar("M")


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
        tool_names: Names of tools, by call id.
        keys: Hashes under which the conversation is found: of message lists that continue as this log.
        refusals: Refused prompts that the log has accepted, if they are shared with other processes.
    """

    session: Session
    system_hash: bytes
    messages: list[M] = field(default_factory=list)
    items: list[list[Item]] = field(default_factory=list)
    messages_hash: bytes = EMPTY_HASH
    received: MessageHashes = NO_MESSAGES
    tool_names: dict[str, str] = field(default_factory=dict)
    keys: set[tuple[bytes, bytes]] = field(default_factory=set)
    refusals: list[PastRefusal] = field(default_factory=list)


def with_tool_name(item: Item, tool_names: dict[str, str]) -> Item:
    """Return the item; an output without a tool name gets the name of its call.

    Args:
        item: The item.
        tool_names: Names of tools by call id. A call is added to it.
    """
    if isinstance(item, FunctionCall):
        tool_names[item.call_id] = item.name
    elif isinstance(item, FunctionCallOutput) and not item.name:
        return replace(item, name=tool_names.get(item.call_id, "tool"))
    return item


def item_ids(messages_hash: bytes) -> Iterator[str]:
    """Yield ids for the items of a message. They depend only on the messages up to it, so they are the same in every process."""
    number = 0
    while True:
        yield hashlib.sha256(messages_hash + number.to_bytes(4, "big")).hexdigest()[:12]
        number += 1
