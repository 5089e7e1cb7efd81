"""Shrinks the frontier when nothing older is left (rule 3, step 8). Only what the protocol needs must exist; all else may shrink."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction

from session.units import CONTEXT, FREE, HELD, KIND_CALL, KIND_NOTE, KIND_OTHER, KIND_OUTPUT, KIND_SILENT, KIND_USER, NONE

from .limits import portion
from .plan import Reason
from .request_size import room_for, total_with
from .view_state import ViewState


def shrink_frontier(view: ViewState) -> None:
    """Make the view fit its budget at the cost of what the model has not read yet. Each step goes only as far as needed.

    1. Unpinned items of category CONTEXT are dropped, the oldest first.
    2. Images except the newest `images_kept` become placeholders, the oldest first.
    3. Tool outputs are truncated.
    4. Long string values in the arguments of calls are truncated.
    5. The user's messages are truncated, unless the limits forbid it. They stay in the frontier while the model works on them, so they
       leave room for what follows: they get as large a part of the room as the target is of the budget.
    """
    limits = view.limits
    drop_context(view)
    replace_images(view)
    shorten_all(view, outputs_of(view))
    shorten_all(view, calls_of(view))
    if limits.clamp_messages:
        shorten_all(view, messages_of(view), part=Fraction(limits.target, limits.budget))
    is_repeatable = limits.items_max is None and not limits.advisers and view.results is None and not view.tally.compacted
    if view.total > limits.budget and view.is_filled and is_repeatable:
        view.exhausted = len(view)


def shorten_unread(view: ViewState) -> bool:
    """Truncate outputs, then calls, if the view then fits its budget, and return True if it fits. Nothing is changed if it would not."""
    if view.total > view.limits.budget:
        unread = sorted((*outputs_of(view), *calls_of(view)))
        if room_for(view, unread) < sum(_smallest_cut(view, place) for place in unread):
            return False
        shorten_all(view, outputs_of(view))
        shorten_all(view, calls_of(view))
    return view.total <= view.limits.budget


def drop_context(view: ViewState) -> None:
    """Drop the frontier's items of category CONTEXT until the view fits. The last user message and all that belongs to a response stay.

    If no other message of the user follows the last response, the newest of them stays: a request must not end in the model's turn.
    """
    groups, frontier = view.groups, range(view.groups.frontier, len(view))
    candidates = [place for place in frontier if _is_free_context(view, place)]
    voices = [place for place in frontier if groups.kind[place] in (KIND_USER, KIND_NOTE) and view.hidden_reason(place) is None]
    last_voice = voices[-1] if set(voices) <= set(candidates) and voices else NONE
    for place in candidates:
        if view.total <= view.limits.budget:
            return
        if place != last_voice:
            view.drop(place, Reason.UNREAD_CONTEXT)


def _is_free_context(view: ViewState, place: int) -> bool:
    groups = view.groups
    is_message = groups.kind[place] in (KIND_USER, KIND_NOTE, KIND_SILENT, KIND_OTHER) and groups.response[place] == NONE
    is_free = groups.rank[place] == CONTEXT and groups.protection[place] == FREE and place != groups.last_user
    return is_message and is_free and bool(view.tokens(place))


def replace_images(view: ViewState) -> None:
    """Replace the frontier's images by placeholders until the view fits. The newest `images_kept` of the view stay."""
    groups = view.groups
    images = [(place, *image) for place in view.tally.with_images for image in view.visible_images(place)]
    for place, part, saved in images[: max(0, len(images) - view.limits.images_kept)]:
        if view.total <= view.limits.budget:
            return
        is_protected = groups.protection[place] != FREE or groups.unit_protection[groups.head[place]] == HELD
        if (place >= groups.frontier or place == groups.last_user) and not is_protected and saved > 0:
            view.replace_image(place, part, saved, Reason.LAST_RESORT)


def outputs_of(view: ViewState) -> list[int]:
    """Return the positions of the frontier's outputs that may be truncated."""
    groups = view.groups
    return [place for place in range(groups.frontier, len(view)) if groups.kind[place] == KIND_OUTPUT and _may_shrink(view, place)]


def calls_of(view: ViewState) -> list[int]:
    """Return the positions of the frontier's calls that may be truncated."""
    groups = view.groups
    return [place for place in range(groups.frontier, len(view)) if groups.kind[place] == KIND_CALL and _may_shrink(view, place)]


def messages_of(view: ViewState) -> list[int]:
    """Return the positions of the frontier's user messages that may be truncated."""
    groups = view.groups
    earlier = [groups.last_user] if NONE < groups.last_user < groups.frontier else []
    places = [*earlier, *range(groups.frontier, len(view))]
    return [place for place in places if groups.kind[place] == KIND_USER and _may_shrink(view, place)]


def _may_shrink(view: ViewState, place: int) -> bool:
    return view.hidden_reason(place) is None and view.groups.protection[place] == FREE


def shorten_all(view: ViewState, places: Sequence[int], part: Fraction = Fraction(1)) -> None:
    """Truncate these items to the room that the rest of the request leaves them, or to a part of it.

    The size of each is fixed before any is cut. If a cut leaves an item smaller than that, no other one gets the rest. So a larger room
    never makes an item smaller.
    """
    if not places or view.total <= view.limits.budget:
        return
    largest = [view.tokens(place) for place in places]
    smallest = [_smallest_cut(view, place) for place in places]
    for place, size in zip(places, fair_parts(portion(part, room_for(view, places)), smallest, largest), strict=True):
        _shorten(view, place, size)


def extend(view: ViewState, length: int) -> bool:
    """Extend a trim that took everything to the items that have come since (rule 8), and return True if it is still the right one.

    It is if the view is over the budget even with each new output and message cut as short as possible. Otherwise nothing is changed.

    Args:
        view: The view.
        length: Number of items that the log had at that trim.
    """
    places = [place for place in range(length, len(view)) if _shrinks(view, place)]
    smallest = [_smallest_cut(view, place) for place in places]
    added = sum(smallest) - sum(map(view.tokens, places))
    if view.mark > view.groups.frontier or total_with(view, added) <= view.limits.budget:
        return False
    for place, size in zip(places, smallest, strict=True):
        _shorten(view, place, size)
    if view.tally.usage_noted != view.final_tally.usage_noted or view.tally.usage_noted == NONE:  # the end has moved
        view.tally.usage_noted = NONE
        view.note_usage()
    view.exhausted = len(view)
    return True


def _shrinks(view: ViewState, place: int) -> bool:
    """True if an item that came after the last response's calls may be truncated."""
    kind = view.groups.kind[place]
    return _may_shrink(view, place) and (kind == KIND_OUTPUT or (kind == KIND_USER and view.limits.clamp_messages))


def fair_parts(room: int, smallest: Sequence[int], largest: Sequence[int]) -> list[int]:
    """Divide the room: one level for all, except for those that cannot be so small or need not be so large. The newest get the rest.

    Example: a room of 100 for outputs of 20, 60 and 70 tokens that can all be cut to 5 gives 20, 40 and 40.
    """

    def sizes(level: int) -> list[int]:
        return [min(max(level, low), high) for low, high in zip(smallest, largest, strict=True)]

    levels = range(max(largest, default=0) + 1)
    level = max(0, bisect_right(levels, room, key=lambda level: sum(sizes(level))) - 1)
    parts = sizes(level)
    rest = room - sum(parts)
    for index in reversed(range(len(parts))):
        if rest > 0 and smallest[index] <= level < largest[index]:
            parts[index] += 1
            rest -= 1
    return parts


def _smallest_cut(view: ViewState, place: int) -> int:
    return min(view.tokens(place), view.measures.shortened(place, 0).tokens - view.saved_by_images(place))


def _shorten(view: ViewState, place: int, limit: int) -> None:
    """Truncate the item to at most `limit` tokens if possible. Its images stay as they are."""
    if view.tokens(place) > limit:
        saved = view.saved_by_images(place)
        cut = view.measures.shortened(place, limit + saved)
        if cut.tokens - saved < view.tokens(place):
            view.truncate(place, cut)
