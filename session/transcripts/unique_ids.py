"""Ids that are unique within one session. Ids of tool calls, which their results repeat, are in `call_ids.py`."""

from __future__ import annotations


class UniqueIds:
    """Hands out each id once: `msg`, then `msg.2`, then `msg.3`."""

    def __init__(self) -> None:
        self._issued: set[str] = set()
        self._last_numbers: dict[str, int] = {}

    def claim(self, wanted: str) -> str:
        """Return the wanted id, with a number at the end if it is already in use."""
        number = self._last_numbers.get(wanted, 1)  # start from the last one: a file may use one id for everything
        unique_id = wanted
        while unique_id in self._issued:
            number += 1
            unique_id = f"{wanted}.{number}"
        self._last_numbers[wanted] = number
        self._issued.add(unique_id)
        return unique_id
