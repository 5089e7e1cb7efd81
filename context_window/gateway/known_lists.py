"""`KnownLists`: what was made from lists of messages, found again by a list that begins with the same objects.

1. The messages that a body has in common with an earlier one are the same objects (`known_bodies.py`), and nobody changes them. So what was
   made from a message holds for as long as the object is the same.
2. Lists are compared object by object, in C. A list of another conversation differs in its first message.
3. A list takes the place of the one that it continues. A rewind and a sub-agent may share the first messages only: then both stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from session.common_start import common_start

from .wire_format import Json

T = TypeVar("T")

KNOWN = 64
"""Lists that are remembered: the most recently used ones."""


@dataclass(frozen=True, slots=True, eq=False)
class _Known(Generic[T]):
    """A list of messages.

    Attributes:
        messages: The messages. They are held so that no other object gets the place of one of them in memory.
        made: What was made from them.
        size: Its size.
        time: When it was used last, in seconds.
    """

    messages: list[Json]
    made: T
    size: int
    time: float

    def common(self, messages: Sequence[Json]) -> int:
        """Return the number of leading messages that are the same objects."""
        return common_start(self.messages, messages)


class KnownLists(Generic[T]):
    """Remembers what was made from the most recently used lists of messages. Thread-safe."""

    def __init__(self, most: int = KNOWN, size_of: Callable[[T], int] = lambda _: 1, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            most: Largest sum of the sizes of what is kept.
            size_of: Returns the size of what was made from a list: 1 by default, so that lists are counted.
            clock: Returns the time in seconds.
        """
        self._most, self._size_of, self._clock = most, size_of, clock
        self._lock = Lock()
        self._known: list[_Known[T]] = []  # the most recently used last

    def made_from(self, messages: list[Json], make: Callable[[int, T | None], T]) -> T:
        """Return what is made from a list of messages, and remember it.

        Args:
            messages: The messages.
            make: Makes it. Its arguments are the number of leading messages that an earlier list had, and what was made from that list;
                0 and None if there is no such list.
        """
        with self._lock:
            known = list(self._known)
        common, earlier = max(((each.common(messages), each) for each in reversed(known)), key=lambda pair: pair[0], default=(0, None))
        if earlier is None or not common:
            common, earlier = 0, None
        made = make(common, None if earlier is None else earlier.made)
        replaced = earlier if earlier is not None and 2 * common > len(earlier.messages) else None
        with self._lock:
            self._known = [each for each in self._known if each is not replaced]
            self._known.append(_Known(list(messages), made, self._size_of(made), self._clock()))
            size = sum(each.size for each in self._known)
            while size > self._most:
                size -= self._known.pop(0).size
        return made

    def forget_idle(self, seconds: float) -> None:
        """Forget the lists that were used last so many seconds ago, or earlier."""
        end = self._clock() - seconds
        with self._lock:
            self._known = [each for each in self._known if each.time > end]
