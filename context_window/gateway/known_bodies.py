"""`KnownBodies`: reads bodies of requests as JSON. Messages that an earlier body had are not read again.

Theory of operation:

1. A client sends its whole conversation with every request. The bytes of its messages begin like those of the request before.
2. JSON has no state but its open brackets. Behind a head such as `{"model": "m", "messages": [`, equal bytes up to the end of a message are
   equal messages. So the bytes are compared, and reading begins at the first message that differs.
3. The rest is read message by message, which says where each ends. What follows the messages is read as an object of its own.
4. Whatever does not look like that is read by `json.loads` at once: JSON of another form, or none. The value is the same in both ways.
5. Messages of equal bytes are the same objects at every request. So they are held once, and comparing them takes no time. The same is
   true of the fields before the messages, and of those behind them, such as tools. Nothing of a value may be changed.
"""

from __future__ import annotations

import json
import re
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from .wire_format import Json, object_of

KEPT_BYTES = 64 * 1024 * 1024
"""Bytes of bodies that are kept, at most: those of the most recently used conversations."""
BLOCK = 64 * 1024
"""Bytes that are compared at once."""
_MESSAGES = re.compile(rb'"(messages|input|contents)"[ \t\n\r]*:[ \t\n\r]*\[')
_SPACE = re.compile(r"[ \t\n\r]*")
TRIED = 4
"""Places at which the messages may begin: a tool's description can have fields of these names, too."""


@dataclass(frozen=True, slots=True)
class _Messages:
    """The messages of a body.

    Attributes:
        body: The body.
        start: Where its first message begins.
        ends: Where each message ends, counted from there.
        values: The messages.
        head: The fields before them.
        rest: The fields behind them.
        size_behind: Bytes behind the list of messages.
        time: When it was read, in seconds.
    """

    body: bytes
    start: int
    ends: list[int]
    values: list[Json]
    head: tuple[str, int, Json]
    rest: Json
    size_behind: int
    time: float

    def common(self, body: bytes, start: int) -> int:
        """Return how many messages another body has in common with this one, whose messages begin at `start`."""
        size = _common_bytes(self.body, self.start, body, start, self.ends[-1] if self.ends else 0)
        return bisect_right(self.ends, size)


class KnownBodies:
    """Reads bodies and remembers those of the most recently used conversations. Thread-safe."""

    def __init__(self, kept_bytes: int = KEPT_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            kept_bytes: Bytes of bodies to keep, at most.
            clock: Returns the time in seconds.
        """
        self._kept_bytes, self._clock = kept_bytes, clock
        self._lock = Lock()
        self._known: list[_Messages] = []  # the most recently used last

    def read(self, body: bytes) -> Json | None:
        """Return the JSON object that a body holds; None if it holds none. Nothing in it may be changed.

        Args:
            body: The body of a request.
        """
        try:
            return self._read(body)
        except (ValueError, RecursionError):
            return object_of(body)

    def forget_idle(self, seconds: float) -> None:
        """Forget the bodies that were read so many seconds ago, or earlier."""
        end = self._clock() - seconds
        with self._lock:
            self._known = [each for each in self._known if each.time > end]

    def _read(self, body: bytes) -> Json | None:
        """Return the object. Raises `ValueError` if it is not of the form that is read here."""
        with self._lock:
            bodies = list(self._known)
        known_head = next((each.head for each in reversed(bodies) if body.startswith(each.body[: each.start])), None)
        field, start, head = known_head or _head(body)
        like, common = max(((each, each.common(body, start)) for each in reversed(bodies)), key=lambda pair: pair[1], default=(None, 0))
        values, ends = (like.values[:common], like.ends[:common]) if like is not None else ([], [])
        skipped = ends[-1] if ends else 0
        text = body[start + skipped :].decode()
        place = _read_messages(text, values, ends, skipped)
        after = text[place:]
        end = after.encode()
        known_rest = next((each.rest for each in reversed(bodies) if each.size_behind == len(end) and each.body.endswith(end)), None)
        rest = _rest(after, 0) if known_rest is None else known_rest
        messages = _Messages(body, start, ends, values, (field, start, head), rest, len(end), self._clock())
        self._remember(messages, like if like is not None and 2 * common > len(like.ends) else None)
        return {**head, field: list(values), **rest}

    def _remember(self, messages: _Messages, earlier: _Messages | None) -> None:
        """Remember a body in the place of an earlier one of the same conversation."""
        with self._lock:
            self._known = [each for each in self._known if each is not earlier]
            self._known.append(messages)
            size = sum(len(each.body) for each in self._known)
            while size > self._kept_bytes:
                size -= len(self._known.pop(0).body)


def _head(body: bytes) -> tuple[str, int, Json]:
    """Return the name of the field of messages, where the first message begins, and the fields before it.

    Raises:
        ValueError: The body has no such field.
    """
    for match, _ in zip(_MESSAGES.finditer(body), range(TRIED), strict=False):
        try:
            head = json.loads(body[: match.end()].decode() + "]}")
        except ValueError:  # the field is not the outermost object's
            continue
        if isinstance(head, dict):
            return match[1].decode(), match.end(), head
    raise ValueError("messages")


def _read_messages(text: str, values: list[Json], ends: list[int], offset: int) -> int:
    """Read messages up to the end of their list. Add them to `values`, and the places where they end to `ends`.

    Args:
        text: What comes after the messages that are there already.
        values: The messages.
        ends: Where each ends, in bytes from the first.
        offset: Bytes before the text.

    Returns:
        The place in the text behind the list.

    Raises:
        ValueError: The text is no JSON, or a member of the list is no object.
    """
    is_ascii = text.isascii()
    measured, size = 0, offset
    place = _after_space(text, 0)
    while not text.startswith("]", place):
        if values:
            _expect(text, ",", place)
            place = _after_space(text, place + 1)
        _expect(text, "{", place)
        value, end = _DECODER.raw_decode(text, place)
        size += end - measured if is_ascii else len(text[measured:end].encode())
        measured = end
        values.append(value)
        ends.append(size)
        place = _after_space(text, end)
    return place + 1


def _rest(text: str, place: int) -> Json:
    """Return the fields that follow the messages, as an object.

    Raises:
        ValueError: The text is no JSON.
    """
    place = _after_space(text, place)
    if text.startswith("}", place):
        return dict(json.loads("{" + text[place:]))
    _expect(text, ",", place)
    _expect(text, '"', _after_space(text, place + 1))
    return dict(json.loads("{" + text[place + 1 :]))


def _expect(text: str, character: str, place: int) -> None:
    if not text.startswith(character, place):
        raise ValueError(text[place : place + 1])


def _after_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return place if match is None else match.end()


def _object(pairs: Iterable[tuple[str, Any]]) -> Json:
    """Return a JSON object. Equal names of its fields are held once."""
    return {sys.intern(name): value for name, value in pairs}


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _common_bytes(first: bytes, first_start: int, second: bytes, second_start: int, most: int) -> int:
    """Return how many bytes are equal from two places on, `most` at the most."""
    most = min(most, len(first) - first_start, len(second) - second_start)
    size = 0
    while size < most:
        block = min(BLOCK, most - size)
        if first[first_start + size : first_start + size + block] != second[second_start + size : second_start + size + block]:
            break
        size += block
    low, high = size, min(size + BLOCK, most)
    while low < high:
        middle = (low + high + 1) // 2
        if first[first_start + size : first_start + middle] == second[second_start + size : second_start + middle]:
            low = middle
        else:
            high = middle - 1
    return low
