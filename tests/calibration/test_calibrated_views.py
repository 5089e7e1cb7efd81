"""Sessions that a manager trims as they go, and with a report of every view that was sent: the case that calibration is for."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session.items import Compaction, Message
from session.parts import Image, Text
from session.session import Session
from session.transcripts import read_transcripts
from session.units import grouping
from session.usage import Usage
from tests.support.counting import Letters
from tests.support.shared import TRANSCRIPTS, needs_transcripts

Truth = Callable[[int, int], int]
"""Returns the provider's count of a request: from the local count of its view and the number of the request."""


@dataclass(frozen=True)
class Request:
    """A request as a manager bounded it. Amounts are tokens.

    Attributes:
        bound: The upper bound; None if nothing had been reported yet.
        cost: The true cost.
        altered: True if the view was not the whole log.
    """

    bound: int | None
    cost: int
    altered: bool

    @property
    def covered(self) -> bool:
        return self.bound is not None and self.bound >= self.cost

    @property
    def is_close(self) -> bool:
        """True if the bound holds, and by no more than a third: the report of the request before it was used."""
        return self.covered and (self.bound or 0) <= self.cost * 4 // 3


def played(manager: ContextWindowManager, log: Session, truth: Truth, *, sent: Session | None = None) -> Iterator[Request]:
    """A log played to the manager: before every response there is a view, and it is reported. With `sent` the whole log is sent instead."""
    session = Session(id=log.id) if sent is None else sent
    session.restore_seams(log.response_breaks, 0)
    starts = set(grouping(log).response_starts)
    requests = 0
    for position, item in enumerate(log.items):
        reported = None
        if position in starts:
            plan = manager.plan_session(session)
            cost = truth(sum(decision.after for decision in plan), requests)
            yield Request(plan.after if plan.calibrated else None, cost, bool(plan.changes))
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


def manager_of(tokens: int, images_max: int | None = None) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=tokens, images_max=images_max))


# Recorded sessions

FOLDERS = {"codex": 2, "mini_swe_agent": 3, "claude_code": 3, "pi": 1}
"""How many sessions of 20 requests and more are taken of each."""


def long_sessions(folder: str, most: int) -> Iterator[Session]:
    for file in sorted(file for file in (TRANSCRIPTS / folder).rglob("*") if file.is_file()):
        for session in read_transcripts(file):
            if len(grouping(session).response_starts) >= 20:
                yield session
                most -= 1
                if not most:
                    return


@needs_transcripts
def test_bounds_hold_and_are_tight_over_many_trims_of_recorded_sessions() -> None:
    """coverage ≥ 97 %, mean slack: of sessions that are trimmed all along, with 9,000 tokens in no log and counts that are too low"""
    requests: list[Request] = []
    for folder, most in FOLDERS.items():
        for session in long_sessions(folder, most):
            full_log = ContextWindowManager(context_window=ContextWindow(max_tokens=10**9)).analyze_session(session)["total_tokens"]
            manager = ContextWindowManager(context_window=ContextWindow(max_tokens=9_000 + max(4_000, full_log // 6)))
            requests += played(manager, session, lambda local, _: 9_000 + local * 115 // 100)
    bounded = [request for request in requests if request.bound is not None]
    assert len(bounded) > 500
    assert sum(request.altered for request in bounded) > 300
    assert statistics.fmean(request.covered for request in bounded) >= 0.97
    assert statistics.fmean(max(0, request.bound - request.cost) / request.cost for request in bounded if request.bound is not None) <= 0.03


# By hand


def test_the_first_report_after_a_trim_is_used_even_if_much_of_the_request_is_in_no_log() -> None:
    manager = manager_of(14_000)
    session = turns(18)
    manager.process_session(session)
    requests = list(played(manager, turns(30, first=18), lambda local, _: 9_000 + local, sent=session))
    assert requests[0].altered
    assert all(request.is_close for request in requests[1:])


def test_reports_are_used_after_another_tool_has_compacted_its_log() -> None:
    """The tool put a summary for 40 turns, and sent many of them on"""
    log = turns(40)
    log.append(Compaction("s" * 400, tuple(item.id for item in log.items), id="summary"))
    for item in turns(30, first=40).items:
        log.append(item)
    requests = list(played(manager_of(10**6), log, lambda local, request: 9_000 + local + (20_000 if request >= 40 else 0)))
    assert not requests[39].altered
    assert requests[40].altered
    assert all(request.is_close for request in requests[41:])


def test_a_report_is_believed_if_the_tool_truncated_an_output_that_its_log_has_whole() -> None:
    """Not below a fourth of the local count alone: the report is above the last that was surely of the view"""
    log = turns(10)
    call = log.add_function_call("read", {"path": "a"})
    log.add_function_output("read", "x" * 300_000, call.call_id)
    for item in turns(10, first=10).items:
        log.append(item)
    requests = list(played(manager_of(10**6), log, lambda local, request: local + 9_000 if request < 10 else local - 299_000 + 9_000))
    assert requests[5].cost < requests[-1].cost
    bound = requests[-1].bound
    assert bound is not None
    assert bound < requests[-1].cost * 1.1


def test_a_removed_token_is_worth_what_added_ones_have_cost() -> None:
    """The provider counts 1.6 for one: after a trim, the bound is not above the cost by all that was not credited"""
    requests = list(played(manager_of(40_000), turns(60), lambda local, _: 9_000 + local * 16 // 10))
    trimmed = [after for before, after in pairwise(requests) if after.cost < before.cost]
    assert trimmed
    assert all(request.bound is not None and request.cost <= request.bound < request.cost * 1.2 for request in trimmed)


def test_a_prompt_that_grows_outside_the_log_is_believed_within_a_few_requests() -> None:
    """a factor never sticks at a wrong value: images have been replaced, and then there are 9,000 tokens more that are in no log"""
    requests = list(
        played(manager_of(60_000, images_max=1), turns(40, images=True), lambda counted, request: counted + (9_000 if request > 5 else 0))
    )
    assert requests[5].altered
    assert all(request.covered for request in requests[1:6])
    assert all(request.is_close for request in requests[10:])


@pytest.mark.parametrize("percent", [25, 30, 45, 80, 100, 160, 250])
def test_reports_are_used_over_many_trims_whatever_a_count_is_worth(percent: int) -> None:
    requests = list(played(manager_of(9_000), turns(200), lambda local, _: 1 + local * percent // 100))
    assert sum(request.altered for request in requests) > 50
    assert statistics.fmean(request.is_close for request in requests[1:]) > 0.6
    assert statistics.fmean(request.covered for request in requests[1:]) > 0.95


def test_a_log_that_is_sent_whole_does_not_shrink_its_views_to_nothing() -> None:
    """reports of other requests are not used: another tool sends the session untrimmed"""
    manager, log = manager_of(12_000), turns(100)
    session = Session(id="s")
    log_tokens = 0
    for position, item in enumerate(log.items):
        if position % 2:
            view = manager.process_session(session)
            usage = manager.get_token_usage()
            assert usage["total"] <= 12_000
            assert len(view.items) >= min(position, 7)
            item = replace(item, usage=Usage(input_tokens=2_000 + log_tokens * 11 // 10))  # noqa: PLW2901 - the item with its report
        session.append(item)
        log_tokens += 404


def test_increments_learned_from_views_hold_when_the_whole_log_is_sent() -> None:
    manager = manager_of(12_000)
    session = Session(id="s")
    list(played(manager, turns(40), lambda local, _: 2_000 + local, sent=session))
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
    """reports of other requests are not used: a restart with half of the tokens, without notes of the local counts"""
    session = Session(id="s")
    list(played(manager_of(60_000), turns(150), lambda local, _: 9_000 + local * percent // 100, sent=session))
    again, sizes = Session(id="s"), []
    manager = manager_of(30_000)
    for position, item in enumerate(session.items):
        if position % 2:
            sizes.append(len(manager.process_session(again).items))
        again.append(item)
    assert min(sizes[10:]) >= 5
    assert statistics.median(sizes) >= 15
