"""Reading Goose's database and its older files."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend import find_logs
from context_window.spend.log_files import log_files
from context_window.spend.newest import newest_log
from session import Session, TranscriptError
from session.items import Compaction, FunctionCallOutput
from session.transcripts import read_transcript, read_transcripts
from session.transcripts.detect import read_account
from session.transcripts.reported_requests import read_requests
from tests.support.databases import write_rows
from tests.support.tool_logs import check_account, write_lines
from tests.transcripts.test_transcripts_kimi import seen

Json = dict[str, Any]


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def message(role: str, *content: Json, number: int = 1, **sees: bool) -> Json:
    metadata = {"userVisible": True, "agentVisible": True, **sees}
    fields = {"session_id": "20260525_1", "message_id": f"m{number}", "created_timestamp": 1779738672 + number}
    return {"id": number, "role": role, "content_json": list(content), "metadata_json": metadata, **fields}


CALL = {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}}
FOR_USER = {"type": "text", "text": "shown", "annotations": {"audience": ["user"]}}
RESULT = {
    "type": "toolResponse",
    "id": "c1",
    "toolResult": {"status": "success", "value": {"content": [text("a"), FOR_USER], "isError": False}},
}
MESSAGES = [
    message("user", text("Run ls"), number=1),
    message("assistant", {"type": "thinking", "thinking": "I run.", "signature": "s"}, CALL, number=2),
    message("user", RESULT, number=3),
    message("assistant", {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "x"}, text("Done."), number=4),
]
SESSION: Json = {
    "id": "20260525_1",
    "name": "A session",
    "working_dir": "/w",
    "created_at": "2026-05-25 19:51:12",
    "updated_at": "2026-05-25 19:52:12",
    "model_config_json": {"model_name": "gpt-5"},
    "accumulated_input_tokens": 100,
    "accumulated_output_tokens": 50,
    "accumulated_cost": 0.25,
    "parent_session_id": None,
}


def ledger(number: int, **amounts: Any) -> Json:
    return {"id": number, "session_id": "20260525_1", "created_timestamp": 1779738672, "model": "gpt-5-mini", **amounts}


GOOSE_FILE: list[Json] = [
    {"working_dir": "/w", "description": "A session", "message_count": 3, "total_tokens": 20, "accumulated_total_tokens": 170},
    *({"id": None, "role": one["role"], "created": 1779738672, "content": one["content_json"]} for one in MESSAGES),
]


def test_a_database_is_read(tmp_path: Path) -> None:
    account = read_account(write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=MESSAGES))
    check_account(account)
    session = account.sessions[0]
    assert [type(item).__name__ for item in session.items] == ["Message", "Reasoning", "FunctionCall", "FunctionCallOutput", "Message"]
    assert [item.text for item in session.items if isinstance(item, FunctionCallOutput)] == ["a"]
    assert (account.format, session.id, session.metadata["cwd"], session.metadata["model"]) == ("goose", "20260525_1", "/w", "gpt-5")
    assert sum(line.unknown_bytes for line in account.lines) == 0


def test_a_file_is_read_as_the_database_is(tmp_path: Path) -> None:
    of_file = read_transcript(write_lines(tmp_path, GOOSE_FILE))
    of_database = read_transcript(write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=MESSAGES))
    assert [type(item) for item in of_file.items] == [type(item) for item in of_database.items]
    assert of_file.metadata["cwd"] == "/w"
    log = read_requests(write_lines(tmp_path, GOOSE_FILE))
    assert ([request.total for request in log.requests], "only the sum" in log.note) == ([170], True)


def test_the_ledger_has_each_request_and_its_input_includes_the_cache(tmp_path: Path) -> None:
    rows = [
        ledger(1, input_tokens=8310, output_tokens=24, cache_read_tokens=0, cost=0.5),
        ledger(2, input_tokens=8527, output_tokens=132, cache_read_tokens=8320, is_compaction=1),
    ]
    log = read_requests(write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=MESSAGES, usage_ledger=rows))
    assert [(request.input_tokens, request.cache_read, request.output_tokens) for request in log.requests] == [
        (8310, 0, 24),
        (207, 8320, 132),
    ]
    assert (log.requests[0].cost, log.requests[0].model, log.note) == (Decimal("0.5"), "gpt-5-mini", "")


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({}, (150, Decimal("0.25"), "only the sum of its requests")),
        ({"accumulated_input_tokens": None, "accumulated_output_tokens": None, "accumulated_cost": None}, (0, None, "no usage of them")),
        (
            {"accumulated_input_tokens": None, "accumulated_output_tokens": None, "accumulated_cost": None, "total_tokens": 9},
            (9, None, "only the usage of its last request"),
        ),
    ],
)
def test_without_a_ledger_the_best_that_is_known_counts_and_is_named(tmp_path: Path, amounts: Json, expected: tuple[int, Any, str]) -> None:
    log = read_requests(write_rows(tmp_path / "sessions.db", sessions=[SESSION | amounts], messages=MESSAGES))
    assert sum(request.total for request in log.requests) == expected[0]
    assert [request.cost for request in log.requests if request.total] == [expected[1]] * bool(expected[0])
    assert expected[2] in log.note


@given(shape=st.lists(st.sampled_from(["both", "hidden", "user only", "summary"]), max_size=10))
def test_the_model_sees_what_is_visible_to_it(shape: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """The texts that are left are those of the messages that the model sees now."""
    sees = {
        "both": {},
        "hidden": {"agentVisible": False},
        "user only": {"agentVisible": False, "userVisible": True},
        "summary": {"userVisible": False},
    }
    messages = [message("user", text(f"{number}"), number=number, **sees[kind]) for number, kind in enumerate(shape)]
    folder = tmp_path_factory.mktemp("logs")
    path = write_rows(folder / "sessions.db", sessions=[SESSION], messages=[message("user", text("first"), number=99), *messages])
    visible = ["first", *(str(number) for number, kind in enumerate(shape) if kind in ("both", "summary"))]
    session = read_transcript(path)
    assert sorted(seen(session)) == sorted(visible)
    after_hidden = shape[min((number for number, kind in enumerate(shape) if kind in ("hidden", "user only")), default=99) :]
    assert any(isinstance(item, Compaction) for item in session.items) == ("summary" in after_hidden)


def test_a_damaged_message_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    broken = {**MESSAGES[2], "content_json": '[{"type": "te'}
    path = write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=[*MESSAGES[:2], broken, MESSAGES[3]])
    account = read_account(path)
    assert [line.fate for line in account.lines] == ["item", "item", "damaged", "item"]
    assert read_requests(path).damaged_lines == 0  # its usage is elsewhere


def test_one_session_of_a_database_has_a_path_with_its_sub_agents(tmp_path: Path) -> None:
    other, child = {**SESSION, "id": "b"}, {**SESSION, "id": "c", "parent_session_id": "b"}
    rows = [*MESSAGES, *({**MESSAGES[0], "session_id": name} for name in ("b", "c"))]
    path = write_rows(tmp_path / "sessions.db", sessions=[SESSION, other, child], messages=rows)
    assert [session.id for session in read_transcripts(path)] == ["20260525_1", "b", "c"]
    assert [session.id for session in read_transcripts(path / "b")] == ["b", "c"]
    assert {request.session for request in read_requests(path / "b").requests} == {"b", "c"}
    with pytest.raises(TranscriptError, match="holds no session nobody"):
        read_transcript(path / "nobody")


def test_the_newest_session_of_a_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ".local" / "share" / "goose" / "sessions" / "sessions.db"
    other = {**SESSION, "id": "b", "working_dir": str(tmp_path), "updated_at": "2026-05-25 19:52:13"}
    write_rows(path, sessions=[other, SESSION], messages=[*MESSAGES, {**MESSAGES[0], "session_id": "b"}])
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert find_logs(environment={}, home=tmp_path) == [path]
    assert find_logs([str(tmp_path)]) == [path]
    assert newest_log(tmp_path) == path / "b"
    assert newest_log(Path("/nowhere")) is None


def test_a_database_has_changed_if_its_log_of_writes_has(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=MESSAGES)
    before = log_files([path])[0].version
    (tmp_path / "sessions.db-wal").write_bytes(b"x")
    assert log_files([path])[0].version != before


def test_a_database_of_nobody_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=[{"id": 1, "words": "x"}])
    for read in (read_transcript, read_requests):
        with pytest.raises(TranscriptError, match="is not a database"):
            read(path)


def test_a_session_without_messages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="contains no messages"):
        read_transcript(write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=[{**MESSAGES[0], "session_id": "x"}]))


def test_a_session_can_be_saved(tmp_path: Path) -> None:
    session = read_transcript(write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=MESSAGES))
    assert Session.from_dict(session.to_dict()).items == session.items


def test_a_file_is_known_by_its_content_and_an_item_of_another_form_is_unknown(tmp_path: Path) -> None:
    """The fuzzer found a `KeyError`."""
    stranger = {"type": "function_call", "id": "a", "name": "b", "arguments": "{}"}
    account = read_account(write_lines(tmp_path, [*GOOSE_FILE, stranger], "log.txt"))
    assert account.format == "goose"
    assert account.lines[-1].unknown_bytes > 0


@pytest.mark.parametrize(("rows", "expected"), [(2, [10, 20]), (3, []), (1, [])])
def test_the_ledger_s_usage_is_that_of_the_answers_if_there_are_as_many(tmp_path: Path, rows: int, expected: list[int]) -> None:
    """The entry of a compaction is not that of an answer."""
    entries = [ledger(number, input_tokens=9, output_tokens=10 * number) for number in range(1, rows + 1)]
    entries.append(ledger(9, input_tokens=9, output_tokens=9, is_compaction=1))
    path = write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=MESSAGES, usage_ledger=entries)
    assert [item.usage.output_tokens for item in read_transcript(path).items if item.usage] == expected


def test_a_file_without_its_first_line_is_goose_s(tmp_path: Path) -> None:
    account = read_account(write_lines(tmp_path, GOOSE_FILE[1:]))
    assert (account.format, len(account.sessions[0].items)) == ("goose", 5)
    with pytest.raises(TranscriptError, match="no usage of them"):
        read_requests(write_lines(tmp_path, GOOSE_FILE[1:]))
