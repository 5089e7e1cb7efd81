"""A transcript gone through turn by turn, as if it happened now: the log grows, and is managed wherever the model was called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from session.items import Item, Message, MessageCategory
from session.session import Session
from session.units import Grouping

from ..display.rendering import Draw
from .chat import Chat
from .drawing import blank, item_lines, quiet, usage_line


def starts_turn(item: Item) -> bool:
    """Whether a turn begins with the item: a user message that is no context."""
    return isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT


@dataclass(frozen=True, slots=True)
class Turn:
    """A user message and all up to the next one; the first holds what was before it too.

    Attributes:
        number: Counted from 1.
        items: What it consists of.
    """

    number: int
    items: tuple[Item, ...]


def turns_of(log: Session) -> list[Turn]:
    """The turns of a log, in order; together they are the whole log."""
    found: list[list[Item]] = []
    begun = False
    for item in log.items:
        if not found or (starts_turn(item) and begun):
            found.append([])
        begun = begun or starts_turn(item)
        found[-1].append(item)
    return [Turn(number, tuple(items)) for number, items in enumerate(found, 1)]


class Replay:
    """Puts a transcript's turns into a conversation, one at a time.

    Attributes:
        turns: All of them.
    """

    def __init__(self, log: Session) -> None:
        self.turns = turns_of(log)
        self._breaks = log.response_breaks
        self._done = 0
        self._groups = Grouping()

    @property
    def left(self) -> int:
        """How many turns are still to come."""
        return len(self.turns) - self._done

    def step(self, chat: Chat) -> Iterator[Draw]:
        """Takes in the next turn: what is to be drawn of it, and the usage at its end."""
        turn = self.turns[self._done]
        self._done += 1
        yield quiet(f"turn {turn.number:,} of {len(self.turns):,}")
        for item in turn.items:
            breaks = item.id in self._breaks
            if self._groups.starts_response(item, breaks):
                chat.manager.process_session(chat.session)  # here the model was called: what it was shown then stays decided
            self._groups.feed(item, breaks)
            chat.session.append(item)
            if breaks:
                chat.session.restore_seams(chat.session.response_breaks | {item.id}, chat.session.settled)
            drawn = item_lines(item)
            if drawn is not None:
                yield drawn
        usage = chat.usage()
        yield usage_line(usage, chat.news.latest())
        yield blank


def empty_copy(log: Session) -> Session:
    """A session as the transcript's was before anything was said."""
    return Session(id=log.id, metadata=log.metadata)
