"""One manager used by many threads: no errors, consistent figures, and the same last view as from a cold start."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from time import sleep

import pytest

from context_window import ContextWindow, ContextWindowManager, Session
from tests.support.counting import Letters
from tests.support.managing import ids, make_manager, session_of
from tests.support.threads import SECONDS, together, turns_often

pytestmark = pytest.mark.no_cover  # the tracer's lock is what the threads would wait for


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    with turns_often():
        yield


def grow(session: Session, turns: int) -> None:
    for number in range(turns):
        session.add_message("user", "q" * 36, f"more{number}", 0.0)
        session.add_function_call("read", "{}", f"d{number}")
        session.add_function_output("read", "o" * 200, f"d{number}")
        session.add_message("assistant", "a" * 36, f"said{number}", 0.0)
        sleep(0.005)  # so that the others see it at every length


@pytest.mark.parametrize("budget", [1500, 10**6], ids=["trimmed", "whole"])
def test_a_session_that_another_thread_appends_to(budget: int) -> None:
    manager = make_manager(budget)
    session = session_of(5)
    done = Event()

    def append() -> None:
        try:
            grow(session, 60)
        finally:
            done.set()

    def process() -> None:
        last, views = 0, 0
        while not done.is_set():
            view = manager.process_session(session)
            items = list(view.items)
            positions = [position for position in (session.position(item.id) for item in items) if position is not None]
            assert len(positions) == len(items)
            assert positions == sorted(set(positions))
            assert positions[-1] >= last, "a later view shows at least as much of the log"
            last = positions[-1]
            views += 1
        assert views > 20

    def ask() -> None:
        while not done.is_set():
            stats = manager.analyze_session(session)
            assert stats["total_tokens"] == sum(stats["per_category"].values()) + stats["overhead_tokens"]
            assert manager.plan_session(session).after <= budget
            assert len(manager.trim_session(session).items) <= len(session.items)

    def show() -> None:
        while not done.is_set():
            for report in (manager.usage(), manager.usage(session)):
                assert sum(row.items for row in report.rows) == report.items
                assert report.largest == () or report.total >= report.largest[0].tokens

    together(append, process, process, ask, show)
    assert list(manager.process_session(session).items) == list(make_manager(budget).process_session(session).items)
    assert manager.analyze_session(session) == make_manager(budget).analyze_session(session)


def test_many_sessions_at_once() -> None:
    manager = make_manager(1500)
    logs = [session_of(3, size=100 + 40 * number) for number in range(6)]
    views: dict[int, list[str]] = {}

    def serve(number: int) -> None:
        session = logs[number]
        for turn in range(15):
            session.add_message("user", "q" * 50, f"x{turn}", 0.0)
            session.add_message("assistant", "a" * 50, f"y{turn}", 0.0)
            view = manager.process_session(session)
        views[number] = ids(view)

    together(*(lambda number=number: serve(number) for number in range(6)))
    assert views == {number: ids(make_manager(1500).process_session(session)) for number, session in enumerate(logs)}


def test_a_report_on_a_session_is_on_that_one_whatever_others_ask_meanwhile() -> None:
    manager = make_manager(10**6)
    logs = [session_of(turns) for turns in (1, 4, 9)]
    for number, log in enumerate(logs):
        log.id = f"log{number}"
    alone = [(make_manager(10**6).usage(log), make_manager(10**6).get_token_usage(log)) for log in logs]

    def serve(number: int) -> None:
        for _ in range(200):
            assert manager.usage(logs[number]) == alone[number][0]
            assert manager.get_token_usage(logs[number]) == alone[number][1]

    together(*(lambda number=number: serve(number) for number in range(3)))


def test_usage_added_by_many_threads_is_all_there() -> None:
    manager = make_manager(10**6)

    def add() -> None:
        for _ in range(300):
            manager.update_usage("DIALOG", 1)

    together(*[add] * 4)
    assert manager.get_token_usage()["DIALOG"] == 1200


def test_a_slow_session_does_not_hold_up_another() -> None:
    """Each session has its own lock: while one is counted, others can be processed."""
    entered, go_on = Event(), Event()

    class Slow(Letters):
        def count_text(self, text: str) -> int:
            if text == "slow":
                entered.set()
                assert go_on.wait(SECONDS)
            return len(text)

    manager = ContextWindowManager(token_counter=Slow(), context_window=ContextWindow(max_tokens=1000))
    slow, quick = Session(), session_of(1)
    slow.add_message("user", "slow")

    def serve() -> None:
        assert entered.wait(SECONDS)
        assert manager.process_session(quick).items == quick.items
        go_on.set()

    together(lambda: manager.process_session(slow), serve)
