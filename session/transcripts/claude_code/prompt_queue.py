"""The queue of prompts that were typed while the model was working. `line_reader.py` decides what becomes of them.

Notes about tasks are in the same queue, as JSON or in tags. Older versions never log that those left it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

from session.parts import Part, Text

from .entry import Entry
from .injected_text import source_of


@dataclass(frozen=True, slots=True, eq=False)
class Queued:
    """A prompt or note in the queue.

    Attributes:
        entry: The record that added it.
        parts: Its content.
    """

    entry: Entry
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its first text, or an empty one."""
        return next((part.text for part in self.parts if isinstance(part, Text)), "")

    @property
    def is_prompt(self) -> bool:
        """True if a user typed it for the model."""
        return bool(self.text.strip()) and self.text[0] not in "{/" and source_of(self.text) is None


class PromptQueue:
    """Queued prompts and notes, oldest first. Each operation takes constant time on average."""

    def __init__(self) -> None:
        self._members: OrderedDict[int, Queued] = OrderedDict()  # by number
        self._numbers_by_text: dict[str, list[int]] = {}
        self._candidates: deque[int] = deque()  # numbers of possible prompts; some may have left the queue
        self._next_number = 0

    def put(self, entry: Entry, parts: tuple[Part, ...]) -> None:
        """Add a prompt or note at the end."""
        queued = self._members[self._next_number] = Queued(entry, parts)
        self._numbers_by_text.setdefault(queued.text, []).append(self._next_number)
        self._candidates.append(self._next_number)
        self._next_number += 1

    def drop_first(self) -> None:
        """Remove the oldest: it begins a turn, and a line of its own will repeat it."""
        if self._members:
            self._members.popitem(last=False)

    def drop(self, text: str) -> None:
        """Remove everything with this text: a line of its own repeated it."""
        for number in self._numbers_by_text.pop(text, ()):
            self._members.pop(number, None)

    def clear(self) -> None:
        """Remove everything: the user is editing it."""
        self._members.clear()
        self._numbers_by_text.clear()
        self._candidates.clear()

    def take_prompt(self) -> Queued | None:
        """Remove and return the oldest prompt, or None if there is none."""
        while self._candidates:
            number = self._candidates.popleft()
            if (queued := self._members.get(number)) is not None and queued.is_prompt:
                return self._members.pop(number)
        return None
