"""The tracker of a session: edits, shared views, and interrupted updates."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window.counting.item_tokens import Measurer
from context_window.settings.shares import Shares
from context_window.trimming.limits import Limits
from context_window.trimming.plan import Action, Decision, Plan
from context_window.views.tracker import SessionTracker
from session.items import Compaction, Item, Message
from session.session import Session
from tests.support.counting import Letters
from tests.support.harness import MEASURER, again, copy_of, process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost

TIGHT = Limits(budget=400, trigger=400, target=260, shares=Shares().exact)
ROOMY = Limits(budget=3000, trigger=3000, target=1950, shares=Shares().exact)


def turn(session: Session, number: int, size: int = 60) -> None:
    session.add_message("user", "u" * 20, f"u{number}", 0.0)
    session.add_function_call("tool", "{}", f"c{number}")
    session.add_function_output("tool", "o" * size, f"c{number}")
    session.add_message("assistant", "a" * 20, f"a{number}", 0.0)


def conversation(turns: int = 12) -> Session:
    session = Session(id="s")
    session.add_message("system", "be brief", "sys", 0.0)
    for number in range(turns):
        turn(session, number)
    return session


# Edits


@pytest.mark.parametrize(
    ("edit", "goes_on"),
    [
        (lambda session: session.add_message("user", "more"), True),
        (lambda session: session.add_function_call("tool", "{}", "another"), True),
        (lambda session: session.pin("u3"), False),
        (lambda session: session.add_message("system", "new", replace=True), False),
        (lambda session: session.unpin("u3"), True),  # it is not pinned: nothing has changed
    ],
    ids=["append", "call", "pin", "replace", "unpin what is not pinned"],
)
def test_a_tracker_follows_appends_but_not_edits(edit: object, goes_on: bool) -> None:
    session = conversation()
    tracker = process(session, TIGHT).tracker
    assert callable(edit)
    edit(session)
    assert tracker.can_update(session) is goes_on


def test_a_tracker_does_not_follow_another_session() -> None:
    tracker = process(conversation(), TIGHT).tracker
    assert not tracker.can_update(conversation())


def test_a_one_shot_trim_of_a_session_that_grows_meanwhile_decides_at_the_end_alone() -> None:
    session = conversation()
    tracker = SessionTracker(session, TIGHT, MEASURER, one_shot=True)
    for number in range(12, 24):
        turn(session, number)
    fresh = again(SessionTracker(session, TIGHT, MEASURER, one_shot=True), session)
    assert list(again(tracker, session).view.items) == list(fresh.view.items)


# Failing counters


class Failing(Letters):
    """A counter of letters that fails after some calls."""

    name = "failing"

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.answers = answers

    def count_text(self, text: str) -> int:
        if self.asked == self.answers:
            raise OSError("the counter is down")
        return super().count_text(text)


def test_an_interrupted_tracker_is_not_updated() -> None:
    """Also if it was interrupted in the middle of a trim, or of a provisional one."""
    for answers in count(1):
        session = conversation(6)
        counter = Failing(answers)
        tracker = SessionTracker(session, TIGHT, Measurer(counter))
        try:
            tracker.update(session)
        except OSError:
            assert not tracker.can_update(session)
        else:
            break
    assert answers > 40
    assert tracker.can_update(session)


# Shared views


@given(st.data())
def test_a_returned_view_never_changes(data: st.DataObject) -> None:
    """regardless of appends to the log, to this view or to another, and of later trims"""
    session = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, session.items))))
    log = copy_of(session)
    tracker = SessionTracker(log, bounds, MEASURER)
    given_out: list[tuple[Session, list[Item]]] = []
    for item in session.items:
        log.append(item)
        view = again(tracker, log).view
        if view is not log:
            given_out.append((view, list(view.items)))
    event(f"views: {min(len(given_out), 20)}")
    for view, items in given_out:
        assert len(view.items) == len(items)
        assert all(item is original for item, original in zip(view.items, items, strict=True))
        assert [view.position(item.id) for item in items] == list(range(len(items)))


def test_views_between_two_trims_share_one_list() -> None:
    session = conversation(0)
    tracker = SessionTracker(session, ROOMY, MEASURER)
    views = []
    for number in range(60):
        turn(session, number)
        views.append(again(tracker, session).view)
    trimmed = [view for view in views if view is not session]
    lists = {id(view.lineage) for view in trimmed}
    assert len(trimmed) > 30
    assert 1 < len(lists) < len(trimmed) / 2


def test_an_output_cleared_is_the_same_object_in_every_later_view() -> None:
    """A caller may store something per item, such as its tokens, and must find it again."""
    session = conversation()
    tracker = SessionTracker(session, ROOMY, MEASURER)
    cleared: dict[str, Item] = {}
    repeats = 0
    for number in range(12, 40):
        outcome = again(tracker, session)
        for item in outcome.view.items:
            if item is not session.get_by_id(item.id):
                repeats += item.id in cleared
                assert cleared.setdefault(item.id, item) is item
        turn(session, number, size=300)
    assert repeats > 20


def test_a_session_that_fits_again_is_returned_itself() -> None:
    """An answer can cost less than the converter's substitute for it, so that items trimmed for the substitute come back."""
    session = Session(id="s")
    session.add_message("user", "q" * 20, "u0", 0.0)
    session.append(Message("assistant", "a" * 20, id="a0", pinned=True))
    session.add_message("user", "q" * 20, "u1", 0.0)
    session.add_message("assistant", "a" * 20, "a1", 0.0)
    session.add_message("user", "q" * 20, "u2", 0.0)
    session.add_function_call("tool", "{}", "c")
    tracker = SessionTracker(session, replace(TIGHT, budget=150, trigger=150, target=130, synthetic=40), MEASURER)
    trimmed = again(tracker, session)
    assert [item.id for item in trimmed.view.items][:3] == ["a0", "a1", "u2"]
    assert trimmed.plan.breaks == trimmed.view.response_breaks == {"a1"}
    session.add_function_output("tool", "ok", "c")
    outcome = again(tracker, session)
    assert outcome.view is session
    assert outcome.plan.breaks == frozenset()
    assert list(again(tracker, session).view.items) == list(process(session, tracker.fold.limits).view.items)


# Views that hide more


def changes_by_id(plan: Plan) -> dict[str, Decision]:
    return {decision.item_id: decision for decision in plan.changes}


def is_less(decision: Decision, before: Decision | None) -> bool:
    """True if the decision shows less of its item than the one before."""
    if before is None:
        return True
    if Action.DROP in {decision.action, before.action} or Action.CLEAR in {decision.action, before.action}:
        order = [Action.KEEP, Action.REPLACE_IMAGES, Action.TRUNCATE, Action.CLEAR, Action.DROP]
        return order.index(decision.action) > order.index(before.action)
    length, length_before = (cut.head + cut.tail if cut else 10**9 for cut in (decision.cut, before.cut))
    return length < length_before or not set(decision.images) <= set(before.images)


@given(st.data())
def test_has_hidden_more(data: st.DataObject) -> None:
    """True if a view hides something that the one before it showed, or leaves out a new item, other than for a summary in its place"""
    session = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, session.items))))
    log = copy_of(session)
    tracker = SessionTracker(log, bounds, MEASURER)
    again(tracker, log)
    assert tracker.take_has_hidden_more() is None
    before: dict[str, Decision] = {}
    for item in session.items:
        log.append(item)
        if data.draw(st.booleans()):
            changes = changes_by_id(again(tracker, log).plan)
            replaced = {item.id for place, item in enumerate(log.items) if tracker.fold.is_replaced(place)}
            hidden_more = tracker.take_has_hidden_more()
            event(f"hides more: {hidden_more}")
            assert hidden_more is any(is_less(decision, before.get(name)) for name, decision in changes.items() if name not in replaced)
            before = changes


def test_a_reduced_item_that_comes_back_is_not_newly_hidden() -> None:
    session = Session(id="s")
    session.add_message("user", "q", "u0", 0.0)
    session.add_function_call("tool", "{}", "c0")
    session.add_function_call("tool", "{}", "c1")
    session.add_function_output("tool", "o" * 600, "c0")
    session.add_message("user", "q" * 500, "u1", 0.0)
    session.add_message("assistant", "a", "a0", 0.0)
    bounds = replace(TIGHT, budget=1000, trigger=1000, target=300, clamp_messages=False)
    tracker = SessionTracker(session, bounds, MEASURER)
    assert [item.id for item in again(tracker, session).view.items] == ["u1", "a0"]
    assert tracker.take_has_hidden_more() is None
    session.add_function_output("tool", "late", "c1")
    view = again(tracker, session).view
    assert "taken out" in str(view.items[2])
    assert tracker.take_has_hidden_more() is False
    session.add_message("user", "q" * 500, "u2", 0.0)
    again(tracker, session)
    assert tracker.take_has_hidden_more() is True


def test_a_one_shot_tracker_has_no_previous_view() -> None:
    assert trim(conversation(), TIGHT).tracker.take_has_hidden_more() is None


@given(st.data())
def test_the_sums_of_a_plan_are_those_of_its_decisions(data: st.DataObject) -> None:
    """A plan of a log that grew costs what is new. Its protected tokens and summaries are those of a count from scratch."""
    log = data.draw(sessions())
    bounds = data.draw(limits(max(400, sum(map(cost, log.items)))))
    session, tracker = Session(id="s"), None
    for item in log.items:
        session.append(item)
        if tracker is None:
            tracker = SessionTracker(session, bounds, MEASURER)
        tracker.update(session)
        if data.draw(st.booleans()):
            check_sums_of_plan(session, tracker)


def check_sums_of_plan(session: Session, tracker: SessionTracker) -> Plan:
    """Check the sums of a plan against a count of all its decisions."""
    plan, fold = tracker.plan(), tracker.fold
    assert plan.protected == sum(list(plan)[place].before for place in fold.protected_places())
    moved = {place: before for place, before in fold.moved.items() if fold.hidden_reason(place) is None}
    assert plan.summary_places == {session.items[place].id: before for place, before in moved.items()}
    return plan


def test_a_summary_that_a_later_one_replaces_has_no_place_in_a_plan() -> None:
    session = conversation(2)
    tracker = SessionTracker(session, ROOMY, MEASURER)
    places = []
    for number in range(2, 7):
        session.append(Compaction("so far", tuple(item.id for item in session.items[1:-4])))
        turn(session, number)
        tracker.update(session)
        places.append(len(check_sums_of_plan(session, tracker).summary_places))
    assert places == [1] * 5
    assert sum(isinstance(item, Compaction) for item in session.items) == 5
