"""The state of one chat: the session, its manager, its cost, and what the user has not been told yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from session.errors import StoreConflictError
from session.session import Session

from ..display.usage_line import usage_line
from ..errors import ContextWindowError
from ..events.definitions import CalibrationReset, Event, ThresholdCrossed, WindowEvent
from ..manager import ContextWindowManager
from .bill import Bill
from .screen import Screen

if TYPE_CHECKING:
    from session.store import SessionStore

    from ..loop import Model


class ChatError(ContextWindowError):
    """The chat cannot do what the user asked. The message is one line and says what to do instead."""


@dataclass(slots=True)
class Chat:
    """One conversation.

    Attributes:
        manager: Decides what the model sees.
        session: The log.
        screen: What the user sees.
        model: The model's name; None if a replayed log names none.
        events: The manager's events since the last usage line. Its listener appends to this list.
        store: Saves the sessions; None in a replay.
        connect: Returns the model of a name. Raises ChatError if nobody serves it.
        llm: The model; None in a replay.
        kept: Returns the server and the budget that the session keeps for `--continue`, of a model.
        bill: What the session has cost.
        paid: What it had cost before the last turn.
        is_over: True once the user has left.
    """

    manager: ContextWindowManager
    session: Session
    screen: Screen
    model: str | None
    events: list[Event] = field(default_factory=list)
    store: SessionStore | None = None
    connect: Callable[[str], Model] | None = None
    llm: Model | None = None
    kept: Callable[[str], dict[str, object]] = lambda _: {}
    bill: Bill = field(default_factory=Bill)
    paid: Bill = field(default_factory=Bill)
    is_over: bool = False

    def save(self) -> None:
        """Save the new items in the store. If another chat has continued the session, this one goes on as a fork of it.

        Raises:
            StoreError: The store cannot be written.
        """
        if self.store is None or not self.session.turn_count():
            return
        try:
            self.store.save(self.session)
        except StoreConflictError:
            original_id, self.session = self.session.id, self.session.fork()
            self.store.save(self.session)
            self.screen.inform(f"another chat has continued {original_id}; this one goes on as {self.session.id}", "yellow")

    def show_usage(self) -> None:
        """Show what happened to the window, the tokens of the next request, and what the last turn and the session cost."""
        self.manager.process_session(self.session)
        latest = {type(event): event for event in self.events if not isinstance(event, ThresholdCrossed | CalibrationReset)}
        self.events.clear()
        self.screen.console.print()
        for event in latest.values():  # without their figures, which the usage line shows
            self.screen.inform(str(event).removeprefix(WindowEvent.__str__(event)).lstrip(" ,;"), "yellow")
        self.screen.draw(usage_line(self.manager.get_token_usage(), self.bill.figures(self.paid)))
