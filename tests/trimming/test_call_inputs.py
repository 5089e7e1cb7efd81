"""Long values in the arguments of older calls are cleared before units are dropped."""

from __future__ import annotations

import asyncio
import json

import pytest

from context_window import Action, ContextWindow, ContextWindowManager, Reason
from session import FunctionCall, FunctionCallOutput, Session
from session.items import Item
from session.providers import validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from tests.support.carried_out import carried_out
from tests.support.engine import LONG_VALUE

TEXT = "def function():\n    return 1\n" * 60


def manager(budget: int, **options: object) -> ContextWindowManager:
    return ContextWindowManager(token_counter=len, context_window=ContextWindow(max_tokens=budget, **options))  # type: ignore[arg-type]


def writes(count: int) -> Session:
    """A log in which a file is written `count` times."""
    session = Session(id="s")
    session.add_message("user", "Write them.", "u0")
    for number in range(count):
        arguments = {"path": f"file{number}.py", "content": TEXT, "edits": [{"new": TEXT, "line": number}], "mode": "w"}
        call = session.append(FunctionCall("Write", json.dumps(arguments), f"w{number}", id=f"call{number}"))
        session.append(FunctionCallOutput("Write", "written", call.call_id, id=f"output{number}"))
    session.add_message("assistant", "Done.", "a0")
    session.add_message("user", "Thanks.", "u1")
    return session


def call_of(session: Session, id: str) -> FunctionCall:
    item: Item | None = session.get_by_id(id)
    assert isinstance(item, FunctionCall)
    return item


def test_the_written_text_goes_and_the_path_stays() -> None:
    session = writes(3)
    asked = manager(8_000)
    view, plan = asked.process_session(session), asked.plan_session(session)
    assert [item.id for item in view.items] == [item.id for item in session.items]
    changes = [(entry.item_id, entry.action, entry.reason) for entry in plan.changes]
    assert changes == [("call0", Action.CLEAR, Reason.OVER_SHARE), ("call1", Action.CLEAR, Reason.OVER_SHARE)]
    marker = "[text taken out here; recall id call0]"
    visible = {"path": "file0.py", "content": marker, "edits": [{"new": marker, "line": 0}], "mode": "w"}
    assert json.loads(call_of(view, "call0").arguments) == visible
    assert asked.recall(view, "call0") is session.get_by_id("call0")
    assert "cleared 2 Write calls" in str(plan)
    report = asked.usage()
    assert [(row.name, row.calls, row.cleared) for row in report.tools] == [("Write", 3, 2)]


def test_every_format_accepts_the_view() -> None:
    view = manager(8_000).process_session(writes(3))
    assert call_of(view, "call0").arguments != call_of(writes(3), "call0").arguments
    assert validate_anthropic(view.to_anthropic_messages()) == []
    assert validate_openai_chat(view.to_openai_messages()) == []
    assert validate_openai_responses(view.to_openai_responses()) == []
    assert validate_google(asyncio.run(view.to_google_contents())) == []


@pytest.mark.parametrize(
    "arguments", [json.dumps({"path": "x" * LONG_VALUE}), "*** Begin Patch " * 100, json.dumps(["x" * 900]), json.dumps({"n" * 900: 1})]
)
def test_short_values_keys_and_arguments_that_are_no_object_stay(arguments: str) -> None:
    session = Session(id="s")
    session.add_message("user", "Patch it.", "u0")
    call = session.append(FunctionCall("Patch", arguments, "p", id="patch"))
    session.append(FunctionCallOutput("Patch", "patched", call.call_id, id="output"))
    session.append(FunctionCall("Write", json.dumps({"content": TEXT}), "w", id="write"))
    session.add_function_output("Write", "written", "w")
    session.add_message("assistant", "Done.", "a0")
    session.add_message("user", "x" * 600, "u1")
    plan = manager(2_300 + len(arguments)).plan_session(session)
    assert [entry.item_id for entry in plan.changes] == ["write"]


def test_a_call_that_was_truncated_is_cleared_later() -> None:
    session = Session(id="s")
    session.add_message("user", "Write it.", "u0")
    session.append(FunctionCall("Write", json.dumps({"path": "a.py", "content": TEXT * 3}), "w", id="write"))
    session.add_function_output("Write", "written", "w")
    asked = manager(3_000)
    truncated = call_of(asked.process_session(session), "write")
    assert asked.plan_session(session).decisions[1].action is Action.TRUNCATE
    session.add_message("assistant", "Done." * 200, "a0")
    session.add_message("user", "Thanks.", "u1")
    view, plan = asked.process_session(session), asked.plan_session(session)
    assert plan.decisions[1].action is Action.CLEAR
    assert plan.after == sum(decision.after for decision in plan) <= 3_000
    assert json.loads(call_of(view, "write").arguments) == {"path": "a.py", "content": "[text taken out here; recall id write]"}
    assert len(truncated.arguments) > 1_000
    assert list(carried_out(plan, session).items) == list(view.items)
