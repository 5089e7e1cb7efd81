"""`Removed`: the items that a view leaves out of its log, and the one line that tells the model about them.

The line stands at the beginning of the request (`session/providers/conversation.py`). A view keeps it in `metadata["removed_items"]`, so it
is copied and saved with the view.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEY = "removed_items"
"""The key in the metadata of a view."""
ID_LENGTH = 12
"""Maximum characters of an id in the line."""
MAX_COUNT = 10**9 - 1

_ID = rf"[A-Za-z0-9_.-]{{1,{ID_LENGTH}}}"
_SHORT_ID = re.compile(_ID)
_ALIAS = re.compile(rf"[0-9a-f]{{{ID_LENGTH}}}")
_LINE = re.compile(rf"\[([1-9][0-9,]{{0,10}}) earlier items? removed to fit the window; recall ids? ({_ID})(?: to ({_ID}))?\]")


def short_id(item_id: str) -> str:
    """Return the id of an item as the line shows it: the id itself, or 12 digits of its hash if it is long or has other characters.

    `recall` accepts both.
    """
    if _SHORT_ID.fullmatch(item_id):
        return item_id
    from hashlib import sha256

    return sha256(item_id.encode()).hexdigest()[:ID_LENGTH]


def without_id(line: str) -> str:
    """Return a line about removed items without the ids, for a model that cannot recall. Any other text is returned unchanged."""
    return f"{line.partition(';')[0]}]" if _LINE.fullmatch(line) else line


def is_short_alias(text: str) -> bool:
    """True if the text has the form of such digits."""
    return _ALIAS.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Removed:
    """The items that were removed to fit the window. Those that left for a summary are not counted.

    Attributes:
        count: Number of items.
        first: Id of the first one.
        last: Id of the last one.
    """

    count: int
    first: str
    last: str

    @property
    def line(self) -> str:
        """The line for the model, such as `[143 earlier items removed to fit the window; recall ids m3 to m212]`."""
        first, last = short_id(self.first), short_id(self.last)
        items, ids = ("item", f"id {first}") if self.count == 1 else ("items", f"ids {first} to {last}")
        return f"[{min(self.count, MAX_COUNT):,} earlier {items} removed to fit the window; recall {ids}]"

    @classmethod
    def from_line(cls, line: str) -> Removed | None:
        """Return the items that a line tells about; None if the text is not exactly such a line."""
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        count, first, last = match.groups()
        removed = cls(int(count.replace(",", "")), first, last or first)
        return removed if removed.line == line else None

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Removed | None:
        """Return the value that a view keeps in its metadata; None if there is none or it is damaged."""
        match metadata.get(KEY):
            case {"count": int(count), "first": str(first), "last": str(last)} if count > 0:
                return cls(count, first, last)
            case _:
                return None

    def to_metadata(self) -> dict[str, Any]:
        """Return this value as an entry for a view's metadata."""
        return {KEY: {"count": self.count, "first": self.first, "last": self.last}}

    def followed_by(self, later: Removed) -> Removed:
        """Return both as one. `later` was removed from the view that these items had been removed from."""
        return Removed(self.count + later.count, self.first, later.last)
