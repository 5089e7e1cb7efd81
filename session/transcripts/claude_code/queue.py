"""The queue of what was typed while the model was at work. What becomes of it in a session is decided in `lines.py`.

Notes about tasks wait in the same queue, as JSON or in tags; older versions never say that those left it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from session.parts import Part, Text

from .entry import Entry
from .injected import source_of


@dataclass(frozen=True, slots=True, eq=False)
class Queued:
    """One thing that waits.

    Attributes:
        entry: The record that put it into the queue.
        parts: What it is.
    """

    entry: Entry
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its first text, or an empty one."""
        return next((part.text for part in self.parts if isinstance(part, Text)), "")

    @property
    def is_prompt(self) -> bool:
        """Whether it is something for the model that a user typed."""
        return bool(self.text.strip()) and self.text[0] not in "{/" and source_of(self.text) is None


class Queue:
    """What waits, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[Queued] = deque()

    def put(self, entry: Entry, parts: tuple[Part, ...]) -> None:
        """Adds one at the end."""
        self._waiting.append(Queued(entry, parts))

    def drop_first(self) -> None:
        """Takes the oldest out: a turn begins with it, and a line of its own will bring it."""
        if self._waiting:
            self._waiting.popleft()

    def drop(self, text: str) -> None:
        """Takes out what has this text: a line of its own brought it."""
        if self._waiting:
            self._waiting = deque(one for one in self._waiting if one.text != text)

    def clear(self) -> None:
        """Takes everything out: the user edits it."""
        self._waiting.clear()

    def take_prompt(self) -> Queued | None:
        """The oldest prompt, taken out, or None."""
        found = next((one for one in self._waiting if one.is_prompt), None)
        if found is not None:
            self._waiting.remove(found)
        return found
