"""Server-sent events: a stream of bytes cut into events. The bytes of each are kept, so that an unchanged event is passed on as it came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .wire_format import Json

_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
"""Ends an event: an empty line."""
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream.

    Attributes:
        raw: Its bytes, with the empty line that ends it.
        name: Its name; empty if it has none.
        data: The JSON object in its data; None if there is none.
    """

    raw: bytes
    name: str
    data: Json | None

    def with_data(self, data: Json) -> StreamEvent:
        """Return the event with other data."""
        return self if data is self.data else event_of(data, self.name)


def event_of(data: Any, name: str = "") -> StreamEvent:
    """Return an event with this data."""
    text = json.dumps(data, separators=(",", ":"))
    return StreamEvent(f"{f'event: {name}' + chr(10) if name else ''}data: {text}\n\n".encode(), name, data)


class StreamEventReader:
    """Cuts a stream into events, whatever pieces it comes in."""

    def __init__(self) -> None:
        self._rest = b""

    def events(self, piece: bytes) -> Iterator[StreamEvent]:
        """Yield the events that are complete with this piece of the stream."""
        self._rest += piece
        start = 0
        # An end of line that may be the first half of a longer one waits for the next piece.
        while (match := _END.search(self._rest, start)) is not None and not (match[0].endswith(b"\r") and match.end() == len(self._rest)):
            yield _event(self._rest[start : match.end()])
            start = match.end()
        self._rest = self._rest[start:]

    def end(self) -> Iterator[StreamEvent]:
        """Yield the rest when the stream has ended: an event without an end, or nothing."""
        rest, self._rest = self._rest, b""
        if rest:
            yield _event(rest)


def _event(raw: bytes) -> StreamEvent:
    name, data = "", []
    for line in _LINE_END.split(raw.decode(errors="replace")):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
    try:
        value = json.loads("\n".join(data)) if data else None
    except (ValueError, RecursionError):
        value = None
    return StreamEvent(raw, name, value if isinstance(value, dict) else None)
