"""Summarisers that fail, lie, dawdle or are taken away: none blocks a session, loses anything, or is asked for ever."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from context_window import AnthropicSummarizer, CompactionFailed, CountingError, Session, SummaryError
from context_window.compaction.memory import Memory
from tests.support.compacting import SHORT, Watched, Writer, compactions, managed
from tests.support.managing import ids, session_of

SECRET = "hunter2"


class Stubborn:
    """It does not answer, and does not let itself be cancelled."""

    timeout = 0.02

    def __init__(self) -> None:
        self.let_go = asyncio.Event()

    async def __call__(self, prompt: str) -> str:
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        return prompt


async def sleeps(prompt: str) -> str:
    await asyncio.sleep(60)
    return prompt


sleeps.timeout = 0.02  # type: ignore[attr-defined]


async def cancels(prompt: str) -> str:
    raise asyncio.CancelledError(prompt)


async def cancels_itself(prompt: str) -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return prompt


def plain(prompt: str) -> Any:
    return 5


class OutcomeError(BaseException):
    """As frameworks have them that want to be caught by nobody."""


def raises_at_once(prompt: str) -> Awaitable[str]:
    raise RuntimeError(prompt + SECRET)


class Unready:
    """It has not been set up, and says so whatever it is asked."""

    @property
    def window(self) -> int:
        raise RuntimeError(SECRET)

    async def __call__(self, prompt: str) -> str:
        return SHORT


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "raises": (lambda: Writer(RuntimeError(SECRET)), "failed with RuntimeError"),
    "raises at once": (lambda: raises_at_once, "failed with RuntimeError"),
    "is not ready": (Unready, "window raised RuntimeError"),
    "exits": (lambda: Writer(SystemExit(SECRET)), "failed with SystemExit"),
    "raises what is no exception": (lambda: Writer(OutcomeError(SECRET)), "failed with OutcomeError"),
    "runs out of time by itself": (lambda: Writer(TimeoutError()), "failed with TimeoutError"),
    "refuses": (lambda: Writer(SummaryError(SECRET)), "refused"),
    "gives nothing": (lambda: Writer(None), "no text"),
    "gives bytes": (lambda: Writer(b"summary"), "no text"),
    "gives a number": (lambda: plain, "no text"),
    "gives an empty text": (lambda: Writer(" \n"), "empty"),
    "gives a header alone": (lambda: Writer("[Conversation Summary]\n"), "empty"),
    "echoes": (lambda: Writer(lambda prompt: prompt), "longer than"),
    "echoes most of it": (lambda: Writer(lambda prompt: prompt[1200:-400]), "more than half"),
    "grows": (lambda: Writer("x" * 2_000), "more than half"),
    "is too large for the window": (lambda: Writer("x" * 900), "more than a third"),
    "writes a book": (lambda: Writer("word " * 1_000_000), "longer than"),
    "sleeps": (lambda: sleeps, "not answered within 0.02 seconds"),
    "cancels": (lambda: cancels, "cancelled"),
    "cancels itself": (lambda: cancels_itself, "cancelled"),
}


def asked(turns: int = 9) -> Session:
    session = session_of(turns)
    session.add_message("user", "and now?", "now", 0.0)
    return session


@pytest.mark.parametrize("name", WRONG)
def test_where_no_usable_summary_comes_the_log_is_as_it_was_and_trimming_alone_does_the_work(name: str) -> None:
    make, why = WRONG[name]
    manager, session = Watched(), asked()
    before, lineage = session.to_dict(), session.lineage
    view = managed(manager, session, make())
    assert session.to_dict() == before
    assert session.lineage is lineage
    assert list(view.items) == list(Watched().process_session(session).items)
    assert manager.get_token_usage()["total"] <= 2000
    (event,) = manager.failed
    assert why in event.why
    assert SECRET not in str(event)
    assert (event.session_id, event.budget, event.stage) == ("s", 2000, "compact")
    assert event.tokens > 2000


def test_one_that_refuses_to_be_cancelled_is_left_behind() -> None:
    manager, session = Watched(), asked()

    async def run() -> None:
        llm = Stubborn()
        await manager.manage(session, llm)
        assert compactions(session) == []
        llm.let_go.set()

    asyncio.run(run())
    assert "not answered" in manager.failed[0].why


def test_a_late_failure_is_not_told_to_anybody(caplog: pytest.LogCaptureFixture) -> None:
    async def fails_late(prompt: str) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RuntimeError(SECRET) from None
        return prompt

    fails_late.timeout = 0.02  # type: ignore[attr-defined]
    with caplog.at_level(logging.DEBUG):
        managed(Watched(), asked(), fails_late)
        gc.collect()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("value", [None, "soon", True, -1, 0, float("nan"), float("inf")], ids=str)
def test_a_timeout_or_window_that_makes_no_sense_is_passed_over(value: Any) -> None:
    session, llm = asked(), Writer()
    llm.timeout = llm.window = value
    managed(Watched(), session, llm)
    assert len(compactions(session)) == 1


def test_a_task_that_is_cancelled_leaves_the_log_as_it_was_and_the_next_call_goes_on() -> None:
    manager, session, llm = Watched(), asked(), Writer()
    before = session.to_dict()

    async def cancelled() -> None:
        for delay in (0.0, 0.001, 0.02, 0.05):
            task = asyncio.ensure_future(manager.manage(session, sleeps_long))
            await asyncio.sleep(delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert session.to_dict() == before
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(manager.manage(session, sleeps_long), 0.05)

    async def sleeps_long(prompt: str) -> str:
        await asyncio.sleep(60)
        return prompt

    asyncio.run(cancelled())
    assert session.to_dict() == before
    managed(manager, session, llm)
    assert len(compactions(session)) == 1


def test_in_pieces_a_text_that_grows_is_not_carried_on() -> None:
    manager, session, llm = Watched(), asked(30), Writer(lambda prompt: prompt[: len(prompt) // 2], window=4000)
    managed(manager, session, llm)
    assert len(llm.prompts) == 1
    assert "too large to go on with" in manager.failed[0].why


def test_in_pieces_a_failure_of_the_last_one_loses_nothing() -> None:
    manager, session, llm = Watched(), asked(30), Writer(SHORT, SHORT, RuntimeError("no"), window=4000)
    before = session.to_dict()
    managed(manager, session, llm)
    assert len(llm.prompts) == 3
    assert session.to_dict() == before


@pytest.mark.parametrize(("size", "calls"), [(1880, 0), (1740, 1)])
def test_beside_what_must_be_kept_there_must_be_room_for_it(size: int, calls: int) -> None:
    """Where there is none for any, nobody is asked."""
    manager, session, llm = Watched(), session_of(9), Writer("x" * 400)
    session.add_message("user", "q" * size, "now", 0.0)
    managed(manager, session, llm)
    assert (len(llm.prompts), compactions(session)) == (calls, [])
    assert "no room" in manager.failed[0].why
    assert manager.get_token_usage()["total"] <= 2000


def test_a_counter_that_fails_is_said_so_as_by_every_other_call() -> None:
    class Broken(Watched):
        pass

    manager, session = Broken(), asked()
    counter: Any = manager._budget.counter
    counter.counter.count_text = lambda text: -1
    with pytest.raises(CountingError):
        managed(manager, session, Writer())
    assert compactions(session) == []


def test_the_library_s_own_summariser_says_what_was_in_the_way() -> None:
    class Messages:
        async def create(self, **_: Any) -> Any:
            return type("Answer", (), {"stop_reason": "max_tokens", "content": ()})()

    client = type("Client", (), {"messages": Messages()})()
    manager = Watched()
    managed(manager, asked(), AnthropicSummarizer(client, "claude-haiku-4-5"))
    assert "max_tokens" in manager.failed[0].why


# Not for ever


@pytest.mark.parametrize("name", ["raises", "gives an empty text", "echoes", "grows", "writes a book"])
def test_over_hundreds_of_turns_one_that_never_helps_is_asked_a_few_times(name: str) -> None:
    wrong = WRONG[name][0]() if name != "writes a book" else Writer("word " * 20_000)
    manager, session = Watched(keep_recent_turns=1), Session(id="s")

    async def managed_call() -> None:
        await manager.manage(session, wrong)
        assert manager.get_token_usage()["total"] <= 2000

    async def run() -> None:
        for turn in range(200):
            session.add_message("user", f"question {turn}")
            await managed_call()
            session.add_function_call("read", "{}", f"c{turn}")
            session.add_function_output("read", "o" * 200, f"c{turn}")
            await managed_call()
            session.add_message("assistant", "answer")

    asyncio.run(run())
    assert compactions(session) == []
    assert 5 <= len(wrong.prompts) <= 13
    assert len(manager.failed) == len(wrong.prompts)


def test_after_failures_the_next_attempts_are_ever_further_away_and_one_success_forgets_them() -> None:
    memory = Memory()
    tried = []
    for request in range(300):
        if memory.may_try(request):
            tried.append(request)
            memory.failed(request)
        assert not memory.may_try(request)
    assert tried == [0, 2, 5, 10, 19, 36, 69, 134, 199, 264]
    memory.succeeded()
    assert memory.may_try(300)


def test_a_log_that_was_rewritten_is_tried_again() -> None:
    memory = Memory()
    memory.failed(50)
    assert memory.may_try(10)


def test_one_that_recovers_sums_up_what_was_trimmed_meanwhile() -> None:
    manager, session = Watched(keep_recent_turns=1), Session(id="s")
    llm = Writer(RuntimeError("down"), RuntimeError("down"), SHORT)
    turn = 0
    while not compactions(session) and turn < 100:
        session.add_message("user", f"question {turn} " + "q" * 300)
        managed(manager, session, llm)
        session.add_message("assistant", "answer")
        turn += 1
    assert len(llm.prompts) == 3
    assert all(f"question {number} " in llm.prompts[-1] for number in range(turn - 2))
    assert ids(session)[0] in compactions(session)[0].replaces
    assert [type(event) for event in manager.told if isinstance(event, CompactionFailed)] == [CompactionFailed] * 2


def test_a_good_one_keeps_a_session_of_hundreds_of_turns_small_with_one_summary_in_view() -> None:
    manager, session, llm = Watched(keep_recent_turns=1), Session(id="s"), Writer()

    async def run() -> None:
        for turn in range(200):
            session.add_message("user", f"question {turn}")
            view = await manager.manage(session, llm)
            assert len(compactions(view)) <= 1
            assert manager.get_token_usage()["total"] <= 2000
            session.add_message("assistant", "a" * 200)

    asyncio.run(run())
    assert 10 <= len(llm.prompts) <= 60
    assert manager.failed == []
