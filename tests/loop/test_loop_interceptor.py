"""Interceptors: hooks around the model calls of other loops, with and without `await`, alone and nested."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from context_window import (
    Answer,
    AnthropicSummarizer,
    ArgumentError,
    CompactionFailed,
    ContextOverflowError,
    FormatError,
    Interceptor,
    Message,
    ModelError,
    Session,
    TurnInterceptor,
    Usage,
    run_turn,
)
from context_window.loop.background_loop import run_blocking
from session.items import Compaction, FunctionCall
from tests.support.compacting import Watched, Writer, compactions
from tests.support.lazy import LazyModule
from tests.support.looping import ScriptedModel, manager
from tests.support.managing import session_of
from tests.support.stubs import AnthropicStub, Say

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")


def long_session(turns: int = 12) -> Session:
    session = Session()
    for number in range(turns):
        session.add_message("user", f"question {number} " + "word " * 20)
        session.add_message("assistant", f"answer {number} " + "word " * 20)
    session.add_message("user", "And now?")
    return session


async def summarise(prompt: str) -> str:
    await asyncio.sleep(0)
    return "They talked."


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


def test_both_hooks_return_the_managers_view() -> None:
    session, limits = long_session(), manager(1_000)
    hooks = TurnInterceptor(limits)
    view = hooks.before_model_call(session)
    assert limits.analyze_session(view)["total_tokens"] <= 1_000
    assert texts(view) == texts(asyncio.run(hooks.abefore_model_call(session))) == texts(limits.process_session(session))
    assert len(session.items) == 25


def test_both_hooks_can_call_a_summariser_repeatedly() -> None:
    hooks = TurnInterceptor(manager(1_000, summary_llm=summarise))
    for session in (long_session(), long_session()):
        view = hooks.before_model_call(session)
        assert any(isinstance(item, Compaction) for item in session.items)
        assert any(isinstance(item, Compaction) for item in view.items)
    session = long_session()
    asyncio.run(hooks.abefore_model_call(session))
    assert any(isinstance(item, Compaction) for item in session.items)


def test_the_plain_hooks_work_while_an_event_loop_is_running() -> None:
    async def scene() -> Session:
        return TurnInterceptor(manager(1_000, summary_llm=summarise)).before_model_call(long_session())

    assert any(isinstance(item, Compaction) for item in asyncio.run(scene()).items)


def test_an_async_client_can_be_used_by_the_plain_hooks_repeatedly() -> None:
    """A client's connections belong to the event loop that opened them."""
    events: list[object] = []
    with AnthropicStub(lambda _: [Say("They talked.")]) as provider:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
        client = anthropic.AsyncAnthropic(api_key="key", base_url=provider.url, max_retries=0, http_client=http)
        llm = AnthropicSummarizer(client, "claude-haiku-4-5")
        hooks = TurnInterceptor(manager(1_000, summary_llm=llm, on_event=events.append))
        for _ in range(4):
            hooks.before_model_call(long_session())
        run_blocking(client.close())
        assert len(provider.answers) == 4
    assert not [event for event in events if isinstance(event, CompactionFailed)]


def test_a_hook_may_call_a_plain_hook() -> None:
    class Doubtful(TurnInterceptor):
        async def abefore_model_call(self, session: Session) -> Session:
            return self.before(session)

        def before(self, session: Session) -> Session:
            return TurnInterceptor(self.manager).before_model_call(session)

    limits = manager(1_000)
    assert texts(Doubtful(limits).before_model_call(long_session())) == texts(limits.process_session(long_session()))


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
    """Otherwise events would be outside the caller's spans."""
    trace: ContextVar[str] = ContextVar("trace", default="none")
    values: list[str] = []

    class Traced(Interceptor):
        async def abefore_model_call(self, session: Session) -> Session:
            values.append(trace.get())
            return session

    trace.set("the caller's")
    Traced().before_model_call(Session())
    assert values == ["the caller's"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_the_process_can_exit_and_forks_get_their_own_loop() -> None:
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


def test_exceptions_come_out_of_both_hooks() -> None:
    hooks = TurnInterceptor(manager(100, strict=True, clamp_messages=False))
    session = Session([Message("user", "word " * 100)])
    with pytest.raises(ContextOverflowError):
        hooks.before_model_call(session)
    with pytest.raises(ContextOverflowError):
        asyncio.run(hooks.abefore_model_call(session))


@pytest.mark.parametrize("awaits", [False, True], ids=["plain", "async"])
def test_reported_usage_corrects_the_managers_figures(awaits: bool) -> None:
    session, limits = long_session(3), manager(10_000)
    hooks = TurnInterceptor(limits)
    hooks.before_model_call(session)
    local_total = limits.get_token_usage()["total"]
    if awaits:
        asyncio.run(hooks.aafter_model_call(session, Usage(input_tokens=2 * local_total, output_tokens=5)))
    else:
        hooks.after_model_call(session, Usage(input_tokens=2 * local_total, output_tokens=5))
    session.add_message("assistant", "Now.")
    session.add_message("user", "Well?")
    hooks.before_model_call(session)
    assert limits.get_token_usage()["total"] > 2 * local_total


def test_without_a_report_nothing_changes() -> None:
    session, limits = long_session(3), manager(10_000)
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
        pytest.param(lambda: anthropic.types.Usage(input_tokens=0, output_tokens=1), id="anthropic.types.Usage"),
    ],
    ids=str,
)
def test_a_report_of_zero_input_tokens_is_ignored(usage: object) -> None:
    if callable(usage):
        usage = usage()
    session, limits = long_session(3), manager(10_000)
    hooks = TurnInterceptor(limits)
    hooks.before_model_call(session)
    before = limits.get_token_usage()
    hooks.after_model_call(session, usage)
    asyncio.run(hooks.aafter_model_call(session, usage))
    hooks.before_model_call(session)
    assert limits.get_token_usage() == before
    with pytest.raises(ArgumentError, match="no input tokens"):
        limits.record_usage(usage, session)


@pytest.mark.parametrize("usage", [7, "much", {}, {"tokens": 3}, [Usage(5)]], ids=str)
def test_an_invalid_report_is_an_error(usage: object) -> None:
    session = long_session(1)
    hooks = TurnInterceptor(manager(10_000))
    hooks.before_model_call(session)
    with pytest.raises(ArgumentError, match="usage"):
        hooks.after_model_call(session, usage)


class RecordingInterceptor(Interceptor):
    """Adds its name to the view, and records its calls."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name, self.calls = name, calls

    async def abefore_model_call(self, session: Session) -> Session:
        self.calls.append(f"before {self.name}")
        view = session.copy()
        view.add_context(self.name)
        return view

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        self.calls.append(f"after {self.name} {usage}")


def test_interceptors_nest() -> None:
    calls: list[str] = []
    chain = RecordingInterceptor("a", calls) | RecordingInterceptor("b", calls) | RecordingInterceptor("c", calls)
    session = Session([Message("user", "Hi")])
    assert texts(chain.before_model_call(session)) == ["Hi", "a", "b", "c"]
    chain.after_model_call(session, 7)
    assert calls == ["before a", "before b", "before c", "after c 7", "after b 7", "after a 7"]
    calls.clear()
    assert texts(asyncio.run(chain.abefore_model_call(session))) == ["Hi", "a", "b", "c"]
    asyncio.run(chain.aafter_model_call(session, 7))
    assert len(calls) == 6


def test_a_turn_interceptor_can_be_nested() -> None:
    calls: list[str] = []
    limits = manager(1_000)
    view = (RecordingInterceptor("notes", calls) | TurnInterceptor(limits)).before_model_call(long_session())
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
    with pytest.raises(ArgumentError):
        TurnInterceptor(other)


# In a managed turn


class Recording(Interceptor):
    """Notes its calls, and shows the model one message more."""

    def __init__(self, name: str, calls: list[Any]) -> None:
        self.name, self.calls = name, calls

    async def abefore_model_call(self, session: Session) -> Session:
        self.calls.append(("before", self.name, texts(session)))
        return Session([*session.items, Message("user", self.name)])

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:
        self.calls.append(("after", self.name, usage))


def test_the_interceptors_of_a_turn_are_called_around_each_request() -> None:
    calls: list[Any] = []
    usage = Usage(input_tokens=5, output_tokens=1)
    model = ScriptedModel(Answer((FunctionCall("f", "{}", "1"),), stop="tool_use", usage=usage), [Say("done")])
    session = Session()

    def f() -> str:
        """Return a text."""
        return "x"

    pair = [Recording("outer", calls), Recording("inner", calls)]
    result = asyncio.run(run_turn(session, "hi", model=model, tools=[f], manager=manager(), interceptors=iter(pair)))
    assert result.text == "done"
    assert [call[:2] for call in calls] == 2 * [("before", "outer"), ("before", "inner"), ("after", "inner"), ("after", "outer")]
    assert [call[2] for call in calls[:4]] == [["hi"], ["hi", "outer"], usage, usage]
    assert [texts(view)[-2:] for view in model.views] == 2 * [["outer", "inner"]]
    assert texts(session) == ["hi", "done"], "the log holds nothing of what they add"


def test_interceptors_see_the_managers_view_and_may_be_a_turn_interceptor() -> None:
    limits, calls = manager(1_000), list[Any]()
    session, model = long_session(), ScriptedModel([Say("done")])
    asyncio.run(run_turn(session, "hi", model=model, manager=limits, interceptors=[Recording("a", calls), TurnInterceptor(limits)]))
    assert len(calls[0][2]) < len(session.messages()) - 1
    assert texts(model.views[0]) == [*calls[0][2], "a"]


def test_a_refused_request_has_no_after() -> None:
    calls: list[Any] = []
    model = ScriptedModel(ModelError("no"), [Say("done")])
    with pytest.raises(ModelError):
        asyncio.run(run_turn(Session(), "hi", model=model, manager=manager(), interceptors=[Recording("a", calls)]))
    assert [call[0] for call in calls] == ["before"]


@pytest.mark.parametrize("wrong", [Interceptor(), None, 5, [Interceptor], [print]], ids=range(5))
def test_other_values_are_no_interceptors_of_a_turn(wrong: Any) -> None:
    session = Session()
    with pytest.raises(ArgumentError, match=r"^interceptors=.*: pass "):
        asyncio.run(run_turn(session, "hi", model=ScriptedModel(), manager=manager(), interceptors=wrong))
    assert not session.items


def test_an_interceptor_asks_the_model_that_it_is_given_for_summaries() -> None:
    """An interceptor does not know the loop's model: without one, and without a `summary_llm`, views are only trimmed."""
    for llm in (None, Writer()):
        session = session_of(9)
        session.add_message("user", "and now?")
        TurnInterceptor(Watched(), llm).before_model_call(session)
        assert len(compactions(session)) == (llm is not None)
    with pytest.raises(FormatError, match="llm"):
        TurnInterceptor(Watched(), "gpt-5")  # type: ignore[arg-type]
