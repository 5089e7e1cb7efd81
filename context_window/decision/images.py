"""Rule: older images become placeholders."""

from __future__ import annotations

from .plan import Reason
from .priority import tokens_goal
from .view import Rule, View


class Images(Rule):
    """Replaces all images but the newest if there are more than allowed; else, in a trim, as many as needed before anything else is taken.

    Those in SYSTEM and pinned items stay, and those in the frontier wait for its rule.
    """

    def decide(self, view: View) -> View:
        """Return the view without older images, if it has more than allowed or costs too much."""
        limits = view.limits
        is_capped = view.images > limits.images_max
        if limits.final or not (is_capped or (view.images > limits.images_kept and view.total > limits.trigger)):
            return view
        draft, groups, goal = view.draft(), view.log.groups, tokens_goal(view)
        for at, part, saved in older_images(view):
            is_frontier = at >= groups.frontier or at == groups.last_user
            if is_frontier or view.log.keeps_images(at):
                continue
            if is_capped:
                draft.replace_image(at, part, saved, Reason.TOO_MANY_IMAGES)
            elif saved > 0 and draft.total > goal:
                draft.replace_image(at, part, saved, Reason.OVER_BUDGET)
        return draft


def older_images(view: View) -> list[tuple[int, int, int]]:
    """Return all images but the newest that are kept: the position of each, its part, and the tokens that a placeholder saves."""
    images = [(at, *image) for at in sorted(view.log.images) for image in view.visible_images(at)]
    return images[: max(0, len(images) - view.limits.images_kept)]
