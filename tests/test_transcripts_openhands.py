"""OpenHands' histories of events: actions, observations, the responses they came from; older and newer kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from session import Compaction, FunctionCall, Reasoning, Usage
from session.transcripts import read_account
from session.units import request_points
from tests.support.list_logs import Json, account, called, lines, shown

TIME = "2026-01-02T03:04:05.5"


def response(own_id: str, text: str | None, *calls: Json) -> Json:
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 60}
    message = {"role": "assistant", "content": text, "tool_calls": list(calls)}
    return {"id": own_id, "model": "m-1", "usage": usage, "choices": [{"message": message}]}


def action(number: int, name: str, told: Json | None = None, source: str = "agent", **args: Any) -> Json:
    more = {"tool_call_metadata": told} if told else {}
    return {"id": number, "timestamp": TIME, "source": source, "message": "", "action": name, "args": args, **more}


def observation(number: int, name: str, content: str, cause: int | None = None, told: Json | None = None, **extras: Any) -> Json:
    more = {"tool_call_metadata": told} if told else {}
    return {"id": number, "source": "agent", "cause": cause, "observation": name, "content": content, "extras": extras, **more}


def metadata(call_id: str, answer: Json, name: str = "execute_bash") -> Json:
    return {"tool_call_id": call_id, "function_name": name, "model_response": answer}


TWO = response("r1", "I look.", called("c1", "execute_bash", '{"command": "ls"}'), called("c2", "execute_bash"))
HISTORY = [
    action(0, "system", content="S", tools=[called("x")]),
    action(1, "message", source="user", content="hi", image_urls=["http://a/b.png"]),
    action(2, "recall", source="user", query="hi"),
    observation(3, "recall", "knowledge", cause=2),
    action(4, "run", metadata("c1", TWO), command="ls", thought="I look."),
    observation(5, "run", "a", 4, metadata("c1", TWO), metadata={"prefix": "[p]", "suffix": "\n[exit 0]"}),
    action(6, "run", metadata("c2", TWO), command="cat"),
    observation(7, "run", "b", 6, metadata("c2", TWO)),
    observation(8, "agent_state_changed", "", agent_state="running"),
    action(9, "message", content="All done."),
    {**action(10, "finish", metadata("c3", response("r2", "Bye.", called("c3", "finish"))))},
]


def test_actions_of_one_response_are_it_once_and_its_outputs_follow(tmp_path: Path) -> None:
    found = account(tmp_path, HISTORY)
    session = found.sessions[0]
    assert found.format == "openhands"
    assert shown(session) == [
        "system: S",
        "user: hi + image",
        "assistant: I look.",
        'call c1 execute_bash {"command": "ls"}',
        "call c2 execute_bash {}",
        "output c1 execute_bash: [p]a\n[exit 0]",
        "output c2 execute_bash: b",
        "assistant: All done.",
        "assistant: Bye.",
        "call c3 finish {}",
    ]
    assert [item.usage for item in session.items if item.usage] == [Usage(10, 60, 30, 9)] * 2
    assert request_points(session) == [2, 7, 8]
    assert [line.fate for line in found.lines] == ["item"] * 2 + ["not context"] * 2 + ["item"] * 2 + ["merged", "item", "not context"] + [
        "item"
    ] * 2
    assert found.lines[6].reason == "the response is in record 5"
    assert session.metadata["model"] == "m-1"
    assert session.metadata["tools"] == [called("x")]
    assert session.items[0].created_at == 1767323045.5


def test_an_edit_shows_what_the_model_was_told_not_the_difference(tmp_path: Path) -> None:
    edit = response("r", None, called("c", "edit"))
    events = [
        action(1, "message", source="user", content="hi"),
        action(2, "edit", metadata("c", edit, "edit"), path="a"),
        observation(3, "edit", "--- a\n+++ a", 2, metadata("c", edit, "edit"), formatted_output_and_error="File created"),
    ]
    assert shown(account(tmp_path, events).sessions[0])[-1] == "output c edit: File created"


def test_actions_without_a_response_are_calls_answered_by_their_cause(tmp_path: Path) -> None:
    events = [
        action(1, "message", source="user", content="hi"),
        action(2, "run", command="ls", thought="I look.", hidden=False),
        observation(3, "run", "a", 2),
        action(4, "browse", url="u"),
        observation(5, "error", "no", 4),
        action(6, "run", source="user", command="make"),
        observation(7, "run", "made", 6),
    ]
    assert shown(account(tmp_path, events).sessions[0]) == [
        "user: hi",
        "assistant: I look.",
        'call event-2.0 run {"command":"ls"}',
        "output event-2.0 run: a",
        'call event-4.0 browse {"url":"u"}',
        "error event-4.0 browse: no",
        "user (user run): make",
        "user (run observation): made",
    ]


def test_a_condensation_names_what_it_replaces(tmp_path: Path) -> None:
    events = [*HISTORY[:8], action(11, "condensation", forgotten_event_ids=[4, 5, "x"], summary="They looked.")]
    session = account(tmp_path, events).sessions[0]
    made = session.items[-1]
    assert isinstance(made, Compaction)
    assert made.summary == "They looked."
    assert [item.id for item in session.items if item.id in made.replaces] == [item.id for item in session.items[2:6]]
    ranged = [*HISTORY[:8], action(11, "condensation", forgotten_events_start_id=4, forgotten_events_end_id=5, summary="They looked.")]
    again = account(tmp_path, ranged).sessions[0].items[-1]
    assert isinstance(again, Compaction)
    assert again.replaces == made.replaces


def test_records_with_a_history_are_a_session_each_and_usage_may_stand_beside_it(tmp_path: Path) -> None:
    bare = response("r2", "Bye.")
    del bare["usage"]
    reported = {"response_id": "r2", "prompt_tokens": 10, "completion_tokens": 1, "cache_read_tokens": 4, "cache_write_tokens": 0}
    one = {"instance_id": "i-1", "history": HISTORY, "metadata": {"llm_config": {"model": "m-2"}}, "git_patch": "p"}
    two = {"history": [HISTORY[1], action(2, "finish", metadata("c", bare))], "metrics": {"token_usages": [reported, 7]}}
    found = account(tmp_path, lines(one, two) + "{", "output.jsonl")
    assert [session.id for session in found.sessions] == ["output:1", "output:2"]
    assert found.sessions[0].metadata["session_id"] == "i-1"
    assert found.sessions[0].metadata["model"] == "m-2"
    assert [item.usage for item in found.sessions[1].items] == [None, Usage(6, 4, 0, 1)]
    assert [line.fate for line in found.lines] == ["item", "item", "damaged"]


def test_events_one_a_line_are_one_session(tmp_path: Path) -> None:
    found = account(tmp_path, lines(*HISTORY), "events.jsonl")
    assert len(found.sessions) == 1
    assert len(found.lines) == len(HISTORY)


@pytest.mark.parametrize("paired", [False, True])
def test_the_oldest_kind_has_arguments_beside_the_action_and_no_sources(tmp_path: Path, paired: bool) -> None:
    asked = {"content": "fix it", "images_urls": None, "wait_for_response": False, "action": "message", "action_risk": None}
    ran = {"command": "ls", "thought": "I look.", "keep_prompt": True, "action": "run", "is_confirmed": "confirmed", "action_risk": None}
    saw = {"content": "a", "command_id": -1, "command": "ls", "exit_code": 0, "observation": "run"}
    done = {"outputs": {}, "thought": "Done.", "action": "finish"}
    history = [asked, [ran, saw], done] if paired else [asked, ran, saw, done]
    found = account(tmp_path, lines({"history": history}), "output.jsonl")
    assert shown(found.sessions[0]) == [
        "user: fix it",
        "assistant: I look.",
        'call event-1.1 run {"command":"ls"}',
        "output event-1.1 run: a",
        "assistant: Done.",
    ]


def sdk(kind: str, own_id: str, source: str = "agent", **more: Any) -> Json:
    return {"kind": kind, "id": own_id, "timestamp": TIME, "source": source, **more}


def sdk_call(own_id: str, call_id: str, answer: str, **more: Any) -> Json:
    call = {"id": call_id, "name": "terminal", "arguments": '{"command": "ls"}'}
    return sdk("ActionEvent", own_id, tool_name="terminal", tool_call_id=call_id, tool_call=call, llm_response_id=answer, **more)


SDK = [
    sdk("SystemPromptEvent", "e1", system_prompt={"type": "text", "text": "S"}, tools=[{"name": "terminal"}]),
    sdk("MessageEvent", "e2", "user", llm_message={"role": "user", "content": [{"type": "text", "text": "hi"}]}),
    sdk_call(
        "e3",
        "c1",
        "r1",
        thought=[{"type": "text", "text": "I look."}],
        thinking_blocks=[{"type": "thinking", "thinking": "hm", "signature": "s"}],
    ),
    sdk(
        "ObservationEvent",
        "e4",
        "environment",
        tool_call_id="c1",
        observation={"content": [{"type": "text", "text": "a"}], "is_error": False},
    ),
    sdk_call("e5", "c2", "r1", thought=[], reasoning_content="again"),
    sdk("AgentErrorEvent", "e6", error="unknown tool", tool_call_id="c2"),
    sdk("ConversationStateUpdateEvent", "e7", "environment", key="stats", value={"usage_to_metrics": {"default": {"model_name": "m-3"}}}),
    sdk("MessageEvent", "e8", llm_message={"role": "assistant", "content": [{"type": "text", "text": "Bye."}]}, llm_response_id="r2"),
    sdk("Condensation", "e9", forgotten_event_ids=["e3", "e4"], summary="They looked."),
    sdk("PauseEvent", "e10", "user"),
]


def test_events_of_the_sdk_are_read_by_their_kind(tmp_path: Path) -> None:
    found = account(tmp_path, lines(*SDK), "events.jsonl")
    session = found.sessions[0]
    assert found.format == "openhands"
    assert shown(session) == [
        "system: S",
        "user: hi",
        "thought: hm",
        "assistant: I look.",
        'call c1 terminal {"command": "ls"}',
        'call c2 terminal {"command": "ls"}',
        "output c1 terminal: a",
        "error c2 terminal: unknown tool",
        "assistant: Bye.",
        "compaction: They looked.",
    ]
    thought, call, made = session.items[2], session.items[4], session.items[-1]
    assert isinstance(thought, Reasoning)
    assert isinstance(call, FunctionCall)
    assert isinstance(made, Compaction)
    assert thought.signature == "s"
    assert set(made.replaces) == {thought.id, session.items[3].id, call.id, session.items[6].id}
    assert session.metadata["model"] == "m-3"
    assert [line.fate for line in found.lines].count("not context") == 2


@pytest.mark.parametrize(
    "broken",
    [
        7,
        {},
        {"action": "run", "args": 5, "source": "agent"},
        {"observation": "run", "content": [5], "extras": 5, "cause": "x"},
        {"action": "message", "args": {"content": {"a": 1}, "image_urls": 7}, "source": "user"},
        {**action(20, "run"), "tool_call_metadata": {"model_response": {"choices": [5], "id": 5, "usage": []}}},
        {**action(True, "condensation", forgotten_event_ids=7)},
    ],
)
def test_a_damaged_event_costs_itself_only(tmp_path: Path, broken: Any) -> None:
    found = account(tmp_path, [*HISTORY, broken, action(30, "message", source="user", content="bye")])
    assert shown(found.sessions[0])[-1] == "user: bye"
    assert len(found.lines) == len(HISTORY) + 2
    assert all(line.items or line.reason for line in read_account(tmp_path / "log.json").lines)
