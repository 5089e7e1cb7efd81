"""Copies a tracker for a fork, so that the fork's first view costs what is new in it. A replay would cost every item.

`copied_fold` copies a fold alone, to try a summary.

1. A fork starts as its parent: the same item objects, with the same seams. If the parent's tracker has read no further than the fork goes,
   its state is that of a tracker of the fork.
2. Everything that the state depends on besides the log must be equal too: limits, counter, and no reports or refusals outside the log,
   which belong to one session.
3. Long lists of values that nobody changes are copied as a whole, and the rest by `deepcopy`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from copy import copy, deepcopy
from itertools import chain
from operator import is_

from session.items import ITEM_TYPES
from session.session import Session
from session.session_log import recorded_total

from ..calibration.reports import Reports
from ..trimming.fold import Fold
from ..trimming.limits import Limits
from ..trimming.plan import Action, Cut, Decision, Reason
from ..trimming.refused_parts import NONE_REFUSED
from .item_forms import Form
from .tracker import SessionTracker

_FROZEN = frozenset((int, str, bool, type(None), Action, Cut, Decision, Form, Reason, *ITEM_TYPES))
"""Types of values that trackers share."""


def copied_for_fork(tracker: SessionTracker, parent: Session, fork: Session, limits: Limits, reports: Reports) -> SessionTracker | None:
    """Return a copy of the parent's tracker for its fork; None if a new tracker might decide otherwise.

    Args:
        tracker: The parent's tracker.
        parent: The session that was forked.
        fork: The fork.
        limits: The limits of the fork's views.
        reports: The usage reports of the fork that were recorded outside its log.
    """
    if not tracker.can_update(parent) or not _is_alike(tracker, parent, fork, limits):
        return None
    feed = tracker.report_feed
    if feed.has_recorded or feed.reports.recorded() or reports.recorded() or feed.reports.counter != reports.counter:
        return None
    if feed.has_reports and (tracker.had_other_model or tracker.model != fork.metadata.get("model")):
        return None
    return _copy(tracker, fork, reports)


def _is_alike(tracker: SessionTracker, parent: Session, fork: Session, limits: Limits) -> bool:
    """True if the tracker has read a beginning of the fork, under these limits."""
    fold = tracker.fold
    return (
        fold.limits == limits
        and tracker.refused is NONE_REFUSED
        and len(fold) <= len(fork.items)
        and fold.decides_from == fork.settled == parent.settled
        and recorded_total(parent) == recorded_total(fork)
        and (parent.removed, parent.usage_noted_after) == (fork.removed, fork.usage_noted_after)
        and (parent.response_breaks, parent.request_ends) == (fork.response_breaks, fork.request_ends)
        and all(map(is_, tracker.items, fork.items))
    )


def copied_fold(fold: Fold) -> Fold:
    """Return a copy that shares no state. Replaying the log would not reproduce decisions made before a refusal."""
    memo: dict[int, object] = {id(shared): shared for shared in (fold.limits, fold.measures)}
    _copy_long_lists(_parts_of(fold), memo)
    return deepcopy(fold, memo)


def _copy(tracker: SessionTracker, fork: Session, reports: Reports) -> SessionTracker:
    shared = tracker.fold.limits, tracker.refused, tracker.measurer
    memo: dict[int, object] = {id(value): value for value in shared}
    memo |= {id(tracker.lineage): fork.lineage, id(tracker.items): fork.items, id(tracker.report_feed.reports): reports}
    _copy_long_lists((*_parts_of(tracker.fold), *tracker.parts), memo)
    copied = deepcopy(tracker, memo)
    copied.begin_session(fork)
    return copied


def _parts_of(fold: Fold) -> tuple[object, ...]:
    """Return the fold and its objects that have long lists."""
    return fold, fold.groups, fold.tally, fold.final_tally, fold.results, fold.digests


def _copy_long_lists(owners: Iterable[object], memo: dict[int, object]) -> None:
    """Put copies of the owners' collections into the memo of a `deepcopy` if nobody changes their values."""
    for owner in owners:
        for value in _attributes(owner):
            values = value.values() if isinstance(value, dict) else ()
            if isinstance(value, list | set | dict) and _is_frozen(value) and _is_frozen(values):
                memo.setdefault(id(value), copy(value))


def _attributes(owner: object) -> Iterator[object]:
    if hasattr(owner, "__dict__"):
        yield from vars(owner).values()
    for name in getattr(type(owner), "__slots__", ()):
        yield getattr(owner, name, None)


def _is_frozen(values: Collection[object]) -> bool:
    """True if a copy may have the same values."""
    types = set(map(type, values))
    return types <= _FROZEN or (types == {tuple} and _is_frozen(list(chain.from_iterable(values))))  # type: ignore[arg-type]
