"""Make call ids and tool names that a provider accepts, call ids that are unique in a response, and arguments that are an object."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from session.errors import FormatError
from session.items import FunctionCall, Item
from session.sanitize import clean_json
from session.stack import with_room

RAW_ARGUMENTS = "arguments"
"""The key that wraps arguments which are not a JSON object."""


def safe(text: str, unsafe: str, length: int, default: str) -> str:
    """Return the text with "_" for each character that matches `unsafe`, cut to `length` characters; `default` for an empty text."""
    return re.sub(unsafe, "_", text)[:length] or default


class CallIds:
    """Makes call ids safe and unique, in the order of the calls: appending to a log changes no earlier id.

    ids = CallIds(r"[^a-zA-Z0-9_-]", 64)
    ids.take("fc|1"), ids.take("fc|1")      # "fc_1", "fc_1_2"
    """

    def __init__(self, unsafe: str, length: int) -> None:
        """
        Args:
            unsafe: A pattern for the characters to replace.
            length: Maximum characters of an id.
        """
        self._unsafe = unsafe
        self._length = length
        self._used: set[str] = set()
        self._repeats: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        """Return the id to send for the next call, whose own id is `call_id`."""
        base = unique = safe(call_id, self._unsafe, self._length, "call")
        number = self._repeats.get(base, 1)
        while unique in self._used:
            number += 1
            unique = f"{base[: self._length - len(str(number)) - 1]}_{number}"
        self._repeats[base] = number
        self._used.add(unique)
        return unique


def with_unique_call_ids(items: Sequence[Item]) -> list[Item]:
    """Return the items, with repeated or empty call ids replaced: else an output could answer the wrong call."""
    used_ids: set[str] = set()
    unique_items: list[Item] = []
    for item in items:
        if isinstance(item, FunctionCall):
            candidates = chain([item.call_id], (f"{item.call_id or 'call'}_{number}" for number in range(2, len(items) + 3)))
            call_id = next(candidate for candidate in candidates if candidate and candidate not in used_ids)
            used_ids.add(call_id)
            unique_items.append(item if call_id == item.call_id else replace(item, call_id=call_id))
        else:
            unique_items.append(item)
    return unique_items


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return the arguments as a JSON object: `{}` for a blank text, `{"arguments": text}` for anything that is not an object.

    Not an object: broken JSON, lists and other values, NaN and infinities, nesting or integers that Python refuses.
    """
    if not arguments.strip():
        return {}
    try:
        value = clean_json(with_room(lambda: json.loads(arguments)), "arguments")
    except (ValueError, RecursionError, FormatError):
        return {RAW_ARGUMENTS: arguments}
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}
