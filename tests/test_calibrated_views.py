"""Sessions that a manager trims as they go, and whose requests are reported as their views cost: the case that calibration is for."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.following import Following
from context_window.trimming.fold import Fold
from session.items import Message
from session.parts import Image, Text
from session.session import Session
from session.transcripts import read_transcripts
from session.units import grouping
from session.usage import Usage
from tests.support.counting import Letters
from tests.support.shared import TRANSCRIPTS, needs_transcripts

Truth = Callable[[int, int], int]
"""What the provider counts: of a view's local count, and of the number of its request."""


@dataclass(frozen=True)
class Asked:
    """A request as a manager counted it. Amounts are tokens.

    Attributes:
        bound: What it said that the request costs at the most; None where nothing was reported yet.
        cost: What it cost.
        altered: Whether the view was not the whole log.
        exact: Whether the report before was gone by.
    """

    bound: int | None
    cost: int
    altered: bool
    exact: bool

    @property
    def covered(self) -> bool:
        return self.bound is not None and self.bound >= self.cost


def asked_now(following: Following, cost: int) -> Asked:
    fold = following.fold
    bound = None if fold.anchor is None else fold.total
    return Asked(bound, cost, bool(fold.tally.altered), fold.anchor is not None and fold.anchor.exact)


def played(manager: ContextWindowManager, log: Session, truth: Truth, *, sent: Session | None = None) -> Iterator[Asked]:
    """A log played to the manager: before every response there is a view, and it is reported. With `sent` the whole log is sent instead."""
    session = Session(id=log.id) if sent is None else sent
    session.restore_seams(log.response_breaks, 0)
    starts = set(grouping(log).starts)
    requests = 0
    for place, item in enumerate(log.items):
        reported = None
        if place in starts:
            manager.process_session(session)
            state = manager._state(session)
            assert state.view is not None
            cost = truth(state.view.fold.counted, requests)
            yield asked_now(state.view, cost)
            reported = Usage(input_tokens=cost)
            requests += 1
        session.append(replace(item, usage=reported))


def turns(count: int, *, size: int = 400, images: bool = False, first: int = 0) -> Session:
    session = Session(id="s")
    for turn in range(first, first + count):
        picture = (Image(url=f"u{turn}", width=800, height=800),) if images else ()
        session.append(Message("user", (Text("q" * size), *picture), id=f"q{turn}"))
        session.append(Message("assistant", "a" * size, id=f"a{turn}"))
    return session


def manager_of(tokens: int) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=tokens))


# Recorded sessions

FOLDERS = {"codex": 2, "mini_swe_agent": 3, "claude_code": 3, "pi": 1}
"""How many sessions of 20 requests and more are taken of each."""


def long_sessions(folder: str, most: int) -> Iterator[Session]:
    for file in sorted(file for file in (TRANSCRIPTS / folder).rglob("*") if file.is_file()):
        for session in read_transcripts(file):
            if len(grouping(session).starts) >= 20:
                yield session
                most -= 1
                if not most:
                    return


@needs_transcripts
def test_bounds_hold_and_are_tight_over_many_trims_of_recorded_sessions() -> None:
    """coverage ≥ 97 %, mean slack: of sessions that are trimmed all along, with 9,000 tokens in no log and counts that are too low"""
    asked: list[Asked] = []
    for folder, most in FOLDERS.items():
        for session in long_sessions(folder, most):
            whole = ContextWindowManager(context_window=ContextWindow(max_tokens=10**9)).analyze_session(session)["total_tokens"]
            manager = ContextWindowManager(context_window=ContextWindow(max_tokens=9_000 + max(4_000, whole // 6)))
            asked += played(manager, session, lambda counted, _: 9_000 + counted * 115 // 100)
    known = [one for one in asked if one.bound is not None]
    assert len(known) > 500
    assert sum(one.altered for one in known) > 300
    assert statistics.fmean(one.covered for one in known) >= 0.97
    assert statistics.fmean(max(0, one.bound - one.cost) / one.cost for one in known if one.bound is not None) <= 0.03
    assert all(one.exact for one in known)


# By hand


def test_the_first_report_after_a_trim_is_gone_by_though_much_of_the_request_is_in_no_log() -> None:
    manager = manager_of(14_000)
    session = turns(18)
    manager.process_session(session)
    asked = list(played(manager, turns(30, first=18), lambda counted, _: 9_000 + counted, sent=session))
    assert asked[0].altered
    assert all(one.covered and one.exact for one in asked[1:])


def test_a_prompt_that_grows_outside_the_log_is_believed_within_a_few_requests() -> None:
    """a factor never sticks at a wrong value: images have been replaced, and then there are 9,000 tokens more that are in no log"""
    asked = list(played(manager_of(60_000), turns(40, images=True), lambda counted, request: counted + (9_000 if request > 5 else 0)))
    assert asked[5].altered
    assert all(one.covered for one in asked[1:6])
    assert all(one.covered and one.exact for one in asked[10:])


@pytest.mark.parametrize("percent", [25, 30, 45, 80, 100, 160, 250])
def test_reports_are_gone_by_over_many_trims_whatever_a_count_is_worth(percent: int) -> None:
    asked = list(played(manager_of(9_000), turns(200), lambda counted, _: 1 + counted * percent // 100))
    assert sum(one.altered for one in asked) > 50
    assert statistics.fmean(one.exact for one in asked[1:]) > 0.9
    assert statistics.fmean(one.covered for one in asked[1:]) > 0.95


def test_nothing_is_learned_from_what_a_view_said_of_itself() -> None:
    """It is a bound already: the report after it is less by what the bound had to spare."""
    session = Session([Message("user", "q" * 96)])
    session.restore_seams(frozenset(), 1, 50)
    session.append(Message("user", "r" * 96))
    session.append(Message("assistant", "a" * 96, usage=Usage(400, 0, 0, 100)))
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=10_000))
    following = manager._follow(session, manager._state(session))
    assert (following.fold.reported, len(following.fold.increments)) == (400, 0)
    session.append(Message("user", "r" * 96))
    session.append(Message("assistant", "a" * 96, usage=Usage(700, 0, 0, 100)))
    following = manager._follow(session, manager._state(session))
    assert len(following.fold.increments) == 1


def heard(*reports: int) -> Fold:
    """A fold of turns of 200 tokens each, whose requests were reported so."""
    session = Session()
    for tokens in reports:
        session.append(Message("user", "q" * 96))
        session.append(Message("assistant", "a" * 96, usage=Usage(tokens, 0, 0, 100)))
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=10_000))
    return manager._follow(session, manager._state(session)).fold


def test_what_is_learned_lies_between_two_reports_that_grow() -> None:
    assert [len(heard(*reports).increments) for reports in ((300,), (300, 520), (300, 300), (300, 299), (300, 520, 740))] == [0, 1, 0, 0, 2]


def test_a_report_that_is_not_gone_by_leaves_the_one_before_and_teaches_nothing() -> None:
    assert (heard(300, 520).reported, heard(300, 20).reported, heard(300, 20, 800).reported) == (520, 300, 800)
    assert [len(heard(*reports).increments) for reports in ((300, 20), (300, 20, 800), (300, 20, 800, 1_000))] == [0, 0, 1]


def test_a_log_that_is_sent_whole_does_not_shrink_its_views_to_nothing() -> None:
    """reports that are not of this view are not gone by: a session that another tool sends as it is"""
    manager, log = manager_of(12_000), turns(100)
    session = Session(id="s")
    whole = 0
    for place, item in enumerate(log.items):
        if place % 2:
            view = manager.process_session(session)
            usage = manager.get_token_usage()
            assert usage["total"] <= 12_000
            assert len(view.items) >= min(place, 7)
            item = replace(item, usage=Usage(input_tokens=2_000 + whole * 11 // 10))  # noqa: PLW2901 - what is appended
        session.append(item)
        whole += 404


def test_what_was_learned_while_views_were_sent_holds_when_the_log_goes_out_whole() -> None:
    manager = manager_of(12_000)
    session = Session(id="s")
    list(played(manager, turns(40), lambda counted, _: 2_000 + counted, sent=session))
    before = manager.get_token_usage()["overhead"]
    for turn in range(40, 60):
        session.append(Message("user", "q" * 400, id=f"q{turn}"))
        session.append(Message("assistant", "a" * 400, id=f"a{turn}", usage=Usage(input_tokens=2_000 + 404 * (2 * turn + 1))))
        manager.process_session(session)
    assert manager.get_token_usage()["overhead"] < before + 4_000


@given(st.data())
def test_no_total_is_negative_and_rows_are_none(data: st.DataObject) -> None:
    """Rows still sum exactly to the total: whatever was reported"""
    manager = manager_of(data.draw(st.integers(1, 3_000)))
    reports = data.draw(st.lists(st.integers(0, 5_000), min_size=12, max_size=12))
    session = Session(id="s")
    for turn, tokens in enumerate(reports):
        session.append(Message("user", "q" * 96, id=f"q{turn}"))
        manager.process_session(session)
        usage = manager.get_token_usage()
        rows = [usage[name] for name in ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT", "overhead")]
        assert min(rows) >= 0
        assert sum(rows) == usage["total"]
        session.append(Message("assistant", "a" * 96, id=f"a{turn}", usage=Usage(input_tokens=tokens)))


@pytest.mark.parametrize("percent", [90, 115])
def test_a_log_that_was_sent_by_a_larger_budget_keeps_its_views(percent: int) -> None:
    """reports that are not of this view are not gone by: a restart with half of the tokens, where no report says what it is of"""
    session = Session(id="s")
    list(played(manager_of(60_000), turns(150), lambda counted, _: 9_000 + counted * percent // 100, sent=session))
    again, sizes = Session(id="s"), []
    manager = manager_of(30_000)
    for place, item in enumerate(session.items):
        if place % 2:
            sizes.append(len(manager.process_session(again).items))
        again.append(item)
    assert min(sizes[10:]) >= 5
    assert statistics.median(sizes) >= 15
