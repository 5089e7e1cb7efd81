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


NOTHING_PICKED: tuple[object, object] = (None, None)
"""The value of `TrackedConversation.picked` before a view was shown in part."""


@dataclass(frozen=True, slots=True)
class PartialCopy(Generic[M]):
    """A copy of a message that shows less, kept so that later requests contain the same object.

    Attributes:
        visible: The forms of the message's items that it shows; None for an item that is not in the view.
        is_unlinked: True if ids that tie the message to dropped reasoning were removed.
        message: The copy; None if nothing of the message can be sent.
    """

    visible: list[Item | None]
    is_unlinked: bool
    message: M | None


@dataclass(eq=False, slots=True)
class TrackedConversation(Generic[M]):
    """A conversation as of the last request.

    Attributes:
        session: The whole conversation, as a log.
        system_hash: Hash of the system prompt that is sent outside the messages.
        names_ids: True if placeholders name the ids to recall by.
        messages_hash: Hash of all messages in the log, in order.
        received: Hashes of the messages that the framework passed last.
        returned: Hashes of the messages that were returned last.
        made: Hashes of those among them that are not the framework's own objects.
        picked_hashes: The messages that showed a view last, and their hashes, if nobody changes messages.
        messages: The framework's messages, all of them.
        items: The items of each message.
        partial_copies: Copies of messages that are shown in part, by position.
        merged_responses: Pairs of responses and the message they became, by the position of the later one.
        tool_names: Names of tools, by call id.
        inserted: Summaries and digests of the last view, each with the message that it became, by item id.
        opening: The line about removed items, and its message; None before there is one.
        usage_note: The line about usage as a message; None before it is needed.
        picked: What belongs to the list of items of the last view that was shown in part, and the `PickedMessages` of that list.
        keys: Hashes under which the conversation is found: of message lists that continue as this log.
        refusals: Refused prompts that the log has accepted, if they are shared with other processes.
    """

    session: Session
    system_hash: bytes
    names_ids: bool = True
    messages_hash: bytes = EMPTY_HASH
    received: MessageHashes = NO_MESSAGES
    returned: MessageHashes = NO_MESSAGES
    made: MessageHashes = NO_MESSAGES
    picked_hashes: tuple[list[M], MessageHashes] = field(default_factory=lambda: ([], NO_MESSAGES))
    messages: list[M] = field(default_factory=list)
    items: list[list[Item]] = field(default_factory=list)
    partial_copies: dict[int, PartialCopy[M]] = field(default_factory=dict)
    merged_responses: dict[int, tuple[M, M, M]] = field(default_factory=dict)
    tool_names: dict[str, str] = field(default_factory=dict)
    inserted: dict[str, tuple[Item, M]] = field(default_factory=dict)
    opening: tuple[str, M] | None = None
    usage_note: M | None = None
    picked: tuple[object, object] = NOTHING_PICKED
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
