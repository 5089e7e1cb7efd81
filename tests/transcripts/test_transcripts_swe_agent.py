"""SWE-agent's trajectories: the history that the model saw, with actions in the text or with tool calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from session import MessageCategory
from session.units import request_points
from tests.support.list_logs import Json, account, assistant, called, shown, system, user


def entry(message: Json, kind: str = "", **fields: Any) -> Json:
    return {**message, "agent": "main", **({"message_type": kind} if kind else {}), **fields}


def observation(call_id: str, text: str) -> Json:
    return entry({"role": "tool", "content": text}, "observation", tool_call_ids=[call_id])


CALLS = [
    entry(system("S"), "system_prompt"),
    entry(user("the task"), "observation"),
    entry(assistant("I look.", called("c", "bash", '{"command":"ls"}')), "action", thought="I look.", action="ls"),
    observation("c", "a"),
    entry(assistant("Again.", called("c", "bash", "{}")), "action"),
    observation("c", "b"),
]
TEXTS = [
    entry(system("S")),
    entry(user("Here is a demonstration of how it is done: …"), is_demo=True),
    entry(user("the task")),
    entry(assistant("I look.\n```\nls\n```"), thought="I look.\n", action="ls\n"),
    entry(user("a\n(Open file: n/a)")),
    entry(assistant("```\nsubmit\n```")),
]


def test_results_match_calls_by_id_even_if_ids_repeat(tmp_path: Path) -> None:
    transcript = account(tmp_path, {"trajectory": [{"action": "ls"}], "history": CALLS, "info": {"exit_status": "submitted"}}, "a.traj")
    assert transcript.format == "swe_agent"
    assert shown(transcript.sessions[0]) == [
        "system: S",
        "user: the task",
        "assistant: I look.",
        'call c bash {"command":"ls"}',
        "output c bash: a",
        "assistant: Again.",
        "call c.2 bash {}",
        "output c.2 bash: b",
    ]
    assert request_points(transcript.sessions[0]) == [2, 5, 8]
    assert transcript.sessions[0].metadata["exit_status"] == "submitted"


def test_actions_in_the_text_stay_there_and_observations_are_context(tmp_path: Path) -> None:
    session = account(tmp_path, {"trajectory": [], "history": TEXTS}, "b.traj").sessions[0]
    assert session.id == "b"
    assert shown(session)[1:] == [
        "user (demonstration): Here is a demonstration of how it is done: …",
        "user: the task",
        "assistant: I look.\n```\nls\n```",
        "user (observation): a\n(Open file: n/a)",
        "assistant: ```\nsubmit\n```",
    ]
    contexts = [item for item in session.items if item.category is MessageCategory.CONTEXT]
    assert len(contexts) == 2


def test_the_trajectory_is_one_skipped_record(tmp_path: Path) -> None:
    transcript = account(tmp_path, {"trajectory": [{}] * 9, "history": TEXTS})
    assert [line.fate for line in transcript.lines] == ["item"] * 6 + ["not context"]
    assert "repeats" in transcript.lines[-1].reason


def test_a_demonstration_has_only_a_history(tmp_path: Path) -> None:
    transcript = account(tmp_path, {"history": CALLS})
    assert transcript.format == "swe_agent"
    assert len(transcript.lines) == len(CALLS)


def test_a_history_without_its_marks_is_a_plain_list(tmp_path: Path) -> None:
    assert account(tmp_path, {"history": [user("hi"), assistant("hello")]}).format == "message_lists"


@pytest.mark.parametrize("broken", [7, {"role": "tool", "content": None, "tool_call_ids": 5}, entry({"role": "user", "content": 5}), {}])
def test_a_damaged_entry_costs_only_itself(tmp_path: Path, broken: Any) -> None:
    transcript = account(tmp_path, {"trajectory": 1, "history": [*CALLS, broken, entry(user("bye"), "observation")]})
    assert shown(transcript.sessions[0])[-1].endswith("bye")
    assert len(transcript.lines) == len(CALLS) + 3
