"""A session followed: what it notices, what its views share, and what a call that breaks off leaves behind."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window.config import Shares
from context_window.counting.measure import Measurer
from context_window.following import Following
from context_window.trimming.limits import Limits
from context_window.trimming.plan import Action, Decision, Plan
from session.items import Item, Message
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
def test_growth_is_followed_and_an_edit_is_not(edit: object, goes_on: bool) -> None:
    session = conversation()
    following = process(session, TIGHT).following
    assert callable(edit)
    edit(session)
    assert following.follows(session) is goes_on


def test_another_session_is_not_followed() -> None:
    following = process(conversation(), TIGHT).following
    assert not following.follows(conversation())


def test_a_one_shot_trim_of_a_session_that_grows_meanwhile_decides_at_the_end_alone() -> None:
    session = conversation()
    following = Following(session, TIGHT, MEASURER, one_shot=True)
    for number in range(12, 24):
        turn(session, number)
    assert list(again(following, session).view.items) == list(again(Following(session, TIGHT, MEASURER, one_shot=True), session).view.items)


# What a failing counter leaves behind


class Failing(Letters):
    """Letters, until its answers are used up."""

    name = "failing"

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.answers = answers

    def count_text(self, text: str) -> int:
        if self.asked == self.answers:
            raise OSError("the counter is down")
        return super().count_text(text)


def test_a_call_that_broke_off_anywhere_is_not_gone_on_with() -> None:
    """Also where it broke off in the middle of a trim, or of a provisional one."""
    for answers in count(1):
        session = conversation(6)
        counter = Failing(answers)
        following = Following(session, TIGHT, Measurer(counter))
        try:
            following.catch_up(session)
        except OSError:
            assert not following.follows(session)
        else:
            break
    assert answers > 40
    assert following.follows(session)


# What views share


@given(st.data())
def test_a_view_given_out_never_changes(data: st.DataObject) -> None:
    """whatever is appended to the log, to this view or to another, and whatever is trimmed later"""
    whole = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, whole.items))))
    log = copy_of(whole)
    following = Following(log, bounds, MEASURER)
    given_out: list[tuple[Session, list[Item]]] = []
    fresh = count()
    for item in whole.items:
        log.append(item)
        view = again(following, log).view
        if view is not log:
            given_out.append((view, list(view.items)))
        if given_out and data.draw(st.integers(0, 3)) == 0:
            place = data.draw(st.integers(0, len(given_out) - 1))
            chosen, items = given_out[place]
            given_out[place] = (chosen, [*items, chosen.add_message("user", "on the side", f"side{next(fresh)}")])
    event(f"views: {min(len(given_out), 20)}")
    for view, items in given_out:
        assert len(view.items) == len(items)
        assert all(now is then for now, then in zip(view.items, items, strict=True))
        assert [view.position(item.id) for item in items] == list(range(len(items)))


def test_views_between_two_trims_share_one_list() -> None:
    session = conversation(0)
    following = Following(session, ROOMY, MEASURER)
    views = []
    for number in range(60):
        turn(session, number)
        views.append(again(following, session).view)
    trimmed = [view for view in views if view is not session]
    lists = {id(view.lineage) for view in trimmed}
    assert len(trimmed) > 30
    assert 1 < len(lists) < len(trimmed) / 2


def test_an_output_cleared_is_the_same_object_in_every_later_view() -> None:
    """So that whoever keeps something by item, such as its tokens, finds it again."""
    session = conversation()
    following = Following(session, ROOMY, MEASURER)
    cleared: dict[str, Item] = {}
    kept = 0
    for number in range(12, 40):
        outcome = again(following, session)
        for item in outcome.view.items:
            if item is not session.get_by_id(item.id):
                kept += item.id in cleared
                assert cleared.setdefault(item.id, item) is item
        turn(session, number, size=300)
    assert kept > 20


def test_a_session_that_is_whole_again_is_itself_and_its_plan_knows_no_seams() -> None:
    """An answer can cost less than what a converter puts in its place: what was trimmed for that is back."""
    session = Session(id="s")
    session.add_message("user", "q" * 20, "u0", 0.0)
    session.append(Message("assistant", "a" * 20, id="a0", pinned=True))
    session.add_message("user", "q" * 20, "u1", 0.0)
    session.add_message("assistant", "a" * 20, "a1", 0.0)
    session.add_message("user", "q" * 20, "u2", 0.0)
    session.add_function_call("tool", "{}", "c")
    following = Following(session, replace(TIGHT, budget=150, trigger=150, target=130, synthetic=40), MEASURER)
    trimmed = again(following, session)
    assert [item.id for item in trimmed.view.items][:3] == ["a0", "a1", "u2"]
    assert trimmed.plan.breaks == trimmed.view.response_breaks == {"a1"}
    session.add_function_output("tool", "ok", "c")
    whole = again(following, session)
    assert whole.view is session
    assert whole.plan.breaks == frozenset()
    assert list(again(following, session).view.items) == list(process(session, following.fold.limits).view.items)


# Whether something was lost


def taken(plan: Plan) -> dict[str, Decision]:
    return {decision.item_id: decision for decision in plan.changes}


def is_less(now: Decision, before: Decision | None) -> bool:
    """Whether more of an item is out than was."""
    if before is None:
        return True
    if Action.DROP in {now.action, before.action} or Action.CLEAR in {now.action, before.action}:
        order = [Action.KEEP, Action.REPLACE_IMAGES, Action.TRUNCATE, Action.CLEAR, Action.DROP]
        return order.index(now.action) > order.index(before.action)
    kept = [decision.cut.head + decision.cut.tail if decision.cut else 10**9 for decision in (now, before)]
    return kept[0] < kept[1] or not set(now.images) <= set(before.images)


@given(st.data())
def test_has_lost(data: st.DataObject) -> None:
    """whether a view lost what the one before it showed, or what is new never came into it"""
    whole = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, whole.items))))
    log = copy_of(whole)
    following = Following(log, bounds, MEASURER)
    again(following, log)
    assert following.has_lost() is None
    before: dict[str, Decision] = {}
    for item in whole.items:
        log.append(item)
        if data.draw(st.booleans()):
            now = taken(again(following, log).plan)
            lost = following.has_lost()
            event(f"lost: {lost}")
            assert lost is any(is_less(decision, before.get(name)) for name, decision in now.items())
            before = now


def test_what_a_late_answer_brings_back_in_a_smaller_form_is_not_lost() -> None:
    session = Session(id="s")
    session.add_message("user", "q", "u0", 0.0)
    session.add_function_call("tool", "{}", "c0")
    session.add_function_call("tool", "{}", "c1")
    session.add_function_output("tool", "o" * 600, "c0")
    session.add_message("user", "q" * 500, "u1", 0.0)
    session.add_message("assistant", "a", "a0", 0.0)
    bounds = replace(TIGHT, budget=1000, trigger=1000, target=300)
    following = Following(session, bounds, MEASURER)
    assert [item.id for item in again(following, session).view.items] == ["u1", "a0"]
    assert following.has_lost() is None
    session.add_function_output("tool", "late", "c1")
    view = again(following, session).view
    assert "taken out" in str(view.items[2])
    assert following.has_lost() is False
    session.add_message("user", "q" * 500, "u2", 0.0)
    again(following, session)
    assert following.has_lost() is True


def test_one_shot_lost_is_not_known() -> None:
    assert trim(conversation(), TIGHT).following.has_lost() is None
