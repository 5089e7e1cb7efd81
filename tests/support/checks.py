"""What must hold of any view, checked from the items alone: nothing here asks the planner."""

from __future__ import annotations

from collections.abc import Callable

from context_window import Action
from session.identity import is_digest
from session.items import AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.session import Session
from tests.support.engine import MARK, Cut, Limits, Outcome, changed, cleared, cleared_call
from tests.support.twin import Twin, answers, category_of, cost, is_answer, is_summary, never_sent, responses, unit_of


def frontier(items: list[Item], breaks: frozenset[str]) -> set[int]:
    """The last response, the last user message, everything after the last response."""
    users = [position for position, item in enumerate(items) if item.type == "message" and getattr(item, "role", "") == "user"]
    asking = [position for position in users if items[position].category is not MessageCategory.CONTEXT] or users
    runs = responses(items, breaks)
    first = runs[-1][0] if runs else asking[-1] if asking else len(items)
    return {*asking[-1:], *range(first, len(items))}


def protected(items: list[Item], breaks: frozenset[str]) -> set[int]:
    """Positions that no trim may drop: SYSTEM, pinned, summaries, the frontier, calls without an output, and the units those are in."""
    units = unit_of(items, breaks)
    answered = set(answers(items).values())
    ahead = frontier(items, breaks)
    unsent = never_sent(items)
    return {
        position
        for position, unit in units.items()
        if position not in unsent
        and (
            category_of(items, unit) is MessageCategory.SYSTEM
            or any(
                items[member].pinned
                or items[member].category is MessageCategory.SYSTEM
                or is_summary(items[member])
                or member in ahead
                or (isinstance(items[member], FunctionCall) and member not in answered)
                for member in unit
            )
        )
    }


def check_subsequence(log: Session, view: Session) -> None:
    """The view's items are the log's, in order, save that a summary stands before the first item that it replaces, and a digest of some
    items where one of them was; unreplaced ones are the same objects. One note about the state of the work may stand among them."""
    places = {item.id: position for position, item in enumerate(log.items)}
    notes = [item for item in view.items if item.id not in places]
    assert len(notes) <= 1
    assert all(is_digest(item) for item in notes)
    order = [shown_before(log, item) for item in view.items if not is_digest(item)]
    assert order == sorted(order)
    assert len({item.id for item in view.items}) == len(view.items)
    for item in view.items:
        if MARK not in item.extra:
            assert item is log.items[places[item.id]]


def shown_before(log: Session, item: Item) -> tuple[int, bool]:
    """The item's place in a view: its own, or before the first item that it replaces, and before all of that one's response."""
    items = list(log.items)
    position = next(at for at, other in enumerate(items) if other.id == item.id)
    replaced = [other for other in items[:position] if isinstance(item, Compaction) and other.id in item.replaces and not is_held(other)]
    if not replaced or not {"anthropic_blocks", "openai_item"}.isdisjoint(item.extra):
        return position, True
    first = min(shown_before(log, other)[0] for other in replaced)
    return next((run[0] for run in responses(items, log.response_breaks) if first in run), first), False


def is_held(item: Item) -> bool:
    """True for SYSTEM and pinned items."""
    return item.pinned or item.category is MessageCategory.SYSTEM


def check_kept(log: Session, view: Session) -> None:
    """SYSTEM, pinned items, the last user message and all from the last response on survive, except for context that is not pinned.
    Only unpinned items may have another form there."""
    items = list(log.items)
    visible = {item.id: item for item in view.items}
    unsent = never_sent(items)
    ahead = frontier(items, log.response_breaks)
    for position, item in enumerate(items):
        if position in unsent or not (item.category is MessageCategory.SYSTEM or item.pinned or position in ahead):
            continue
        is_unpinned = not item.pinned and item.category is not MessageCategory.SYSTEM
        if (
            is_unpinned
            and isinstance(item, Message | AgentHandoff)
            and not is_answer(item)
            and item.category is MessageCategory.CONTEXT
            and not is_asking(items, position)
        ):
            continue
        assert item.id in visible, f"{item.type} {item.id} is gone"
        may_be_cut = position in ahead and is_unpinned and not isinstance(item, Reasoning | Compaction)
        assert may_be_cut or visible[item.id] is item, f"{item.type} {item.id} is not what it was"


def is_asking(items: list[Item], position: int) -> bool:
    """True for the last user message."""
    users = [at for at, item in enumerate(items) if isinstance(item, Message) and item.role == "user"]
    return ([at for at in users if items[at].category is not MessageCategory.CONTEXT] or users)[-1:] == [position]


def check_pairs(log: Session, view: Session) -> None:
    """An answered call and its output are both in or both out, with their response's other calls. A digest is neither."""
    items = list(log.items)
    visible = {item.id for item in view.items if not is_digest(item)}
    for unit in unit_of(items, log.response_breaks).values():
        members = [items[position] for position in unit if isinstance(items[position], FunctionCall | FunctionCallOutput)]
        assert len({item.id in visible for item in members}) <= 1, f"{[item.id for item in members]} are parted"
    assert None not in answers(list(view.items)).values(), "an output without a call"


def cost_cleared(item: Item) -> int:
    """Tokens of an output or a call whose content was cleared."""
    if isinstance(item, FunctionCallOutput):
        return cost(cleared(item))
    return cost(cleared_call(item)) if isinstance(item, FunctionCall) else cost(item)


def twin_after(outcome: Outcome) -> Twin:
    """Return a twin of the log in which what the plan drops and clears is gone."""
    twin = Twin(list(outcome.log.items), outcome.log.response_breaks, outcome.limits)
    twin.grow(len(twin.items))
    for position, decision in enumerate(outcome.plan):
        if decision.action in (Action.DROP, Action.CLEAR):
            (twin.dropped if decision.action is Action.DROP else twin.cleared).add(position)
    return twin


def check_oldest_first(log: Session, view: Session, *, excused: Callable[[Item], bool] = lambda item: False) -> None:
    """The dropped units of a category are the oldest of those that could be dropped."""
    items = list(log.items)
    visible = {item.id for item in view.items}
    kept_back = protected(items, log.response_breaks)
    oldest_kept: dict[MessageCategory, int] = {}
    units = {tuple(unit): unit for unit in unit_of(items, log.response_breaks).values()}
    unsent = never_sent(items)
    for unit in sorted(units.values(), key=lambda unit: unit[-1]):
        if kept_back.intersection(unit) or unsent.intersection(unit):
            continue
        category = category_of(items, unit)
        if any(items[position].id in visible for position in unit):
            if not any(excused(items[position]) for position in unit):
                oldest_kept.setdefault(category, unit[-1])
        else:
            older = oldest_kept.get(category)
            assert older is None, f"{items[unit[-1]].id} was dropped, and the older {older} of {category} kept"


def free_tokens(log: Session, view: Session, count: Callable[[Item], int], limits: Limits | None = None) -> int:
    """Tokens in the view that a trim could still drop. With these limits, the first message may be left alone."""
    kept_back = {log.items[position].id for position in protected(list(log.items), log.response_breaks)}
    if limits is not None and limits.keep_first_message and not limits.clamp_messages:
        kept_back |= {item.id for item in list(filter(is_task, view.items))[:1]}
    return sum(count(item) for item in view.items if item.id not in kept_back)


def is_task(item: Item) -> bool:
    """True for a message of the user's own that may state the task."""
    is_users = isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT
    return is_users and not is_digest(item)


def check_sums(outcome: Outcome) -> None:
    """Each decision counts for its unit's category, and the plan's sums are those of the view."""
    items, plan, view = list(outcome.log.items), outcome.plan, outcome.view.items
    units = unit_of(items, outcome.log.response_breaks)
    assert [decision.category for decision in plan] == [category_of(items, units[position]) for position in range(len(items))]
    digests = sum(map(is_digest, view))
    assert sum(decision.after for decision in plan) + digests * outcome.limits.digest == sum(map(cost, view))
    assert plan.freed == plan.before - outcome.total


def is_shortest(outcome: Outcome, position: int) -> bool:
    """True if an item that may be truncated is out of the view or cannot be any shorter."""
    item, decision = outcome.log.items[position], outcome.plan.decisions[position]
    shown = outcome.view.get_by_id(item.id)
    return shown is None or cost(shown) <= cost(changed(item, decision.images, Cut(0, 0, 0)))


def parts_of(item: Item) -> tuple[object, ...]:
    if isinstance(item, Message):
        return item.content
    return item.output if isinstance(item, FunctionCallOutput) else ()
