"""Resolves which items each compaction of a log replaces, in one walk after all records are read.

1. A compaction replaces the live items before it: those that are not system messages and that no earlier compaction
   replaced. So all compactions of a log together name each item at most once: n lines name at most n ids, not n².
2. It may keep some of them (`KeepRule`): the items from a certain position on, items with certain ids, or, in older versions of
   Codex, the latest prompts.
3. Live items are in three queues, according to what a compaction can keep without naming it: prompts, repeated context,
   and all others. A compaction takes items from the front of a queue and does not look at the rest. So each item is handled
   a constant number of times, plus once for each time it is kept by its id.
4. The walk comes last because a rollback may remove compactions. Lists made earlier would cost the length of the log for
   each compaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from session.items import Item, Message, MessageCategory


@dataclass(frozen=True, slots=True)
class KeepRule:
    """The items before a compaction that it does not replace.

    Attributes:
        start: A position in the order in which items were put. Items from there on stay.
        ids: Ids of items before it that stay.
        prompt_chars: If this is a number, the latest prompts with at most this many characters in total stay, and so does the
            context that every request repeated.
        is_optional: True if the compaction is to be left out should it replace nothing.
    """

    start: int
    ids: frozenset[str] = frozenset()
    prompt_chars: int | None = None
    is_optional: bool = False


def is_prompt(item: Item) -> bool:
    """Return True for a user's own message."""
    return isinstance(item, Message) and item.role == "user" and item.category is MessageCategory.DIALOG


def is_repeated_context(item: Item) -> bool:
    """Return True for what older versions of Codex repeated in every request: AGENTS.md and the environment."""
    return isinstance(item, Message) and item.role == "user" and item.extra.get("source") in ("memory", "environment context")


def text_length(item: Item) -> int:
    """Return the number of characters in a message's text; 0 for other items."""
    return len(item.text) if isinstance(item, Message) else 0


def resolve_replacements(items: Iterable[Item], compactions: dict[str, KeepRule]) -> dict[str, tuple[str, ...]]:
    """Return the ids that each compaction replaces, by the compaction's own id, in the order in which the items were put.

    Optional compactions that replace nothing are not in the result, nor among the ids that other compactions replace.

    Args:
        items: The log, in that order.
        compactions: The compactions to resolve, by their ids. Other compactions are items like any other.
    """
    prompts, repeated, other_items = _Queue(), _Queue(), _Queue()
    prompt_chars = 0  # of the live prompts
    replaces: dict[str, tuple[str, ...]] = {}
    for position, item in enumerate(items):
        rule = compactions.get(item.id)
        if rule is not None:
            if rule.prompt_chars is None:
                old_prompts = prompts.take(rule.start, rule.ids)
                old_others = [*repeated.take(rule.start, rule.ids), *other_items.take(rule.start, rule.ids)]
            else:
                old_prompts = prompts.take_chars(rule.start, prompt_chars - rule.prompt_chars)
                old_others = other_items.take(rule.start)
            prompt_chars -= sum(text_length(prompt) for _, prompt in old_prompts)
            if rule.is_optional and not (old_prompts or old_others):
                continue
            replaces[item.id] = tuple(old.id for _, old in sorted(chain(old_prompts, old_others), key=itemgetter(0)))
        if item.category is not MessageCategory.SYSTEM:
            queue = prompts if is_prompt(item) else repeated if is_repeated_context(item) else other_items
            queue.put(position, item)
            prompt_chars += text_length(item) if queue is prompts else 0
    return replaces


class _Queue:
    """Live items in order, each with its position. Items that were taken stay in the list, before its front."""

    def __init__(self) -> None:
        self._members: list[tuple[int, Item]] = []
        self._front = 0

    def put(self, position: int, item: Item) -> None:
        """Add an item at the end."""
        self._members.append((position, item))

    def take(self, start: int, ids: frozenset[str] = frozenset()) -> list[tuple[int, Item]]:
        """Remove and return the items before `start`, except those with these ids."""
        end = bisect_left(self._members, start, lo=self._front, key=itemgetter(0))
        before = self._members[self._front : end]
        staying = [member for member in before if member[1].id in ids] if ids else []
        self._front = end - len(staying)
        self._members[self._front : end] = staying
        return [member for member in before if member[1].id not in ids] if staying else before

    def take_chars(self, start: int, chars: int) -> list[tuple[int, Item]]:
        """Remove and return the oldest messages before `start` until they have at least `chars` characters."""
        first = self._front
        while chars > 0 and self._front < len(self._members) and self._members[self._front][0] < start:
            chars -= text_length(self._members[self._front][1])
            self._front += 1
        return self._members[first : self._front]
