"""Reading crush's database."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend import find_logs
from session.items import Compaction, FunctionCallOutput
from session.parts import Image
from session.transcripts import read_transcript
from session.transcripts.detect import read_account
from session.transcripts.record_feed import text_size
from session.transcripts.reported_requests import read_requests
from tests.support.databases import write_rows
from tests.support.tool_logs import check_account, picture
from tests.transcripts.test_transcripts_kimi import seen

Json = dict[str, Any]
NAMES = iter(range(10**6, 0, -1))
"""Ids that do not sort as the messages follow each other, as those of crush."""


def part(kind: str, **data: Any) -> Json:
    return {"type": kind, "data": data}


def message(role: str, *parts: Json, at: int = 1789093626, session: str = "s1", **more: Any) -> Json:
    return {"id": f"m{next(NAMES)}", "session_id": session, "role": role, "parts": list(parts), "created_at": at, **more}


def row(**more: Any) -> Json:
    fields = {"prompt_tokens": 43922, "completion_tokens": 185, "created_at": 1789093626, "updated_at": 1789093746}
    return {"id": "s1", "parent_session_id": None, "title": "A session", "cost": 0.0126, **fields, **more}


MESSAGES = [
    message("user", part("text", text="Review it."), part("finish", reason="stop", time=0)),
    message(
        "assistant",
        part("reasoning", thinking="I look.", signature="s", started_at=1, finished_at=2),
        part("tool_call", id="c1", name="view", input='{"file_path": "a.go"}', finished=True),
        part("finish", reason="tool_use", time=1789093630),
        model="glm-5",
        provider="hyper",
    ),
    message("tool", part("tool_result", tool_call_id="c1", name="view", content="package a", is_error=False)),
    message("assistant", part("text", text="It is fine."), model="glm-5"),
]


def database(folder: Path, *messages: Json, rows: list[Json] | None = None) -> Path:
    return write_rows(folder / ".crush" / "crush.db", sessions=rows or [row()], messages=[*MESSAGES, *messages])


def test_a_database_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    account = read_account(database(tmp_path))
    check_account(account)
    session = account.sessions[0]
    assert [type(item).__name__ for item in session.items] == ["Message", "Reasoning", "FunctionCall", "FunctionCallOutput", "Message"]
    assert (account.format, session.metadata["cwd"], session.metadata["model"]) == ("crush", str(tmp_path), "glm-5")
    assert session.metadata["warnings"] == []


def test_the_cost_of_a_session_is_one_request_and_a_sub_agent_s_is_part_of_it(tmp_path: Path) -> None:
    child = row(id="c1", parent_session_id="s1", cost=0.005)
    log = read_requests(database(tmp_path, message("assistant", part("text", text="x"), session="c1"), rows=[row(), child]))
    assert [(request.cost, request.total, request.model, request.project) for request in log.requests] == [
        (Decimal("0.0126"), 0, "glm-5", str(tmp_path))
    ]
    assert log.note.startswith("1 session: only the sum of its costs")


def test_answers_without_a_cost_are_named(tmp_path: Path) -> None:
    log = read_requests(database(tmp_path, rows=[row(cost=0.0)]))
    assert (log.requests, log.note) == ((), "1 session: answers of a model, but no usage of them that can be read")


def test_a_summary_replaces_what_is_before_it(tmp_path: Path) -> None:
    summary = message("assistant", part("text", text="In short."), is_summary_message=1)
    session = read_transcript(database(tmp_path, summary, message("user", part("text", text="Go on."))))
    assert isinstance(session.items[-2], Compaction)
    assert seen(session) == ["In short.", "Go on."]


def test_images_of_users_and_of_results_are_read(tmp_path: Path) -> None:
    attached = message("user", part("binary", Path="a.png", MIMEType="image/png", Data=picture()))
    shown = part("tool_result", tool_call_id="c2", name="view", content="", data=picture(), mime_type="image/png")
    session = read_transcript(database(tmp_path, attached, message("tool", shown)))
    output = session.items[-1]
    assert isinstance(output, FunctionCallOutput)
    assert isinstance(output.output[-1], Image)
    assert session.metadata["warnings"] == []


def test_the_databases_of_all_projects_are_found(tmp_path: Path) -> None:
    """Of a project whose database is gone, nothing is found."""
    path = database(tmp_path / "project")
    projects = [{"path": str(tmp_path / name), "data_dir": str(tmp_path / name / ".crush")} for name in ("project", "gone")]
    listed = tmp_path / ".local" / "share" / "crush" / "projects.json"
    listed.parent.mkdir(parents=True)
    listed.write_text(json.dumps({"projects": projects}), encoding="utf-8")
    assert find_logs(environment={}, home=tmp_path) == [path]
    assert find_logs([str(tmp_path / "project")]) == [path]


@pytest.mark.parametrize("damage", ["", "{", '{"a": 1}', "[1]", '["x", null]'])
def test_parts_that_are_damaged_cost_one_message(tmp_path: Path, damage: str) -> None:
    broken = {**message("assistant"), "parts": damage}
    account = read_account(database(tmp_path, broken))
    assert len(account.sessions[0].items) == 5
    assert account.lines[-1].fate != "item"


@given(unknown=st.lists(st.tuples(st.sampled_from(["part", "role"]), st.text("abc ", min_size=1)), max_size=4))
def test_every_byte_is_read_known_or_unknown(unknown: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Messages with an unknown part or role are weighed as unknown, the others as known."""
    more = []
    for kind, text in unknown:
        is_part = kind == "part"
        more.append(message("user" if is_part else "telepath", part("telepathy" if is_part else "text", text=text)))
    account = read_account(database(tmp_path_factory.mktemp("logs"), *more))
    fields = ("id", "role", "model", "parts")
    sizes = [text_size({name: one.get(name) for name in fields}) for one in [*MESSAGES, *more]]
    assert sum(line.text_bytes for line in account.lines) == sum(sizes)
    assert sum(line.unknown_bytes for line in account.lines) == sum(sizes[len(MESSAGES) :])


@pytest.mark.parametrize("parts", [["x"], [part("text", text="a"), 7], {"a": "b"}])
def test_parts_of_another_form_are_unknown(tmp_path: Path, parts: Any) -> None:
    account = read_account(database(tmp_path, {**message("user"), "parts": parts}))
    assert account.lines[-1].unknown_bytes > 0 or account.lines[-1].fate == "damaged"
