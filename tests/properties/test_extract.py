"""The guarantees of views in which only lines of older items are left, each said as in its own file; and what holds of the choice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, Extraction, MeasuredUnit, StrategyBudget, keep_lines
from context_window.recall import recall
from context_window.strategies import Extract
from session.identity import is_digest
from session.items import Compaction, Item, Message
from session.parts import Text
from session.session import Session
from session.units import NONE, grouping
from tests.support.carried_out import carried_out
from tests.support.engine import GAP, HEAD, Engine, Limits, texts_of
from tests.support.extracting import EXTRACTING, EXTRACTS, code, coded_sessions
from tests.support.harness import copy_of, exact, is_settled, process, trim
from tests.support.strategic import decided, decided_by, measured
from tests.support.strategies import chosen_limits, limits
from tests.support.twin import cost


@given(st.data())
def test_twin(data: st.DataObject) -> None:
    """with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it was called"""
    full_log = data.draw(coded_sessions(max_steps=12))
    strategy = data.draw(EXTRACTING)
    bounds = decided_by(strategy, data.draw(chosen_limits(sum(map(cost, full_log.items)))))
    log = copy_of(full_log)
    engine = Engine(log, bounds)
    for item in full_log.items:
        log.append(item)
        if item is full_log.items[-1] or data.draw(st.integers(0, 7)) == 7:
            outcome = engine.process(log)
            twin = decided(log, bounds, strategy)
            assert list(outcome.view.items) == twin.view()
            assert outcome.total == twin.total()
            assert list(carried_out(outcome.plan, log).items) == twin.view()
            event(f"extracts: {min(len(twin.extracts), 3)}")
            event(f"drops: {min(len(twin.dropped), 3)}")
            event(f"note: {len(twin.state_note[1].content) - 1 if twin.state_note else 0}")


@given(st.data())
def test_one_shot_twin(data: st.DataObject) -> None:
    """`trim_session(session)` is the one-shot form: no history, to the budget"""
    log = data.draw(coded_sessions(max_steps=12))
    strategy = data.draw(EXTRACTING)
    bounds = decided_by(strategy, data.draw(chosen_limits(sum(map(cost, log.items)))))
    outcome = trim(log, bounds)
    twin = decided(log, exact(bounds), strategy, one_shot=True)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()


@given(st.data())
def test_verbatim(data: st.DataObject) -> None:
    """a digest shows lines of its items, in their order, byte-exact, each item's below a heading with the id which gives the item back"""
    log = data.draw(coded_sessions())
    strategy = data.draw(EXTRACTING)
    outcome = process(log, decided_by(strategy, data.draw(chosen_limits(sum(map(cost, log.items))))))
    digests: dict[int, list[Item]] = {}
    for item, decision in zip(log.items, outcome.plan, strict=True):
        if decision.digest_before is not None:
            assert decision.action is Action.EXTRACT
            assert recall(outcome.view, decision.item_id) is item
            digests.setdefault(decision.digest_before, []).append(item)
    note = outcome.plan.state_note
    visible = [item for item in outcome.view.items if is_digest(item) and not (note and item is note.message)]
    assert sorted(item.id for item in visible) == sorted(members[0].id for members in digests.values())
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
            assert are_lines_of(without_blank_lines(body), without_blank_lines("\n".join(texts_of(item))))
            event(f"gaps: {min(body.count(GAP), 3)}")


def without_blank_lines(text: str) -> str:
    """The lines of a text as a digest numbers them: without blank ones, and without spaces at their ends."""
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def are_lines_of(body: str, text: str) -> bool:
    """True if all between the gaps is in the text, in this order."""
    position = 0
    for piece in f"\n{body}\n".split(GAP):
        result = text.find(piece.strip("\n"), position)
        if result < 0:
            return False
        position = result + len(piece.strip("\n"))
    return True


@given(st.data())
def test_a_digest_stands_where_its_first_item_was(data: st.DataObject) -> None:
    """a digest stands before the first item that was put into it, or before the response which that one is in; no response is split"""
    log = data.draw(coded_sessions())
    outcome = process(log, decided_by(data.draw(EXTRACTING), data.draw(chosen_limits(sum(map(cost, log.items))))))
    groups, items = grouping(log), outcome.view.items
    places = {item.id: index for index, item in enumerate(log.items)}
    before = {decision.item_id: decision.digest_before for decision in outcome.plan}
    for number, item in enumerate(items):
        index = before.get(item.id)
        if index is None:
            continue
        assert index <= places[item.id]
        assert groups.response[index] in (NONE, index)
        earlier, later = (
            [places[other.id] for other in part if not (is_digest(other) or isinstance(other, Compaction))]
            for part in (items[:number], items[number + 1 :])
        )
        assert all(other < index for other in earlier)
        assert all(other >= index for other in later)
        event("has a digest")


@given(st.data())
def test_idempotent(data: st.DataObject) -> None:
    """a view within its limits, reprocessed by the same function and policy, is unchanged"""
    log = data.draw(coded_sessions())
    bounds = decided_by(data.draw(EXTRACTS), data.draw(limits(sum(map(cost, log.items)))))
    for make in (process, trim):
        outcome = make(log, bounds)
        if is_settled(outcome):
            assert make(outcome.view, bounds).view.items == outcome.view.items
            saved = Session.from_dict(json.loads(json.dumps(outcome.view.to_dict())))
            assert make(saved, bounds).view.items == saved.items
            event(f"has extracts: {any(decision.action is Action.EXTRACT for decision in outcome.plan)}")


@dataclass(frozen=True)
class Room:
    """Keeps lines of all that is free, whatever fits.

    Attributes:
        tokens: Their limit together.
    """

    tokens: int
    above_units: ClassVar[int] = 0
    final: ClassVar[bool] = True

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> list[Extraction]:
        return [keep_lines([unit for unit in units if unit.free], self.tokens)]


@given(st.data())
def test_a_choice_keeps_to_its_room(data: st.DataObject) -> None:
    """`keep_lines(units, tokens)`: afterwards these units have at most that many tokens together"""
    log, room = data.draw(coded_sessions()), data.draw(st.integers(-5, 3000))
    bounds = replace(data.draw(chosen_limits(10**9)).boundless(), tool_rules={})  # what a rule keeps stays
    before = measured(log, bounds)
    outcome = trim(log, decided_by(Room(room), bounds))
    decisions = {decision.item_id: decision for decision in outcome.plan}
    free = [decisions[id] for unit in before if unit.free for id in unit.ids]
    assert sum(decision.after for decision in free) <= max(0, room)
    event(f"whole: {any(decision.action is Action.KEEP for decision in free)}")


@given(st.data())
def test_a_larger_room_keeps_what_a_smaller_one_did(data: st.DataObject) -> None:
    """lines are taken in the order of their gain per token until one does not fit: what a smaller room keeps is kept by a larger one"""
    log, room = data.draw(coded_sessions(max_steps=10)), data.draw(st.integers(0, 2000))
    bounds = replace(data.draw(chosen_limits(10**9)).boundless(), tool_rules={})  # what a rule keeps stays
    smaller, larger = (trim(log, decided_by(Room(size), bounds)).plan for size in (room, room + data.draw(st.integers(1, 900))))
    for less, more in zip(smaller, larger, strict=True):
        if less.action is Action.KEEP:
            assert more.action is Action.KEEP
        elif less.lines is not None:
            assert more.action is Action.KEEP or set(less.lines) <= set(more.lines or ())


@given(st.integers(0, 99), st.integers(8, 14), st.integers(1500, 3000))
def test_lines_do_not_come_back(seed: int, calls: int, budget: int) -> None:
    """nothing taken comes back by itself: a later extract of an item has lines of the earlier one only"""
    bounds = decided_by(Extract(tail=0, fresh=0.5), Limits(budget, budget, budget * 65 // 100, (Fraction(1, 4),) * 4))
    log = Session([Message("user", "Why?")])
    engine = Engine(log, bounds)
    earlier: dict[str, set[int]] = {}
    for number in range(calls):
        call = log.add_function_call("read", {})
        log.add_function_output("read", code(900, seed + 5 * number), call.call_id)
        for decision in engine.process(log).plan:
            if decision.lines is not None:
                lines = set(decision.lines)
                assert lines <= earlier.get(decision.item_id, lines)
                event("chosen again" if lines < earlier.get(decision.item_id, set()) else "chosen")
                earlier[decision.item_id] = lines
        log.add_message("assistant", "I go on.")


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
    """where truncating new items is not enough, the items that the strategy left are taken first, as with every other strategy"""
    budget = 1500
    bounds = decided_by(Extract(), Limits(budget, budget, budget * 65 // 100, (Fraction(1, 4),) * 4))
    older = [Message("user", "Why?"), Message("assistant", code(900, seed))]
    log = Session([*older, Message("user", "And?"), Message("assistant", "Well."), Message("user", code(budget * 2, seed))])
    outcome = process(log, bounds)
    actions = [decision.action for decision in outcome.plan]
    assert actions == [Action.DROP, Action.DROP, Action.DROP, Action.KEEP, Action.TRUNCATE]
    assert outcome.total <= budget
