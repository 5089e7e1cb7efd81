"""`run_turn` with a scripted model: requests, tool calls, recorded items, and the end of a turn."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FormatError,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Item,
    Message,
    Reasoning,
    Session,
    Toolbox,
    TurnResult,
    Usage,
    run_turn,
)
from context_window.loop.turn import INTERRUPTED
from session.providers.anthropic import to_anthropic, validate_anthropic
from tests.support.looping import ScriptedModel, add, call, cut_off, fail, manager, png, texts_of, turn
from tests.support.stubs import Block, Call, Say, Think


def test_a_question_is_answered() -> None:
    session = Session()
    result = turn(session, "Hello", ScriptedModel([Think("hm"), Say("Hello to you.")]))
    assert result == TurnResult("Hello to you.", "end_turn", 1, 0, 0, Usage(input_tokens=10, output_tokens=1))
    assert texts_of(session) == ["Hello", "hm", "Hello to you."]


def test_calls_run_concurrently_and_are_recorded_in_order_until_a_text_answer() -> None:
    session = Session()
    model = ScriptedModel(
        [Say("Let me see."), Call("add", {"a": 1, "b": 2}), Call("fail"), Call("add", {"a": 1})],
        [Call("add", {"a": 3, "b": 4})],
        [Say("7.")],
    )
    result = turn(session, "What is 1 + 2 + 4?", model)
    assert (result.text, result.stop, result.requests, result.calls) == ("7.", "end_turn", 3, 4)
    assert texts_of(session) == [
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
    assert all(texts_of(view)[:2] == ["Read.", "Read the book."] for view in model.views)


# The limit of tool calls


def test_calls_over_the_limit_get_an_error_and_the_model_is_asked_once_more_without_tools() -> None:
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
    assert len(model.definitions) == 2  # the definitions are sent all the same


def test_a_turn_at_exactly_the_limit_continues_without_tools() -> None:
    model = ScriptedModel([Call("add", {"a": 1, "b": 1}), Call("fail")], [Say("Done.")])
    assert turn(Session(), "Add.", model, limits=manager(max_tool_calls_per_turn=2)).calls_refused == 0
    assert model.allowed == [True, False]


def test_with_a_limit_of_zero_calls_are_never_allowed() -> None:
    model = ScriptedModel([Say("No tools for me.")])
    turn(Session(), "Add.", model, limits=manager(max_tool_calls_per_turn=0))
    assert model.allowed == [False]


def test_calls_without_permission_get_outputs_and_end_the_turn() -> None:
    session = Session()
    model = ScriptedModel(*([Call("add", {"a": 1, "b": 1})] for _ in range(20)))
    result = turn(session, "Add.", model, limits=manager(max_tool_calls_per_turn=3))
    assert (result.stop, result.requests, result.calls, result.calls_refused) == ("tool_use", 4, 3, 1)
    assert session.items[-1].type == "function_call_output"


def test_the_next_turn_has_a_new_limit() -> None:
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


def test_a_session_takes_one_turn_at_a_time() -> None:
    session = Session()

    async def again() -> str:
        await run_turn(session, "And I?", model=ScriptedModel(), manager=manager())
        return "never"

    result = turn(session, "Hi", ScriptedModel([Call("again")], [Say("One at a time.")]), tools=[again])
    assert result.text == "One at a time."
    assert texts_of(session) == ["Hi", "again", texts_of(session)[2], "One at a time."]
    assert "another turn of it is under way" in texts_of(session)[2]
    assert turn(session, "Now I?", ScriptedModel([Say("Now you.")])).text == "Now you."


# User input


@pytest.mark.parametrize("user_input", ["", " \n", [], Message("assistant", "I"), Message("user", " ")])
def test_blank_input_is_an_error_and_the_log_is_unchanged(user_input: Any) -> None:
    session = Session()
    with pytest.raises(FormatError, match=r"run_turn\.user_input"):
        turn(session, user_input, ScriptedModel())
    assert not session.items


def test_parts_and_messages_are_accepted_as_input() -> None:
    session = Session()
    turn(session, ["Look:", png()], ScriptedModel())
    question = Message("user", "And now?", pinned=True)
    turn(session, question, ScriptedModel())
    first = session.items[0]
    assert isinstance(first, Message)
    assert isinstance(first.content[1], Image)
    assert question in session.items


ANSWERED_LOG = [Message("user", "Hi"), Message("assistant", "Hello")]


@pytest.mark.parametrize(
    "logged",
    [
        [],
        [Message("system", "Be brief.")],
        ANSWERED_LOG,
        [*ANSWERED_LOG, Message("system", "Be brief.")],
        [*ANSWERED_LOG, Message("developer", "Be brief.")],
        [*ANSWERED_LOG, AgentConfigUpdate("Be brief.")],
        [*ANSWERED_LOG, Compaction("They greeted each other.", tuple(item.id for item in ANSWERED_LOG))],
        [*ANSWERED_LOG, Message("assistant", "They greeted each other.", extra={"summary": True})],
        [Message("user", "Hi"), Reasoning("hm")],
    ],
    ids=["empty", "rules", "answered", "rules after", "more rules", "other rules", "summed up", "a summary", "thought of"],
)
def test_resuming_a_finished_log_is_an_error(logged: list[Any]) -> None:
    with pytest.raises(FormatError, match="nothing in the session waits"):
        turn(Session(logged), None, ScriptedModel())


@pytest.mark.parametrize(
    "beside", [Message("system", "Be brief."), Compaction("They met."), AgentHandoff("alice", "bob")], ids=["rules", "summary", "handoff"]
)
def test_notes_after_a_question_do_not_answer_it(beside: Item) -> None:
    session = Session([Message("user", "Hi"), beside])
    assert turn(session, None, ScriptedModel([Say("Hello.")])).text == "Hello."


def test_a_handoff_awaits_the_answer_of_the_receiving_agent() -> None:
    session = Session([*ANSWERED_LOG, AgentHandoff("alice", "bob"), AgentConfigUpdate("You are Alice.", agent_id="alice")])
    model = ScriptedModel([Say("This is Alice.")])
    assert turn(session, None, model).text == "This is Alice."
    messages, system = to_anthropic(model.views[0])
    assert (system, messages[-1]["content"][-1]["text"]) == ("You are Alice.", "[Handoff from bob to alice]")


def test_an_unfinished_log_is_resumed() -> None:
    done = FunctionCallOutput("add", "2", "1")
    # The program was stopped after the first output.
    session = Session([Message("user", "Add."), call("add", {"a": 1, "b": 1}, "1"), call("fail", {}, "2"), done])
    assert turn(session, None, ScriptedModel([Say("It was interrupted.")])).text == "It was interrupted."
    assert texts_of(session)[3:] == ["2", INTERRUPTED, "It was interrupted."]
    session = Session([Message("user", "Add."), call("add", {"a": 1, "b": 1}, "1")])
    turn(session, None, ScriptedModel([Say("It was interrupted.")]))
    assert [message["role"] for message in session.to_anthropic_messages().messages] == ["user", "assistant", "user", "assistant"]


# Irregular answers


def test_calls_with_the_same_call_id_get_their_own_outputs() -> None:
    session = Session()
    twins = cut_off("tool_use", call("add", {"a": 1, "b": 1}, "x"), call("add", {"a": 2, "b": 2}, "x"), call("add", {"a": 3, "b": 3}, ""))
    turn(session, "Add.", ScriptedModel(twins))
    outputs = {item.call_id: item.text for item in session.items if isinstance(item, FunctionCallOutput)}
    assert outputs == {"x": "2", "x_2": "4", "call_2": "6"}


def test_item_ids_that_are_in_the_log_are_replaced() -> None:
    session = Session([Message("user", "Hi", id="m")])
    turn(session, None, ScriptedModel(cut_off("end_turn", Message("assistant", "Hello", id="m"))))
    assert texts_of(session) == ["Hi", "Hello"]


def test_repeated_item_ids_in_an_answer_are_replaced() -> None:
    session = Session()
    wish = replace(call("add", {"a": 1, "b": 2}, "c"), id="m")
    result = turn(session, "Hi", ScriptedModel(cut_off("tool_use", Message("assistant", "Hello", id="m"), wish)))
    assert texts_of(session) == ["Hi", "Hello", "add", "3", "That is all."]
    assert len({item.id for item in session.items}) == 5
    assert result.calls == 1


@given(
    st.lists(st.lists(st.sampled_from(["add", "fail", "none", "wrong", "say", "think"]), max_size=5), max_size=8),
    st.integers(0, 6),
    st.sampled_from([300, 100_000]),
)
def test_any_turn_ends_and_every_call_has_one_output_in_order(answers: list[list[str]], most: int, tokens: int) -> None:
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

# Listeners


def test_listeners_get_texts_and_items() -> None:
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


def test_an_exception_in_a_listener_is_logged_without_content(caplog: pytest.LogCaptureFixture) -> None:
    def raises(_: object) -> None:
        raise ValueError("secret")

    with caplog.at_level(logging.ERROR):
        assert turn(Session(), "Hi", ScriptedModel([Say("Hello.")]), on_text=raises, on_item=raises).text == "Hello."
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text
