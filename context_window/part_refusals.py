"""The part of a manager that remembers which images and documents a provider has refused, and finds those that a refusal is about."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from session.items import Item, parts_of_item
from session.parts import Document, Image
from session.providers.anthropic.write import media_places
from session.read_only import source_of
from session.session import Session
from session.units import is_answer

from .events import Listener, PartRefused, tell
from .following import Following
from .kept import log_of
from .model_errors import PartRefusedError
from .refusals import refusal_phrase
from .switching import Switching
from .trimming.placeholders import original_place
from .trimming.refused import NONE_REFUSED, RefusedParts, source_of_part

Medium: TypeAlias = Image | Document

_FILE = re.compile(r"\bfile_\w+")
_FETCHED = re.compile(r"\bdownload\b|\bURL\b", re.IGNORECASE)
"""Words of a refusal that is about what the provider was to fetch."""


class PartRefusals(Switching, ABC):
    """Images and documents that views show as notes since the provider refused them."""

    _on_event: Listener | None
    _refused: WeakKeyDictionary[Session, RefusedParts]

    @abstractmethod
    def _state(self, session: Session) -> Any: ...

    @abstractmethod
    def _follow(self, session: Session, state: Any) -> Following: ...

    def withdraw_refusal(self, session: Session) -> None:
        """Show the images and documents again that a refusal without a place made notes, unless the model has answered since.

        Call it where the second attempt failed too: the guess has not helped. A part that the provider named stays a note.

        Args:
            session: The session that `accept_refusal` was given.

        Raises:
            BudgetError: It is no session.
        """
        self._state(session)
        log = log_of(session)
        with self._state(log).lock:
            refused = self._refused_of(log)
            if refused.guesses:
                self._refused[log] = refused.without_guesses(_answered(log.items))

    def _accept_part(self, log: Session, view: Session | None, refusal: PartRefusedError) -> bool:
        """Make notes of the parts that the refusal is about; return True if the next view differs.

        Args:
            log: The log of the request.
            view: The view that was sent, where it is known; None for the one that `process_session` gives.
            refusal: What the provider said.
        """
        state = self._state(log)
        with state.lock:
            following = self._follow(log, state)
            parts, is_guess = parts_meant(following.view(log) if view is None else view, refusal)
            shown_before = {(item.id, place) for item, place in following.refused_parts()}
            before = self._refused_of(log)
            sources = {source for part in parts if (source := source_of_part(part)) is not None} - before.since.keys()
            if not sources:
                return False
            self._refused[log] = before.adding(sources, log, guessed=is_guess)
            try:
                following = self._follow(log, state)
            except BaseException:
                self._refused[log] = before
                raise
            total, noted = following.fold.total, following.refused_parts()
        new = [(item, place) for item, place in noted if (item.id, place) not in shown_before]
        events = (self._refusal_event(log, total, item, place, refusal) for item, place in new)
        tell(events, self._on_event, self._budget.model)
        return True

    def _refusal_event(self, log: Session, total: int, item: Item, place: int, refusal: PartRefusedError) -> PartRefused:
        kind = "image" if isinstance(parts_of_item(item)[place], Image) else "document"
        why = refusal_phrase(refusal.reason)
        return PartRefused(log.id, total, self._budget.tokens, item.id, original_place(item, place), kind, why)  # type: ignore[arg-type]

    def _refused_of(self, session: Session) -> RefusedParts:
        log = source_of(session)
        refused = self._refused.get(log, NONE_REFUSED)
        if refused.since and refused.lineage is not log.lineage:
            refused = self._refused[log] = refused.rebased(log)
        return refused


def parts_meant(view: Session, refusal: PartRefusedError) -> tuple[list[Medium], bool]:
    """Return the images and documents of a request that a refusal is about, and whether that is a guess.

    1. The part at the place that it names, or the parts with the file id that it names.
    2. Else, a guess: parts of its kind; if it is about fetching, those with a URL, if there are any. Of these, those that came after the
       model's last answer: the provider has taken the older ones before. If none did, all of them.

    Args:
        view: What was sent.
        refusal: What the provider said.
    """
    sent = media_places(view)
    named = _at(sent, refusal.place)
    if named is not None:
        return [named], False
    file = _FILE.search(refusal.reason)
    uploads = [part for part in sent.values() if file is not None and part.file_id == file[0]]
    if uploads:
        return uploads, False
    kind = {"image": Image, "document": Document}.get(refusal.part_kind or "", (Image, Document))
    parts = [part for part in sent.values() if isinstance(part, kind)]
    if _FETCHED.search(refusal.reason):
        parts = [part for part in parts if part.url is not None and not part.url.lower().startswith("data:")] or parts
    items = view.items
    new = {id(part) for item in items[_answered(items) :] for part in parts_of_item(item)}
    return [part for part in parts if id(part) in new] or parts, True


def _at(sent: dict[tuple[int, ...], Medium], place: object) -> Medium | None:
    """Return the part at a place; None for a place that holds none, or is none: errors are made by other people's models too."""
    return sent.get(place) if isinstance(place, tuple) and all(isinstance(index, int) for index in place) else None


def _answered(items: Sequence[Item]) -> int:
    """Return how many items there are up to the model's last answer."""
    return next((place for place in range(len(items), 0, -1) if is_answer(items[place - 1])), 0)
