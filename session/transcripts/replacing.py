"""What each compaction of a log replaces, settled in one walk when all records are read.

1. A compaction replaces the items before it that stand: those that are no system messages and that no earlier compaction
   replaced. So all compactions of a log together name each item at most once: n lines name at most n ids, not n².
2. It may keep some of them (`Keeps`): those from a certain place on, some by their ids, or, as older versions of Codex did,
   the latest prompts.
3. The items that stand are in three queues, by what a compaction can keep without naming it: prompts, repeated context, and
   all others. A queue is taken from at its front, and what stays behind it is not looked at. So each item is handled a
   constant number of times, and once more for each time that it is kept by its id.
4. The walk comes last because a rollback may take compactions back. A list made earlier would cost the length of the log
   for each of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from session.items import Item, Message, MessageCategory


@dataclass(frozen=True, slots=True)
class Keeps:
    """What a compaction leaves as it is.

    Attributes:
        start: A place in the order in which the items were put: those from there on stay.
        ids: Items before it that stay.
        letters: If this is a number, the latest prompts of at most so many characters together stay, and so does what every
            request repeated.
        is_optional: True if a compaction that replaces nothing is to be left out.
    """

    start: int
    ids: frozenset[str] = frozenset()
    letters: int | None = None
    is_optional: bool = False


def is_prompt(item: Item) -> bool:
    """True for a user's own message."""
    return isinstance(item, Message) and item.role == "user" and item.category is MessageCategory.DIALOG


def is_repeated(item: Item) -> bool:
    """True for what older versions of Codex repeated in every request: AGENTS.md and the environment."""
    return isinstance(item, Message) and item.role == "user" and item.extra.get("source") in ("memory", "environment context")


def letters_of(item: Item) -> int:
    """Return the number of characters of a message's text; 0 for other items."""
    return len(item.text) if isinstance(item, Message) else 0


def replaced(items: Iterable[Item], compactions: dict[str, Keeps]) -> dict[str, tuple[str, ...]]:
    """Return the ids that each compaction replaces, by the compaction's own id, in the order in which the items were put.

    Compactions to be left out are not in the result, nor in that of others.

    Args:
        items: The log, in that order.
        compactions: The compactions to settle, by their ids. Other compactions are items like any other.
    """
    prompts, repeated, others = _Queue(), _Queue(), _Queue()
    letters = 0  # of the prompts that stand
    ids: dict[str, tuple[str, ...]] = {}
    for place, item in enumerate(items):
        keeps = compactions.get(item.id)
        if keeps is not None:
            if keeps.letters is None:
                gone_prompts = prompts.take(keeps.start, keeps.ids)
                gone = [*repeated.take(keeps.start, keeps.ids), *others.take(keeps.start, keeps.ids)]
            else:
                gone_prompts, gone = prompts.take_letters(keeps.start, letters - keeps.letters), others.take(keeps.start)
            letters -= sum(letters_of(prompt) for _, prompt in gone_prompts)
            if keeps.is_optional and not (gone_prompts or gone):
                continue
            ids[item.id] = tuple(one.id for _, one in sorted(chain(gone_prompts, gone), key=itemgetter(0)))
        if item.category is not MessageCategory.SYSTEM:
            queue = prompts if is_prompt(item) else repeated if is_repeated(item) else others
            queue.put(place, item)
            letters += letters_of(item) if queue is prompts else 0
    return ids


class _Queue:
    """Items that stand, each with its place, in order. What was taken stays in the list, before the front."""

    def __init__(self) -> None:
        self._members: list[tuple[int, Item]] = []
        self._front = 0

    def put(self, place: int, item: Item) -> None:
        """Add an item at the end."""
        self._members.append((place, item))

    def take(self, start: int, ids: frozenset[str] = frozenset()) -> list[tuple[int, Item]]:
        """Remove and return the items before a place, except those with these ids."""
        end = bisect_left(self._members, start, lo=self._front, key=itemgetter(0))
        before = self._members[self._front : end]
        stay = [member for member in before if member[1].id in ids] if ids else []
        self._front = end - len(stay)
        self._members[self._front : end] = stay
        return [member for member in before if member[1].id not in ids] if stay else before

    def take_letters(self, start: int, letters: int) -> list[tuple[int, Item]]:
        """Remove and return the oldest messages before a place, until they have at least so many characters."""
        first = self._front
        while letters > 0 and self._front < len(self._members) and self._members[self._front][0] < start:
            letters -= letters_of(self._members[self._front][1])
            self._front += 1
        return self._members[first : self._front]
