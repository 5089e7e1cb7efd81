"""Hashes of a framework's messages, by which the conversation is found that a list of messages continues.

The hash of a list is made of the hash of its last message and that of the list before it. So lists that begin alike share hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import accumulate, compress, count
from operator import itemgetter, ne
from typing import Any, NamedTuple, TypeVar

from .message_adapter import MessageAdapter

M = TypeVar("M")

EMPTY_HASH = b"context_window"
"""Hash of a list of no messages."""


class MessageHashes(NamedTuple):
    """The hash of each message of a list, and those of the first messages, from none of them to all."""

    messages: Sequence[Any]
    digests: list[bytes]
    hashes: list[bytes]


NO_MESSAGES = MessageHashes([], [], [EMPTY_HASH])


def hash_messages(adapter: MessageAdapter[M], messages: Sequence[M], known: Iterable[MessageHashes] = ()) -> MessageHashes:
    """Return the hashes of a list of messages.

    `known` are earlier lists whose messages nobody has changed since. Messages that one of them begins with, too, are not hashed again:
    comparing takes a seventh of the time. Numbers that are equal, such as 1 and True, count as the same content.
    """
    pairs = ((_equal_messages(each.messages, messages), each) for each in known)
    same, start = max(pairs, key=itemgetter(0), default=(0, NO_MESSAGES))
    digests = [*start.digests[:same], *map(adapter.digest, messages[same:])]
    return MessageHashes(messages, digests, [*start.hashes[:same], *accumulate(digests[same:], extend_hash, initial=start.hashes[same])])


def extend_hash(messages_hash: bytes, digest: bytes) -> bytes:
    """Return the hash of a list of messages with one more message."""
    return hashlib.sha256(messages_hash + digest).digest()


def _equal_messages(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the number of leading messages that are equal. The comparison runs in C."""
    return next(compress(count(), map(ne, first, second)), min(len(first), len(second)))
