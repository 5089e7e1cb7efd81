"""Looking into JSON values whose shape nobody promised: what is not of the kind that is asked for counts as missing."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

from session.door import clean_json, place_name
from session.errors import FormatError

JsonObject = dict[str, object]

REDACTED = "REDACTED"
"""What scrubbers of secrets leave in the place of whatever looks random, ids among them."""


def text_at(value: JsonObject, *names: str) -> str:
    """The first text that is not empty under these names, or an empty one."""
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
    return ""


def id_at(value: JsonObject, *names: str) -> str:
    """Like `text_at` for ids: one that a scrubber blacked out is like many others, so it counts as missing."""
    found = text_at(value, *names)
    return "" if REDACTED in found else found


def object_at(value: JsonObject, name: str) -> JsonObject:
    """The object under this name, or an empty one."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def list_at(value: JsonObject, name: str) -> list[object]:
    """The list under this name, or an empty one."""
    found = value.get(name)
    return found if isinstance(found, list) else []


def count_at(value: JsonObject, name: str) -> int:
    """The number under this name where it counts something, or 0."""
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def json_text(value: object) -> str:
    """The value as compact JSON; NaN and infinities, which JSON has not, as null."""
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
    """Unix seconds of an ISO 8601 time (of UTC where it names no zone), or None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def millis(value: object) -> float | None:
    """Unix seconds of a number of milliseconds, or None where it is none that can be meant."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAX_MILLIS:
        return None
    return value / 1000


MAX_MILLIS = 10**15
"""More than thirty thousand years after 1970: damage."""


class Clock:
    """The time of each record: its own, else that of the record before it."""

    def __init__(self) -> None:
        self.now = 0.0
        """Unix seconds."""

    def at(self, *found: float | None) -> float:
        """Unix seconds: the first of these that is known."""
        self.now = next((time for time in found if time is not None), self.now)
        return self.now


LAST_SECOND = 253_402_300_800
"""The first second of the year 10000. A number beyond it counts milliseconds or less."""


def moment(value: object) -> float | None:
    """Unix seconds of a time: ISO 8601, or a number of seconds, milliseconds, microseconds or nanoseconds; None where it is none."""
    if isinstance(value, str):
        return seconds(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**19:
        return None
    found = float(value)
    while found >= LAST_SECOND / 10:  # so that milliseconds are told from seconds from 1970 on
        found /= 1000
    return found


def carried(value: object, most: int) -> object:
    """Return the value for a session's metadata, or None if its JSON has more than `most` characters.

    A value that cannot be written as JSON comes back as it is: `Draft` refuses it, with the reason.
    """
    try:
        text = json_text(value)
    except (RecursionError, ValueError):
        return value
    return json.loads(text) if len(text) <= most else None


LEFT_OUT: Any = object()
"""In place of a value that no session can carry."""


def carriable(value: object, where: str, problems: list[str], depth: int = 0) -> Any:
    """Return a copy of the value without what no session can carry: too large numbers, deep nesting, names that are one once cleaned.

    Args:
        value: A session's metadata, or a value in them. Their members and the members' members are left out one by one; what lies
            deeper costs the member that it is in.
        where: Its name.
        problems: Gets a sentence for each value that is left out.
        depth: Levels of the metadata that it lies in; `LEFT_OUT` can come back for a value in them only.
    """
    try:
        return clean_json(value, where, depth)
    except FormatError as error:
        problem = error.problem
    fit: Any = LEFT_OUT
    if depth < 2 and isinstance(value, dict):
        fit = {}
        for key, member in value.items():
            if (copy := carriable(member, f"{where}.{place_name(key)}", problems, depth + 1)) is not LEFT_OUT:
                fit[key] = copy
    elif depth < 2 and isinstance(value, list):
        copies = [carriable(member, f"{where}[{place}]", problems, depth + 1) for place, member in enumerate(value)]
        fit = [copy for copy in copies if copy is not LEFT_OUT]
    if fit is not LEFT_OUT:
        try:
            return clean_json(fit, where, depth)
        except FormatError as error:  # too many values in all, or two names that are one
            problem = error.problem
    problems.append(f"left out {where}: {problem}")
    return LEFT_OUT if depth else {}
