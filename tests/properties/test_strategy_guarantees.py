"""The guarantees that hold whatever the strategy: `fits`, `pairs`, `accounts` and the others, each said as in its own file."""

from __future__ import annotations

import json

from hypothesis import assume, event, given
from hypothesis import strategies as st

from context_window import Action, Reason
from context_window.strategies import DropOldest, parts_of
from session.identity import is_digest
from session.items import Item, MessageCategory
from session.providers import validate_anthropic
from session.providers.anthropic import to_anthropic
from session.session import Session
from session.units import request_points
from tests.properties.test_sticky import is_edit
from tests.support.checks import check_kept, check_pairs, check_subsequence, check_sums, free_tokens, frontier, protected
from tests.support.engine import STRATEGY_REASONS, Engine
from tests.support.extracting import coded_sessions
from tests.support.harness import can_go_on, copy_of, is_settled, process, trim
from tests.support.strategic import NAMED, WINDOWS, StrategicTwin, decided_by, strategies
from tests.support.strategies import chosen_limits, limits, sessions
from tests.support.twin import category_of, cost, never_sent, responses, twin_of, unit_of

LOGS = st.one_of(sessions(max_steps=10), coded_sessions(max_steps=10))


@given(st.data())
def test_fits(data: st.DataObject) -> None:
    """tokens(view) ≤ budget, else `over_budget` and nothing unprotected left; but where the strategy lets nothing else be taken"""
    log = data.draw(LOGS)
    bounds = decided_by(data.draw(strategies()), data.draw(chosen_limits(sum(map(cost, log.items)))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        fresh = twin_of(outcome.view, bounds)
        fresh.grow(len(fresh.items))
        assert fresh.total() == outcome.total == outcome.plan.after
        assert outcome.plan.over_budget == (outcome.total > bounds.budget)
        event(f"over budget: {outcome.plan.over_budget}, final: {bounds.final}")
        if outcome.plan.over_budget and not bounds.final:
            assert free_tokens(log, outcome.view, cost, outcome.limits) == 0


@given(st.data())
def test_system_pinned_frontier_and_pairs(data: st.DataObject) -> None:
    """SYSTEM, pinned items, the last user message and all from the last response on survive; an answered call and its output are both
    in or both out; the view's items are the log's, in order. `DropOldest(keep_system=False)` alone takes SYSTEM items"""
    log = data.draw(LOGS)
    strategy = data.draw(strategies())
    bounds = decided_by(strategy, data.draw(chosen_limits(sum(map(cost, log.items)))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        check_pairs(log, outcome.view)
        check_subsequence(log, outcome.view)
        if bounds.binds_thinking:
            continue  # there reasoning may go before its unit: test_reasoning.py
        if DropOldest(keep_system=False) not in parts_of(strategy):
            check_kept(log, outcome.view)
        items, visible = list(log.items), {item.id for item in outcome.view.items}
        ahead = frontier(items, log.response_breaks)
        unsent = never_sent(items)
        firm = [item for position, item in enumerate(items) if position not in unsent and (item.pinned or position in ahead)]
        unread = {item.id for decision, item in zip(outcome.plan, items, strict=True) if decision.reason is Reason.UNREAD_CONTEXT}
        assert [item.id for item in firm if item.id not in visible | unread] == []
        assert not any(item.pinned for item in firm if item.id in unread)


@given(st.data())
def test_accounts(data: st.DataObject) -> None:
    """a plan has one decision per item, in order; its rows sum exactly to its totals; each says why"""
    log = data.draw(LOGS)
    bounds = decided_by(data.draw(strategies()), data.draw(chosen_limits(sum(map(cost, log.items)))))
    kept_back = protected(list(log.items), log.response_breaks)
    for outcome in (process(log, bounds), trim(log, bounds)):
        assert [decision.item_id for decision in outcome.plan] == [item.id for item in log.items]
        costs = {decision.item_id: decision.after for decision in outcome.plan if decision.action not in (Action.DROP, Action.EXTRACT)}
        assert costs == {item.id: cost(item) for item in outcome.view.items if not is_digest(item)}
        extracts = [decision for decision in outcome.plan if decision.action is Action.EXTRACT]
        digests = {decision.digest_before for decision in extracts}
        assert sum(cost(item) for item in outcome.view.items if is_digest(item)) == (
            sum(decision.after for decision in extracts) + bounds.digest * len(digests)
        )
        check_sums(outcome)
        for position, decision in enumerate(outcome.plan):
            assert decision.action is not Action.SUMMARISE
            assert (decision.reason is Reason.FITS) <= (position not in kept_back and decision.action is Action.KEEP)
            if decision.reason in STRATEGY_REASONS:
                older_image = (Action.REPLACE_IMAGES, Reason.OVER_BUDGET)  # these go before a strategy is asked
                assert decision.action in (Action.EXTRACT, Action.CLEAR, Action.DROP) or (decision.action, decision.reason) == older_image
                event(decision.reason.name)
            if bounds.final:
                assert decision.action in (Action.KEEP, Action.EXTRACT, Action.CLEAR, Action.DROP)


@given(st.data())
def test_pure(data: st.DataObject) -> None:
    """the input session is byte-identical after any call; and asked again from cold, the same comes out"""
    log = data.draw(LOGS)
    bounds = decided_by(data.draw(strategies()), data.draw(chosen_limits(sum(map(cost, log.items)))))
    saved, objects = json.dumps(log.to_dict()), list(log.items)
    for make in (process, trim):
        outcome = make(log, bounds)
        assert make(log, bounds).plan == outcome.plan
        assert json.dumps(log.to_dict()) == saved
        assert all(mine is theirs for mine, theirs in zip(log.items, objects, strict=True))
        for decision in outcome.plan.changes:
            assert outcome.view.get_by_id(decision.item_id) is not log.get_by_id(decision.item_id)


@given(st.data())
def test_idempotent(data: st.DataObject) -> None:
    """a view within its limits, reprocessed by the same function and policy, is unchanged"""
    log = data.draw(LOGS)
    bounds = decided_by(data.draw(strategies(NAMED)), data.draw(limits(sum(map(cost, log.items)))))
    for make in (process, trim):
        outcome = make(log, bounds)
        if is_settled(outcome):
            assert make(outcome.view, bounds).view.items == outcome.view.items


@given(st.data())
def test_a_view_goes_on_with_its_fold(data: st.DataObject) -> None:
    """a view used as the log from then on goes on with its fold"""
    log = data.draw(LOGS)
    bounds = decided_by(data.draw(strategies(NAMED)), data.draw(limits(sum(map(cost, log.items)))))
    view = process(log, bounds).view
    assume(can_go_on(log, view))
    view = Session.from_view(view)
    for session in (log, view):
        for number in range(3):
            session.add_message("assistant", "answer", f"answer {number}", 1e6)
            session.add_message("user", "and then?", f"then {number}", 1e6)
    full_log, on = process(log, bounds), process(view, bounds)
    assert list(on.view.items) == list(full_log.view.items)
    assert on.total == full_log.total


@given(st.data())
def test_sticky(data: st.DataObject) -> None:
    """between edits (a trim, an image replaced, a late answer, a SYSTEM item) each confirmed request's messages extend the previous
    one's"""
    full_log = data.draw(LOGS)
    strategy = data.draw(strategies())
    bounds = decided_by(strategy, data.draw(chosen_limits(sum(map(cost, full_log.items)))))
    points = [response[0] for response in responses(list(full_log.items), full_log.response_breaks)]
    log = copy_of(full_log)
    engine = Engine(log, bounds)
    before: list[Item] = []
    twin = StrategicTwin(list(full_log.items), full_log.response_breaks, bounds, strategy=strategy)
    for start, point in zip([0, *points], points, strict=False):
        for item in full_log.items[start:point]:
            log.append(item)
        view = list(engine.process(log).view.items)
        twin.grow(point)
        before_trim = twin.copy()
        twin.trim()
        trimmed = twin != before_trim
        edited = trimmed or any(is_edit(list(full_log.items), full_log.response_breaks, position) for position in range(start, point))
        event(f"edited: {edited}")
        if not edited:
            assert all(now is then for now, then in zip(view, before, strict=False)), "an item changed without an edit"
            assert len(view) >= len(before)
        before = view


@given(st.data())
def test_a_window_holds_no_more_units_than_it_says(data: st.DataObject) -> None:
    """The newest units alone: and SYSTEM; other protected units and the first message count among them, and those are more only where
    that is"""
    log = data.draw(LOGS)
    window = data.draw(WINDOWS)
    bounds = decided_by(window, data.draw(chosen_limits(sum(map(cost, log.items)))))
    items = list(log.items)
    kept_back = protected(items, log.response_breaks)
    unsent = never_sent(items)
    units = {tuple(unit) for unit in unit_of(items, log.response_breaks).values() if not unsent.intersection(unit)}
    for outcome in (process(log, bounds), trim(log, bounds)):
        visible = {item.id for item in outcome.view.items}
        held = [unit for unit in units if category_of(items, list(unit)) is not MessageCategory.SYSTEM]
        held = [unit for unit in held if any(items[position].id in visible for position in unit)]
        first = twin_of(outcome.view, bounds)
        first.grow(len(first.items))
        kept_first = {first.items[position].id for position in first.first_message()}
        free = [unit for unit in held if not kept_back.intersection(unit) and items[unit[0]].id not in kept_first]
        assert len(held) <= window.units or free == []
        event(f"slides: {any(decision.reason is Reason.OUT_OF_WINDOW for decision in outcome.plan)}")


@given(st.data())
def test_a_request_is_valid(data: st.DataObject) -> None:
    """every view of a log cut at a request point passes the strict rules of docs/provider-rules.md"""
    full_log = data.draw(LOGS)
    log = copy_of(full_log)
    for item in full_log.items[: data.draw(st.sampled_from(request_points(full_log) or [0]))]:
        log.append(item)
    bounds = decided_by(data.draw(strategies()), data.draw(chosen_limits(sum(map(cost, log.items)))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        request = to_anthropic(outcome.view, caching=True)
        if request[0]:
            assert validate_anthropic(request) == []
