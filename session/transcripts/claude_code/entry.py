"""An entry: one record of the file with the items it gave, before it has a session. And how items get their ids."""

from __future__ import annotations

from dataclasses import dataclass

from session.items import Item, Message, MessageCategory
from session.transcripts.account import Fate
from session.usage import Usage


@dataclass(slots=True)
class Entry:
    """One record of the file, with what the tree of the conversation needs to know of it.

    Attributes:
        line: Its line, counted from 1.
        uuid: Its own id, or an empty text.
        parent: The id of the record it follows, or an empty text.
        session: The id of the session it names, else that of the record before.
        thread: The sidechain it belongs to; empty for the main conversation.
        items: What it gave.
        response: What all records of one answer of the model share; empty for others.
        usage: What it reports of that answer.
        model: The model that gave it.
        typed: True if a user's own words are in it: it begins a turn.
        mark: What the record after it has to know of it, as one of the words below, or empty.
        told: For a compaction: what triggered it, the tokens before it, and the first and last record that it left as they were.
        fate: What became of it.
        reason: Why.
        home: The id of the session it went into.
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
    typed: bool = False
    mark: str = ""
    told: dict[str, str | int] | None = None
    fate: Fate = "not context"
    reason: str = ""
    home: str = ""

    @property
    def talks(self) -> bool:
        """Whether the conversation goes on with it. What the tool adds of its own accord hangs anywhere, so it does not count."""
        return any(not (isinstance(item, Message) and item.category is MessageCategory.CONTEXT) for item in self.items)


CAVEAT = "caveat"
COMMAND = "command"
BOUNDARY = "boundary"
QUEUED = "queued"
"""The marks: a note that a local command follows; a slash command that a user typed; the place of a compaction; a prompt
that waited in the queue while the model was at work."""


class Ids:
    """Item ids, unique in a file: the first 8 characters of the record's uuid, more of them where those are taken.

    The second item of a record has `.1` at the end, the third `.2`. Records without a uuid are known by their line: `L17`.
    """

    LENGTHS = (8, 13, 18, 23)

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def base(self, uuid: str, line: int) -> str:
        """An id that is free, as are all that begin with it and a point."""
        whole = uuid.replace(".", "-") or f"L{line}"
        candidates = [*(whole[:length] for length in self.LENGTHS if uuid and length < len(whole)), whole]
        for candidate in candidates:
            if candidate not in self._taken:
                return candidate
        number = 2
        while f"{whole}-{number}" in self._taken:
            number += 1
        return f"{whole}-{number}"

    def take(self, base: str) -> None:
        """Marks an id as taken."""
        self._taken.add(base)


def name(base: str, place: int) -> str:
    """The id of the item at this place of its record, counted from 0."""
    return base if place == 0 else f"{base}.{place}"
