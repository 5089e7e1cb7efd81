"""Entries: the records of a file with their items, before they are sorted into sessions. Also the ids of items."""

from __future__ import annotations

from dataclasses import dataclass, replace

from session.items import Item, Message, MessageCategory
from session.transcripts.account import Fate
from session.usage import Usage

CAVEAT = "caveat"
COMMAND = "command"
BOUNDARY = "boundary"
QUEUED = "queued"
"""Marks of entries: a note that a local command follows; a slash command that a user typed; a compaction boundary; a prompt
that was queued while the model was working."""


@dataclass(slots=True)
class Entry:
    """One record of the file, with its position in the tree of the conversation.

    Attributes:
        line: The line's number, counted from 1.
        uuid: The record's id, or an empty text.
        parent: Id of the record that it follows, or an empty text.
        session: The session id in the record, or else in the previous one.
        thread: The sidechain that it belongs to; empty for the main conversation.
        items: The items made from it.
        response: A name shared by all records of one response; empty for others.
        usage: The reported usage of the response.
        model: The model that gave the response.
        is_prompt: True if it contains a user's own words and so begins a turn.
        mark: CAVEAT, COMMAND, BOUNDARY, QUEUED or empty. It affects how the next records are read.
        compaction: For a compaction: its trigger, the tokens before it, and the first and last record that it preserved.
        fate: What became of it.
        reason: The reason for the fate.
        owner: Id of the session that it went into.
    """

    line: int
    uuid: str
    parent: str
    session: str
    thread: str
    items: tuple[Item, ...] = ()
    response: str = ""
    usage: Usage | None = None
    model: str = ""
    is_prompt: bool = False
    mark: str = ""
    compaction: dict[str, str | int] | None = None
    fate: Fate = "not context"
    reason: str = ""
    owner: str = ""

    @property
    def is_talk(self) -> bool:
        """True if it continues the conversation. Text that the tool adds by itself can be anywhere in the tree and does not count."""
        return any(not (isinstance(item, Message) and item.category is MessageCategory.CONTEXT) for item in self.items)


class EntryIds:
    """Item ids that are unique in a file: the first 8 characters of the record's uuid, or more if those are in use.

    The second item of a record gets `.1` at the end, the third `.2`. Records without a uuid use their line: `L17`.
    """

    LENGTHS = (8, 13, 18, 23)

    def __init__(self) -> None:
        self._used: set[str] = set()

    def base(self, uuid: str, line: int) -> str:
        """Return an unused id for the first item of a record."""
        full_id = uuid.replace(".", "-") or f"L{line}"
        candidates = [*(full_id[:length] for length in self.LENGTHS if uuid and length < len(full_id)), full_id]
        for candidate in candidates:
            if candidate not in self._used:
                return candidate
        number = 2
        while f"{full_id}-{number}" in self._used:
            number += 1
        return f"{full_id}-{number}"

    def use(self, item_id: str) -> None:
        """Mark an id as used."""
        self._used.add(item_id)


def item_id_at(base: str, place: int) -> str:
    """Return the id of the item at this place of its record, counted from 0."""
    return base if place == 0 else f"{base}.{place}"


def are_equal(items: tuple[Item, ...], other_items: tuple[Item, ...]) -> bool:
    """Return True if the items of two records are equal except for their ids and times."""
    return len(items) == len(other_items) and all(
        type(item) is type(other) and replace(other, id=item.id, created_at=item.created_at) == item
        for item, other in zip(items, other_items, strict=True)
    )
