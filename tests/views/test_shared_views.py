"""Views of one session: a returned view never changes, and an item shown in the same form is the same object."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message
from session.session import Session
from tests.support.counting import Letters
from tests.support.engine import Engine
from tests.support.harness import copy_of
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


def manager_of(tokens: int, counter: Letters | None = None) -> ContextWindowManager:
    return ContextWindowManager(token_counter=counter or Letters(), context_window=ContextWindow(max_tokens=tokens))


def turn(session: Session, number: int, size: int = 60) -> None:
    session.add_message("user", "u" * 20, f"u{number}", 0.0)
    session.append(FunctionCall("tool", "{}", f"c{number}", id=f"c{number}"))
    session.append(FunctionCallOutput("tool", "o" * size, f"c{number}", id=f"o{number}"))
    session.add_message("assistant", "a" * 20, f"a{number}", 0.0)


def conversation(turns: int = 12) -> Session:
    session = Session(id="s")
    session.add_message("system", "be brief", "sys", 0.0)
    for number in range(turns):
        turn(session, number)
    return session


class Failing(Letters):
    """A counter of letters that fails after some calls."""

    name = "failing"

    answers = 10**9

    def count_text(self, text: str) -> int:
        if self.asked == self.answers:
            raise OSError("the counter is down")
        return super().count_text(text)


def test_a_counter_that_fails_in_the_middle_of_a_trim_leaves_no_trace() -> None:
    """Asked again, the manager decides as if it had never been asked before."""
    expected = [item.id for item in manager_of(600).process_session(conversation(6)).items]
    for answers in count():
        counter = Failing()
        manager, session = manager_of(600, counter), conversation(6)
        counter.answers = counter.asked + answers
        try:
            manager.process_session(session)
        except OSError:
            counter.answers = 10**9
            assert [item.id for item in manager.process_session(session).items] == expected
        else:
            break
    assert answers > 40


@given(st.data())
def test_a_returned_view_never_changes(data: st.DataObject) -> None:
    """regardless of appends to the log, and of later trims"""
    whole = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, whole.items))))
    log = copy_of(whole)
    engine = Engine(log, bounds)
    returned: list[tuple[Session, list[Item]]] = []
    for item in whole.items:
        log.append(item)
        view = engine.process(log).view
        if view.items != log.items:
            returned.append((view, list(view.items)))
    event(f"views: {min(len(returned), 20)}")
    for view, items in returned:
        assert len(view.items) == len(items)
        assert all(item is original for item, original in zip(view.items, items, strict=True))
        assert [view.position(item.id) for item in items] == list(range(len(items)))


def test_an_output_cleared_is_the_same_object_in_every_later_view() -> None:
    """A caller may store something per item, such as its tokens, and must find it again."""
    manager, session = manager_of(3_000), conversation()
    cleared: dict[str, Item] = {}
    repeats = 0
    for number in range(12, 40):
        for item in manager.process_session(session).items:
            if item is not session.get_by_id(item.id):
                repeats += item.id in cleared
                assert cleared.setdefault(item.id, item) is item
        turn(session, number, size=300)
    assert repeats > 20


def test_items_that_were_removed_for_a_running_call_come_back_when_it_is_answered() -> None:
    """An answer can cost less than the converter's substitute for it."""
    session = Session(id="s")
    session.add_message("user", "q" * 20, "u0", 0.0)
    session.append(Message("assistant", "a" * 20, id="a0", pinned=True))
    session.add_message("user", "q" * 20, "u1", 0.0)
    session.add_message("assistant", "a" * 20, "a1", 0.0)
    session.add_message("user", "q" * 20, "u2", 0.0)
    session.append(FunctionCall("tool", "{}", "c"))
    needed = manager_of(10_000).plan_session(session).after
    manager = manager_of(needed - 1)
    assert "u0" not in [item.id for item in manager.process_session(session).items]
    session.append(FunctionCallOutput("tool", "ok", "c"))
    assert manager.plan_session(session).before < needed
    assert not manager.plan_session(session).changes


def test_a_summary_that_a_later_one_replaces_has_no_position_in_a_plan() -> None:
    manager, session = manager_of(3_000), conversation(2)
    positions = []
    for number in range(2, 7):
        session.append(Compaction("so far", tuple(item.id for item in session.items[1:-4])))
        turn(session, number)
        positions.append(len(manager.plan_session(session).summary_places))
    assert positions == [1] * 5


@pytest.mark.parametrize("tokens", [400, 3_000])
def test_a_session_that_grows_while_a_one_shot_trim_is_planned_is_decided_as_it_is_then(tokens: int) -> None:
    manager, session = manager_of(tokens), conversation()
    first = manager.trim_session(session)
    for number in range(12, 24):
        turn(session, number)
    assert list(manager.trim_session(session).items) == list(manager_of(tokens).trim_session(session).items) != list(first.items)
