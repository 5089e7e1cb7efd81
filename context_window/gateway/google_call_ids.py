"""Call ids of Google's contents. Calls may have none: a response then answers the first unanswered call of its name."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import is_
from threading import Lock
from typing import Any

from session.transcripts.values import text_at

from .wire_format import Json

CALL_IDS = "callIds"
"""The key of a message's call ids, one for each part; None for other parts."""
CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
KNOWN = 64
"""Conversations that are remembered: the most recently used ones."""
_NAMES = frozenset({*CALL, *RESPONSE})


@dataclass(slots=True)
class _Numbered:
    """Contents with their call ids.

    Attributes:
        contents: The client's contents.
        copies: Copies of them with call ids.
        calls: Calls so far.
        unanswered: Ids of the calls without a response, by name.
        time: When they were passed last, in seconds.
    """

    contents: list[Json] = field(default_factory=list)
    copies: list[Json] = field(default_factory=list)
    calls: int = 0
    unanswered: defaultdict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    time: float = 0.0

    def begins(self, contents: Sequence[Json]) -> bool:
        """True if these contents begin with the same objects. The ids of a content depend only on the contents up to it."""
        return len(self.contents) <= len(contents) and all(map(is_, self.contents, contents))

    def continued(self, contents: Sequence[Json]) -> _Numbered:
        """Return these contents, which begin with those that are here, with their call ids."""
        unanswered = {name: deque(ids) for name, ids in self.unanswered.items() if ids}
        new = _Numbered(list(contents), list(self.copies), self.calls, defaultdict(deque, unanswered))
        for content in contents[len(self.contents) :]:
            new.copies.append({**content, CALL_IDS: [new.id_of(part) for part in parts_of(content)]})
        return new

    def id_of(self, part: Any) -> str | None:
        """Return the call id of the next part."""
        if not isinstance(part, dict) or _NAMES.isdisjoint(part):
            return None
        if (call := object_in(part, CALL)) is not None:
            self.calls += 1
            call_id = text_at(call, "id") or f"call {self.calls}"
            self.unanswered[text_at(call, "name")].append(call_id)
            return call_id
        if (response := object_in(part, RESPONSE)) is None:
            return None
        call_ids = self.unanswered[text_at(response, "name")]
        call_id = text_at(response, "id") or (call_ids[0] if call_ids else f"no call {self.calls}")
        if call_id in call_ids:
            call_ids.remove(call_id)
        return call_id


class CallIds:
    """Adds call ids to contents. Contents that were passed before, as the same objects, are not looked at again. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            clock: Returns the time in seconds.
        """
        self._clock = clock
        self._lock = Lock()
        self._known: list[_Numbered] = []  # the most recently used last

    def added_to(self, contents: Sequence[Json]) -> list[Json]:
        """Return copies of the contents with the call ids of their parts beside them. The contents must not be changed later."""
        with self._lock:
            candidates = list(self._known)
        begun = max((each for each in candidates if each.begins(contents)), key=lambda each: len(each.contents), default=_Numbered())
        numbered = begun.continued(contents)
        numbered.time = self._clock()
        with self._lock:
            self._known = [*(each for each in self._known if each is not begun), numbered][-KNOWN:]
        return list(numbered.copies)

    def forget_idle(self, seconds: float) -> None:
        """Forget the contents that were passed last so many seconds ago, or earlier."""
        end = self._clock() - seconds
        with self._lock:
            self._known = [each for each in self._known if each.time > end]


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
