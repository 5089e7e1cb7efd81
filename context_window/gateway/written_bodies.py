"""`WrittenBodies`: writes bodies as JSON. Messages that an earlier body of the conversation had are not written again.

1. A view shows the same message as the same object at every request (`ConversationTracker`), and nobody changes it. So its bytes are kept
   beside it, and found by the object.
2. A body is the bytes of its messages, joined, between those of its other fields. The value of another field is written again only if it
   is another object, too.
3. Kept are the bytes of the last body of a conversation, until no request comes for a while or there are too many (`known_lists.py`).

The bytes are those of `json.dumps(wire.with_messages(fields, messages), separators=(",", ":"))`: `tests/gateway/test_written_bodies.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import not_
from typing import Any

from .known_lists import KnownLists
from .wire_format import Json, KnownOrder, WireFormat

KEPT_BYTES = 64 * 1024 * 1024
"""Bytes of written messages that are kept, at most: those of the most recently used conversations."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """A body in pieces.

    Attributes:
        messages: The messages. They are held so that their ids stay theirs.
        pieces: The bytes of each.
        by_id: The same, by the id of the object.
        order: What is known of their order.
        others: The values of the other fields, with their bytes.
    """

    messages: Sequence[Json]
    pieces: list[bytes]
    by_id: dict[int, bytes]
    order: KnownOrder
    others: dict[str, tuple[object, bytes]]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(map(len, self.pieces)) + sum(len(piece) for _, piece in self.others.values())


class WrittenBodies:
    """Writes bodies, and remembers the messages of those of the most recently used conversations. Thread-safe."""

    def __init__(self, kept_bytes: int = KEPT_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            kept_bytes: Bytes of messages to keep, at most.
            clock: Returns the time in seconds.
        """
        self._known: KnownLists[_Written] = KnownLists(kept_bytes, lambda written: written.size, clock)

    def write(self, wire: WireFormat, fields: Json, conversation: list[Json], messages: Sequence[Json]) -> bytes:
        """Return the body with other messages as JSON.

        Args:
            wire: The wire format.
            fields: The body that the client sent.
            conversation: The messages in it. A later body is known by them.
            messages: The messages to send.
        """
        written = self._known.made_from(conversation, lambda _, earlier: _written(wire, fields, messages, earlier))
        parts: list[bytes] = []
        for name in fields:
            value = (b"[", b",".join(written.pieces), b"]") if name == wire.field else (written.others[name][1],)
            parts += [b",", _json(name), b":", *value]
        return b"".join([b"{", *parts[1:], b"}"])

    def forget_idle(self, seconds: float) -> None:
        """Forget the messages of bodies that were written so many seconds ago, or earlier."""
        self._known.forget_idle(seconds)


def _written(wire: WireFormat, fields: Json, messages: Sequence[Json], earlier: _Written | None) -> _Written:
    """Return the pieces of a body with these messages. Those of an earlier one are not written again."""
    order = KnownOrder(None if earlier is None else earlier.order)
    in_order = wire.in_order(fields, messages, order)
    ids = list(map(id, in_order))
    known, known_others = ({}, {}) if earlier is None else (earlier.by_id, earlier.others)
    pieces: list[Any] = list(map(known.get, ids))
    for place in list(compress(count(), map(not_, pieces))):
        pieces[place] = _json(wire.sent(in_order[place]))
    others: dict[str, tuple[object, bytes]] = {}
    for name, value in fields.items():
        if name != wire.field:
            before = known_others.get(name)
            others[name] = before if before is not None and before[0] is value else (value, _json(value))
    return _Written(in_order, pieces, dict(zip(ids, pieces, strict=True)), order, others)


def _json(value: Any) -> bytes:
    return _encode(value).encode()
