"""Rule: lines of older items stand in digests. Which lines, strategies choose (`strategy.py`); their text is in `extracts.py`."""

from __future__ import annotations

from collections.abc import Iterable

from session.items import Item

from .extracts import DigestPart, digest
from .view import Rule, View


class Digests(Rule):
    """The digests of a view: messages in the user's voice, each before the first of its items or the response which that one is in."""

    def settle(self, view: View, before: View) -> View:  # noqa: ARG002 - as in `Rule`
        """Return the view with each digest before the first of its items that is left. Their leaving has changed the request there."""
        draft = view
        for place in view.digests:
            indices = view.digest_items(place)
            first = min(map(view.log.response_or_own, indices))
            if first != place:
                draft = view.draft() if draft is view else draft
                draft.move_digest(indices, first)
        return draft

    def cost(self, view: View) -> int:
        """Return the tokens of the frames of digests. Their lines count as their items."""
        return view.limits.digest * len(view.digests)

    def additions(self, view: View) -> Iterable[tuple[int, int, Item]]:
        """Yield the digests. Each has the id of its first item."""
        for before in view.digests:
            indices = view.digest_items(before)
            parts = [DigestPart(view.log.items[at], view.edits[at].lines or (), view.log.calls.get(at)) for at in indices]
            yield before, indices[0], digest(parts)
