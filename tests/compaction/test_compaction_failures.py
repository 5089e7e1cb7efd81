"""Summarisers that fail, return nonsense, hang or are cancelled. None blocks a session, loses content, or is called for ever."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from context_window import AnthropicSummarizer, CompactionFailed, CountingError, Session, SummaryError
from context_window.compaction.session_compaction import SessionCompaction
from tests.support.compacting import SHORT, Watched, Writer, compactions, managed
from tests.support.managing import ids, session_of

SECRET = "hunter2"


class UncancellableSummariser:
    """A summariser that never answers and ignores cancellation."""

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


def returns_number(prompt: str) -> Any:
    return 5


class OutcomeError(BaseException):
    """Like the control-flow exceptions of frameworks, which derive from BaseException."""


def raises_at_once(prompt: str) -> Awaitable[str]:
    raise RuntimeError(prompt + SECRET)


class UninitialisedSummariser:
    """A summariser that was not initialised: reading any attribute raises."""

    @property
    def window(self) -> int:
        raise RuntimeError(SECRET)

    async def __call__(self, prompt: str) -> str:
        return SHORT


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "raises": (lambda: Writer(RuntimeError(SECRET)), "failed with RuntimeError"),
    "raises at once": (lambda: raises_at_once, "failed with RuntimeError"),
    "is not ready": (UninitialisedSummariser, "window raised RuntimeError"),
    "exits": (lambda: Writer(SystemExit(SECRET)), "failed with SystemExit"),
    "raises what is no exception": (lambda: Writer(OutcomeError(SECRET)), "failed with OutcomeError"),
    "runs out of time by itself": (lambda: Writer(TimeoutError()), "failed with TimeoutError"),
    "refuses": (lambda: Writer(SummaryError(SECRET)), "refused"),
    "gives nothing": (lambda: Writer(None), "no text"),
    "gives bytes": (lambda: Writer(b"summary"), "no text"),
    "gives a number": (lambda: returns_number, "no text"),
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


def log_with_question(turns: int = 9) -> Session:
    session = session_of(turns)
    session.add_message("user", "and now?", "now", 0.0)
    return session


@pytest.mark.parametrize("name", WRONG)
def test_without_a_usable_summary_the_log_is_unchanged_and_views_are_trimmed(name: str) -> None:
    make, why = WRONG[name]
    manager, session = Watched(), log_with_question()
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


def test_a_summariser_that_ignores_cancellation_is_abandoned() -> None:
    manager, session = Watched(), log_with_question()

    async def run() -> None:
        llm = UncancellableSummariser()
        await manager.manage(session, llm)
        assert compactions(session) == []
        llm.let_go.set()

    asyncio.run(run())
    assert "not answered" in manager.failed[0].why


def test_a_late_failure_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    async def fails_late(prompt: str) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RuntimeError(SECRET) from None
        return prompt

    fails_late.timeout = 0.02  # type: ignore[attr-defined]
    with caplog.at_level(logging.DEBUG):
        managed(Watched(), log_with_question(), fails_late)
        gc.collect()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("value", [None, "soon", True, -1, 0, float("nan"), float("inf")], ids=str)
def test_an_invalid_timeout_or_window_is_ignored(value: Any) -> None:
    session, llm = log_with_question(), Writer()
    llm.timeout = llm.window = value
    managed(Watched(), session, llm)
    assert len(compactions(session)) == 1


def test_a_cancelled_task_leaves_the_log_unchanged() -> None:
    manager, session, llm = Watched(), log_with_question(), Writer()
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


def test_a_growing_summary_is_not_sent_with_the_next_piece() -> None:
    manager, session, llm = Watched(), log_with_question(30), Writer(lambda prompt: prompt[: len(prompt) // 2], window=4000)
    managed(manager, session, llm)
    assert len(llm.prompts) == 1
    assert "too large to send with the next piece" in manager.failed[0].why


def test_a_failure_in_the_last_piece_loses_nothing() -> None:
    manager, session, llm = Watched(), log_with_question(30), Writer(SHORT, SHORT, RuntimeError("no"), window=4000)
    before = session.to_dict()
    managed(manager, session, llm)
    assert len(llm.prompts) == 3
    assert session.to_dict() == before


@pytest.mark.parametrize(("size", "calls"), [(1880, 0), (1740, 1)])
def test_a_summary_needs_room_beside_protected_items(size: int, calls: int) -> None:
    """If no summary has room, the summariser is not called."""
    manager, session, llm = Watched(), session_of(9), Writer("x" * 400)
    session.add_message("user", "q" * size, "now", 0.0)
    managed(manager, session, llm)
    assert (len(llm.prompts), compactions(session)) == (calls, [])
    assert "no room" in manager.failed[0].why
    assert manager.get_token_usage()["total"] <= 2000


def test_a_failing_counter_is_an_error() -> None:
    class Broken(Watched):
        pass

    manager, session = Broken(), log_with_question()
    counter: Any = manager._settings.current.budget.counter
    counter.counter.count_text = lambda text: -1
    with pytest.raises(CountingError):
        managed(manager, session, Writer())
    assert compactions(session) == []


def test_the_anthropic_summariser_names_the_problem() -> None:
    class Messages:
        async def create(self, **_: Any) -> Any:
            return type("Answer", (), {"stop_reason": "max_tokens", "content": ()})()

    client = type("Client", (), {"messages": Messages()})()
    manager = Watched()
    managed(manager, log_with_question(), AnthropicSummarizer(client, "claude-haiku-4-5"))
    assert "max_tokens" in manager.failed[0].why


# Back-off


@pytest.mark.parametrize("name", ["raises", "gives an empty text", "echoes", "grows", "writes a book"])
def test_a_useless_summariser_is_called_rarely(name: str) -> None:
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


def test_failures_double_the_wait_and_a_success_resets_it() -> None:
    state = SessionCompaction()
    tried = []
    for request in range(300):
        if state.may_try(request):
            tried.append(request)
            state.record_failure(request)
        assert not state.may_try(request)
    assert tried == [0, 2, 5, 10, 19, 36, 69, 134, 199, 264]
    state.record_success()
    assert state.may_try(300)


def test_a_rewritten_log_is_tried_at_once() -> None:
    state = SessionCompaction()
    state.record_failure(50)
    assert state.may_try(10)


def test_a_recovered_summariser_summarises_trimmed_items_too() -> None:
    manager, session = Watched(keep_recent_turns=1), Session(id="s")
    llm = Writer(RuntimeError("down"), RuntimeError("down"), SHORT)
    turn = 0
    while not compactions(session) and turn < 100:
        session.add_message("user", f"question {turn} " + "q" * 300)
        managed(manager, session, llm)
        session.add_message("assistant", "answer")
        turn += 1
    assert len(llm.prompts) == 3
    assert all(f"question {number} " in llm.prompts[-1] for number in range(1, turn - 2))
    assert ids(session)[2] in compactions(session)[0].replaces
    assert [type(event) for event in manager.events if isinstance(event, CompactionFailed)] == [CompactionFailed] * 2


def test_hundreds_of_turns_stay_small_with_one_summary_in_view() -> None:
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
