"""Reading trajectories in the Agent Trajectory Interchange Format."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session.items import FunctionCallOutput, Message, MessageCategory
from session.transcripts import read_transcript
from session.transcripts.detect import read_account
from session.transcripts.record_feed import text_size
from session.transcripts.reported_requests import read_requests
from tests.support.tool_logs import check_account, write_document

Json = dict[str, Any]


def metrics(prompt: int, completion: int, cached: int = 0, **more: Any) -> Json:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached, **more}


ATIF: Json = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s1",
    "agent": {"name": "terminus-2", "version": "2.0", "model_name": "claude-sonnet-4-5", "tool_definitions": [{"name": "search"}]},
    "steps": [
        {"step_id": 1, "source": "system", "message": "You are an agent."},
        {"step_id": 2, "timestamp": "2026-01-01T00:00:00Z", "source": "user", "message": "What does it cost?"},
        {
            "step_id": 3,
            "timestamp": "2026-01-01T00:00:01Z",
            "source": "agent",
            "message": "I look.",
            "reasoning_content": "Two calls.",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "search", "arguments": {"q": "a"}},
                {"tool_call_id": "c2", "function_name": "search", "arguments": {"q": "b"}},
            ],
            "observation": {"results": [{"source_call_id": "c2", "content": "2 $"}, {"source_call_id": "c1", "content": "1 $"}]},
            "metrics": metrics(520, 80, 200, cost_usd=0.00045, extra={"reasoning_tokens": 30, "cache_creation_input_tokens": 100}),
        },
        {"step_id": 4, "source": "agent", "message": "3 $.", "model_name": "other", "metrics": metrics(600, 44)},
    ],
    "final_metrics": {"total_prompt_tokens": 1120, "total_completion_tokens": 124, "total_cached_tokens": 200, "total_cost_usd": 0.00078},
}


def with_steps(*steps: Json, **more: Any) -> Json:
    return {**ATIF, "steps": [*ATIF["steps"][:2], *steps], **more}


def test_a_trajectory_is_read(tmp_path: Path) -> None:
    account = read_account(write_document(tmp_path, ATIF))
    check_account(account)
    session = account.sessions[0]
    kinds = [type(item).__name__ for item in session.items]
    assert kinds == ["Message", "Message", "Reasoning", "Message", "FunctionCall", "FunctionCall", *["FunctionCallOutput"] * 2, "Message"]
    outputs = [(item.call_id, item.text) for item in session.items if isinstance(item, FunctionCallOutput)]
    assert outputs == [("c2", "2 $"), ("c1", "1 $")]
    assert [item.usage.output_tokens for item in session.items if item.usage] == [80, 44]
    assert session.metadata["tools"] == [{"name": "search"}]
    assert (account.format, session.metadata["warnings"], session.metadata["agent"]) == ("atif", [], "terminus-2")


def test_each_step_is_a_request_and_its_prompt_includes_the_cache(tmp_path: Path) -> None:
    """The sums are those of the trajectory's own final metrics."""
    requests = read_requests(write_document(tmp_path, ATIF)).requests
    amounts = [(one.input_tokens, one.cache_read, one.cache_write, one.output_tokens, one.reasoning, one.model) for one in requests]
    assert amounts == [(220, 200, 100, 80, 30, "claude-sonnet-4-5"), (600, 0, 0, 44, None, "other")]
    final = ATIF["final_metrics"]
    assert sum(one.total for one in requests) == final["total_prompt_tokens"] + final["total_completion_tokens"]
    assert requests[1].time == requests[0].time  # a step without a time has that of the one before it
    assert (requests[0].cost, requests[0].tool) == (Decimal("0.00045"), "terminus-2")


def test_without_metrics_of_steps_the_sum_is_one_request(tmp_path: Path) -> None:
    steps = [{name: value for name, value in step.items() if name != "metrics"} for step in ATIF["steps"]]
    log = read_requests(write_document(tmp_path, {**ATIF, "steps": steps}))
    assert [(one.prompt, one.cache_read, one.output_tokens, one.cost) for one in log.requests] == [(1120, 200, 124, Decimal("0.00078"))]
    assert "only the sum" in log.note


def test_copied_steps_are_context_and_do_not_count_again(tmp_path: Path) -> None:
    copied = {**ATIF["steps"][2], "is_copied_context": True}
    path = write_document(tmp_path, with_steps(copied, ATIF["steps"][3]))
    assert [one.output_tokens for one in read_requests(path).requests] == [44]
    assert len(read_transcript(path).items) == 9


@pytest.mark.parametrize("results", [1, 2, 3])
def test_results_without_a_call_belong_to_the_calls_if_there_are_as_many(tmp_path: Path, results: int) -> None:
    observation = {"results": [{"content": f"output {number}"} for number in range(results)]}
    items = read_transcript(write_document(tmp_path, with_steps({**ATIF["steps"][2], "observation": observation}))).items
    outputs = [item.text for item in items if isinstance(item, FunctionCallOutput)]
    context = [item.text for item in items if isinstance(item, Message) and item.category is MessageCategory.CONTEXT]
    expected = [f"output {number}" for number in range(results)]
    assert (outputs, context) == ((expected, []) if results == 2 else ([], expected))


def test_trajectories_of_sub_agents_are_sessions_and_count(tmp_path: Path) -> None:
    inner = {**with_steps({"step_id": 3, "source": "agent", "message": "x", "metrics": metrics(7, 3)}), "trajectory_id": "t1"}
    path = write_document(tmp_path, {**ATIF, "subagent_trajectories": [inner]})
    account = read_account(path)
    check_account(account)
    assert ([session.id for session in account.sessions], account.main_count) == (["s1", "t1"], 1)
    assert [(one.session, one.agent, one.total) for one in read_requests(path).requests] == [
        ("s1", "", 600),
        ("s1", "", 644),
        ("s1", "t1", 10),
    ]


def test_an_image_beside_the_trajectory_is_named_and_one_with_an_address_is_read(tmp_path: Path) -> None:
    parts: list[Json] = [{"type": "text", "text": "Look."}]
    parts += [{"type": "image", "source": {"media_type": "image/png", "path": path}} for path in ("a.png", "https://x.example/b.png")]
    account = read_account(write_document(tmp_path, with_steps({"step_id": 3, "source": "user", "message": parts})))
    message = account.sessions[0].items[-1]
    assert isinstance(message, Message)
    assert [type(part).__name__ for part in message.content] == ["Text", "Image"]
    assert "does not hold" in account.lines[-1].reason


@given(unknown=st.lists(st.tuples(st.sampled_from(["source", "field"]), st.text("abc ", min_size=1)), max_size=4))
def test_every_byte_is_read_known_or_unknown(unknown: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Steps of an unknown source and those with an unknown field are weighed as unknown, the others as known."""
    more = [{"source": "telepath" if kind == "source" else "user", "message": text, "aura": text} for kind, text in unknown]
    account = read_account(write_document(tmp_path_factory.mktemp("logs"), {**ATIF, "steps": [*ATIF["steps"], *more]}))
    assert sum(line.text_bytes for line in account.lines) == text_size([*ATIF["steps"], *more])
    assert sum(line.unknown_bytes for line in account.lines) == text_size(more)


@pytest.mark.parametrize("broken", [{"tool_calls": ["x"]}, {"tool_calls": "x"}, {"observation": {"results": ["x"]}}])
def test_what_is_of_another_form_is_unknown(tmp_path: Path, broken: Json) -> None:
    account = read_account(write_document(tmp_path, with_steps({**ATIF["steps"][2], **broken})))
    assert account.lines[-1].unknown_bytes > 0
