"""mini-swe-agent's trajectories: messages as the model saw them, text of the tool in the user's role, and reported usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from session import MessageCategory, TranscriptError, Usage
from session.units import request_points
from tests.support.list_logs import Json, account, assistant, called, shown, system, tool, user

OBSERVATION = "<returncode>0</returncode>\n<output>\na\n</output>"


def answer(text: str, prompt: int = 9, **fields: Any) -> Json:
    usage = {"prompt_tokens": prompt, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    response = {
        "id": "r",
        "model": "m-1",
        "provider": "Host",
        "created": 1_700_000_000,
        "usage": usage,
        "choices": [{"message": {"reasoning": "hm"}}],
    }
    return {**assistant(text, **fields), "extra": {"response": response}}


def trajectory(*messages: Json, **info: Any) -> Json:
    return {
        "info": {"exit_status": "Submitted", "mini_version": "1.15.0", "submission": "the patch", **info},
        "messages": [system("S"), user("the task"), *messages],
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "repo-1",
    }


def test_the_text_stays_as_the_model_saw_it_with_the_usage_reported(tmp_path: Path) -> None:
    transcript = account(
        tmp_path, trajectory(answer("```bash\nls\n```"), user(OBSERVATION), answer("done"), user("the patch")), "run.traj.json"
    )
    session = transcript.sessions[0]
    assert transcript.format == "mini_swe_agent"
    assert session.id == session.metadata["session_id"] == "repo-1"
    assert shown(session) == [
        "system: S",
        "user: the task",
        "assistant: ```bash\nls\n```",
        f"user (observation): {OBSERVATION}",
        "assistant: done",
    ]
    assert [item.usage for item in session.items] == [None, None, Usage(5, 4, 0, 2), None, Usage(5, 4, 0, 2)]
    assert [item.extra.get("host") for item in session.items] == [None, None, "Host", None, "Host"]  # a router may choose another
    assert request_points(session) == [2, 4]
    assert session.metadata["model"] == "m-1"
    assert session.items[2].created_at == 1_700_000_000


def test_the_submitted_last_message_is_not_context(tmp_path: Path) -> None:
    transcript = account(tmp_path, trajectory(answer("done"), user("the patch")))
    assert transcript.lines[-1].reason == "the result of the run, which the model never saw"
    assert [line.fate for line in transcript.lines] == ["item", "item", "item", "not context"]


def test_observations_and_notices_are_context_and_the_task_is_dialog(tmp_path: Path) -> None:
    complaint = "Please always provide EXACTLY ONE action in triple backticks"
    session = account(
        tmp_path, trajectory(answer("a"), user(OBSERVATION), answer("b"), user(complaint), answer("c"), user("wait"))
    ).sessions[0]
    users = [item for item in session.items if getattr(item, "role", "") == "user"]
    assert [item.extra.get("source") for item in users] == [None, "observation", "notice", None]
    assert [item.category for item in users] == [
        MessageCategory.DIALOG,
        MessageCategory.CONTEXT,
        MessageCategory.CONTEXT,
        MessageCategory.DIALOG,
    ]


def test_reasoning_that_is_not_sent_again_is_left_out_with_a_note(tmp_path: Path) -> None:
    transcript = account(tmp_path, trajectory(answer("a")))
    assert transcript.lines[2].reason == "left out the reasoning, which is not sent again"


def test_newer_trajectories_have_calls(tmp_path: Path) -> None:
    log = trajectory(
        {**assistant(None, called("c1", "bash", '{"command": "ls"}')), "extra": {"timestamp": 1_700_000_001.5}},
        tool("c1", OBSERVATION),
        {"role": "exit", "content": "the patch"},
    )
    transcript = account(tmp_path, log)
    assert shown(transcript.sessions[0])[2:] == ['call c1 bash {"command": "ls"}', f"output c1 bash: {OBSERVATION}"]
    assert transcript.sessions[0].items[2].created_at == 1_700_000_001.5


def test_a_bare_list_is_recognized_by_its_observations(tmp_path: Path) -> None:
    talk = [system("S"), user("the task"), assistant("```ls```"), user(OBSERVATION), assistant("bye"), user("")]
    transcript = account(tmp_path, talk)
    assert transcript.format == "mini_swe_agent"
    assert transcript.lines[-1].fate == "not context"
    assert account(tmp_path, talk[:3]).format == "message_lists"


@pytest.mark.parametrize("broken", [7, None, "text", {"role": 5, "content": "x"}, {"role": "user"}, {"role": "user", "content": {"a": 1}}])
def test_a_damaged_message_costs_only_itself(tmp_path: Path, broken: Any) -> None:
    transcript = account(tmp_path, trajectory(broken, answer("a")))
    assert shown(transcript.sessions[0])[-1] == "assistant: a"
    assert transcript.lines[2].fate in ("damaged", "not context")
    assert len(transcript.lines) == 4


def test_wrong_types_everywhere_are_tolerated(tmp_path: Path) -> None:
    log = trajectory(
        {**assistant("a"), "extra": {"response": {"usage": 5, "choices": {}, "created": "x", "model": 3}}}, config=7, model_stats=[1]
    )
    assert shown(account(tmp_path, {**log, "instance_id": 9}, "run.traj.json").sessions[0])[-1] == "assistant: a"


def test_a_trajectory_without_messages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="contains no messages"):
        account(tmp_path, {"trajectory_format": "mini-swe-agent-1", "messages": []})
