"""What a conversation in the terminal holds: the session, its manager, what the manager told, images that wait for a message.

What commands do with it is in `commands.py`; how turns go on, in `replay.py` and `live.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from session.errors import StoreConflictError, StoreError
from session.items import FunctionCall
from session.parts import Image
from session.session import Session
from session.units import is_answer

from ..errors import ContextWindowError
from ..events import Event, PartRefused, ThresholdCrossed, WindowEvent
from ..manager import ContextWindowManager

if TYPE_CHECKING:
    from session.store import SessionStore
    from session.summarizers import Summarizer


class ChatError(ContextWindowError):
    """What was asked for cannot be done; the message is one line, and says what to do instead."""


class News:
    """What the manager has told and nobody was shown yet."""

    def __init__(self) -> None:
        self._told: list[Event] = []
        self._said: list[str] = []

    def hear(self, event: Event) -> None:
        """Takes note of what the manager tells: its listener."""
        self._told.append(event)

    def say(self, text: str) -> None:
        """Takes note of what the chat itself has to tell."""
        self._said.append(text)

    def latest(self) -> list[str]:
        """What was told since this was asked last, in words: of each kind the last, for it speaks for those before it."""
        told, self._told = self._told, []
        last = {type(event): news_of(event) for event in told if not isinstance(event, ThresholdCrossed)}
        refused = sum(isinstance(event, PartRefused) for event in told)
        if refused > 1:
            last[PartRefused] = f"{refused:,} images or documents replaced by notes: the provider refused them; /trims lists them"
        said, self._said = self._said, []
        return [*said, *(text for text in last.values() if text)]


def _no_files(*_: object) -> NoReturn:
    raise ChatError("this chat reads and writes no files")


@dataclass(slots=True)
class Chat:
    """One conversation.

    Attributes:
        manager: Who decides what the model sees; `news.hear` is its listener.
        session: The log.
        news: What the manager told.
        model: The model's name, where there is one.
        keeper: Where sessions are kept; None for a replay, which keeps nothing.
        summarizer: Who writes summaries; None where there is nobody.
        check_model: Raises ChatError where a model of this name cannot be used here.
        write_file: Writes a session to a file of this path, all or nothing; its last argument is True to replace whatever is there. Raises
            ChatError if it cannot, or must not.
        read_file: The session in a file; raises an error of ours where it cannot.
        replaying: Whether the turns come from a transcript.
        attached: Images that wait for the next message.
        again: Whether the model is to be asked again with what there is.
        over: Whether the user has left.
    """

    manager: ContextWindowManager
    session: Session
    news: News
    write_file: Callable[[Session, str, bool], None] = _no_files
    read_file: Callable[[str], Session] = _no_files
    model: str | None = None
    keeper: SessionStore | None = None
    summarizer: Summarizer | None = None
    check_model: Callable[[str], None] = field(default=lambda _: None)
    replaying: bool = False
    attached: list[Image] = field(default_factory=list)
    again: bool = False
    over: bool = False

    @property
    def begun(self) -> bool:
        """Whether the user has said anything."""
        return self.session.turn_count() > 0

    @property
    def answered(self) -> bool:
        """Whether the log ends in an answer, be it one that was stopped."""
        last = self.session.items[-1] if self.session.items else None
        return last is not None and is_answer(last) and not isinstance(last, FunctionCall)

    def keep(self) -> None:
        """Writes what is new, where sessions are kept; one in which nothing was said yet is not worth it.

        Where another chat has gone on with the session meanwhile, this one goes on as a fork of it: both are kept.

        Raises:
            StoreError: It cannot be written.
        """
        if self.keeper is None or not self.begun:
            return
        try:
            self.keeper.save(self.session)
        except StoreConflictError:
            before, self.session = self.session.id, self.session.fork()
            self.keeper.save(self.session)
            self.news.say(f"another chat has gone on with {before}: this one goes on as {self.session.id}")

    def keep_meanwhile(self) -> None:
        """Writes what is new while a turn goes on in the session. What is in the way does not stop the turn: `keep` meets it at its end."""
        if self.keeper is not None and self.begun:
            with suppress(StoreError):
                self.keeper.save(self.session)

    def usage(self) -> dict[str, int]:
        """What the next request would cost, as `get_token_usage` gives it."""
        self.manager.process_session(self.session)
        return self.manager.get_token_usage()


def news_of(event: WindowEvent) -> str:
    """What an event says beside the usage, which stands next to it."""
    return str(event).removeprefix(WindowEvent.__str__(event)).lstrip(" ,;")
