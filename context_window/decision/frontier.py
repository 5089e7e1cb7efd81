"""Rules: the frontier shrinks when nothing older is left. Only what the protocol needs must exist; all else may shrink (rule 6)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction

from session.units import CONTEXT, FREE, KIND_CALL, KIND_NOTICE, KIND_OTHER, KIND_OUTPUT, KIND_SILENT, KIND_USER, NONE

from .images import older_images
from .limits import portion
from .plan import Reason
from .view import Rule, View


class Unread(Rule):
    """Truncates the frontier's outputs and calls, if that is enough for the budget and a strategy asks for it.

    One large output then does not cost everything that the strategy has left.
    """

    def decide(self, view: View) -> View:
        """Return the view with shorter outputs and calls, if it then fits its budget."""
        limits = view.limits
        if not limits.shortens_unread or limits.final or view.total <= limits.budget:
            return view
        unread = sorted((*outputs_of(view), *calls_of(view)))
        if room_for(view, unread) < sum(_smallest_cut(view, at) for at in unread):
            return view
        draft = view.draft()
        shorten_all(draft, outputs_of(draft))
        shorten_all(draft, calls_of(draft))
        return draft


class Frontier(Rule):
    """Makes the view fit its budget at the cost of what the model has not read yet. Each step goes only as far as needed.

    1. Unpinned items of category CONTEXT are dropped, the oldest first.
    2. Images except the newest `images_kept` become placeholders, the oldest first.
    3. Tool outputs are truncated.
    4. Long string values in the arguments of calls are truncated.
    5. The user's messages are truncated, unless the limits forbid it. They stay in the frontier while the model works on them, so they
       leave room for what follows: they get as large a part of the room as the target is of the budget.
    """

    def decide(self, view: View) -> View:
        """Return the view with a smaller frontier."""
        limits = view.limits
        if limits.final or view.total <= limits.budget:
            return view
        draft = view.draft()
        drop_context(draft)
        replace_images(draft)
        shorten_all(draft, outputs_of(draft))
        shorten_all(draft, calls_of(draft))
        if limits.clamp_messages:
            shorten_all(draft, messages_of(draft), part=Fraction(limits.target, limits.budget))
        return draft


def drop_context(view: View) -> None:
    """Drop the frontier's items of category CONTEXT until the view fits. The last user message and all that belongs to a response stay.

    If no other message of the user follows the last response, the newest of them stays: a request must not end in the model's turn.
    """
    groups, frontier = view.log.groups, range(view.log.groups.frontier, len(view))
    candidates = [at for at in frontier if _is_free_context(view, at)]
    voices = [at for at in frontier if groups.kind[at] in (KIND_USER, KIND_NOTICE) and view.shown[at]]
    last_voice = voices[-1] if set(voices) <= set(candidates) and voices else NONE
    for at in candidates:
        if view.total <= view.limits.budget:
            return
        if at != last_voice:
            view.drop(at, Reason.UNREAD_CONTEXT)


def _is_free_context(view: View, index: int) -> bool:
    groups = view.log.groups
    is_message = groups.kind[index] in (KIND_USER, KIND_NOTICE, KIND_SILENT, KIND_OTHER) and groups.response[index] == NONE
    is_free = groups.rank[index] == CONTEXT and groups.protection[index] == FREE and index != groups.last_user
    return is_message and is_free and bool(view.costs[index])


def replace_images(view: View) -> None:
    """Replace the frontier's images by placeholders until the view fits. The newest `images_kept` of the view stay."""
    unread = {*unread_indices(view), view.log.groups.last_user}
    for at, part, saved in older_images(view):
        if view.total <= view.limits.budget:
            return
        if at in unread and not view.log.keeps_images(at) and saved > 0:
            view.replace_image(at, part, saved, Reason.LAST_RESORT)


def unread_indices(view: View) -> list[int]:
    """Return the positions of the frontier: all from the last response on, and what else is in units with one of these."""
    groups = view.log.groups
    frontier = range(groups.frontier, len(view))
    heads = {groups.head[at] for at in frontier if groups.head[at] < groups.frontier}
    return sorted({*frontier, *(at for head in heads for at in groups.members(head))})


def outputs_of(view: View) -> list[int]:
    """Return the positions of the frontier's outputs that may be truncated."""
    return [at for at in unread_indices(view) if view.log.groups.kind[at] == KIND_OUTPUT and _may_shrink(view, at)]


def calls_of(view: View) -> list[int]:
    """Return the positions of the frontier's calls that may be truncated."""
    return [at for at in unread_indices(view) if view.log.groups.kind[at] == KIND_CALL and _may_shrink(view, at)]


def messages_of(view: View) -> list[int]:
    """Return the positions of the frontier's user messages that may be truncated."""
    groups = view.log.groups
    earlier = [groups.last_user] if NONE < groups.last_user < groups.frontier else []
    return [at for at in (*earlier, *range(groups.frontier, len(view))) if groups.kind[at] == KIND_USER and _may_shrink(view, at)]


def _may_shrink(view: View, index: int) -> bool:
    return bool(view.shown[index]) and view.log.groups.protection[index] == FREE


def shorten_all(view: View, indices: Sequence[int], part: Fraction = Fraction(1)) -> None:
    """Truncate these items to the room that the rest of the request leaves them, or to a part of it.

    The size of each is fixed before any is cut. If a cut leaves an item smaller than that, no other one gets the rest. So a larger room
    never makes an item smaller.
    """
    if not indices or view.total <= view.limits.budget:
        return
    largest = [view.costs[at] for at in indices]
    smallest = [_smallest_cut(view, at) for at in indices]
    for at, size in zip(indices, fair_parts(portion(part, room_for(view, indices)), smallest, largest), strict=True):
        if view.costs[at] > size:
            cut = view.log.measures.truncated(view.log.items[at], size + view.saved_by_images(at) + view.log.free.get(at, 0))
            if (tokens := view.cut_tokens(at, cut)) < view.costs[at]:
                view.truncate(at, cut, tokens)


def _smallest_cut(view: View, index: int) -> int:
    return min(view.costs[index], view.cut_tokens(index, view.log.measures.truncated(view.log.items[index], 0)))


def room_for(view: View, indices: Sequence[int]) -> int:
    """Return the tokens that these items may have if the request is to fit the budget; negative if it does not even fit without them.

    Taking one token may lower the total by less than one, and by different amounts before and after the mark. The smaller one counts.
    """
    tokens = sum(map(view.costs.__getitem__, indices))
    excess = view.total - view.limits.budget
    if not indices:
        return -excess
    newer, taken = view.newer, view.taken
    present = view.correction_with(newer, taken)

    def gain(lost_tokens: int) -> int:
        gains = []
        if indices[-1] >= view.mark:
            gains.append(lost_tokens + present - view.correction_with(newer - lost_tokens, taken))
        if indices[0] < view.mark:
            gains.append(lost_tokens + present - view.correction_with(newer, taken + lost_tokens))
        return min(gains)

    return tokens - (bisect_left(range(tokens), excess, key=gain) if gain(tokens) >= excess else max(tokens, excess))


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
