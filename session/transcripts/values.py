"""Looking into JSON values whose shape nobody promised: what is not of the kind that is asked for counts as missing."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

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
