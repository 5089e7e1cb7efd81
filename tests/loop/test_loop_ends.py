"""How a turn ends: by a stop reason, an error or a cancellation. The log stays valid every time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_window import (
    Answer,
    ContextOverflowError,
    FunctionCallOutput,
    Message,
    ModelError,
    ModelOverloadedError,
    PromptTooLongError,
    Session,
    Usage,
    run_turn,
)
from context_window.loop.tool_runner import STOPPED
from context_window.loop.turn import MAX_PAUSES
from session.items import Item, Reasoning
from session.providers.anthropic import to_anthropic, validate_anthropic
from tests.support.looping import ScriptedModel, add, call, cut_off, manager, texts_of, turn
from tests.support.stubs import Call, Say

# Stop reasons


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_calls_of_an_answer_that_was_cut_off_are_not_run(stop: str) -> None:
    session = Session()
    model = ScriptedModel(cut_off(stop, Message("assistant", "Let me"), call("fail", "{}", "1")))
    result = turn(session, "Add.", model)
    assert (result.text, result.stop, result.requests, result.calls, result.calls_refused) == ("Let me", stop, 1, 0, 1)
    assert isinstance(session.items[-1], FunctionCallOutput)
    assert stop in session.items[-1].text


@pytest.mark.parametrize("stop", ["end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "refusal", "brand_new"])
def test_the_stop_reason_of_a_text_answer_is_returned(stop: str) -> None:
    result = turn(Session(), "Hi", ScriptedModel(cut_off(stop, Message("assistant", "Well"))))
    assert (result.text, result.stop, result.requests) == ("Well", stop, 1)


def test_a_paused_answer_is_continued_and_the_texts_are_joined() -> None:
    session = Session()
    paused = cut_off("pause_turn", Message("assistant", "I search. "))
    result = turn(session, "Search.", ScriptedModel(paused, [Say("Found.")]))
    assert (result.text, result.stop, result.requests) == ("I search. Found.", "end_turn", 2)


@pytest.mark.parametrize(
    "paused",
    [
        [Reasoning("hm", signature="s1"), Message("assistant", "I search. \n")],
        [Message("assistant", "I search."), Reasoning("hm", signature="s1")],
    ],
    ids=["whitespace", "thinking"],
)
def test_reasoning_after_a_pause_stays_behind_the_request_it_answered(paused: list[Item]) -> None:
    """Two answers in a row: in every later request, the second one's reasoning follows the first answer as its own request showed it."""
    session = Session()
    rest = cut_off("end_turn", Reasoning("aha", signature="s2"), Message("assistant", "Found."))
    model = ScriptedModel(cut_off("pause_turn", *paused), rest)
    turn(session, "Search.", model)
    request_blocks = [block for message in to_anthropic(model.views[1]).messages for block in message["content"]]
    later = [block for message in to_anthropic(session).messages for block in message["content"]]
    assert [block.get("signature") for block in later].index("s2") == len(request_blocks)
    assert later[: len(request_blocks)] == request_blocks
    assert session.to_dict() == Session.from_dict(session.to_dict()).to_dict()


def test_endless_pauses_end_the_turn() -> None:
    model = ScriptedModel(*(cut_off("pause_turn", Message("assistant", "…")) for _ in range(100)))
    result = turn(Session(), "Search.", model)
    assert (result.stop, result.requests) == ("pause_turn", MAX_PAUSES + 1)


def test_an_empty_answer_ends_the_turn() -> None:
    session = Session()
    result = turn(session, "Hi", ScriptedModel(cut_off("end_turn")))
    assert (result.text, result.stop, result.usage) == ("", "end_turn", Usage(input_tokens=1, output_tokens=1))
    assert texts_of(session) == ["Hi"]


# Errors


def test_a_turn_is_resumed_after_a_provider_error() -> None:
    session = Session()
    with pytest.raises(ModelOverloadedError):
        turn(session, "Add.", ScriptedModel([Call("add", {"a": 1, "b": 1})], ModelOverloadedError("busy", 529)))
    assert texts_of(session) == ["Add.", "add", "2"]
    assert turn(session, None, ScriptedModel([Say("2.")])).text == "2."


def test_a_prompt_that_is_too_long_is_retried_smaller_and_stays_small() -> None:
    session = Session([Message("user" if number % 2 == 0 else "assistant", "word " * 40) for number in range(20)])
    refusal = PromptTooLongError("prompt is too long: 5000 tokens > 3000 maximum", 400, tokens=5_000, limit=3_000)
    model = ScriptedModel(refusal, [Say("Fine.")])
    limits = manager()
    result = turn(session, "Now?", model, limits=limits)
    assert (result.text, result.requests) == ("Fine.", 2)
    before, after = (limits.analyze_session(view)["total_tokens"] for view in model.views)
    assert after <= before * 3 // 5
    assert texts_of(model.views[1])[-1] == "Now?"
    turn(session, "And now?", model, limits=limits)
    assert limits.analyze_session(model.views[2])["total_tokens"] <= before * 3 // 5


def test_a_second_refusal_is_raised() -> None:
    session = Session([Message("user" if number % 2 == 0 else "assistant", "word " * 40) for number in range(20)])
    model = ScriptedModel(*(PromptTooLongError("prompt is too long", 400) for _ in range(9)))
    with pytest.raises(PromptTooLongError):
        turn(session, "Now?", model)
    assert len(model.views) == 2


def test_a_prompt_that_cannot_become_smaller_is_not_retried() -> None:
    model = ScriptedModel(*(PromptTooLongError("prompt is too long", 400) for _ in range(9)))
    with pytest.raises(PromptTooLongError):
        turn(Session(), "Now?", model)
    assert len(model.views) == 1


def test_a_strict_window_raises_before_the_request() -> None:
    model = ScriptedModel()
    with pytest.raises(ContextOverflowError):
        turn(Session(), "word " * 100, model, limits=manager(200, strict=True))
    assert model.views == []


# Cancellation


async def _run_and_cancel(session: Session, model: ScriptedModel, tools: list[Any], started: asyncio.Event) -> None:
    task = asyncio.create_task(run_turn(session, "Go.", model=model, tools=tools, manager=manager()))
    await asyncio.wait_for(started.wait(), 10)
    await asyncio.sleep(0.3)  # the other calls' threads end, on a busy machine too
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_cancel_during_tool_calls_leaves_an_output_for_every_call() -> None:
    async def scene() -> Session:
        session, started = Session(), asyncio.Event()

        async def wait() -> None:
            started.set()
            await asyncio.sleep(60)

        await _run_and_cancel(session, ScriptedModel([Call("wait"), Call("add", {"a": 1, "b": 1})]), [wait, add], started)
        return session

    session = asyncio.run(scene())
    assert texts_of(session) == ["Go.", "wait", "add", STOPPED, "2"]
    assert validate_anthropic(session.to_anthropic_messages()) == []
    assert turn(session, None, ScriptedModel([Say("Stopped.")])).text == "Stopped."


def test_a_cancel_during_streaming_keeps_the_text_so_far() -> None:
    async def scene() -> Session:
        session, started = Session(), asyncio.Event()

        class Speaking(ScriptedModel):
            async def answer(self, view: Session, tools: Any, *, allow_tools: bool, on_text: Any = None) -> Answer:
                on_text("It was a dark ")
                on_text("and stormy ")
                started.set()
                await asyncio.sleep(60)
                raise AssertionError

        await _run_and_cancel(session, Speaking(), [], started)
        return session

    session = asyncio.run(scene())
    last = session.items[-1]
    assert isinstance(last, Message)
    assert (last.text, last.interrupted) == ("It was a dark and stormy ", True)
    assert turn(session, "Go on.", ScriptedModel([Say("night.")])).text == "night."


def test_a_cancel_before_any_text_leaves_the_question() -> None:
    async def scene() -> Session:
        session, started = Session(), asyncio.Event()

        async def wait(view: Session) -> None:
            started.set()
            await asyncio.sleep(60)

        await _run_and_cancel(session, ScriptedModel(wait), [], started)
        return session

    assert texts_of(asyncio.run(scene())) == ["Go."]


def test_exceptions_of_the_model_are_raised_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        turn(Session(), "Hi", ScriptedModel(ZeroDivisionError()))
    with pytest.raises(ModelError):
        turn(Session(), "Hi", ScriptedModel(ModelError("bad request", 400)))
