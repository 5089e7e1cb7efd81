"""The form in which a view shows an item, and which of two forms shows less. Decides nothing."""

from __future__ import annotations

from typing import NamedTuple

from ..trimming.fold import Fold
from ..trimming.plan import Action, Cut


class Form(NamedTuple):
    """The form in which a view shows an item.

    Attributes:
        is_cleared: True if it is cleared.
        images: The places of its replaced images.
        cut: How it is truncated.
        sources: The items of the digest that has its id, by position, and the numbers of the lines that it shows of each.
    """

    is_cleared: bool = False
    images: tuple[int, ...] = ()
    cut: Cut | None = None
    sources: tuple[tuple[int, tuple[int, ...]], ...] = ()


UNCHANGED = Form()


def is_shown(fold: Fold, place: int) -> bool:
    """True if the view has an item with the id of this one: the item in some form, or the digest whose first item it is."""
    return fold.hidden_reason(place) is None and (not fold.digests.has(place) or fold.digests.is_head(place))


def form_of(fold: Fold, place: int) -> Form:
    """Return the form in which the view shows an item, or the digest whose first item it is."""
    if fold.digests.has(place):
        members = fold.digests.items(fold.digests.before[place])
        return Form(sources=tuple((member, fold.digests.lines[member]) for member in members))
    return Form(fold.is_cleared(place), fold.replaced_images(place), fold.cut(place))


def action_of(fold: Fold, place: int) -> Action:
    """Return the action that was applied to an item."""
    if fold.hidden_reason(place) is not None:
        return Action.DROP
    if fold.is_cleared(place):
        return Action.CLEAR
    if fold.digests.has(place):
        return Action.EXTRACT
    if fold.cut(place) is not None:
        return Action.TRUNCATE
    return Action.REPLACE_IMAGES if fold.replaced_images(place) else Action.KEEP


def is_less(form: Form, old_form: Form) -> bool:
    """True if a form shows less of an item than an older one."""
    if form.is_cleared or old_form.is_cleared:
        return form.is_cleared and not old_form.is_cleared
    if form.sources or old_form.sources:
        lines = {place: set(numbers) for place, numbers in form.sources}
        return not old_form.sources or not all(set(numbers) <= lines.get(place, set()) for place, numbers in old_form.sources)
    cut, old_cut = form.cut, old_form.cut
    is_shorter = cut is not None and (old_cut is None or cut.head + cut.tail < old_cut.head + old_cut.tail)
    return is_shorter or not set(form.images) <= set(old_form.images)
