"""The frontier shrinks when nothing older is left: what follows the last response is protected only as far as the protocol needs it."""

from __future__ import annotations

import json

import pytest

from context_window import Action, ContextWindow, ContextWindowManager, Reason
from session import FunctionCall, FunctionCallOutput, Image, Message, MessageCategory, Session
from session.providers import validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses
from session.usage import Usage


def manager(budget: int, **options: object) -> ContextWindowManager:
    return ContextWindowManager(token_counter=len, context_window=ContextWindow(max_tokens=budget, **options))  # type: ignore[arg-type]


def after_a_turn() -> Session:
    """A log after its first answer."""
    session = Session(id="s")
    session.append(Message("user", "first question", id="u0"))
    session.append(Message("assistant", "first answer", id="a0"))
    return session


@pytest.mark.parametrize("size", [0, 500])
def test_calls_in_flight_and_their_outputs_exist(size: int) -> None:
    session = Session(id="s")
    session.append(Message("user", "go", id="u"))
    session.append(FunctionCall("read", "{}", "c1", id="c1"))
    session.append(FunctionCall("read", "{}", "c2", id="c2"))
    session.append(FunctionCallOutput("read", "x" * size, "c1", id="o1"))
    view = manager(20).process_session(session)
    assert [item.id for item in view.items] == ["u", "c1", "c2", "o1"]


def test_a_call_with_a_whole_file_keeps_its_keys_and_comes_back_by_its_id() -> None:
    session = Session(id="s")
    session.append(Message("user", "write it", id="u"))
    arguments = json.dumps({"path": "a.py", "content": "x = 1\n" * 5_000, "edits": [{"new": "é" * 3_000, "line": 7}], "n": 1.50})
    session.append(FunctionCall("Write", arguments, "c", id="c"))
    session.append(FunctionCallOutput("Write", "done", "c", id="o"))
    asked = manager(2_000)
    view, plan = asked.process_session(session), asked.plan_session(session)
    assert not plan.over_budget
    call = view.get_by_id("c")
    assert isinstance(call, FunctionCall)
    values = json.loads(call.arguments)
    assert list(values) == ["path", "content", "edits", "n"]
    assert (values["path"], values["n"], values["edits"][0]["line"]) == ("a.py", 1.5, 7)
    assert values["content"].startswith("x = 1")
    assert values["content"].endswith("x = 1\n")
    assert "recall id c]" in values["content"]
    assert asked.recall(view, "c") is session.get_by_id("c")
    assert (plan.decisions[1].action, plan.decisions[1].reason) == (Action.TRUNCATE, Reason.LAST_RESORT)
    assert asked.process_session(session).get_by_id("c") is call


@pytest.mark.parametrize("arguments", ["[1, 2", "[" + '"x",' * 500 + "1]", '"' + "x" * 900 + '"', ""])
def test_arguments_that_are_no_object_stay(arguments: str) -> None:
    session = Session(id="s")
    session.append(Message("user", "go", id="u"))
    session.append(FunctionCall("f", arguments, "c", id="c"))
    session.append(FunctionCallOutput("f", "done", "c", id="o"))
    view = manager(20).process_session(session)
    assert view.get_by_id("c") is session.get_by_id("c")


def test_a_shortened_message_leaves_room_for_the_work_on_it() -> None:
    session = after_a_turn()
    session.append(Message("user", "Fix what this log shows.\n" + "x" * 60_000, id="u1"))
    asked = manager(4_000)
    visible = asked.process_session(session).get_by_id("u1")
    for step in range(20):
        session.append(FunctionCall("read", "{}", f"c{step}", id=f"c{step}"))
        session.append(FunctionCallOutput("read", "y" * 500, f"c{step}", id=f"o{step}"))
        view = asked.process_session(session)
        assert view.get_by_id("u1") is visible, "the beginning of the request has changed"
        assert view.get_by_id(f"o{step}") is session.items[-1], "the message has left no room for an output"
        assert not asked.plan_session(session).over_budget


VALIDATORS = (
    (validate_anthropic, to_anthropic),
    (validate_openai_chat, to_openai_chat),
    (validate_openai_responses, to_openai_responses),
    (validate_google, to_google),
)


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"])
@pytest.mark.parametrize("is_reported", [False, True])
def test_files_screenshots_a_long_question_and_long_calls_fit_together(model: str, is_reported: bool) -> None:
    session = Session(id="s")
    session.append(Message("system", "Never touch /vendor.", id="rules"))
    session.append(Message("user", "first question", id="u0"))
    session.append(Message("assistant", "first answer", id="a0", usage=Usage(900, 0, 0, 20) if is_reported else None))
    for number in range(10):
        session.append(Message("user", "lorem ipsum " * 500, category=MessageCategory.CONTEXT, id=f"file{number}"))
    shots = [Image(url=f"https://example.org/{number}.png", width=800, height=600) for number in range(8)]
    session.append(Message("user", ["What is wrong? " + "some words " * 20_000, *shots], id="u1"))
    for number in range(3):
        arguments = json.dumps({"path": "a.py", "content": "x = 1\n" * 5_000})
        session.append(FunctionCall("Write", arguments, f"c{number}", id=f"c{number}"))
    for number in range(3):
        session.append(FunctionCallOutput("Write", "done " * 3_000, f"c{number}", id=f"o{number}"))
    asked = ContextWindowManager(model, context_window=ContextWindow(max_tokens=8_000, strict=True, keep_first_message=True))
    for turn in range(2, 5):  # strict: raises if the view does not fit
        view, plan = asked.process_session(session), asked.plan_session(session)
        assert view.get_by_id("rules") is session.items[0]
        for validate, convert in VALIDATORS:
            assert validate(convert(view)) == []
        for decision in plan.changes:
            assert asked.recall(view, decision.item_id) is session.get_by_id(decision.item_id)
        session.append(Message("assistant", "an answer", id=f"a{turn}"))
        session.append(Message("user", "and now? " * 3_000, id=f"u{turn}"))
