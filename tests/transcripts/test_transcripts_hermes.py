"""Reading Hermes' database and its older documents."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend import find_logs
from session import TranscriptError
from session.items import FunctionCallOutput
from session.transcripts import read_transcript
from session.transcripts.detect import read_account
from session.transcripts.record_feed import text_size
from session.transcripts.reported_requests import read_requests
from tests.support.databases import write_rows
from tests.support.shared import TRANSCRIPTS
from tests.support.tool_logs import check_account, write_document

Json = dict[str, Any]
EXAMPLES = TRANSCRIPTS.parent / "other_tools" / "hermes"


def message(role: str, content: str | None, number: int, **more: Any) -> Json:
    fields = {"session_id": "s1", "timestamp": 1772949600.0 + number, "finish_reason": None, "active": 1, "compacted": 0}
    return {"id": number, "role": role, "content": content, **fields, **more}


CALLS = [{"id": "c1", "call_id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "pwd"}'}}]
MESSAGES = [
    message("user", "Where am I?", 1),
    message("assistant", "I look.", 2, reasoning="Need a shell.", reasoning_content="Need a shell.", tool_calls=CALLS),
    message("tool", "/w", 3, tool_call_id="c1", tool_name="shell"),
    message("assistant", "In /w.", 4, finish_reason="stop"),
    message("session_meta", None, 5),
]


HERMES: Json = {
    "session_id": "s1",
    "model": "gpt-5.2",
    "platform": "cli",
    "session_start": "2026-04-29T20:05:00Z",
    "system_prompt": "You are Hermes.",
    "messages": [{name: value for name, value in one.items() if value is not None} for one in MESSAGES],
}


def row(**more: Any) -> Json:
    tokens = {"input_tokens": 12_400, "output_tokens": 8_200, "cache_read_tokens": 28_300, "cache_write_tokens": 5_000}
    fields = {"reasoning_tokens": 100, "estimated_cost_usd": 0.42, "actual_cost_usd": None, "end_reason": None, "cwd": "/w"}
    base = {"id": "s1", "source": "cli", "model": "gpt-5.2", "system_prompt": "You are Hermes.", "parent_session_id": None}
    return {**base, "started_at": 1772949600.0, "title": "A session", **tokens, **fields, **more}


def database(folder: Path, *rows: Json, messages: list[Json] | None = None) -> Path:
    return write_rows(folder / "state.db", sessions=list(rows) or [row()], messages=MESSAGES if messages is None else messages)


def test_a_database_is_read(tmp_path: Path) -> None:
    account = read_account(database(tmp_path))
    check_account(account)
    session = account.sessions[0]
    kinds = [type(item).__name__ for item in session.items]
    assert kinds == ["Message", "Message", "Reasoning", "Message", "FunctionCall", "FunctionCallOutput", "Message"]
    assert [item.name for item in session.items if isinstance(item, FunctionCallOutput)] == ["shell"]
    assert (account.format, session.metadata["warnings"], session.metadata["cwd"]) == ("hermes", [], "/w")


def test_the_sums_of_a_session_are_one_request(tmp_path: Path) -> None:
    log = read_requests(database(tmp_path))
    amounts = [(one.input_tokens, one.cache_read, one.cache_write, one.output_tokens, one.reasoning, one.cost) for one in log.requests]
    assert amounts == [(12_400, 28_300, 5_000, 8_200, 100, Decimal("0.42"))]
    assert log.note == "1 session: only the sum of its requests is known, which counts as one request"


@pytest.mark.parametrize(("end", "main", "owners"), [("compression", 2, [("s1", ""), ("s2", "")]), (None, 1, [("s1", ""), ("s1", "s2")])])
def test_a_child_is_a_session_of_its_own_after_a_compression_and_a_sub_agent_otherwise(
    tmp_path: Path, end: str | None, main: int, owners: list[tuple[str, str]]
) -> None:
    child = row(id="s2", parent_session_id="s1")
    path = database(tmp_path, row(end_reason=end), child, messages=[*MESSAGES, {**MESSAGES[0], "session_id": "s2", "id": 9}])
    assert read_account(path).main_count == main
    assert [(one.session, one.agent) for one in read_requests(path).requests] == owners


def test_blocks_are_read_and_messages_taken_back_are_not_seen(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]
    more = [message("user", "\0json:" + json.dumps(blocks), 6), message("user", "json: is a form", 7), message("user", "no", 8, active=0)]
    session = read_transcript(database(tmp_path, messages=more))
    assert [getattr(item, "text", "") for item in session.items] == ["You are Hermes.", "Look.", "json: is a form"]
    assert len(getattr(session.items[1], "content", ())) == 2


def test_a_document_is_read_and_has_no_usage(tmp_path: Path) -> None:
    path = write_document(tmp_path, HERMES)
    account = read_account(path)
    assert (account.format, len(account.sessions[0].items), account.sessions[0].metadata["warnings"]) == ("hermes", 7, [])
    with pytest.raises(TranscriptError, match="is a log of hermes, whose usage"):
        read_requests(path)


def test_the_databases_of_all_profiles_are_found(tmp_path: Path) -> None:
    paths = [database(tmp_path / ".hermes"), database(tmp_path / ".hermes" / "profiles" / "coder")]
    assert find_logs(environment={}, home=tmp_path) == sorted(paths)


@given(unknown=st.lists(st.text("abc ", min_size=1), max_size=3))
def test_every_byte_is_read_known_or_unknown(unknown: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    more = [message("telepath", text, 10 + number) for number, text in enumerate(unknown)]
    account = read_account(database(tmp_path_factory.mktemp("logs"), messages=[*MESSAGES, *more]))
    assert sum(line.unknown_bytes for line in account.lines) == sum(len("telepath" + text) for text in unknown)
    fields = ("role", "content", "tool_call_id", "tool_name", "reasoning", "reasoning_content", "tool_calls")
    total = sum(text_size({name: one.get(name) for name in fields}) for one in [*MESSAGES, *more])
    assert sum(line.text_bytes for line in account.lines) == total + text_size({"role": "system", "content": "You are Hermes."})


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not there")
def test_the_examples_of_hermes_are_read_without_a_warning() -> None:
    for path in sorted(EXAMPLES.glob("*.json")):
        account = read_account(path)
        assert (account.format, account.sessions[0].metadata["warnings"]) == ("hermes", [])
        assert sum(line.unknown_bytes for line in account.lines) == 0
