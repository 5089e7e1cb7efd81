"""`MessageAdapter`: all that `ConversationTracker` must know about a framework's messages. Each adapter implements it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Generic, TypeVar

from session.items import FunctionCallOutput, Item
from session.usage import Usage

M = TypeVar("M")


class MessageAdapter(ABC, Generic[M]):
    """Reads and copies the messages of one framework.

    Attributes:
        preamble: The user message with the text `additions.PREAMBLE`, for a view whose first user message was dropped.
        is_message_whole_response: True if each assistant message is a whole response; False if several in a row can be one response.
        id_field: The field in which a result names its call; empty if results need no ids.
        are_ids_unique: True if no two calls of a conversation may have the same id; False if only those that wait for a result may not.
        roles: The roles that messages may have, and None if they need none; empty if any may be one.
    """

    is_message_whole_response = True
    id_field = ""
    are_ids_unique = False
    roles: Collection[str | None] = ()

    def __init__(self, preamble: M) -> None:
        """Take the preamble as a message of the framework."""
        self.preamble = preamble

    @abstractmethod
    def content_json(self, message: M) -> str:
        """Return the message's content as JSON, without ids and times that differ from run to run.

        Raises TypeError if it has an object without a JSON form, ValueError if it has such a value, such as a lone surrogate, and
        RecursionError if it is nested too deeply.
        """

    @abstractmethod
    def items(self, message: M, ids: Iterator[str]) -> list[Item]:
        """Return the items of a message: at least one, so that the message can be dropped. `created_at` is 0.0.

        A call or an output may have an empty call id, and an output an empty name: the tracker fills them in.
        """

    @abstractmethod
    def partial_copy(self, message: M, items: Sequence[Item], visible: Sequence[Item | None]) -> M | None:
        """Return a copy of the message that shows only the visible items, or None if nothing is left to send.

        `visible` has the form of each item that the view shows; None for an item that is not in the view.
        """

    @abstractmethod
    def user_message(self, text: str) -> M:
        """Return a user message with this text: a summary."""

    @abstractmethod
    def result_message(self, output: FunctionCallOutput, message: M) -> M | None:
        """Return a message with the output of an interrupted call of this message; None if the call can have none."""

    @abstractmethod
    def is_system(self, message: M) -> bool:
        """True if the message holds a system prompt, and so stands before the preamble or the line about removed items."""

    def merge_responses(self, earlier: M, later: M) -> M:  # noqa: ARG002 - the base case
        """Return two responses as one message. Called only if `is_message_whole_response`."""
        return later

    def without_reasoning_links(self, message: M) -> M:
        """Return the message without ids that tie it to reasoning which the view has dropped. The default has none to remove."""
        return message

    def digest(self, message: M) -> bytes:
        """Return a hash of the message's content. Equal messages have equal hashes."""
        try:
            content = self.content_json(message)
        except (TypeError, ValueError, RecursionError):
            content = repr(message)
        return hashlib.sha256(content.encode(errors="backslashreplace")).digest()


def usage_from_totals(input_tokens: int, cache_read: int, cache_write: int, output_tokens: int) -> Usage | None:
    """Return the reported usage of a framework whose input tokens include the cached ones. None if it reports no input."""
    if input_tokens < 1:
        return None
    cache_read, cache_write = max(0, cache_read), max(0, cache_write)
    return Usage(max(0, input_tokens - cache_read - cache_write), cache_read, cache_write, max(0, output_tokens))
