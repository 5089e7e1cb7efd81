"""Rule: the texts that converters add to a request cost tokens. `session/providers/additions.py` has them."""

from __future__ import annotations

from session.units import NONE

from .view import Rule, View


class RequestTexts(Rule):
    """The line about removed items or the preamble, the closing line, and the outputs of interrupted calls."""

    def cost(self, view: View) -> int:
        """Return the tokens of these texts."""
        limits = view.limits
        opening = limits.note if view.has_note else 0 if view.begins_with_user() else limits.preamble
        return opening + limits.closing * needs_closing(view) + limits.synthetic * view.unanswered


def needs_closing(view: View) -> bool:
    """True if the request ends with a closing line. The line about usage, or a note, takes its place if it stands there."""
    groups, note = view.log.groups, view.state_note
    last_text = max(view.usage_noted, NONE if note is None else note.before)
    return groups.needs_closing and last_text <= groups.response_starts[-1]
