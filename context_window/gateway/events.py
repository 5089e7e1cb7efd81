"""Server-sent events: a stream of bytes cut into events. The bytes of each are kept, so that an unchanged event is passed on as it came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .body_json import object_of
from .wire_format import Json

_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)+")
"""Ends an event: an empty line, or more of them."""
LONGEST_END = 4
"""Bytes of the longest end of an event."""
LARGEST_EVENT = 32 * 1024 * 1024
"""Bytes of an event that are kept until its end comes."""
MOST_LINES = 1_000
"""Lines of an event that are read. Providers write two."""
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
        """Return the event with other data; unchanged if that is nested too deeply to be written."""
        try:
            return self if data is self.data else event_of(data, self.name)
        except RecursionError:
            return self


def event_of(data: Any, name: str = "") -> StreamEvent:
    """Return an event with this data."""
    text = json.dumps(data, separators=(",", ":"))
    return StreamEvent(f"{f'event: {name}' + chr(10) if name else ''}data: {text}\n\n".encode(), name, data)


class StreamEventReader:
    """Cuts a stream into events, whatever pieces it comes in. One that is too large, or has too many lines, is passed on unread."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def events(self, piece: bytes) -> Iterator[StreamEvent]:
        """Yield the events that are complete with this piece of the stream."""
        start, seen = 0, max(0, len(self._rest) - LONGEST_END)
        rest = self._rest
        rest += piece
        # An end of line that may be the first half of a longer one waits for the next piece.
        while (match := _END.search(rest, max(start, seen))) is not None and not (match[0].endswith(b"\r") and match.end() == len(rest)):
            yield _event(bytes(rest[start : match.end()]))
            start = match.end()
        del rest[:start]
        if len(rest) > LARGEST_EVENT:
            yield StreamEvent(bytes(rest), "", None)
            rest.clear()

    def end(self) -> Iterator[StreamEvent]:
        """Yield the rest when the stream has ended: an event without an end, or nothing."""
        rest, self._rest = bytes(self._rest), bytearray()
        if rest:
            yield _event(rest)


def _event(raw: bytes) -> StreamEvent:
    name, data = "", []
    if raw.count(b"\n") + raw.count(b"\r") > 2 * MOST_LINES:
        return StreamEvent(raw, name, None)
    for line in _LINE_END.split(raw.decode(errors="replace")):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
    return StreamEvent(raw, name, object_of("\n".join(data).encode(errors="surrogatepass")) if data else None)
