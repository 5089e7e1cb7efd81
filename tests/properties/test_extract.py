"""The guarantees of views in which only lines of older items are left, each said as in its own file; and what holds of the choice."""

from __future__ import annotations

import json
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.recall import recall
from context_window.strategies import Extract
from context_window.trimming.extracts import GAP, extract_marker
from context_window.trimming.limits import Limits
from context_window.trimming.line_choice import choose_lines
from context_window.trimming.plan import Action
from context_window.trimming.strategy_api import keep_lines
from context_window.trimming.strategy_units import UnitsInView
from context_window.views.tracker import SessionTracker
from session.items import FunctionCall, FunctionCallOutput, Item, Message
from session.json_strings import string_values
from session.parts import Image, Text
from session.session import Session
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
    tracker = SessionTracker(log, bounds, MEASURER)
    for item in whole.items:
        log.append(item)
        if item is whole.items[-1] or data.draw(st.integers(0, 7)) == 7:
            outcome = again(tracker, log)
            twin = decided(log, bounds, strategy)
            assert list(outcome.view.items) == twin.view()
            assert outcome.total == twin.total()
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
    """an extract shows lines of its item, in their order, byte-exact, below a marker that names the id which gives the item back"""
    log = data.draw(coded_sessions())
    strategy = data.draw(EXTRACTING)
    outcome = process(log, decided_by(strategy, data.draw(limits(sum(map(cost, log.items))))))
    for decision in outcome.plan:
        if decision.action is not Action.EXTRACT:
            continue
        original, shown = log.get_by_id(decision.item_id), outcome.view.get_by_id(decision.item_id)
        assert original is not None
        assert shown is not None
        assert recall(outcome.view, decision.item_id) is original
        assert decision.after < decision.before + lost_by_placeholders(original)
        for text, extract in texts_of_both(original, shown):
            marker, _, body = extract.partition("\n")
            event(f"gaps: {min(body.count(GAP), 3)}")
            assert marker == extract_marker(original)
            assert f"recall id {original.id}]" in marker
            position = 0
            for piece in f"\n{body}\n".split(GAP):
                found = text.find(piece.strip("\n"), position)
                assert found >= 0
                position = found + len(piece.strip("\n"))


def test_an_extract_may_cost_more_than_its_item_where_the_placeholder_of_an_image_did() -> None:
    log = Session()
    for name, text in (("old", "see src/main.py"), ("new", "what of src/main.py, in main of src/main.py?")):
        log.append(Message("user", (Image(url=f"https://example.org/{name}.png", width=1, height=1), Text(text)), id=name))
        log.add_message("assistant", "plain words")
    log.add_message("user", "go on")
    limits = Limits(150, 150, 150, (Fraction(1, 4),) * 4, images_kept=1, images_max=1)
    decision = process(log, decided_by(lambda units, _: [keep_lines([unit for unit in units if unit.free], 140)], limits)).plan.decisions[0]
    assert decision.action is Action.EXTRACT
    assert decision.before < decision.after < decision.before + lost_by_placeholders(log.items[0])


def lost_by_placeholders(item: Item) -> int:
    """Tokens by which placeholders of all its images would make the item larger: an extract may replace such a form."""
    return sum(max(0, -saved) for _, saved in MEASURER.measure(item).images)


def texts_of_both(original: Item, shown: Item) -> list[tuple[str, str]]:
    """Each text with its extract."""
    if isinstance(original, FunctionCall):
        assert isinstance(shown, FunctionCall)
        assert json.loads(shown.arguments).keys() == json.loads(original.arguments).keys()
        pairs = zip(string_values(original.arguments), string_values(shown.arguments), strict=True)
        return [(text, extract) for text, extract in pairs if "\n" in extract and text != extract]
    assert isinstance(original, Message | FunctionCallOutput)
    assert isinstance(shown, Message | FunctionCallOutput)
    return [(original.text, shown.text)]


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
    for head, chosen in remaining.items():
        for place in fold.groups.members(head):
            lines = chosen.get(place)
            if fold.hidden_reason(place) is None:
                tokens += fold.tokens(place) if lines is None else min(fold.tokens(place), fold.measures.extracted(place, lines))
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
        assert all(set(lines) <= set(larger[head][place]) for place, lines in chosen.items())


@given(st.integers(0, 99), st.integers(8, 14), st.integers(1500, 3000))
def test_lines_do_not_come_back(seed: int, calls: int, budget: int) -> None:
    """nothing taken comes back by itself: a later extract of an item has lines of the earlier one only"""
    bounds = decided_by(Extract(tail=0, fresh=0.5), Limits(budget, budget, budget * 65 // 100, (Fraction(1, 4),) * 4))
    log = Session([Message("user", "Why?")])
    tracker = SessionTracker(log, bounds, MEASURER)
    earlier: dict[int, set[int]] = {}
    for number in range(calls):
        call = log.add_function_call("read", {})
        log.add_function_output("read", code(900, seed + 5 * number), call.call_id)
        log.add_message("assistant", "I go on.")
        tracker.update(log)
        fold = tracker.fold
        fold.reopen()  # what a provisional trim took may come back
        for place in range(len(fold)):
            lines = fold.extract_lines(place)
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
