"""OpenHands' histories of events: actions, observations, and their responses, in older and newer forms."""

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


def action(number: int, name: str, call_metadata: Json | None = None, source: str = "agent", **args: Any) -> Json:
    extra_fields = {"tool_call_metadata": call_metadata} if call_metadata else {}
    return {"id": number, "timestamp": TIME, "source": source, "message": "", "action": name, "args": args, **extra_fields}


def observation(number: int, name: str, content: str, cause: int | None = None, call_metadata: Json | None = None, **extras: Any) -> Json:
    extra_fields = {"tool_call_metadata": call_metadata} if call_metadata else {}
    return {"id": number, "source": "agent", "cause": cause, "observation": name, "content": content, "extras": extras, **extra_fields}


def metadata(call_id: str, answer: Json, name: str = "execute_bash") -> Json:
    return {"tool_call_id": call_id, "function_name": name, "model_response": answer}


TWO_CALLS = response("r1", "I look.", called("c1", "execute_bash", '{"command": "ls"}'), called("c2", "execute_bash"))
HISTORY = [
    action(0, "system", content="S", tools=[called("x")]),
    action(1, "message", source="user", content="hi", image_urls=["http://a/b.png"]),
    action(2, "recall", source="user", query="hi"),
    observation(3, "recall", "knowledge", cause=2),
    action(4, "run", metadata("c1", TWO_CALLS), command="ls", thought="I look."),
    observation(5, "run", "a", 4, metadata("c1", TWO_CALLS), metadata={"prefix": "[p]", "suffix": "\n[exit 0]"}),
    action(6, "run", metadata("c2", TWO_CALLS), command="cat"),
    observation(7, "run", "b", 6, metadata("c2", TWO_CALLS)),
    observation(8, "agent_state_changed", "", agent_state="running"),
    action(9, "message", content="All done."),
    {**action(10, "finish", metadata("c3", response("r2", "Bye.", called("c3", "finish"))))},
]


def test_actions_of_one_response_give_it_once_before_its_outputs(tmp_path: Path) -> None:
    transcript = account(tmp_path, HISTORY)
    session = transcript.sessions[0]
    assert transcript.format == "openhands"
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
    fates = [line.fate for line in transcript.lines]
    assert fates[:6] == ["item", "item", "not context", "not context", "item", "item"]
    assert fates[6:] == ["merged", "item", "not context", "item", "item"]
    assert transcript.lines[6].reason == "record 5 has the response"
    assert session.metadata["model"] == "m-1"
    assert session.metadata["tools"] == [called("x")]
    assert session.items[0].created_at == 1767323045.5


def test_an_edit_has_the_text_for_the_model_not_the_diff(tmp_path: Path) -> None:
    edit = response("r", None, called("c", "edit"))
    events = [
        action(1, "message", source="user", content="hi"),
        action(2, "edit", metadata("c", edit, "edit"), path="a"),
        observation(3, "edit", "--- a\n+++ a", 2, metadata("c", edit, "edit"), formatted_output_and_error="File created"),
    ]
    assert shown(account(tmp_path, events).sessions[0])[-1] == "output c edit: File created"


def test_observations_answer_actions_without_a_response_by_cause(tmp_path: Path) -> None:
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
    compaction = session.items[-1]
    assert isinstance(compaction, Compaction)
    assert compaction.summary == "They looked."
    assert [item.id for item in session.items if item.id in compaction.replaces] == [item.id for item in session.items[2:6]]
    ranged = [*HISTORY[:8], action(11, "condensation", forgotten_events_start_id=4, forgotten_events_end_id=5, summary="They looked.")]
    again = account(tmp_path, ranged).sessions[0].items[-1]
    assert isinstance(again, Compaction)
    assert again.replaces == compaction.replaces


def test_each_record_with_a_history_is_a_session_and_may_list_usage_separately(tmp_path: Path) -> None:
    bare = response("r2", "Bye.")
    del bare["usage"]
    reported = {"response_id": "r2", "prompt_tokens": 10, "completion_tokens": 1, "cache_read_tokens": 4, "cache_write_tokens": 0}
    first = {"instance_id": "i-1", "history": HISTORY, "metadata": {"llm_config": {"model": "m-2"}}, "git_patch": "p"}
    second = {"history": [HISTORY[1], action(2, "finish", metadata("c", bare))], "metrics": {"token_usages": [reported, 7]}}
    transcript = account(tmp_path, lines(first, second) + "{", "output.jsonl")
    assert [session.id for session in transcript.sessions] == ["output:1", "output:2"]
    assert transcript.sessions[0].metadata["session_id"] == "i-1"
    assert transcript.sessions[0].metadata["model"] == "m-2"
    assert [item.usage for item in transcript.sessions[1].items] == [None, Usage(6, 4, 0, 1)]
    assert [line.fate for line in transcript.lines] == ["item", "item", "damaged"]


def test_events_in_jsonl_are_one_session(tmp_path: Path) -> None:
    transcript = account(tmp_path, lines(*HISTORY), "events.jsonl")
    assert len(transcript.sessions) == 1
    assert len(transcript.lines) == len(HISTORY)


@pytest.mark.parametrize("paired", [False, True])
def test_the_oldest_events_have_flat_arguments_and_no_source(tmp_path: Path, paired: bool) -> None:
    prompt = {"content": "fix it", "images_urls": None, "wait_for_response": False, "action": "message", "action_risk": None}
    ran = {"command": "ls", "thought": "I look.", "keep_prompt": True, "action": "run", "is_confirmed": "confirmed", "action_risk": None}
    saw = {"content": "a", "command_id": -1, "command": "ls", "exit_code": 0, "observation": "run"}
    done = {"outputs": {}, "thought": "Done.", "action": "finish"}
    history = [prompt, [ran, saw], done] if paired else [prompt, ran, saw, done]
    transcript = account(tmp_path, lines({"history": history}), "output.jsonl")
    assert shown(transcript.sessions[0]) == [
        "user: fix it",
        "assistant: I look.",
        'call event-1.1 run {"command":"ls"}',
        "output event-1.1 run: a",
        "assistant: Done.",
    ]


def sdk(kind: str, own_id: str, source: str = "agent", **fields: Any) -> Json:
    return {"kind": kind, "id": own_id, "timestamp": TIME, "source": source, **fields}


def sdk_call(own_id: str, call_id: str, answer: str, **fields: Any) -> Json:
    call = {"id": call_id, "name": "terminal", "arguments": '{"command": "ls"}'}
    return sdk("ActionEvent", own_id, tool_name="terminal", tool_call_id=call_id, tool_call=call, llm_response_id=answer, **fields)


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


def test_sdk_events_are_read_by_kind(tmp_path: Path) -> None:
    transcript = account(tmp_path, lines(*SDK), "events.jsonl")
    session = transcript.sessions[0]
    assert transcript.format == "openhands"
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
    thought, call, compaction = session.items[2], session.items[4], session.items[-1]
    assert isinstance(thought, Reasoning)
    assert isinstance(call, FunctionCall)
    assert isinstance(compaction, Compaction)
    assert thought.signature == "s"
    assert set(compaction.replaces) == {thought.id, session.items[3].id, call.id, session.items[6].id}
    assert session.metadata["model"] == "m-3"
    assert [line.fate for line in transcript.lines].count("not context") == 2


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
def test_a_damaged_event_costs_only_itself(tmp_path: Path, broken: Any) -> None:
    transcript = account(tmp_path, [*HISTORY, broken, action(30, "message", source="user", content="bye")])
    assert shown(transcript.sessions[0])[-1] == "user: bye"
    assert len(transcript.lines) == len(HISTORY) + 2
    assert all(line.items or line.reason for line in read_account(tmp_path / "log.json").lines)
