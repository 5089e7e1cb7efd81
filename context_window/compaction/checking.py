"""Whether a summary that was written may stand in a log: it must shrink what it replaces, and leave room beside it. Appends nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import sha256

from session.items import Compaction, Item, new_id
from session.session import Session

from ..errors import CompactionError
from ..events import Compacted
from ..following import Following
from ..settings import Settings
from ..trimming.fold import Fold
from ..trimming.limits import Limits
from .due import Keep, Told, free, may_stand, replaced
from .writing import Task

SHRINKS = 2
"""A summary has at most one part in so many of the tokens of what it replaces; else trimming alone does the work."""
SHORTEST = "Earlier in this conversation:"
"""Where there is no room for as much, none is asked for."""
SHARE = 3
"""It has at most one part in so many of what triggers a trim: no trim may take it, so there must be room beside it."""


@dataclass(frozen=True, slots=True)
class Due:
    """A summary that is due, and what it is due by. Amounts are tokens.

    Attributes:
        told: The units to sum up.
        keep: What is left as it is.
        settings: The settings then in use.
        limits: What the session's views may hold.
        total: What the request costs without the summary and without a trim.
        requests: How many responses the log holds.
    """

    told: tuple[Told, ...]
    keep: Keep
    settings: Settings
    limits: Limits
    total: int
    requests: int

    @property
    def most(self) -> int:
        """Tokens that a summary of all of it may have."""
        return min(sum(one.tokens for one in self.told) // SHRINKS, self.limits.trigger // SHARE)


def untrimmed(limits: Limits) -> Limits:
    """The same without any trim for want of room: images are replaced, and what summaries stand for goes."""
    return replace(limits.boundless(), images_max=limits.images_max)


def lowered(limits: Limits, tokens: int) -> Limits:
    """Limits for a fold that knows nothing of so many tokens, which the provider's reports say there are beside its count."""
    budget, trigger, target = (max(1, amount - tokens) for amount in (limits.budget, limits.trigger, limits.target))
    return replace(
        limits.boundless(),
        budget=budget,
        trigger=trigger,
        target=target,
        images_max=limits.images_max,
        items_max=limits.items_max,
        advisers=limits.advisers,
    )


def check_told(told: Collection[Told], following: Following, session: Session, keep: Keep) -> None:
    """Refuses a summary that may not stand in the log as it is now.

    Raises:
        CompactionError: Something of what it sums up is gone, has changed, was pinned or is about to be read, or the model is at work.
    """
    now = free(following, session) if may_stand(following.fold, following.items, ended=keep.ended) else ()
    items = {item.id: item for one in now for item in one.items}
    if any(item.id not in items or items[item.id] != item for one in told for item in one.items):
        raise CompactionError("while the summary was written, the session went on or was edited")


def verified(session: Session, items: Sequence[Item], view: Fold, due: Due, asked: Task, text: str) -> tuple[Compaction, Compacted]:
    """The summary as an item, and what is told of it.

    Args:
        session: The log.
        items: Its items as they are now.
        view: The fold of its view.
        due: What was due.
        asked: What was told.
        text: What came of it.

    Raises:
        CompactionError: It helps too little.
    """
    summary = _item(text, replaced(asked.told, items), items[-1], session)
    cost, trigger = due.settings.measurer.measured(summary).tokens, due.limits.trigger
    if SHRINKS * cost > asked.tokens:
        raise CompactionError(f"the summary has {cost:,} tokens, more than half of the {asked.tokens:,} that it replaces")
    if SHARE * cost > trigger:
        raise CompactionError(f"the summary has {cost:,} tokens, more than a third of the {trigger:,} there are")
    total = check_room(session, items, view, due, summary)
    return summary, Compacted(session.id, total, view.limits.budget, len(summary.replaces), asked.tokens, cost)


def check_room(session: Session, items: Sequence[Item], view: Fold, due: Due, summary: Compaction | None = None) -> int:
    """What the request costs with the summary, trimmed.

    Args:
        session: The log.
        items: Its items as they are now.
        view: The fold of its view; it stays as it is.
        due: What is due.
        summary: The summary; None for the shortest that is worth asking for.

    Raises:
        CompactionError: It is over the budget with the summary, and would be less so without.
    """
    if summary is None:
        summary = _item(SHORTEST, replaced(due.told, items), items[-1], session)
    trial = _twin(view)
    places = (place for id in summary.replaces if (place := session.position(id)) is not None)
    trial.add(summary, due.settings.measurer.measured(summary), replaces=[place for place in places if place < len(view)])
    trial.conclude()
    if trial.total > max(view.limits.budget, view.total):
        raise CompactionError("beside what must be kept there is no room for a summary")
    return trial.total


def _twin(fold: Fold) -> Fold:
    """A copy that goes on by itself. Another fold of the same log would not do: what was decided before a refusal, it decides anew."""
    return deepcopy(fold, {id(shared): shared for shared in (fold.limits, fold.measures)})


def _item(text: str, ids: Sequence[str], last: Item, session: Session) -> Compaction:
    """The summary as an item of the log: the same log and text make the same."""
    id = sha256("\n".join((*ids, text)).encode(errors="replace")).hexdigest()[:12]
    return Compaction(text, ids, id=id if session.position(id) is None else new_id(), created_at=last.created_at)
