"""How a turn ends: by what the model says of it, by an error, by a cancel. What is left in the log is always whole."""

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
from context_window.loop.running import STOPPED
from context_window.loop.turn import MOST_PAUSES
from session.items import Item, Reasoning
from session.providers.anthropic import to_anthropic, validate_anthropic
from tests.support.looping import ScriptedModel, add, call, cut_off, manager, told, turn
from tests.support.stubs import Call, Say

# How answers stop


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_calls_of_an_answer_that_was_cut_off_are_not_run(stop: str) -> None:
    session = Session()
    model = ScriptedModel(cut_off(stop, Message("assistant", "Let me"), call("fail", "{}", "1")))
    result = turn(session, "Add.", model)
    assert (result.text, result.stop, result.requests, result.calls, result.calls_refused) == ("Let me", stop, 1, 0, 1)
    assert isinstance(session.items[-1], FunctionCallOutput)
    assert stop in session.items[-1].text


@pytest.mark.parametrize("stop", ["end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "refusal", "brand_new"])
def test_why_an_answer_in_text_stopped_is_told(stop: str) -> None:
    result = turn(Session(), "Hi", ScriptedModel(cut_off(stop, Message("assistant", "Well"))))
    assert (result.text, result.stop, result.requests) == ("Well", stop, 1)


def test_a_pause_is_gone_on_from_and_its_text_is_the_answers_beginning() -> None:
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
def test_thinking_after_a_pause_stays_behind_the_request_that_it_answered(paused: list[Item]) -> None:
    """Two answers with nothing between: what the second request showed of the first answer stands before the second one's thinking
    in every later request."""
    session = Session()
    rest = cut_off("end_turn", Reasoning("aha", signature="s2"), Message("assistant", "Found."))
    model = ScriptedModel(cut_off("pause_turn", *paused), rest)
    turn(session, "Search.", model)
    asked = [block for message in to_anthropic(model.views[1]).messages for block in message["content"]]
    later = [block for message in to_anthropic(session).messages for block in message["content"]]
    assert [block.get("signature") for block in later].index("s2") == len(asked)
    assert later[: len(asked)] == asked
    assert session.to_dict() == Session.from_dict(session.to_dict()).to_dict()


def test_a_model_that_pauses_for_ever_is_not_asked_for_ever() -> None:
    model = ScriptedModel(*(cut_off("pause_turn", Message("assistant", "…")) for _ in range(100)))
    result = turn(Session(), "Search.", model)
    assert (result.stop, result.requests) == ("pause_turn", MOST_PAUSES + 1)


def test_an_answer_without_anything_ends_the_turn() -> None:
    session = Session()
    result = turn(session, "Hi", ScriptedModel(cut_off("end_turn")))
    assert (result.text, result.stop, result.usage) == ("", "end_turn", Usage(input_tokens=1, output_tokens=1))
    assert told(session) == ["Hi"]


# Errors


def test_after_an_error_of_the_provider_the_turn_is_gone_on_with() -> None:
    session = Session()
    with pytest.raises(ModelOverloadedError):
        turn(session, "Add.", ScriptedModel([Call("add", {"a": 1, "b": 1})], ModelOverloadedError("busy", 529)))
    assert told(session) == ["Add.", "add", "2"]
    assert turn(session, None, ScriptedModel([Say("2.")])).text == "2."


def test_a_prompt_that_is_too_long_is_sent_once_more_with_less_and_stays_so() -> None:
    session = Session([Message("user" if number % 2 == 0 else "assistant", "word " * 40) for number in range(20)])
    refusal = PromptTooLongError("prompt is too long: 5000 tokens > 3000 maximum", 400, tokens=5_000, limit=3_000)
    model = ScriptedModel(refusal, [Say("Fine.")])
    limits = manager()
    result = turn(session, "Now?", model, limits=limits)
    assert (result.text, result.requests) == ("Fine.", 2)
    before, after = (limits.analyze_session(view)["total_tokens"] for view in model.views)
    assert after <= before * 3 // 5
    assert told(model.views[1])[-1] == "Now?"
    turn(session, "And now?", model, limits=limits)
    assert limits.analyze_session(model.views[2])["total_tokens"] <= before * 3 // 5


def test_one_that_stays_too_long_is_told_and_not_asked_for_ever() -> None:
    session = Session([Message("user" if number % 2 == 0 else "assistant", "word " * 40) for number in range(20)])
    model = ScriptedModel(*(PromptTooLongError("prompt is too long", 400) for _ in range(9)))
    with pytest.raises(PromptTooLongError):
        turn(session, "Now?", model)
    assert len(model.views) == 2


def test_one_that_cannot_be_made_smaller_is_not_sent_again() -> None:
    model = ScriptedModel(*(PromptTooLongError("prompt is too long", 400) for _ in range(9)))
    with pytest.raises(PromptTooLongError):
        turn(Session(), "Now?", model)
    assert len(model.views) == 1


def test_a_strict_window_says_so_before_the_provider_is_asked() -> None:
    model = ScriptedModel()
    with pytest.raises(ContextOverflowError):
        turn(Session(), "word " * 100, model, limits=manager(200, strict=True))
    assert model.views == []


# Cancels


async def _cancelled(session: Session, model: ScriptedModel, tools: list[Any], started: asyncio.Event) -> None:
    task = asyncio.create_task(run_turn(session, "Go.", model=model, tools=tools, manager=manager()))
    await asyncio.wait_for(started.wait(), 10)
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_cancel_while_tools_run_leaves_every_call_answered() -> None:
    async def scene() -> Session:
        session, started = Session(), asyncio.Event()

        async def wait() -> None:
            started.set()
            await asyncio.sleep(60)

        await _cancelled(session, ScriptedModel([Call("wait"), Call("add", {"a": 1, "b": 1})]), [wait, add], started)
        return session

    session = asyncio.run(scene())
    assert told(session) == ["Go.", "wait", "add", STOPPED, "2"]
    assert validate_anthropic(session.to_anthropic_messages()) == []
    assert turn(session, None, ScriptedModel([Say("Stopped.")])).text == "Stopped."


def test_a_cancel_while_the_model_speaks_keeps_what_it_had_said() -> None:
    async def scene() -> Session:
        session, started = Session(), asyncio.Event()

        class Speaking(ScriptedModel):
            async def answer(self, view: Session, tools: Any, *, allow_tools: bool, on_text: Any = None) -> Answer:
                on_text("It was a dark ")
                on_text("and stormy ")
                started.set()
                await asyncio.sleep(60)
                raise AssertionError

        await _cancelled(session, Speaking(), [], started)
        return session

    session = asyncio.run(scene())
    last = session.items[-1]
    assert isinstance(last, Message)
    assert (last.text, last.interrupted) == ("It was a dark and stormy ", True)
    assert turn(session, "Go on.", ScriptedModel([Say("night.")])).text == "night."


def test_a_cancel_before_a_word_leaves_the_question() -> None:
    async def scene() -> Session:
        session, started = Session(), asyncio.Event()

        async def wait(view: Session) -> None:
            started.set()
            await asyncio.sleep(60)

        await _cancelled(session, ScriptedModel(wait), [], started)
        return session

    assert told(asyncio.run(scene())) == ["Go."]


def test_a_fault_in_the_model_itself_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        turn(Session(), "Hi", ScriptedModel(ZeroDivisionError()))
    with pytest.raises(ModelError):
        turn(Session(), "Hi", ScriptedModel(ModelError("bad request", 400)))
