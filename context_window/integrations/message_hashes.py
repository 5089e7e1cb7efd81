"""Hashes of a framework's messages that are computed once: a list is compared with the one before, and only what differs is hashed.

Theory of operation:

1. A framework passes its whole conversation at every request: the same objects, or new ones with the same content. A message may also have
   been changed in place. So neither an object nor its place says that its content is the same.
2. A snapshot is a copy of a message's dictionaries and lists that shares the values in them. Comparing it with the message is one
   comparison in C, which looks at a text only if it is another object. Writing the message as JSON takes a hundred times as long.
3. Messages that differ from their snapshot, and new ones, are hashed again. A message with a value of an unknown type has no snapshot,
   since that value could change in place: it is hashed at every request. Messages that nobody changes are their own snapshots.
4. Numbers that are equal, such as 1 and True, count as the same content. The framework's own objects are sent in any case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import NamedTuple, TypeVar

from .message_adapter import MessageAdapter

M = TypeVar("M")

EMPTY_HASH = b"context_window"
"""Hash of a list of no messages."""

UNCHANGING = frozenset({type(None), bool, bytes, date, datetime, Decimal, float, int, str, time, timedelta})
"""Types whose values never change, so that a snapshot can share them."""


class MessageHashes(NamedTuple):
    """A list of messages as it was at an earlier request. Never changed.

    Attributes:
        snapshots: Copies of the messages' contents; None for a content that could change unnoticed.
        digests: The hash of each message.
        hashes: Hashes of the first messages, from none of them to all.
    """

    snapshots: list[object]
    digests: list[bytes]
    hashes: list[bytes]

    def likeness(self, contents: Sequence[object]) -> int:
        """Return how much these contents look like this list continued: 0 to 2, from their first message and that where this list ends."""
        size = len(self.snapshots)
        if not 0 < size <= len(contents) or not is_equal(contents[0], self.snapshots[0]):
            return 0
        return 1 + is_equal(contents[size - 1], self.snapshots[-1])

    def followed_by(self, snapshots: list[object], digests: list[bytes]) -> MessageHashes:
        """Return a later list with these snapshots and digests. What it has in common with this one is not hashed again."""
        size = len(self.digests)
        if digests[:size] != self.digests:
            size = next((place for place, pair in enumerate(zip(digests, self.digests, strict=False)) if pair[0] != pair[1]), len(digests))
        hashes = self.hashes[: size + 1]
        for digest in digests[size:]:
            hashes.append(extend_hash(hashes[-1], digest))
        return MessageHashes(snapshots, digests, hashes)


NO_MESSAGES = MessageHashes([], [], [EMPTY_HASH])


def snapshot(content: object) -> object:
    """Return a copy that stays as the content is now, or None if it has a value that could change in place."""
    try:
        return _copy(content)
    except (TypeError, RecursionError):
        return None


def unchanged(content: object) -> object:
    """Return the content itself, as the snapshot of a message that nobody changes."""
    return content


def hash_messages(
    adapter: MessageAdapter[M],
    messages: Sequence[M],
    contents: Sequence[object],
    previous: MessageHashes,
    snapshot_of: Callable[[object], object] = snapshot,
    other: MessageHashes = NO_MESSAGES,
) -> MessageHashes:
    """Return the hashes of a list of messages.

    Args:
        adapter: The framework's adapter.
        messages: The messages.
        contents: The content of each message, from `adapter.content`.
        previous: A list that may begin alike. Whatever it is, the result is the same.
        snapshot_of: Returns the snapshot of a content: `snapshot`, or `unchanged` for messages that nobody changes.
        other: Another such list, for the messages in which the first one differs.
    """
    size = min(len(messages), len(previous.snapshots))
    snapshots, digests = previous.snapshots[:size], previous.digests[:size]
    is_same = is_equal(contents[:size], snapshots)
    changed = [] if is_same else [place for place in range(size) if not is_equal(contents[place], snapshots[place])]
    for place in changed:
        if place < len(other.snapshots) and is_equal(contents[place], other.snapshots[place]):
            snapshots[place], digests[place] = other.snapshots[place], other.digests[place]
        else:
            snapshots[place], digests[place] = snapshot_of(contents[place]), adapter.digest(messages[place])
    snapshots += map(snapshot_of, contents[size:])
    digests += map(adapter.digest, messages[size:])
    same_digests = next((place for place in changed if digests[place] != previous.digests[place]), size)
    hashes = previous.hashes[: same_digests + 1]
    if len(other.digests) > same_digests and digests[: len(other.digests)] == other.digests:
        hashes = other.hashes[:]
    for digest in digests[len(hashes) - 1 :]:
        hashes.append(extend_hash(hashes[-1], digest))
    return MessageHashes(snapshots, digests, hashes)


def extend_hash(messages_hash: bytes, digest: bytes) -> bytes:
    """Return the hash of a list of messages with one more message."""
    return hashlib.sha256(messages_hash + digest).digest()


def is_equal(content: object, earlier: object) -> bool:
    """True if the content is equal to a snapshot. False if its values cannot be compared, as those of an array."""
    try:
        return bool(content == earlier)
    except Exception:  # noqa: BLE001 - users' objects decide what a comparison does
        return False


def _copy(value: object) -> object:
    if type(value) in UNCHANGING:
        return value
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) for inner in value]
    if isinstance(value, tuple):
        return tuple(map(_copy, value))
    raise TypeError(type(value))
