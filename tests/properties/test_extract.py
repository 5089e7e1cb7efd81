"""The guarantees of views in which only lines of older items are left, each said as in its own file; and what holds of the choice."""

from __future__ import annotations

import json
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.recall import recall
from context_window.strategies import Extract
from context_window.trimming.apply import apply
from context_window.decision.extracts import GAP, HEAD, texts_of
from context_window.decision.limits import Limits
from context_window.decision.line_choice import choose_lines
from context_window.decision.plan import Action
from context_window.trimming.strategy_units import UnitsInView
from context_window.decision.replay import Replay
from session.identity import is_digest
from session.items import Compaction, Item, Message
from session.parts import Text
from session.session import Session
from session.units import NONE, grouping
from tests.support.extracting import EXTRACTING, EXTRACTS, code, coded_sessions
from tests.support.harness import MEASURER, again, copy_of, exact, process, trim
from tests.support.strategic import decided, decided_by
from tests.support.strategies import limits
from tests.support.twin import cost


@given(st.data())
def test_twin(data: st.DataObject) -> None:
    """with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it was called"""
    whole = data.draw(coded_sessions(max_steps=12))
    strategy = data.draw(EXTRACTING)
    bounds = decided_by(strategy, data.draw(limits(sum(map(cost, whole.items)))))
    log = copy_of(whole)
    tracker = Replay(log, bounds, MEASURER)
    for item in whole.items:
        log.append(item)
        if item is whole.items[-1] or data.draw(st.integers(0, 7)) == 7:
            outcome = again(tracker, log)
            twin = decided(log, bounds, strategy)
            assert list(outcome.view.items) == twin.view()
            assert outcome.total == twin.total()
            assert list(apply(outcome.plan, log).items) == twin.view()
            event(f"extracts: {min(len(twin.extracts), 3)}")
            event(f"drops: {min(len(twin.dropped), 3)}")


@given(st.data())
def test_one_shot_twin(data: st.DataObject) -> None:
    """`trim_session(session)` is the one-shot form: no history, to the budget"""
    log = data.draw(coded_sessions(max_steps=12))
    strategy = data.draw(EXTRACTING)
    bounds = decided_by(strategy, data.draw(limits(sum(map(cost, log.items)))))
    outcome = trim(log, bounds)
    twin = decided(log, exact(bounds), strategy, one_shot=True)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()


@given(st.data())
def test_verbatim(data: st.DataObject) -> None:
    """a digest shows lines of its items, in their order, byte-exact, each item's below a heading with the id which gives the item back"""
    log = data.draw(coded_sessions())
    strategy = data.draw(EXTRACTING)
    outcome = process(log, decided_by(strategy, data.draw(limits(sum(map(cost, log.items))))))
    digests: dict[int, list[Item]] = {}
    for item, decision in zip(log.items, outcome.plan, strict=True):
        if decision.digest_before is not None:
            assert decision.action is Action.EXTRACT
            assert recall(outcome.view, decision.item_id) is item
            digests.setdefault(decision.digest_before, []).append(item)
    shown = [item for item in outcome.view.items if is_digest(item)]
    assert sorted(item.id for item in shown) == sorted(members[0].id for members in digests.values())
    for members in digests.values():
        digest = outcome.view.get_by_id(members[0].id)
        assert isinstance(digest, Message)
        head, *sections = [part.text for part in digest.content if isinstance(part, Text)]
        assert head == HEAD
        assert len(sections) == len(members)
        for item, text in zip(members, sections, strict=True):
            heading, _, body = text.partition("\n")
            assert heading.startswith("## ")
            assert heading.endswith(f" {item.id}")
            assert are_lines_of(body, "\n".join(texts_of(item)))
            event(f"gaps: {min(body.count(GAP), 3)}")


def are_lines_of(body: str, text: str) -> bool:
    """True if all between the gaps is in the text, in this order."""
    position = 0
    for piece in f"\n{body}\n".split(GAP):
        found = text.find(piece.strip("\n"), position)
        if found < 0:
            return False
        position = found + len(piece.strip("\n"))
    return True


@given(st.data())
def test_a_digest_stands_where_its_first_item_was(data: st.DataObject) -> None:
    """a digest stands before the first item that was put into it, or before the response which that one is in; no response is split"""
    log = data.draw(coded_sessions())
    outcome = process(log, decided_by(data.draw(EXTRACTING), data.draw(limits(sum(map(cost, log.items))))))
    groups, items = grouping(log), outcome.view.items
    places = {item.id: place for place, item in enumerate(log.items)}
    before = {decision.item_id: decision.digest_before for decision in outcome.plan}
    for number, item in enumerate(items):
        place = before[item.id]
        if place is None:
            continue
        assert place <= places[item.id]
        assert groups.response[place] in (NONE, place)
        earlier, later = (
            [places[other.id] for other in part if not (is_digest(other) or isinstance(other, Compaction))]
            for part in (items[:number], items[number + 1 :])
        )
        assert all(other < place for other in earlier)
        assert all(other >= place for other in later)
        event("has a digest")


@given(st.data())
def test_idempotent(data: st.DataObject) -> None:
    """a view within its limits, reprocessed by the same function and policy, is unchanged"""
    log = data.draw(coded_sessions())
    bounds = decided_by(data.draw(EXTRACTS), data.draw(limits(sum(map(cost, log.items)))))
    for make in (process, trim):
        outcome = make(log, bounds)
        if outcome.is_settled:
            assert make(outcome.view, bounds).view is outcome.view
            saved = Session.from_dict(json.loads(json.dumps(outcome.view.to_dict())))
            assert make(saved, bounds).view is saved
            event(f"has extracts: {any(decision.action is Action.EXTRACT for decision in outcome.plan)}")


@given(st.data())
def test_a_choice_keeps_to_its_room(data: st.DataObject) -> None:
    """`keep_lines(units, tokens)`: afterwards these units have at most that many tokens together"""
    log, room = data.draw(coded_sessions()), data.draw(st.integers(-5, 3000))
    fold = trim(log, data.draw(limits(10**9)).boundless()).tracker.fold
    heads = [unit.head for unit in UnitsInView(fold) if unit.free]
    remaining = choose_lines(fold, heads, room)
    tokens = 0
    for head, excerpts in remaining.items():
        whole = sum(fold.tokens(place) for place in fold.groups.members(head))
        tokens += sum(excerpt.tokens for excerpt in excerpts.values()) if excerpts else whole
    event(f"whole: {any(not excerpts for excerpts in remaining.values())}")
    assert tokens <= max(0, room)
    event(f"units: {min(len(remaining), 3)}")


@given(st.data())
def test_a_larger_room_keeps_what_a_smaller_one_did(data: st.DataObject) -> None:
    """lines are taken in the order of their gain per token until one does not fit: what a smaller room keeps is kept by a larger one"""
    log, room = data.draw(coded_sessions(max_steps=10)), data.draw(st.integers(0, 2000))
    fold = trim(log, data.draw(limits(10**9)).boundless()).tracker.fold
    heads = [unit.head for unit in UnitsInView(fold) if unit.free]
    smaller, larger = choose_lines(fold, heads, room), choose_lines(fold, heads, room + data.draw(st.integers(1, 900)))
    assert smaller.keys() <= larger.keys()
    for head, chosen in smaller.items():
        more = larger[head]
        assert not more or all(set(excerpt.lines) <= set(more[place].lines) for place, excerpt in chosen.items())


@given(st.integers(0, 99), st.integers(8, 14), st.integers(1500, 3000))
def test_lines_do_not_come_back(seed: int, calls: int, budget: int) -> None:
    """nothing taken comes back by itself: a later extract of an item has lines of the earlier one only"""
    bounds = decided_by(Extract(tail=0, fresh=0.5), Limits(budget, budget, budget * 65 // 100, (Fraction(1, 4),) * 4))
    log = Session([Message("user", "Why?")])
    tracker = Replay(log, bounds, MEASURER)
    earlier: dict[int, set[int]] = {}
    for number in range(calls):
        call = log.add_function_call("read", {})
        log.add_function_output("read", code(900, seed + 5 * number), call.call_id)
        log.add_message("assistant", "I go on.")
        tracker.update(log)
        fold = tracker.fold
        fold.reopen()  # what a provisional trim took may come back
        for place in range(len(fold)):
            lines = fold.digests.lines.get(place)
            if lines is not None:
                assert set(lines) <= earlier.get(place, set(lines))
                event("chosen again" if set(lines) < earlier.get(place, set()) else "chosen")
                earlier[place] = set(lines)


@given(st.integers(0, 99), st.integers(2, 6), st.integers(1500, 3000), st.integers(2, 9))
def test_a_large_output_does_not_cost_what_came_before(seed: int, calls: int, budget: int, windows: int) -> None:
    """however large a new output is, a fifth of the window is left to the lines of older items, and the task stays whole"""
    bounds = decided_by(Extract(), Limits(budget, budget, budget * 65 // 100, (Fraction(1, 4),) * 4))
    log = Session([Message("user", "Why?", id="task")])
    for number in range(calls):
        call = log.add_function_call("read", {})
        log.add_function_output("read", code(900, seed + 5 * number), call.call_id)
    call = log.add_function_call("read", {})
    log.add_function_output("read", code(budget * windows, seed), call.call_id)
    outcome = process(log, bounds)
    decisions = list(outcome.plan)
    assert outcome.total <= budget
    assert outcome.view.get_by_id("task") == log.items[0]
    assert decisions[-1].action is Action.TRUNCATE
    extracts = sum(decision.action is Action.EXTRACT for decision in decisions)
    assert extracts
    event(f"extracts: {min(extracts, 3)}")


@given(st.integers(1, 99))
def test_unread_outputs_are_truncated_only_if_that_is_enough(seed: int) -> None:
    """where truncation of what is new is not enough, what the strategy has left is taken first, as by every other strategy"""
    budget = 1500
    bounds = decided_by(Extract(), Limits(budget, budget, budget * 65 // 100, (Fraction(1, 4),) * 4))
    older = [Message("user", "Why?"), Message("assistant", code(900, seed))]
    log = Session([*older, Message("user", "And?"), Message("assistant", "Well."), Message("user", code(budget * 2, seed))])
    outcome = process(log, bounds)
    actions = [decision.action for decision in outcome.plan]
    assert actions == [Action.DROP, Action.DROP, Action.DROP, Action.KEEP, Action.TRUNCATE]
    assert outcome.total <= budget
