"""Rule: a request that fills the window ends with a line which tells the model so."""

from __future__ import annotations

from session.units import NONE

from .limits import BOUNDLESS
from .view import Rule, View


class UsageNote(Rule):
    """Adds the line once the request uses so much. It stays in its place, before the next response, in all later requests.

    It is decided before tokens are taken, which leave room for it, and only where the log does not end in a response.
    """

    def decide(self, view: View) -> View:
        """Return the view with the line, if it is due and not there yet."""
        return with_note(view) if view.limits.usage_noted_from < BOUNDLESS else view

    def settle(self, view: View, before: View) -> View:  # noqa: ARG002 - as in `Rule`
        """Return the view without the line if it is no longer due after a trim, or with it at the end if all before it has gone."""
        index = view.usage_noted
        is_due = index != NONE and view.total >= view.limits.usage_noted_from
        if index == NONE or (is_due and view.speaks_before(index)):
            return view
        draft = view.draft()
        draft.usage_noted = NONE
        if is_due:
            draft = with_note(draft)
        if draft.usage_noted != index < len(view):
            draft.note_change(index - 1)
        return draft

    def cost(self, view: View) -> int:
        """Return the tokens of the line."""
        return view.limits.usage_note if view.usage_noted != NONE else 0


def with_note(view: View) -> View:
    """Return the view with the line at its end, if it is due."""
    is_request = view.log.groups.is_followed and view.speaks_before(len(view))
    if view.usage_noted != NONE or not is_request or view.total < view.limits.usage_noted_from:
        return view
    draft = view.draft()
    draft.usage_noted = len(view)
    return draft
