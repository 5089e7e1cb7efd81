"""Calls on the wire: ids and names that a provider takes, arguments as an object."""

from __future__ import annotations

import json
import re
from typing import Any

from session.door import clean_json
from session.errors import FormatError
from session.stack import with_room

RAW_ARGUMENTS = "arguments"
"""The key that arguments stand under where they are no JSON object."""


def safe(text: str, unsafe: str, longest: int, empty: str) -> str:
    """The text with each character that matches `unsafe` replaced by "_", at most `longest` characters; `empty` for none."""
    return re.sub(unsafe, "_", text)[:longest] or empty


class CallIds:
    """Call ids made safe and unique, first come first served: a longer log gives every earlier call the same id.

    ids = CallIds(r"[^a-zA-Z0-9_-]", 64)
    ids.take("fc|1"), ids.take("fc|1")      # "fc_1", "fc_1_2"
    """

    def __init__(self, unsafe: str, longest: int) -> None:
        """
        Args:
            unsafe: A pattern for the characters to replace.
            longest: Characters an id may have.
        """
        self._unsafe = unsafe
        self._longest = longest
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        """The id for one more call that says this one."""
        wanted = found = safe(call_id, self._unsafe, self._longest, "call")
        number = self._repeats.get(wanted, 1)
        while found in self._taken:
            number += 1
            found = f"{wanted[: self._longest - len(str(number)) - 1]}_{number}"
        self._repeats[wanted] = number
        self._taken.add(found)
        return found


def arguments_object(arguments: str) -> dict[str, Any]:
    """The arguments as a JSON object: `{}` for a blank text, `{"arguments": text}` for what is no object.

    No object is: broken JSON, a list or another value, NaN and infinities, nesting or integers that Python refuses.
    """
    if not arguments.strip():
        return {}
    try:
        found = clean_json(with_room(lambda: json.loads(arguments)), "arguments")
    except (ValueError, RecursionError, FormatError):
        return {RAW_ARGUMENTS: arguments}
    return found if isinstance(found, dict) else {RAW_ARGUMENTS: arguments}
