"""The digests of a view: which lines of which items each of them shows, and where it stands.

A digest is one message in the user's voice. It stands before the first of its items, or before the response which that one is in: a
response is never split. That place is its name here. A digest whose items have all left is gone.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

Setter: TypeAlias = Callable[[Any, int, Any], None]
"""Assigns a value to a key of a dictionary, so that it can be undone."""


class Excerpt(NamedTuple):
    """What a digest shows of an item.

    Attributes:
        lines: Numbers of its lines, in rising order.
        tokens: Tokens of these with their heading.
    """

    lines: tuple[int, ...]
    tokens: int


class Digests:
    """The digests of a view.

    Attributes:
        lines: By position of an item that was put into a digest, the numbers of its lines.
        before: By position of such an item, the position before which its digest stands.
        sizes: By that position, the number of items of the digest that are in the view.
        places: By that position, the items that were put into the digest, in order.
    """

    def __init__(self, hidden: Sequence[int]) -> None:
        """
        Args:
            hidden: By position, 0 for an item that is in the view. It changes with the view.
        """
        self._hidden = hidden
        self.lines: dict[int, tuple[int, ...]] = {}
        self.before: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.places: dict[int, tuple[int, ...]] = {}
        self._order: list[int] = []  # all that there have been

    def has(self, place: int) -> bool:
        """True if a digest shows lines of the item instead of the item, if it is in the view."""
        return place in self.before

    def items(self, before: int) -> list[int]:
        """Return the items of the digest that stands before this position, in order. It has the id of the first one."""
        return [place for place in self.places.get(before, ()) if not self._hidden[place] and self.before.get(place) == before]

    def heads(self) -> list[int]:
        """Return the first item of each digest."""
        return [self.items(before)[0] for before in self._order if self.sizes.get(before)]

    def is_head(self, place: int) -> bool:
        """True for the first item of a digest."""
        return self.has(place) and self.items(self.before[place])[:1] == [place]

    def put(self, place: int, lines: tuple[int, ...], before: int, assign: Setter) -> None:
        """Show lines of an item in a digest. If it was in one, it has been taken out of it."""
        assign(self.lines, place, lines)
        assign(self.before, place, before)
        assign(self.sizes, before, self.sizes.get(before, 0) + 1)
        places = self.places.get(before, ()) if self.sizes[before] > 1 else ()
        if place not in places:
            assign(self.places, before, tuple(sorted((*places, place))))

    def take_out(self, place: int, assign: Setter) -> None:
        """Note that an item has left the view, or this digest."""
        assign(self.sizes, self.before[place], self.sizes[self.before[place]] - 1)

    def first_from(self, number: int) -> int:
        """Return the number of the first digest that is not gone, among all that there have been in order, from this number on."""
        while number < len(self._order) and not self.sizes.get(self._order[number]):
            number += 1
        return number

    def at(self, number: int) -> int | None:
        """Return the position before which the digest with this number stands; None if there is none."""
        return self._order[number] if number < len(self._order) else None

    def enter(self, before: int) -> int:
        """Return the number of the digest that stands before a position, a new one or not."""
        at = bisect_left(self._order, before)
        if at == len(self._order) or self._order[at] != before:
            insort(self._order, before)
        return at
