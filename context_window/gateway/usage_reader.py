"""`UsageReader`: finds the usage that an upstream reports in an answer which is passed on. It keeps nothing else of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from session.transcripts.values import object_at

from .body_json import value_of
from .decoding import Decoder
from .wire_format import Json

LONGEST = 4 * 1024 * 1024
"""Bytes of one event, or of an answer that is not streamed, that are kept until its end. The usage in a longer one is not read."""
_MARKS = (b'"usage"', b'"usageMetadata"')
_TERMS = ("speed", "service_tier", "inference_geo")
"""Fields with words on which prices depend."""
MOST_FIELDS = 64
"""Fields of a report that are kept. Those of all providers are fewer."""


class UsageReader:
    """Reads the bytes of one answer as they pass. It reads streams of events, JSON, and both when compressed with gzip or deflate."""

    def __init__(
        self, headers: Mapping[bytes, bytes], on_usage: Callable[[Json], object], on_end: Callable[[Json, int, int], object] | None = None
    ) -> None:
        """
        Args:
            headers: The answer's headers, with names in lower case.
            on_usage: Called once at the answer's end with the fields of the report, if there is one. Later reports of a stream complete
                earlier ones.
            on_end: Called at the answer's end with the same fields, empty without a report; about how many tokens the answer has; and how
                many of them came after the last report.
        """
        self._decoder = Decoder(headers.get(b"content-encoding", b"identity"), LONGEST)
        self._is_stream = headers.get(b"content-type", b"").startswith(b"text/event-stream")
        self._report: Json = {}
        self._on_usage, self._on_end = on_usage, on_end
        self._tokens = self._reported = 0

    def read(self, piece: bytes) -> None:
        """Take the next bytes of the answer."""
        content = self._decoder.content
        seen = len(content)
        self._decoder.add(piece)
        if not self._is_stream:
            self._tokens += len(piece) // 4
        elif end := content.rfind(b"\n", seen) + 1:
            if any(content.find(mark, 0, end) >= 0 for mark in _MARKS):
                for line in bytes(content[:end]).split(b"\n"):
                    self._read_event(line)
            else:
                self._tokens += content.count(b"data:", 0, end)
            del content[:end]

    def end(self) -> None:
        """Report the usage. The answer has ended, or has broken off. Slow for a large answer: run it in a thread."""
        rest = bytes(self._decoder.content)
        self._decoder.content.clear()
        if self._is_stream:
            self._read_event(rest)
        elif any(mark in rest for mark in _MARKS):
            self._add(rest)
        report, self._report = self._report, {}
        if report:
            self._on_usage(report)
        if self._on_end is not None:
            self._on_end(report, self._tokens, self._tokens - self._reported)

    def _read_event(self, line: bytes) -> None:
        self._tokens += line.startswith(b"data:")  # about one token each
        if line.startswith(b"data:") and any(mark in line for mark in _MARKS):
            self._add(line[5:])

    def _add(self, content: bytes) -> None:
        value = value_of(content)
        for data in value if isinstance(value, list) else [value]:  # Gemini sends a list of chunks to those who do not ask for events
            if isinstance(data, dict):
                for report in _reports(data):
                    self._keep(report)

    def _keep(self, report: Json) -> None:
        if report:
            self._reported = self._tokens
        for name, amount in report.items():
            if name in self._report or len(self._report) < MOST_FIELDS:
                if isinstance(amount, dict):
                    self._report[name] = dict(islice(((key, part) for key, part in amount.items() if isinstance(part, int)), MOST_FIELDS))
                elif isinstance(amount, int) or (name in _TERMS and isinstance(amount, str)):
                    self._report[name] = amount


def _reports(data: Json) -> tuple[dict[str, Any], ...]:
    """Return the reports in an answer or an event: its own, that of Anthropic's first event, and that of a response of OpenAI's."""
    holders = (data, object_at(data, "message"), object_at(data, "response"))
    return tuple(object_at(holder, name) for holder in holders for name in ("usage", "usageMetadata"))
