"""Rule: the units that a summary stands for leave the view."""

from __future__ import annotations

from itertools import compress

from session.units import HELD

from .plan import Reason
from .view import Rule, View


class Summaries(Rule):
    """Drops the units that a summary stands for. Those in the frontier wait until they have left it.

    A unit that is summarised only in part stays, but its summarised items leave a digest.
    """

    def decide(self, view: View) -> View:
        """Return the view without these units."""
        log, groups, draft = view.log, view.log.groups, view
        if log.replaced == view.replaced:
            return view
        for at in compress(range(len(view)), map(int.__and__, log.summarised, view.shown)):
            head = groups.head[at]
            if not draft.shown[at] or groups.unit_protection[head] == HELD:
                continue
            if log.is_summarised(head):
                if not log.in_frontier(head):
                    draft = view.draft() if draft is view else draft
                    draft.drop(head, Reason.COMPACTED)
            elif draft.edit(at).lines is not None:
                draft = view.draft() if draft is view else draft
                draft.leave([at])
        return draft
