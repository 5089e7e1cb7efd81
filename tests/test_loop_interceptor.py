"""Interceptors: a manager's work around the calls of a loop that is not ours, with and without `await`, one inside the other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from threading import Barrier
from typing import Any

import anthropic
import pytest

from context_window import (
    AnthropicSummarizer,
    BudgetError,
    CompactionFailed,
    ContextOverflowError,
    Interceptor,
    Message,
    Session,
    TurnInterceptor,
    Usage,
)
from context_window.loop.waiting import completed
from session.items import Compaction
from tests.support.looping import manager
from tests.support.stubs import AnthropicStub, Say


def long_talk(turns: int = 12) -> Session:
    session = Session()
    for number in range(turns):
        session.add_message("user", f"question {number} " + "word " * 20)
        session.add_message("assistant", f"answer {number} " + "word " * 20)
    session.add_message("user", "And now?")
    return session


async def short(prompt: str) -> str:
    await asyncio.sleep(0)
    return "They talked."


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


def test_what_is_to_be_sent_is_the_managers_view_with_and_without_await() -> None:
    session, limits = long_talk(), manager(1_000)
    hooks = TurnInterceptor(limits)
    view = hooks.before_model_call(session)
    assert limits.analyze_session(view)["total_tokens"] <= 1_000
    assert texts(view) == texts(asyncio.run(hooks.abefore_model_call(session))) == texts(limits.process_session(session))
    assert len(session.items) == 25


def test_a_summariser_is_asked_by_both_and_again_and_again() -> None:
    hooks = TurnInterceptor(manager(1_000, summary_llm=short))
    for session in (long_talk(), long_talk()):
        view = hooks.before_model_call(session)
        assert any(isinstance(item, Compaction) for item in session.items)
        assert any(isinstance(item, Compaction) for item in view.items)
    session = long_talk()
    asyncio.run(hooks.abefore_model_call(session))
    assert any(isinstance(item, Compaction) for item in session.items)


def test_the_plain_hooks_work_where_an_event_loop_is_running() -> None:
    async def scene() -> Session:
        return TurnInterceptor(manager(1_000, summary_llm=short)).before_model_call(long_talk())

    assert any(isinstance(item, Compaction) for item in asyncio.run(scene()).items)


def test_an_async_client_serves_the_plain_hooks_again_and_again() -> None:
    """Its connections belong to the event loop that opened them."""
    told: list[object] = []
    with AnthropicStub(lambda _: [Say("They talked.")]) as provider:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
        client = anthropic.AsyncAnthropic(api_key="key", base_url=provider.url, max_retries=0, http_client=http)
        llm = AnthropicSummarizer(client, "claude-haiku-4-5")
        hooks = TurnInterceptor(manager(1_000, summary_llm=llm, on_event=told.append))
        for _ in range(4):
            hooks.before_model_call(long_talk())
        completed(client.close())
        assert len(provider.answers) == 4
    assert not [event for event in told if isinstance(event, CompactionFailed)]


def test_a_hook_may_call_a_plain_hook() -> None:
    class Doubtful(TurnInterceptor):
        async def abefore_model_call(self, session: Session) -> Session:
            return self.before(session)

        def before(self, session: Session) -> Session:
            return TurnInterceptor(self.manager).before_model_call(session)

    limits = manager(1_000)
    assert texts(Doubtful(limits).before_model_call(long_talk())) == texts(limits.process_session(long_talk()))


def test_many_threads_may_call_the_plain_hooks_at_once() -> None:
    together = Barrier(5)

    class Waiting(Interceptor):
        async def abefore_model_call(self, session: Session) -> Session:
            await asyncio.to_thread(together.wait, 10)
            return session

    with ThreadPoolExecutor(5) as threads:
        sessions = [Session() for _ in range(5)]
        assert list(threads.map(Waiting().before_model_call, sessions)) == sessions


def test_the_plain_hooks_see_the_callers_context() -> None:
    """Else events would belong to no span of the caller's."""
    trace: ContextVar[str] = ContextVar("trace", default="none")
    seen: list[str] = []

    class Traced(Interceptor):
        async def abefore_model_call(self, session: Session) -> Session:
            seen.append(trace.get())
            return session

    trace.set("the caller's")
    Traced().before_model_call(Session())
    assert seen == ["the caller's"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_process_ends_and_its_forks_have_a_loop_of_their_own() -> None:
    script = """
import os
from context_window import Interceptor, Session
session = Session()
assert Interceptor().before_model_call(session) is session
child = os.fork()
assert Interceptor().before_model_call(session) is session
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_raised_comes_out_of_both() -> None:
    hooks = TurnInterceptor(manager(100, strict=True))
    session = Session([Message("user", "word " * 100)])
    with pytest.raises(ContextOverflowError):
        hooks.before_model_call(session)
    with pytest.raises(ContextOverflowError):
        asyncio.run(hooks.abefore_model_call(session))


@pytest.mark.parametrize("awaits", [False, True], ids=["plain", "async"])
def test_what_the_provider_reports_corrects_the_managers_figures(awaits: bool) -> None:
    session, limits = long_talk(3), manager(10_000)
    hooks = TurnInterceptor(limits)
    hooks.before_model_call(session)
    counted = limits.get_token_usage()["total"]
    if awaits:
        asyncio.run(hooks.aafter_model_call(session, Usage(input_tokens=2 * counted, output_tokens=5)))
    else:
        hooks.after_model_call(session, Usage(input_tokens=2 * counted, output_tokens=5))
    session.add_message("assistant", "Now.")
    session.add_message("user", "Well?")
    hooks.before_model_call(session)
    assert limits.get_token_usage()["total"] > 2 * counted


def test_without_a_report_nothing_changes() -> None:
    session, limits = long_talk(3), manager(10_000)
    hooks = TurnInterceptor(limits)
    hooks.before_model_call(session)
    before = limits.get_token_usage()
    hooks.after_model_call(session)
    hooks.before_model_call(session)
    assert limits.get_token_usage() == before


@pytest.mark.parametrize(
    "usage",
    [
        Usage(),
        Usage(output_tokens=5),
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"input_tokens": 0, "output_tokens": 3},
        {"prompt_token_count": None},
        anthropic.types.Usage(input_tokens=0, output_tokens=1),
    ],
    ids=str,
)
def test_a_report_of_no_input_tokens_is_passed_over(usage: object) -> None:
    session, limits = long_talk(3), manager(10_000)
    hooks = TurnInterceptor(limits)
    hooks.before_model_call(session)
    before = limits.get_token_usage()
    hooks.after_model_call(session, usage)
    asyncio.run(hooks.aafter_model_call(session, usage))
    hooks.before_model_call(session)
    assert limits.get_token_usage() == before
    with pytest.raises(BudgetError, match="no input tokens"):
        limits.record_usage(usage, session)


@pytest.mark.parametrize("usage", [7, "much", {}, {"tokens": 3}, [Usage(5)]], ids=str)
def test_what_is_no_report_is_said(usage: object) -> None:
    session = long_talk(1)
    hooks = TurnInterceptor(manager(10_000))
    hooks.before_model_call(session)
    with pytest.raises(BudgetError, match="usage"):
        hooks.after_model_call(session, usage)


class Noting(Interceptor):
    """Says in the view that it was here, and notes when it was told."""

    def __init__(self, name: str, told: list[str]) -> None:
        self.name, self.told = name, told

    async def abefore_model_call(self, session: Session) -> Session:
        self.told.append(f"before {self.name}")
        view = session.copy()
        view.add_context(self.name)
        return view

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        self.told.append(f"after {self.name} {usage}")


def test_interceptors_compose_one_inside_the_other() -> None:
    told: list[str] = []
    chain = Noting("a", told) | Noting("b", told) | Noting("c", told)
    session = Session([Message("user", "Hi")])
    assert texts(chain.before_model_call(session)) == ["Hi", "a", "b", "c"]
    chain.after_model_call(session, 7)
    assert told == ["before a", "before b", "before c", "after c 7", "after b 7", "after a 7"]
    told.clear()
    assert texts(asyncio.run(chain.abefore_model_call(session))) == ["Hi", "a", "b", "c"]
    asyncio.run(chain.aafter_model_call(session, 7))
    assert len(told) == 6


def test_a_manager_is_one_of_the_chain() -> None:
    told: list[str] = []
    limits = manager(1_000)
    view = (Noting("notes", told) | TurnInterceptor(limits)).before_model_call(long_talk())
    assert texts(view)[-1] == "notes"
    assert limits.analyze_session(view)["total_tokens"] <= 1_000


def test_an_interceptor_that_overrides_nothing_changes_nothing() -> None:
    session = Session([Message("user", "Hi")])
    assert Interceptor().before_model_call(session) is session
    Interceptor().after_model_call(session, None)


def test_only_interceptors_compose_and_only_managers_are_managers() -> None:
    other: Any = 3
    with pytest.raises(TypeError):
        Interceptor() | other
    with pytest.raises(BudgetError):
        TurnInterceptor(other)
