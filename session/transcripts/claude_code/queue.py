"""The queue of what was typed while the model was at work. What becomes of it in a session is decided in `lines.py`.

Notes about tasks wait in the same queue, as JSON or in tags; older versions never say that those left it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
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
    """What waits, oldest first. Each operation takes the same time however much waits."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, Queued] = OrderedDict()  # by number
        self._by_text: dict[str, list[int]] = {}
        self._untried: deque[int] = deque()  # numbers of what may be a prompt; some may have left
        self._put = 0

    def put(self, entry: Entry, parts: tuple[Part, ...]) -> None:
        """Adds one at the end."""
        queued = self._waiting[self._put] = Queued(entry, parts)
        self._by_text.setdefault(queued.text, []).append(self._put)
        self._untried.append(self._put)
        self._put += 1

    def drop_first(self) -> None:
        """Takes the oldest out: a turn begins with it, and a line of its own will bring it."""
        if self._waiting:
            self._waiting.popitem(last=False)

    def drop(self, text: str) -> None:
        """Takes out what has this text: a line of its own brought it."""
        for number in self._by_text.pop(text, ()):
            self._waiting.pop(number, None)

    def clear(self) -> None:
        """Takes everything out: the user edits it."""
        self._waiting.clear()
        self._by_text.clear()
        self._untried.clear()

    def take_prompt(self) -> Queued | None:
        """The oldest prompt, taken out, or None."""
        while self._untried:
            number = self._untried.popleft()
            if (queued := self._waiting.get(number)) is not None and queued.is_prompt:
                return self._waiting.pop(number)
        return None
