"""Messages that every request of a session repeats. Callers may change what they receive, and no later request shows it.

Copying a long conversation for every request costs more than making the part that is new. So a message that no later item changes exists
twice: an original that nobody else holds, and a copy that is handed out again and again. Before each use the copies are compared with their
originals, and those that a caller has changed are made again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


class HandedOut:
    """The copies of a conversation's messages, without the last one: later blocks may join that."""

    def __init__(self) -> None:
        self._copies: list[Json] = []

    def take(self, originals: list[Json]) -> list[Json]:
        """Return the messages as a new list. Only its last message is new, the others are handed out again.

        Args:
            originals: The messages. Those before the last one were the same in the last call, up to its last one.
        """
        finished = max(0, len(originals) - 1)
        del self._copies[finished:]
        if self._copies != originals[: len(self._copies)]:
            pairs = zip(self._copies, originals, strict=False)
            self._copies = [copy if copy == original else copied(original) for copy, original in pairs]
        self._copies += map(copied, originals[len(self._copies) : finished])
        return [*self._copies, *map(copied, originals[finished:])]


def copied(value: Any) -> Any:
    """Return a copy of JSON values that shares nothing that could be changed."""
    if isinstance(value, dict):
        return {key: copied(member) if isinstance(member, dict | list) else member for key, member in value.items()}
    if isinstance(value, list):
        return [copied(member) if isinstance(member, dict | list) else member for member in value]
    return value


def own_message(messages: list[Json], number: int) -> Json:
    """Replace a message by a copy of its own, which may be changed, and return that."""
    messages[number] = copied(messages[number])
    return messages[number]
