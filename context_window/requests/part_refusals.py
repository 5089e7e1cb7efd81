"""`PartRefusals`: finds the images and documents that a refusal is about, and has views show notes in their place.

The refused parts of a session are stored as `RefusedParts` (`decision/refused_parts.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from session.items import Item, parts_of_item
from session.parts import Document, Image
from session.providers.anthropic import write as anthropic
from session.providers.openai_chat import write as openai_chat
from session.providers.openai_responses import write as openai_responses
from session.session import Session
from session.units import is_answer

from ..decision.placeholders import original_place
from ..decision.refused_parts import source_of_part
from ..events.definitions import Listener, PartRefused, emit
from ..model_errors import ModelError, PartKind, PartRefusedError, PlaceApi
from ..sessions import Sessions, log_of
from ..settings.active_settings import ActiveSettings
from .client_errors import refusal_phrase

Medium: TypeAlias = Image | Document

_PLACES: Mapping[PlaceApi, Callable[[Session], dict[tuple[int, ...], Medium]]] = {
    "anthropic": anthropic.media_places,
    "openai": openai_chat.media_places,
    "openai-responses": openai_responses.media_places,
}
"""By API, the images and documents of a request by their places in it."""
UNEXPLAINED = "Request contains an invalid argument"
"""Gemini's message about images that it cannot read, such as a BMP file (gemini-cli issue 14838), and about many other faults."""
_FILE = re.compile(r"\bfile_\w+")
_FETCHED = re.compile(r"\bdownload\b|\bURL\b", re.IGNORECASE)
"""Words of a refusal about a file that the provider tried to fetch."""


class PartRefusals:
    """Turns refused images and documents into notes in all later views of their session."""

    def __init__(self, active: ActiveSettings, sessions: Sessions, on_event: Listener | None) -> None:
        self._active = active
        self._sessions = sessions
        self._on_event = on_event

    def withdraw(self, session: Session) -> None:
        """Show the parts again that were guessed from a refusal without a place, unless the model has answered since."""
        self._sessions.state(session)
        log = log_of(session)
        state = self._sessions.state(log)
        with state.lock:
            refused = state.refused_parts(log)
            if refused.guesses:
                state.refused = refused.without_guesses(_length_up_to_answer(log.items))

    def accept(self, log: Session, sent_view: Session | None, refusal: PartRefusedError) -> bool:
        """Make notes of the parts that the refusal is about; return True if the next view differs.

        `sent_view` is None for the one that `process_session` returns.
        """
        state = self._sessions.state(log)
        with state.lock:
            settings = self._active.current
            replay = self._sessions.view(log, state, settings)
            parts, is_guess = parts_meant(replay.session_view(log) if sent_view is None else sent_view, refusal)
            noted_before = {(item.id, index) for item, index in replay.refused_parts()}
            before = state.refused_parts(log)
            sources = {source for part in parts if (source := source_of_part(part)) is not None} - before.since.keys()
            if not sources:
                return False
            state.refused = before.adding(sources, log, guessed=is_guess)
            try:
                replay = self._sessions.view(log, state, settings)
                total, notes = replay.decided.total, replay.refused_parts()
            except BaseException:
                state.refused = before
                raise
        budget = settings.budget
        new = [(item, index) for item, index in notes if (item.id, index) not in noted_before]
        events = (_refusal_event(log.id, total, budget.tokens, item, index, refusal) for item, index in new)
        emit(events, self._on_event, budget.model)
        return True


def _refusal_event(session_id: str, total: int, budget: int, item: Item, index: int, refusal: PartRefusedError) -> PartRefused:
    kind: PartKind = "image" if isinstance(parts_of_item(item)[index], Image) else "document"
    return PartRefused(session_id, total, budget, item.id, original_place(item, index), kind, refusal_phrase(refusal.reason))


def unexplained_refusal(error: ModelError, view: Session) -> PartRefusedError | None:
    """Return the refusal of an image or document that Gemini's "Request contains an invalid argument." may be; else None.

    Gemini also says this of other faults. So this is a guess, and only about parts that the model has not answered yet: `RefusalRetries`
    tries the request once without them, and shows them again if that fails too.
    """
    items = view.items[_length_up_to_answer(view.items) :]
    has_new_media = any(isinstance(part, Image | Document) for item in items for part in parts_of_item(item))
    if error.status != 400 or not error.reason.startswith(UNEXPLAINED) or isinstance(error, PartRefusedError) or not has_new_media:
        return None
    return PartRefusedError(error.reason, error.status, error.kind, error.request_id, error.retry_after)


def parts_meant(view: Session, refusal: PartRefusedError) -> tuple[list[Medium], bool]:
    """Return the images and documents that a refusal is about, and True if they are a guess.

    1. The part at the place that the refusal names, or the parts with the file id that it names.
    2. Otherwise a guess: the parts of its kind; if it is about fetching, only those with a URL, if there are any. Of these, only the ones
       since the model's last answer, since the provider accepted older ones before; if there are none since, all of them.
    """
    part_at_place = _part_at(view, refusal)
    if part_at_place is not None:
        return [part_at_place], False
    media = anthropic.media_places(view)
    file = _FILE.search(refusal.reason)
    uploads = [part for part in media.values() if file is not None and part.file_id == file[0]]
    if uploads:
        return uploads, False
    kind = {"image": Image, "document": Document}.get(refusal.part_kind or "", (Image, Document))
    parts = [part for part in media.values() if isinstance(part, kind)]
    if not parts:  # another provider may take formats that Anthropic does not
        parts = [
            part for item in view.items for part in parts_of_item(item) if isinstance(part, Image | Document) and isinstance(part, kind)
        ]
    if _FETCHED.search(refusal.reason):
        parts = [part for part in parts if part.url is not None and not part.url.lower().startswith("data:")] or parts
    items = view.items
    new = {id(part) for item in items[_length_up_to_answer(items) :] for part in parts_of_item(item)}
    return [part for part in parts if id(part) in new] or parts, True


def _part_at(view: Session, refusal: PartRefusedError) -> Medium | None:
    """Return the part at the refusal's place; None if the place is empty or malformed, since other libraries construct these errors too."""
    place: object = refusal.place
    if refusal.api is None or not isinstance(place, tuple) or not all(isinstance(index, int) for index in place):
        return None
    return _PLACES[refusal.api](view).get(place)


def _length_up_to_answer(items: Sequence[Item]) -> int:
    """Return the number of items up to and including the model's last answer."""
    return next((length for length in range(len(items), 0, -1) if is_answer(items[length - 1])), 0)
