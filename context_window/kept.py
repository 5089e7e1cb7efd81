"""What a manager keeps of one session: it goes when the session goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock

from session.items import FunctionCallOutput, Item
from session.read_only import source_of
from session.session import Session
from session.units import is_answer

from .calibration import Counted
from .following import Following
from .media_watch import MediaWatch
from .settings import Settings
from .watch import Watch

REMEMBERED = 8
"""Views whose counts are kept: a report may come some items after its request."""


def log_of(session: Session) -> Session:
    """The log that a session stands for: that of a view as it was given out. A view that was gone on with is a log itself."""
    session = source_of(session)
    origin = session.origin
    return session if origin is None or len(session.items) > session.settled else source_of(origin)


@dataclass(frozen=True, slots=True)
class Sent:
    """A view that was given out, most likely to be sent.

    Attributes:
        counted: What it was counted as.
        model: The model that it was made for, where its name is known.
        one_shot: Whether it was one trim's.
    """

    counted: Counted
    model: str | None
    one_shot: bool


class Kept:
    """The folds of one session, and what listeners were told of it.

    Attributes:
        lock: Held by whoever looks at the rest.
        settings: What the folds go by.
        view: The fold of the view.
        census: The fold without limits.
        media: Its unusable images and documents.
        before: The view's fold by other settings, until there is a view by these.
        watch: What was told.
        sent: The views given out last, by how many items the log had.
    """

    __slots__ = ("before", "census", "lock", "media", "sent", "settings", "view", "watch")

    def __init__(self, settings: Settings) -> None:
        self.lock = RLock()  # a counter, or a finaliser at any time, may ask about the session that is being folded
        self.settings = settings
        self.view: Following | None = None
        self.census: Following | None = None
        self.before: Following | None = None
        self.media = MediaWatch()
        self.watch = Watch()
        self.sent: dict[int, Sent] = {}

    def note_sent(self, length: int, sent: Sent) -> None:
        """A view of so many items of the log is given out. A look at a one-shot trim says nothing of a view that was sent."""
        before = self.sent.get(length)
        if before is not None and sent.one_shot and not before.one_shot:
            return
        self.sent.pop(length, None)
        self.sent[length] = sent
        if len(self.sent) > REMEMBERED:
            del self.sent[next(iter(self.sent))]

    def asked_at(self, items: Sequence[Item]) -> int:
        """How many of the log's items the last request had: those of a view that only answers and their outputs have followed; where
        none is known, all before the answer at the end."""
        length = len(items)
        while length and (is_answer(items[length - 1]) or (length not in self.sent and isinstance(items[length - 1], FunctionCallOutput))):
            length -= 1
        return length if length in self.sent else before_the_answer(items)

    def go_by(self, settings: Settings) -> None:
        """Lets go of what was decided by other settings. The caller holds the lock."""
        if not settings.counts_as(self.settings):
            self.watch.recount()
        if not settings.decides_as(self.settings):
            self.before, self.view, self.census = self.before or self.view, None, None
        self.settings = settings


def before_the_answer(items: Sequence[Item]) -> int:
    """How many items there are without the answer at the end, if there is one."""
    length = len(items)
    while length and is_answer(items[length - 1]):
        length -= 1
    return length
