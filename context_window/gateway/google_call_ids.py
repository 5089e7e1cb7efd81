"""Call ids of Google's contents. Calls may have none: a response then answers the first unanswered call of its name."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from session.transcripts.values import text_at

from .wire_format import Json

CALL_IDS = "callIds"
"""The key of a message's call ids, one for each part; None for other parts."""
CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
_NAMES = frozenset({*CALL, *RESPONSE})


def with_call_ids(contents: Sequence[Json]) -> list[Json]:
    """Return copies of the contents with the call ids of their parts beside them. The ids of a content depend only on those before it."""
    numbering = _Numbering()
    return [{**content, CALL_IDS: [numbering.id_of(part) for part in parts_of(content)]} for content in contents]


class _Numbering:
    """Numbers the calls of a conversation, part by part."""

    def __init__(self) -> None:
        self._calls = 0
        self._unanswered: defaultdict[str, deque[str]] = defaultdict(deque)  # ids of calls by name

    def id_of(self, part: Any) -> str | None:
        """Return the call id of the next part."""
        if not isinstance(part, dict) or _NAMES.isdisjoint(part):
            return None
        if (call := object_in(part, CALL)) is not None:
            self._calls += 1
            call_id = text_at(call, "id") or f"call {self._calls}"
            self._unanswered[text_at(call, "name")].append(call_id)
            return call_id
        if (response := object_in(part, RESPONSE)) is None:
            return None
        call_ids = self._unanswered[text_at(response, "name")]
        call_id = text_at(response, "id") or (call_ids[0] if call_ids else f"no call {self._calls}")
        if call_id in call_ids:
            call_ids.remove(call_id)
        return call_id


def parts_of(content: Json) -> list[Any]:
    """Return the parts of a content."""
    parts = content.get("parts")
    return parts if isinstance(parts, list) else [] if parts is None else [parts]


def object_in(part: Any, names: Sequence[str]) -> Json | None:
    """Return the object under one of these names; None if there is none."""
    if isinstance(part, dict):
        for name in names:  # a loop, since every part of every request comes here
            value = part.get(name)
            if isinstance(value, dict):
                return value
    return None
