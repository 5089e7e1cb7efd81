"""`Session`: the log of a conversation, and all that can be done to one. What it holds and how it grows lives in `record.py`."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any

from .errors import UnknownItemError
from .items import Item
from .record import Record

if TYPE_CHECKING:
    from .providers.anthropic import AnthropicMessages


class Session(Record):
    """The ordered log of everything said in a conversation.

        session = Session()
        session.add_message("system", "You are terse.")
        session.add_message("user", "What is in main.py?")

    Items are frozen and their ids unique. Appending is O(1); every other edit takes a new list, so that snapshots
    (`items`, views) stay what they were, and whoever follows the log can tell an edit from growth.

    A session is for one thread at a time; snapshots taken from it may be read by any, while it goes on growing.

    Attributes:
        id: The session's own id.
        metadata: JSON values to carry along, yours to change. What cannot be saved is found when it is saved.
    """

    __slots__ = ()

    @classmethod
    def empty(cls) -> Session:
        """A session without items."""
        return Session()

    # Edits in place

    def pin(self, id: str) -> Item:
        """The item's pinned twin, which now stands in its place.

        Raises:
            UnknownItemError: No item has this id.
        """
        return self._set_pinned(id, True)

    def unpin(self, id: str) -> Item:
        """The item's unpinned twin, which now stands in its place.

        Raises:
            UnknownItemError: No item has this id.
        """
        return self._set_pinned(id, False)

    # Saving and sending

    def to_dict(self) -> dict[str, Any]:
        """The whole session as JSON values, the caller's to change; images as base64.

        Raises:
            FormatError: `metadata` or an item's `extra` was given a value that JSON cannot hold.
        """
        from .serial import session_to_dict

        return session_to_dict(self)

    @classmethod
    def from_dict(cls, data: object) -> Session:
        """The session that `to_dict` saved.

        Raises:
            FormatError: The data is damaged, of an unknown version, or no session; `.where` names the place.
        """
        from .serial import session_from_dict

        return session_from_dict(data)

    def to_anthropic_messages(self, *, caching: bool = False) -> AnthropicMessages:
        """`(messages, system)` for Anthropic's Messages API. See `session.providers.anthropic`."""
        from .providers.anthropic import to_anthropic

        return to_anthropic(self, caching=caching)

    # Inside

    def _set_pinned(self, id: str, pinned: bool) -> Item:
        place = self.position(id)
        if place is None:
            raise UnknownItemError(id)
        item = self._items[place]
        if item.pinned == pinned:
            return item
        twin = changed(item, pinned=pinned)
        settled = self._settled
        self._rewrite([*self._items[:place], twin, *self._items[place + 1 : self._length]])
        self._settled = settled
        return twin
