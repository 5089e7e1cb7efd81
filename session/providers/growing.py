"""Convert a session that grows: the last request is kept, and only new steps are written.

1. A session's list of items only grows; every other edit replaces it (`SessionLog.lineage`). Conversions are kept beside that list
   (`conversions_of`) and go with it, so nothing has to be invalidated.
2. A step is final if neither it nor one before it waits for anything: a response may still make calls, and a call may get its output.
   Final steps are written once. The others are written to a branch of the writer, for every request again.
3. No step waits longer than for `PATIENCE` later ones. So three things change a final step: a very late output, a config update, and
   another first line. The steps are then written from the beginning. If the line about usage comes, moves or goes, a new conversion
   takes the place of the old one.

A conversion that goes on from an earlier one equals one that starts from nothing: `tests/properties/test_growing.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

from session.session import Session
from session.session_log import conversions_of

from .conversation import USAGE_NOTE_STEP, Conversation, Step
from .handed_out import HandedOut, Json

PATIENCE = 8
"""Number of the last steps that may wait for an output. A call that was interrupted waits for ever."""


class Writer(Protocol):
    """Writes steps as messages of one format.

    Attributes:
        messages: The messages so far. A step changes none of them but the last.
    """

    messages: list[Json]

    def write(self, step: Step, last_place: int) -> None:
        """Write the next step, whose last item has this position in the log."""

    def branch(self, messages: list[Json]) -> Self:
        """Return a writer that goes on from here with this copy of the messages. This one does not change with it."""


W = TypeVar("W", bound=Writer)


def written(session: Session, key: str, new_writer: Callable[[str | None], W], *, system_in_place: bool = False) -> tuple[W, Conversation]:
    """Return a writer that has written the session, and the session as a conversation. The messages belong to the caller.

    Args:
        session: A log or a view.
        key: A name for the format and its options.
        new_writer: Makes a writer for a conversation that begins with this text (`Conversation.opening`).
        system_in_place: As in `Conversation`.
    """
    conversions = conversions_of(session)
    conversion = conversions.pop(key, None)  # while it changes, no other thread has it, and none gets it if this fails halfway
    if not (isinstance(conversion, Conversion) and conversion.can_continue(session)):
        conversion = Conversion(new_writer, system_in_place=system_in_place, noted_after=session.usage_noted_after)
    writer = conversion.write(session)
    conversions[key] = conversion
    return writer, conversion.conversation


class Conversion(Generic[W]):
    """The conversion of a list of items to one format, as far as it is final.

    Attributes:
        conversation: The items as steps.
    """

    def __init__(self, new_writer: Callable[[str | None], W], *, system_in_place: bool = False, noted_after: str | None = None) -> None:
        """
        Args:
            new_writer: As in `written`.
            system_in_place: As in `Conversation`.
            noted_after: As in `Conversation`.
        """
        self.conversation = Conversation(system_in_place=system_in_place, noted_after=noted_after)
        self._new_writer = new_writer
        self._seams: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        self._start(None)

    def _start(self, opening: str | None) -> None:
        self._opening = opening
        self._writer = self._new_writer(opening)
        self._written = 0  # number of steps
        self._handed_out = HandedOut()

    def can_continue(self, session: Session) -> bool:
        """True if the session has the converted items and line about usage, and no item begins or ends a response that it did not."""
        length = len(self.conversation)
        if length > len(session.items) or session.usage_noted_after != self.conversation.noted_after:
            return False
        changed = (new ^ old for new, old in zip(_seams(session), self._seams, strict=True) if new is not old)
        new_ids = {item.id for item in session.items[length:]}
        return all(ids <= new_ids for ids in changed)

    def write(self, session: Session) -> W:
        """Bring the conversion up to date, and return a writer that has written all steps."""
        conversation = self.conversation
        self._seams = _seams(session)
        conversation.extend(session)
        opening = conversation.opening(session.removed)
        if conversation.take_first_changed() < self._written or opening != self._opening:
            self._start(opening)
        steps = list(zip(conversation.steps[self._written :], conversation.last_places[self._written :], strict=True))
        latest = range(max(0, len(steps) - PATIENCE), len(steps))
        final = next((number for number in latest if conversation.is_open(steps[number][0])), len(steps))
        for step, last_place in steps[:final]:
            self._writer.write(step, last_place)
        self._written += final
        branch = self._writer.branch(self._handed_out.take(self._writer.messages))
        for step, last_place in steps[final:]:
            branch.write(step, last_place)
        if conversation.is_note_due:
            branch.write(USAGE_NOTE_STEP, len(conversation) - 1)
        return branch


def _seams(session: Session) -> tuple[frozenset[str], frozenset[str]]:
    return session.response_breaks, session.request_ends
