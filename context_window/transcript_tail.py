"""The end of a transcript of Claude Code: its last requests and answer. Imports next to nothing, since the status line needs it."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, NamedTuple

from session.json_strings import json_value
from session.opening import open_regular

TAIL_BYTES, LONGEST_TAIL = 512 * 1024, 8 * 1024 * 1024
"""Bytes read from the end of a transcript: they hold the last dozens of requests. Four times as many if they hold none, up to a limit."""


class StatusRequest(NamedTuple):
    """The tokens of one request and its answer, as the provider reported them."""

    fresh: int
    """Input tokens that the cache had no part in."""
    written: int
    """Input tokens written to the cache."""
    read: int
    """Input tokens read from the cache."""
    output: int
    all_input: int = 0
    """Tokens of all its prompts, if the answer took several."""

    @property
    def input(self) -> int:
        """Tokens of the whole prompt."""
        return self.fresh + self.written + self.read

    @property
    def filled(self) -> int:
        """Tokens of the window that are filled after the answer."""
        return self.input + self.output


def last_requests(lines: list[bytes]) -> list[StatusRequest]:
    """Return the requests of the main conversation since its last compaction in these lines of a transcript, oldest first."""
    requests: list[StatusRequest] = []
    last_id = None
    for line in lines:
        try:
            record = object_of(json_value(line))
        except (ValueError, RecursionError):  # the first line may be cut off, the last may be half written
            continue
        if record.get("subtype") == "compact_boundary" and not record.get("isSidechain"):
            after = count_of(object_of(record.get("compactMetadata")).get("postTokens"))
            last_id, requests = None, [StatusRequest(0, 0, after, 0)] if after else []  # the next prompt, before it is sent
            continue
        message = object_of(record.get("message"))
        request = request_of(message.get("usage"))
        if record.get("type") != "assistant" or record.get("isSidechain") or request is None or not request.input:
            continue
        if requests and message.get("id") == last_id:  # Claude Code writes a line for each block of an answer
            requests[-1] = request
        else:
            requests.append(request)
        last_id = message.get("id")
    return requests


class LastAnswer(NamedTuple):
    """The last answer of the main conversation, at `time` in Unix seconds. The model's name is empty if it is not stated.

    `is_for_hour` is True if its cache is kept for an hour.
    """

    time: float
    is_for_hour: bool
    model: str


def last_answer(lines: list[bytes]) -> LastAnswer | None:
    """Return the last answer of the main conversation in these lines of a transcript; None if there is none with a time."""
    for line in reversed(lines):
        try:
            record = object_of(json_value(line))
            message = object_of(record.get("message"))
            usage, model = object_of(message.get("usage")), message.get("model")
            request = request_of(usage)
            if record.get("type") == "assistant" and not record.get("isSidechain") and request is not None and request.input:
                is_for_hour = bool(count_of(object_of(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")))
                time = datetime.fromisoformat(str(record.get("timestamp"))).timestamp()
                return LastAnswer(time, is_for_hour, model if isinstance(model, str) else "")
        except (ValueError, RecursionError, OverflowError, OSError):
            continue
    return None


def last_lines(path: object) -> list[bytes]:
    """Return the last lines of a transcript; none if there is no such file or it cannot be read."""
    if not isinstance(path, str) or "\0" in path:
        return []
    try:
        with open_regular(path) as file:
            end, size = file.seek(0, os.SEEK_END), TAIL_BYTES
            while True:
                file.seek(max(0, end - size))
                lines = file.read(size).split(b"\n")
                if size >= min(end, LONGEST_TAIL) or any(_request_line(line) for line in lines[1:]):
                    return lines
                size *= 4
    except (OSError, ValueError):
        return []


def _request_line(line: bytes) -> bool:
    return b'"usage"' in line and line.startswith(b"{") and line.endswith(b"}")


READING = ("message", "fallback_message")
"""Types of passes for one answer in which the model that answers read the conversation."""


def request_of(usage: object) -> StatusRequest | None:
    """Return a request by its reported usage; None if there is none. Of several passes for one answer, the window holds the last."""
    if not isinstance(usage, dict):
        return None
    sums, passes = _counts(usage), usage.get("iterations")
    read = [_counts(each) for each in (passes if isinstance(passes, list) else ()) if object_of(each).get("type") in READING]
    last = read[-1] if len(read) > 1 and read[-1].input else sums
    return last._replace(all_input=sums.input)


def _counts(usage: dict[str, Any]) -> StatusRequest:
    names = "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"
    return StatusRequest(*(count_of(usage.get(name)) for name in names))


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def count_of(value: object) -> int:
    """Return a whole number from 0 to a billion, or 0 for anything else."""
    number = number_of(value)
    return 0 if number is None else int(number)


def number_of(value: object) -> float | None:
    """Return a number from 0 to a billion, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:  # nor NaN
        return None
    return value
