"""Replays a transcript turn by turn: the log grows as it did, and a view is made at every request point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from session.items import Item, Message, MessageCategory
from session.session import Session
from session.units import Grouping

from ..display.render import Draw
from .chat import Chat
from .render import dim, empty_line, item_block


def starts_turn(item: Item) -> bool:
    """True if the item is a user message that is not context."""
    return isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT


@dataclass(frozen=True, slots=True)
class Turn:
    """A user message and everything up to the next one. The first turn also holds the items before it.

    Attributes:
        number: The turn's number, from 1.
        items: Its items.
    """

    number: int
    items: tuple[Item, ...]


def turns_of(log: Session) -> list[Turn]:
    """Return the turns of a log, in order. Together they hold all its items."""
    turns: list[list[Item]] = []
    has_started = False
    for item in log.items:
        if not turns or (starts_turn(item) and has_started):
            turns.append([])
        has_started = has_started or starts_turn(item)
        turns[-1].append(item)
    return [Turn(number, tuple(items)) for number, items in enumerate(turns, 1)]


class Replay:
    """Appends a transcript's turns to a chat's session, one at a time.

    Attributes:
        turns: All turns of the transcript.
    """

    def __init__(self, log: Session) -> None:
        self.turns = turns_of(log)
        self._breaks = log.response_breaks
        self._turns_done = 0
        self._groups = Grouping()

    @property
    def turns_left(self) -> int:
        """Number of turns still to come."""
        return len(self.turns) - self._turns_done

    def step(self, chat: Chat) -> Iterator[Draw]:
        """Append the next turn, and yield its drawings and the usage line after it."""
        turn = self.turns[self._turns_done]
        self._turns_done += 1
        yield dim(f"turn {turn.number:,} of {len(self.turns):,}")
        for item in turn.items:
            is_break = item.id in self._breaks
            if self._groups.starts_response(item, is_break):
                chat.manager.process_session(chat.session)  # a request point: the view made here is final
            self._groups.feed(item, is_break)
            chat.session.append(item)
            if is_break:
                chat.session.restore_seams(chat.session.response_breaks | {item.id}, chat.session.settled)
            block = item_block(item)
            if block is not None:
                yield block
        yield chat.usage_line()
        yield empty_line


def empty_copy(log: Session) -> Session:
    """Return a session with the transcript's id and metadata, and no items."""
    return Session(id=log.id, metadata=log.metadata)
