"""The state of one chat: its session, manager, pending notices and images for the next message.

The commands are in `commands.py` and `session_commands.py`. Turns come from a model in `model_turn.py`, from a transcript in `replay.py`.
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

from ..display.render import Draw
from ..errors import ContextWindowError
from ..events.definitions import Event, PartRefused, ThresholdCrossed, WindowEvent
from ..manager import ContextWindowManager
from .render import usage_line

if TYPE_CHECKING:
    from session.store import SessionStore
    from session.summarizers import Summarizer


class ChatError(ContextWindowError):
    """The chat cannot do what the user asked. The message is one line and says what to do instead."""


class Notices:
    """Short notices for the user that have not been shown yet: the manager's events, and messages of the chat itself."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._messages: list[str] = []

    def add_event(self, event: Event) -> None:
        """Store an event. Pass this method to the manager as `on_event`."""
        self._events.append(event)

    def add_message(self, text: str) -> None:
        """Store a message of the chat itself."""
        self._messages.append(text)

    def take(self) -> list[str]:
        """Return the notices since the last call as texts. Of several events of one type, only the latest is included."""
        events, self._events = self._events, []
        latest = {type(event): event_text(event) for event in events if not isinstance(event, ThresholdCrossed)}
        refused_parts = sum(isinstance(event, PartRefused) for event in events)
        if refused_parts > 1:
            latest[PartRefused] = f"the provider refused {refused_parts:,} images or documents; notes replace them (see /trims)"
        messages, self._messages = self._messages, []
        return [*messages, *(text for text in latest.values() if text)]


def event_text(event: WindowEvent) -> str:
    """Return the event's text without its usage figures, which the usage line shows."""
    return str(event).removeprefix(WindowEvent.__str__(event)).lstrip(" ,;")


def _no_files(*_: object) -> NoReturn:
    raise ChatError("this chat cannot read or write files")


@dataclass(slots=True)
class Chat:
    """One conversation.

    Attributes:
        manager: Decides what the model sees. Its `on_event` is `notices.add_event`.
        session: The log.
        notices: Notices that the user has not seen yet.
        write_file: Writes a session to a path, completely or not at all. The last argument is True to replace any existing file.
            Raises ChatError if the file cannot or must not be written.
        read_file: Returns the session in a file. Raises ContextWindowError or SessionError if it cannot be read.
        model: The model's name; None if no model is set.
        store: Saves the sessions; None in a replay, which saves nothing.
        summarizer: Writes summaries; None if there is no model to write them.
        check_model: Raises ChatError if the chat cannot use a model of this name.
        is_replay: True if the turns come from a transcript.
        attached_images: Images for the next message.
        is_retry_requested: True if the model is to be called again with the current log.
        is_over: True once the user has left.
    """

    manager: ContextWindowManager
    session: Session
    notices: Notices
    write_file: Callable[[Session, str, bool], None] = _no_files
    read_file: Callable[[str], Session] = _no_files
    model: str | None = None
    store: SessionStore | None = None
    summarizer: Summarizer | None = None
    check_model: Callable[[str], None] = field(default=lambda _: None)
    is_replay: bool = False
    attached_images: list[Image] = field(default_factory=list)
    is_retry_requested: bool = False
    is_over: bool = False

    @property
    def has_started(self) -> bool:
        """True once the log holds a user message."""
        return self.session.turn_count() > 0

    @property
    def is_answered(self) -> bool:
        """True if the log ends in an answer of the model, even an interrupted one."""
        last_item = self.session.items[-1] if self.session.items else None
        return last_item is not None and is_answer(last_item) and not isinstance(last_item, FunctionCall)

    def save(self) -> None:
        """Save the new items in the store, if there is one. A session without a user message is not saved.

        If another chat has saved to the same session meanwhile, this chat continues in a fork, so that both are preserved.

        Raises:
            StoreError: The store cannot be written.
        """
        if self.store is None or not self.has_started:
            return
        try:
            self.store.save(self.session)
        except StoreConflictError:
            original_id, self.session = self.session.id, self.session.fork()
            self.store.save(self.session)
            self.notices.add_message(f"another chat has continued session {original_id}; this chat continues as {self.session.id}")

    def save_during_turn(self) -> None:
        """Save the new items while a turn is running. A failure does not stop the turn: `save` reports it at the end."""
        if self.store is not None and self.has_started:
            with suppress(StoreError):
                self.store.save(self.session)

    def usage(self) -> dict[str, int]:
        """Return the token usage of the next request, in the form of `get_token_usage`."""
        self.manager.process_session(self.session)
        return self.manager.get_token_usage()

    def usage_line(self) -> Draw:
        """Return the usage line of the next request, with the notices since the last one."""
        usage = self.usage()
        return usage_line(usage, self.notices.take())
