"""Rule: older images become placeholders."""

from __future__ import annotations

from .plan import Reason
from .view import Rule, View


class Images(Rule):
    """Replaces all images but the newest. Those in SYSTEM, pinned and frontier items wait."""

    def decide(self, view: View) -> View:
        """Return the view without older images, if it has more than the limit."""
        if view.images <= view.limits.images_max or view.limits.final:
            return view
        draft, groups = view.draft(), view.log.groups
        for at, part, saved in older_images(view):
            is_frontier = at >= groups.frontier or at == groups.last_user
            if not (is_frontier or view.log.keeps_images(at)):
                draft.replace_image(at, part, saved, Reason.TOO_MANY_IMAGES)
        return draft


def older_images(view: View) -> list[tuple[int, int, int]]:
    """Return all images but the newest that are kept: the position of each, its part, and the tokens that a placeholder saves."""
    images = [(at, *image) for at in sorted(view.log.images) for image in view.visible_images(at)]
    return images[: max(0, len(images) - view.limits.images_kept)]
