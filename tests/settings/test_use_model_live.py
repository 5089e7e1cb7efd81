"""Models switched in the middle of a conversation, with strict stubs of their providers, and while other threads call the manager."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import pytest

from context_window import ContextWindow, ContextWindowManager, FunctionCall, FunctionCallOutput, Image, Message, ModelConfig, Session, Text
from session.items import new_id
from tests.contracts.wires import BindingAnthropic, Google, OpenAIChat, OpenAIResponses, Wire
from tests.support.counting import Letters
from tests.support.managing import ids, session_of
from tests.support.pictures import png
from tests.support.stubs import Block, Call, Say, Stub, Think, in_order
from tests.support.threads import SECONDS, together, turns_often

ANSWERS: Sequence[Sequence[Block]] = (
    (Think("Two files."), Say("I look at both."), Call("read", {"path": "a"}), Call("read", {"path": "b"})),
    (Think("The first again."), Call("read", {"path": "a", "line": 3})),
    (Say("It is in a."),),
    (Call("list", {}), Call("read", {"path": "c"})),
    (Think("Enough."), Say("Done.")),
)


@dataclass
class Provider:
    """A model, its wire format, and the stub and client of its provider."""

    model: str
    wire: Wire
    stub: Stub
    client: Any


def played(session: Session, at: Provider, view: Callable[[Session], Session], rounds: int) -> None:
    """Run rounds of a conversation with this provider: send valid requests, append the answers, run tools, add user messages."""
    for number in range(rounds):
        payload = at.wire.sent(view(session))
        assert at.wire.request_violations(payload) == []
        answer = at.wire.answered(at.wire.ask(at.client, payload))
        for item in answer.items:
            session.append(replace(item, id=new_id()))
        calls = [item for item in answer.items if isinstance(item, FunctionCall)]
        for index, call in enumerate(calls):
            output = f"Found by {at.model} as number {len(session.items)}."
            session.append(FunctionCallOutput(call.name, [Text(output), Image(data=png())] if index else [Text(output * 6)], call.call_id))
        if not calls:
            session.append(Message("user", f"And question {number}? " + "It matters. " * 5))


def outputs(session: Session) -> list[str]:
    return [item.text for item in session.items if isinstance(item, FunctionCallOutput)]


@pytest.fixture
def providers() -> Iterator[list[Provider]]:
    """Stubs of Claude, which checks the prefix of its thinking; of GPT through both of OpenAI's APIs; and of Gemini."""
    with ExitStack() as stack:
        providers = []
        for model, wire in (
            ("claude-opus-5-5", BindingAnthropic()),
            ("gpt-5", OpenAIResponses()),
            ("gpt-4o", OpenAIChat()),
            ("gemini-2.5-pro", Google()),
        ):
            stub = stack.enter_context(wire.stub(in_order(*list(ANSWERS) * 10)))
            providers.append(Provider(model, wire, stub, stack.enter_context(wire.client(stub))))
        yield providers


def test_a_conversation_and_its_tool_results_go_along_from_claude_to_gpt_to_gemini_and_back(providers: list[Provider]) -> None:
    manager = ContextWindowManager("claude-opus-5-5")
    session = Session([Message("system", "Be brief."), Message("user", "Where is it?")])
    for at in (*providers, *providers):
        manager.use_model(at.model)
        before = outputs(session)
        played(session, at, manager.process_session, 3)
        request = repr(at.stub.requests[-1])
        assert before == outputs(session)[: len(before)]
        assert all(text in request for text in before), "a tool's result did not come along"
        assert manager.usage().model == at.model
    assert len(outputs(session)) > 20


def test_trimmed_by_each_model_to_its_own_window_no_request_is_refused(providers: list[Provider]) -> None:
    """Windows of very different sizes, thinking bound to its prefix, and a return to each model."""
    session = Session([Message("system", "Be brief."), Message("user", "Where is it?")])
    manager = ContextWindowManager(ModelConfig("claude-opus-5-5", 2400), Letters(), context_window=ContextWindow(images_max=2))
    trimmed = set()
    for turn in range(4):
        for at, tokens in zip(providers, (2400, 1500, 900, 3000), strict=True):
            manager.use_model(ModelConfig(at.model, tokens))
            played(session, at, manager.process_session, 2 + turn)
            if len(manager.process_session(session).items) < len(session.items):
                trimmed.add(at.model)
            assert manager.get_token_usage()["total"] <= tokens
    assert trimmed == {at.model for at in providers}


# Threads


@pytest.fixture
def _threads_take_turns_often() -> Iterator[None]:
    with turns_often():
        yield


@pytest.mark.long
@pytest.mark.no_cover  # the tracer's lock is what the threads would wait for
@pytest.mark.usefixtures("_threads_take_turns_often")
def test_a_call_ends_with_the_settings_of_one_model_whatever_other_threads_switch_to() -> None:
    """Every view, statistic and figure belongs to one of the two models, never to a mix of both."""
    configs = [ModelConfig("gpt-5", 3000), ModelConfig("claude-opus-5-5", 5500)]
    session = session_of(20)
    alone = [ContextWindowManager(config, Letters()) for config in configs]
    expected = [(candidate.analyze_session(session), candidate.get_token_usage(session), candidate.usage(session)) for candidate in alone]
    plans = [candidate.plan_session(session) for candidate in alone]
    trims = [ids(candidate.trim_session(session)) for candidate in alone]
    costs = {(candidate.get_token_usage()["total"], candidate.total_budget) for candidate in alone}
    views = [ids(candidate.process_session(session)) for candidate in alone]
    figures = [(candidate.get_token_usage(), candidate.get_budget("DIALOG"), candidate.available_tokens) for candidate in alone]
    costs |= {(candidate.get_token_usage()["total"], candidate.total_budget) for candidate in alone}
    assert views[0] != views[1]
    events: list[tuple[int, int]] = []
    manager = ContextWindowManager(configs[0], Letters(), on_event=lambda event: events.append((event.tokens, event.budget)))
    manager.process_session(session)
    done = Event()

    def switch() -> None:
        try:
            for number in range(60):
                manager.use_model(configs[number % 2])
        finally:
            done.set()

    def process() -> None:
        while not done.is_set():
            assert ids(manager.process_session(session)) in views
            assert manager.plan_session(session) in plans

    def show() -> None:
        while not done.is_set():
            assert manager.get_token_usage(session) in [usage for _, usage, _ in expected]
            assert manager.analyze_session(session) in [stats for stats, _, _ in expected]
            assert manager.usage(session) in [report for _, _, report in expected]

    def look() -> None:
        """The figures of whatever was noted last, by whichever model is in use: they belong together."""
        while not done.is_set():
            usage = manager.get_token_usage()
            assert usage["budget"] in (3000, 5500)
            assert usage["total"] == usage["overhead"] + sum(usage[name] for name in ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"))
            assert usage["available"] == usage["budget"] - usage["total"]
            assert ids(manager.trim_session(session)) in trims

    together(switch, process, show, look)
    assert set(events) <= costs
    for config, view, figure in zip(configs, views, figures, strict=True):
        manager.use_model(config)
        assert ids(manager.process_session(session)) == view
        assert (manager.get_token_usage(), manager.get_budget("DIALOG"), manager.available_tokens) == figure


def test_a_call_in_progress_finishes_with_the_model_it_began_with() -> None:
    """Its view is that model's; the figures that it records are recounted for the model now in use."""
    entered, go_on = Event(), Event()

    class Slow(Letters):
        def count_text(self, text: str) -> int:
            if text == "slow":
                entered.set()
                assert go_on.wait(SECONDS)
            return len(text)

    session = session_of(8)
    session.add_message("user", "slow")
    manager = ContextWindowManager(ModelConfig("gpt-5", 1000), Slow())
    other = ContextWindowManager(ModelConfig("claude-opus-5-5", 2000), Letters())
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(manager.process_session, session)
        assert entered.wait(SECONDS)
        manager.use_model(ModelConfig("claude-opus-5-5", 2000))
        go_on.set()
        view = begun.result(SECONDS)
    assert ids(view) == ids(ContextWindowManager(ModelConfig("gpt-5", 1000), Letters()).process_session(session))
    assert manager.get_token_usage()["budget"] == 2000
    assert manager.get_token_usage()["total"] == other.get_token_usage(view)["total"]
    assert ids(manager.process_session(session)) == ids(other.process_session(session))
