"""Look into JSON values of unknown shape. A value of the wrong kind counts as missing."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from session.errors import FormatError
from session.sanitize import clean_json, place_name

JsonObject = dict[str, object]

DIGITS = re.compile(r"[0-9]{1,18}")
REDACTED = "REDACTED"
"""The text that scrubbers of secrets put in place of random-looking values, ids included."""


def text_at(value: JsonObject, *names: str) -> str:
    """Return the first text under these names that is not empty, else an empty text."""
    for name in names:
        text = value.get(name)
        if isinstance(text, str) and text:
            return text
    return ""


def id_at(value: JsonObject, *names: str) -> str:
    """Return the first id under these names like `text_at`. A blacked-out id counts as missing: such ids are all alike."""
    text = text_at(value, *names)
    return "" if REDACTED in text else text


def object_at(value: JsonObject, name: str) -> JsonObject:
    """Return the object under this name, else an empty one."""
    member = value.get(name)
    return member if isinstance(member, dict) else {}


def list_at(value: JsonObject, name: str) -> list[object]:
    """Return the list under this name, else an empty one."""
    member = value.get(name)
    return member if isinstance(member, list) else []


def objects_at(value: JsonObject, name: str) -> list[JsonObject]:
    """Return the objects in the list under this name. Other members are ignored."""
    return [member for member in list_at(value, name) if isinstance(member, dict)]


def count_at(value: JsonObject, name: str) -> int:
    """Return the positive whole number under this name, else 0. Some tools write it as a text or with a decimal point."""
    number = value.get(name)
    if isinstance(number, str):
        number = int(number) if DIGITS.fullmatch(number) else 0
    elif isinstance(number, float):
        number = int(number) if number.is_integer() else 0
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0


def stated_at(value: JsonObject, name: str) -> int | None:
    """Return the count under this name; None if there is none."""
    return count_at(value, name) if count_at(value, name) or isinstance(value.get(name), int) else None


def json_text(value: object) -> str:
    """Return the value as compact JSON. NaN and infinities become null."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    return [_finite(member) for member in value] if isinstance(value, list) else value


def seconds(value: object) -> float | None:
    """Return the Unix seconds of an ISO 8601 time, or None for anything else. A time without a zone is UTC."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def millis(value: object) -> float | None:
    """Return the Unix seconds of a number of milliseconds, or None for anything else and for implausible numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAX_MILLIS:
        return None
    return value / 1000


MAX_MILLIS = 10**15
"""A larger number is damage: it lies more than thirty thousand years after 1970."""


class Clock:
    """Keeps the time of the current record: its own, else that of the record before it."""

    def __init__(self) -> None:
        self.now = 0.0
        """Unix seconds."""

    def at(self, *times: float | None) -> float:
        """Move to the first of these times that is not None, and return the current time. Unix seconds."""
        self.now = next((time for time in times if time is not None), self.now)
        return self.now


LAST_SECOND = 253_402_300_800
"""The first second of the year 10000. A larger number counts milliseconds or a smaller unit."""


def moment(value: object) -> float | None:
    """Return the Unix seconds of a time, or None for anything else.

    Args:
        value: ISO 8601, or a number of seconds, milliseconds, microseconds or nanoseconds.
    """
    if isinstance(value, str):
        return seconds(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**19:
        return None
    number = float(value)
    while number >= LAST_SECOND / 10:  # low enough to tell milliseconds since 1970 from seconds
        number /= 1000
    return number


def carried(value: object, most: int) -> object:
    """Return the value for a session's metadata, or None if its JSON has more than `most` characters.

    A value that JSON cannot hold is returned unchanged: `Draft` refuses it and names the reason.
    """
    try:
        text = json_text(value)
    except (RecursionError, ValueError):
        return value
    return json.loads(text) if len(text) <= most else None


LEFT_OUT: Any = object()
"""Stands for a value that no session can carry."""


def carriable(value: object, where: str, problems: list[str], depth: int = 0) -> Any:
    """Return a copy of the value without everything that no session can carry.

    Examples are too large numbers, too deep nesting, and two keys that are equal once they are cleaned.

    Args:
        value: A session's metadata, or a value inside. On the two upper levels, members are left out one by one. A problem deeper
            down costs the whole member.
        where: The name of the value.
        problems: Gets a sentence for each value that is left out.
        depth: The level of the value in the metadata. `LEFT_OUT` is returned only at a depth above 0.
    """
    try:
        return clean_json(value, where, depth)
    except FormatError as error:
        problem = error.problem
    copy: Any = LEFT_OUT
    if depth < 2 and isinstance(value, dict):
        members = {key: carriable(member, f"{where}.{place_name(key)}", problems, depth + 1) for key, member in value.items()}
        copy = {key: member for key, member in members.items() if member is not LEFT_OUT}
    elif depth < 2 and isinstance(value, list):
        elements = [carriable(member, f"{where}[{index}]", problems, depth + 1) for index, member in enumerate(value)]
        copy = [element for element in elements if element is not LEFT_OUT]
    if copy is not LEFT_OUT:
        try:
            return clean_json(copy, where, depth)
        except FormatError as error:  # too many values in all, or two keys that are equal once cleaned
            problem = error.problem
    problems.append(f"left out {where}: {problem}")
    return LEFT_OUT if depth else {}
