"""`hash_picked`: hashes of the messages that a view shows, most of which are known from the framework's list or from the last view."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, count
from operator import not_
from typing import TypeVar

from session.common_start import common_start

from .message_hashes import MessageHashes
from .tracked_conversation import TrackedConversation

M = TypeVar("M")

MARGIN = 8
"""Messages of the framework that are looked at beyond twice the number of new ones."""


def hash_picked(
    tracked: TrackedConversation[M],
    messages: list[M],
    hashes_of: Callable[[list[M], MessageHashes], MessageHashes],
    *,
    are_frozen: bool,
) -> MessageHashes:
    """Return the hashes of messages that show a view. Those that the framework passed were compared at this request already.

    If nobody changes messages, the hashes of those that were returned last serve again. Of the rest, those near the end of the framework's
    list are found there; another one is hashed once more, which gives the same.

    Args:
        tracked: The conversation, as of this request. Its `made` and `picked_hashes` are brought up to date.
        messages: The messages.
        hashes_of: Returns the hashes of some messages, with a list that may begin alike.
        are_frozen: True if nobody changes a message after it was passed or returned.
    """
    received, (shown, shown_hashes) = tracked.received, tracked.picked_hashes
    same = common_start(shown, messages) if are_frozen else 0
    rest = messages[same:]
    first = max(0, len(tracked.messages) - 2 * len(rest) - MARGIN) if are_frozen else 0
    snapshots, digests = received.snapshots + shown_hashes.snapshots[same:], received.digests + shown_hashes.digests[same:]
    place_of = dict(zip(map(id, shown[same:]), count(len(received.digests)), strict=False))
    place_of.update(zip(map(id, tracked.messages[first:]), count(first), strict=False))
    ids = list(map(id, rest))
    made = list(compress(rest, map(not_, map(place_of.__contains__, ids))))
    tracked.made = hashes_of(made, tracked.made)
    place_of.update(zip(map(id, made), count(len(digests)), strict=False))
    places = list(map(place_of.__getitem__, ids))
    hashes = tracked.returned.followed_by(
        shown_hashes.snapshots[:same] + list(map((snapshots + tracked.made.snapshots).__getitem__, places)),
        shown_hashes.digests[:same] + list(map((digests + tracked.made.digests).__getitem__, places)),
    )
    if are_frozen:
        tracked.picked_hashes = list(messages), hashes
    return hashes
