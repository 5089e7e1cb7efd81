"""What adapters say of a framework's messages (`Words`), and a conversation as it is kept between two requests (`Followed`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from session.items import FunctionCall, FunctionCallOutput, Item
from session.session import Session

M = TypeVar("M")

START = b"context_window"


class Words(Protocol[M]):
    """How a framework's messages are read, and made anew."""

    answers_whole: bool
    """Whether a message of the model's is a whole answer; else neighbours may be one."""

    def digest(self, message: M) -> bytes:
        """A hash of all that the message says: equal messages have equal ones."""

    def items(self, message: M, ids: Iterator[str]) -> list[Item]:
        """The items that the message is, one at least: else it could never go. All have the time 0.0.

        An output may be without a name: it gets its call's.
        """

    def partly(self, message: M, items: Sequence[Item], shown: Sequence[Item | None]) -> M | None:
        """A copy of the message with what is shown of its items, each as it is shown; None where that is nothing that can be sent."""

    def unbound(self, message: M) -> M:
        """The message without what ties it to a thought that is not shown; itself where nothing does."""

    def joined(self, earlier: M, later: M) -> M:
        """Two answers of the model's as one, where `answers_whole`: the later one, with what the earlier says before it."""

    def preamble(self) -> M:
        """What stands where the conversation's beginning was taken out: the user's `additions.PREAMBLE`."""

    def is_system(self, message: M) -> bool:
        """Whether the message may stand before the preamble."""


@dataclass(frozen=True, slots=True)
class Copy(Generic[M]):
    """A message that shows less: of which items how much, whether without ties to a thought; None where nothing of it can be sent."""

    forms: list[Item | None]
    unbound: bool
    message: M | None


@dataclass(eq=False, slots=True)
class Followed(Generic[M]):
    """A conversation as it was last asked about.

    Attributes:
        session: All of it, as a log.
        system: A hash of the system prompt that came beside the messages.
        chain: A hash of all messages of the log, in order.
        messages: The framework's messages that the log is made of.
        items: Each one's items.
        copies: By place, of messages that are shown in part.
        joined: By place of the later one: two answers, and the one that they became.
        names: Of tools, by the ids of their calls.
        keys: Under which the conversation is found: hashes of lists of messages that go on as this log.
    """

    session: Session
    system: bytes
    chain: bytes = START
    messages: list[M] = field(default_factory=list)
    items: list[list[Item]] = field(default_factory=list)
    copies: dict[int, Copy[M]] = field(default_factory=dict)
    joined: dict[int, tuple[M, M, M]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    keys: set[tuple[bytes, bytes]] = field(default_factory=set)


def named(item: Item, names: dict[str, str]) -> Item:
    """The item; an output whose message does not say which tool it is of, under its call's name."""
    if isinstance(item, FunctionCall):
        names[item.call_id] = item.name
    elif isinstance(item, FunctionCallOutput) and not item.name:
        return replace(item, name=names.get(item.call_id, "tool"))
    return item


def linked(before: bytes, digest: bytes) -> bytes:
    return hashlib.sha256(before + digest).digest()


def new_ids(chain: bytes) -> Iterator[str]:
    """Ids of the items of a message: made of what was said up to it, so that they are the same in every process."""
    number = 0
    while True:
        yield hashlib.sha256(chain + number.to_bytes(4, "big")).hexdigest()[:12]
        number += 1
