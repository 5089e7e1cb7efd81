"""What must hold of any view, checked from the items alone: nothing here asks the planner."""

from __future__ import annotations

from collections.abc import Callable

from context_window.trimming.placeholders import MARK
from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory
from session.parts import Image
from session.session import Session
from session.units import PRIORITY
from tests.support.harness import Outcome
from tests.support.twin import answers, category_of, cost, is_summary, responses, unit_of


def frontier(items: list[Item], breaks: frozenset[str]) -> set[int]:
    """The last response, the last user message, everything after the last response."""
    users = [place for place, item in enumerate(items) if item.type == "message" and getattr(item, "role", "") == "user"]
    said = [place for place in users if items[place].category is not MessageCategory.CONTEXT] or users
    found = responses(items, breaks)
    first = found[-1][0] if found else said[-1] if said else len(items)
    return {*said[-1:], *range(first, len(items))}


def protected(items: list[Item], breaks: frozenset[str]) -> set[int]:
    """Positions that no trim may drop: SYSTEM, pinned, summaries, the frontier, and the units those are in."""
    units = unit_of(items, breaks)
    ahead = frontier(items, breaks)
    orphans = {place for place, call in answers(items).items() if call is None}
    return {
        place
        for place, unit in units.items()
        if place not in orphans
        and (
            category_of(items, unit) is MessageCategory.SYSTEM
            or any(
                items[one].pinned or items[one].category is MessageCategory.SYSTEM or is_summary(items[one]) or one in ahead for one in unit
            )
        )
    }


def check_subsequence(log: Session, view: Session) -> None:
    """The view's items are the log's, in order; unreplaced ones are the same objects."""
    places = {item.id: place for place, item in enumerate(log.items)}
    assert [item.id for item in view.items if item.id not in places] == []
    order = [places[item.id] for item in view.items]
    assert order == sorted(set(order))
    for item in view.items:
        if MARK not in item.extra:
            assert item is log.items[places[item.id]]


def check_kept(log: Session, view: Session) -> None:
    """SYSTEM, pinned items, the last user message and all from the last response on survive; only unpinned outputs there
    may be in another form."""
    items = list(log.items)
    shown = {item.id: item for item in view.items}
    orphans = {place for place, call in answers(items).items() if call is None}
    ahead = frontier(items, log.response_breaks)
    for place, item in enumerate(items):
        if place in orphans or not (item.category is MessageCategory.SYSTEM or item.pinned or place in ahead):
            continue
        assert item.id in shown, f"{item.type} {item.id} is gone"
        may_be_cut = isinstance(item, FunctionCallOutput) and place in ahead
        assert may_be_cut or shown[item.id] is item, f"{item.type} {item.id} is not what it was"


def check_pairs(log: Session, view: Session) -> None:
    """An answered call and its output are both in or both out, with their response's other calls."""
    items = list(log.items)
    shown = {item.id for item in view.items}
    for unit in unit_of(items, log.response_breaks).values():
        members = [items[place] for place in unit if isinstance(items[place], FunctionCall | FunctionCallOutput)]
        assert len({item.id in shown for item in members}) <= 1, f"{[item.id for item in members]} are parted"
    assert None not in answers(list(view.items)).values(), "an output without a call"


def check_oldest_first(log: Session, view: Session, *, excused: Callable[[Item], bool] = lambda item: False) -> None:
    """What is dropped of a category is a prefix, by age, of what could be dropped."""
    items = list(log.items)
    shown = {item.id for item in view.items}
    kept_back = protected(items, log.response_breaks)
    oldest_kept: dict[MessageCategory, int] = {}
    units = {tuple(unit): unit for unit in unit_of(items, log.response_breaks).values()}
    orphans = {place for place, call in answers(items).items() if call is None}
    for unit in sorted(units.values(), key=lambda unit: unit[-1]):
        if kept_back.intersection(unit) or orphans.intersection(unit):
            continue
        category = category_of(items, unit)
        if any(items[place].id in shown for place in unit):
            if not any(excused(items[place]) for place in unit):
                oldest_kept.setdefault(category, unit[-1])
        else:
            older = oldest_kept.get(category)
            assert older is None, f"{items[unit[-1]].id} was dropped, and the older {older} of {category} kept"


def free_tokens(log: Session, view: Session, count: Callable[[Item], int]) -> int:
    """Tokens in the view of what a trim could still drop."""
    kept_back = {log.items[place].id for place in protected(list(log.items), log.response_breaks)}
    return sum(count(item) for item in view.items if item.id not in kept_back)


def check_sums(outcome: Outcome) -> None:
    """What the fold keeps as sums is what is in the view."""
    items, view, tally = list(outcome.log.items), list(outcome.view.items), outcome.following.fold.tally
    units, places = unit_of(items, outcome.log.response_breaks), {item.id: place for place, item in enumerate(items)}
    for rank, category in enumerate(PRIORITY):
        rows = [item for item in view if category_of(items, units[places[item.id]]) is category]
        assert tally.tokens[rank] == sum(map(cost, rows))
        assert tally.items[rank] == len(rows)
    assert tally.total == sum(map(cost, view))
    assert tally.altered == len(outcome.plan.changes)
    answered = set(answers(view).values())
    assert tally.unanswered == sum(isinstance(item, FunctionCall) and place not in answered for place, item in enumerate(view))
    parts = [part for item in view if isinstance(item, Message | FunctionCallOutput) for part in parts_of(item)]
    assert tally.images == sum(isinstance(part, Image) for part in parts)


def parts_of(item: Message | FunctionCallOutput) -> tuple[object, ...]:
    return item.content if isinstance(item, Message) else item.output
