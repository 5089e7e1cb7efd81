"""`run_turn`: what is asked, what is run, what is recorded, and how a turn ends, with a model that says what it is told to."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import (
    Answer,
    ContextOverflowError,
    FormatError,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Item,
    Message,
    ModelError,
    ModelOverloadedError,
    PromptTooLongError,
    Session,
    Toolbox,
    TurnResult,
    Usage,
    run_turn,
)
from context_window.loop.running import STOPPED
from context_window.loop.turn import INTERRUPTED, MOST_PAUSES
from session.providers.anthropic import validate_anthropic
from tests.support.looping import ScriptedModel, call, manager, png
from tests.support.stubs import Block, Call, Say, Think


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def fail() -> None:
    """Fails."""
    raise OSError("disk full")


def turn(session: Session, said: Any, model: ScriptedModel, *, limits: Any = None, tools: Any = (add, fail), **more: Any) -> TurnResult:
    """A whole turn."""
    return asyncio.run(run_turn(session, said, model=model, tools=tools, manager=limits or manager(), **more))


def told(session: Session) -> list[str]:
    """The log in few words."""
    return [str(getattr(item, "text", None) or getattr(item, "name", item.type)) for item in session.items]


def cut_off(stop: str, *items: Any) -> Answer:
    return Answer(items, stop, Usage(input_tokens=1, output_tokens=1), "scripted-1")


def test_a_question_is_answered() -> None:
    session = Session()
    result = turn(session, "Hello", ScriptedModel([Think("hm"), Say("Hello to you.")]))
    assert result == TurnResult("Hello to you.", "end_turn", 1, 0, 0, Usage(input_tokens=10, output_tokens=1))
    assert told(session) == ["Hello", "hm", "Hello to you."]


def test_calls_are_run_together_and_recorded_in_order_until_the_model_answers_in_text() -> None:
    session = Session()
    model = ScriptedModel(
        [Say("Let me see."), Call("add", {"a": 1, "b": 2}), Call("fail"), Call("add", {"a": 1})],
        [Call("add", {"a": 3, "b": 4})],
        [Say("7.")],
    )
    result = turn(session, "What is 1 + 2 + 4?", model)
    assert (result.text, result.stop, result.requests, result.calls) == ("7.", "end_turn", 3, 4)
    assert told(session) == [
        "What is 1 + 2 + 4?",
        "Let me see.",
        "add",
        "fail",
        "add",
        "3",
        "fail failed: OSError: disk full",
        "add was not run, its arguments are wrong: b: Missing required argument",
        "add",
        "7",
        "7.",
    ]
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert [output.is_error for output in outputs] == [False, True, True, False]
    assert [output.call_id for output in outputs] == [item.call_id for item in session.items if isinstance(item, FunctionCall)]


def test_usage_and_model_are_recorded_with_the_first_item_of_each_answer() -> None:
    session = Session()
    result = turn(session, "Add.", ScriptedModel([Think("hm"), Call("add", {"a": 1, "b": 1})], [Say("2.")]))
    reported = [(item.type, item.extra.get("model")) for item in session.items if item.usage is not None]
    assert reported == [("reasoning", "scripted-1"), ("message", "scripted-1")]
    assert result.usage == Usage(input_tokens=20, output_tokens=2)


def test_the_session_is_managed_before_every_call_of_the_model() -> None:
    def page(number: int) -> str:
        return f"{number} " * 200

    session = Session()
    session.add_message("system", "Read.")
    limits = manager(1_500, max_tool_calls_per_turn=50)
    model = ScriptedModel(*([Call("page", {"number": number})] for number in range(12)), [Say("Read.")])
    turn(session, "Read the book.", model, limits=limits, tools=[page])
    costs = [limits.analyze_session(view)["total_tokens"] for view in model.views]
    assert len(costs) == 13
    assert max(costs) <= 1_500
    assert len(session.items) == 27
    assert all(told(view)[:2] == ["Read.", "Read the book."] for view in model.views)


# The limit of calls


def test_calls_over_the_limit_are_answered_so_and_the_model_is_asked_once_more_without_tools() -> None:
    session = Session()
    model = ScriptedModel([Call("add", {"a": 1, "b": 1})], [Call("add", {"a": 2, "b": 2}), Call("add", {"a": 3, "b": 3})], [Say("Enough.")])
    limits = manager(max_tool_calls_per_turn=2)
    result = turn(session, "Add.", model, limits=limits)
    assert model.allowed == [True, True, False]
    assert (result.text, result.calls, result.calls_refused) == ("Enough.", 2, 1)
    last = [item for item in session.items if isinstance(item, FunctionCallOutput)][-1]
    assert last.is_error
    assert "a turn may have 2 tool calls" in last.text
    assert (limits.tool_calls(session).used, limits.tool_calls(session).left) == (3, 0)
    assert len(model.definitions) == 2  # named all the same


def test_a_turn_that_spends_its_calls_exactly_is_asked_without_tools_too() -> None:
    model = ScriptedModel([Call("add", {"a": 1, "b": 1}), Call("fail")], [Say("Done.")])
    assert turn(Session(), "Add.", model, limits=manager(max_tool_calls_per_turn=2)).calls_refused == 0
    assert model.allowed == [True, False]


def test_with_no_tool_calls_allowed_the_model_never_may_call() -> None:
    model = ScriptedModel([Say("No tools for me.")])
    turn(Session(), "Add.", model, limits=manager(max_tool_calls_per_turn=0))
    assert model.allowed == [False]


def test_a_model_that_calls_although_it_may_not_ends_the_turn_with_its_calls_answered() -> None:
    session = Session()
    model = ScriptedModel(*([Call("add", {"a": 1, "b": 1})] for _ in range(20)))
    result = turn(session, "Add.", model, limits=manager(max_tool_calls_per_turn=3))
    assert (result.stop, result.requests, result.calls, result.calls_refused) == ("tool_use", 4, 3, 1)
    assert session.items[-1].type == "function_call_output"


def test_the_next_turn_has_its_calls_again() -> None:
    session, limits = Session(), manager(max_tool_calls_per_turn=1)
    for _ in range(2):
        result = turn(session, "Add.", ScriptedModel([Call("add", {"a": 1, "b": 1})], [Say("2.")]), limits=limits)
        assert (result.calls, result.calls_refused) == (1, 0)


def test_a_tool_that_writes_into_the_log_does_not_renew_the_limit() -> None:
    session = Session()

    def nag() -> str:
        session.add_message("user", "Go on!")
        return "nagged"

    result = turn(
        session, "Nag.", ScriptedModel(*([Call("nag")] for _ in range(50))), limits=manager(max_tool_calls_per_turn=5), tools=[nag]
    )
    assert (result.calls, result.calls_refused) == (5, 1)


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


def test_a_model_that_pauses_for_ever_is_not_asked_for_ever() -> None:
    model = ScriptedModel(*(cut_off("pause_turn", Message("assistant", "…")) for _ in range(100)))
    result = turn(Session(), "Search.", model)
    assert (result.stop, result.requests) == ("pause_turn", MOST_PAUSES + 1)


def test_an_answer_without_anything_ends_the_turn() -> None:
    session = Session()
    result = turn(session, "Hi", ScriptedModel(cut_off("end_turn")))
    assert (result.text, result.stop, result.usage) == ("", "end_turn", Usage(input_tokens=1, output_tokens=1))
    assert told(session) == ["Hi"]


# What the user says


@pytest.mark.parametrize("said", ["", " \n", [], Message("assistant", "I"), Message("user", " ")])
def test_what_says_nothing_is_refused_and_the_log_is_as_it_was(said: Any) -> None:
    session = Session()
    with pytest.raises(FormatError, match=r"run_turn\.user_input"):
        turn(session, said, ScriptedModel())
    assert not session.items


def test_parts_and_messages_are_taken_as_they_are() -> None:
    session = Session()
    turn(session, ["Look:", png()], ScriptedModel())
    question = Message("user", "And now?", pinned=True)
    turn(session, question, ScriptedModel())
    first = session.items[0]
    assert isinstance(first, Message)
    assert isinstance(first.content[1], Image)
    assert question in session.items


@pytest.mark.parametrize("logged", [[], [Message("user", "Hi"), Message("assistant", "Hello")]])
def test_there_must_be_something_to_go_on_with(logged: list[Any]) -> None:
    with pytest.raises(FormatError, match="nothing in the session waits"):
        turn(Session(logged), None, ScriptedModel())


def test_a_log_that_waits_for_an_answer_is_gone_on_with() -> None:
    done = FunctionCallOutput("add", "2", "1")
    session = Session([Message("user", "Add."), call("add", {"a": 1, "b": 1}, "1"), call("fail", {}, "2"), done])  # the program ended here
    assert turn(session, None, ScriptedModel([Say("It was interrupted.")])).text == "It was interrupted."
    assert told(session)[3:] == ["2", INTERRUPTED, "It was interrupted."]
    session = Session([Message("user", "Add."), call("add", {"a": 1, "b": 1}, "1")])
    turn(session, None, ScriptedModel([Say("It was interrupted.")]))
    assert [message["role"] for message in session.to_anthropic_messages().messages] == ["user", "assistant", "user", "assistant"]


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


# Answers that are not as they should be


def test_two_calls_with_one_call_id_get_their_own_answers() -> None:
    session = Session()
    twins = cut_off("tool_use", call("add", {"a": 1, "b": 1}, "x"), call("add", {"a": 2, "b": 2}, "x"), call("add", {"a": 3, "b": 3}, ""))
    turn(session, "Add.", ScriptedModel(twins))
    outputs = {item.call_id: item.text for item in session.items if isinstance(item, FunctionCallOutput)}
    assert outputs == {"x": "2", "x_2": "4", "call_2": "6"}


def test_items_whose_ids_the_log_has_get_others() -> None:
    session = Session([Message("user", "Hi", id="m")])
    turn(session, None, ScriptedModel(cut_off("end_turn", Message("assistant", "Hello", id="m"))))
    assert told(session) == ["Hi", "Hello"]


@given(
    st.lists(st.lists(st.sampled_from(["add", "fail", "none", "wrong", "say", "think"]), max_size=5), max_size=8),
    st.integers(0, 6),
    st.sampled_from([300, 100_000]),
)
def test_whatever_a_model_says_the_turn_ends_and_every_call_is_answered_once_in_order(
    answers: list[list[str]], most: int, tokens: int
) -> None:
    blocks: dict[str, Block] = {
        "add": Call("add", {"a": 1, "b": 1}),
        "fail": Call("fail"),
        "none": Call("none"),
        "wrong": Call("add", {}),
        "say": Say("so"),
        "think": Think("hm"),
    }
    session = Session()
    model = ScriptedModel(*([blocks[name] for name in answer] for answer in answers))
    result = asyncio.run(run_turn(session, "Go.", model=model, tools=TOOLBOX, manager=manager(tokens, max_tool_calls_per_turn=most)))
    calls = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    outputs = [item.call_id for item in session.items if isinstance(item, FunctionCallOutput)]
    assert calls == outputs
    assert len(calls) == result.calls + result.calls_refused
    assert result.calls <= most
    assert result.requests <= most + 2
    session.add_message("user", "Next.")
    assert validate_anthropic(session.to_anthropic_messages()) == []


TOOLBOX = Toolbox([add, fail])

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


# Listeners


def test_listeners_are_told_of_texts_and_items() -> None:
    session, texts, items = Session(), list[str](), list[Item]()
    turn(
        session,
        "Add.",
        ScriptedModel([Say("Well."), Call("add", {"a": 1, "b": 1})], [Say("2.")]),
        on_text=texts.append,
        on_item=items.append,
    )
    assert texts == ["Well.", "2."]
    assert items == list(session.items)


def test_a_listener_that_raises_costs_no_answer_and_is_logged_without_content(caplog: pytest.LogCaptureFixture) -> None:
    def raises(_: object) -> None:
        raise ValueError("secret")

    with caplog.at_level(logging.ERROR):
        assert turn(Session(), "Hi", ScriptedModel([Say("Hello.")]), on_text=raises, on_item=raises).text == "Hello."
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_a_fault_in_the_model_itself_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        turn(Session(), "Hi", ScriptedModel(ZeroDivisionError()))
    with pytest.raises(ModelError):
        turn(Session(), "Hi", ScriptedModel(ModelError("bad request", 400)))
