"""Damaged logs of the tools: damage costs only the damaged records. Arbitrary damage is the business of `tests/fuzz`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from session import Session, TranscriptError
from session.transcripts import TranscriptAccount, read_account
from session.units import grouping
from tests.support.tool_logs import DOCUMENTS, LINES, Json, check_account, write_document, write_lines

every_line_format = pytest.mark.parametrize("format_name", LINES)
every_format = pytest.mark.parametrize("format_name", [*LINES, *DOCUMENTS])

DEEP = "[" * 600 + "]" * 600


def read_any(path: Path) -> TranscriptAccount | None:
    try:
        account = read_account(path)
    except TranscriptError:
        return None
    check_account(account)
    for session in account.sessions:
        grouping(session)
        assert Session.from_dict(session.to_dict()).items == session.items
    return account


@every_line_format
@pytest.mark.parametrize(
    "damage", ["{", "42", "[]", "null", '{"type":', '{"data": {}}', '{"type":"x","data":7,"payload":7,"message":7}', DEEP]
)
def test_a_damaged_line_costs_only_itself(tmp_path: Path, format_name: str, damage: str) -> None:
    records: list[Any] = LINES[format_name]()
    intact = read_account(write_lines(tmp_path, records))
    for number in (1, 4, len(records)):
        account = read_account(write_lines(tmp_path, [*records[:number], damage, *records[number:]]))
        assert account.format == format_name
        assert account.lines[number].fate in ("damaged", "not context")
        check_account(account)
        if format_name != "pi" or number > 4:  # before that, pi's compaction counts lines
            assert [item.type for item in account.sessions[0].items] == [item.type for item in intact.sessions[0].items]


@every_line_format
def test_a_truncated_log_is_read_to_its_end(tmp_path: Path, format_name: str) -> None:
    raw = write_lines(tmp_path, list(LINES[format_name]())).read_bytes()
    path = tmp_path / "cut.jsonl"
    for end in range(0, len(raw), 61):
        path.write_bytes(raw[:end])
        read_any(path)


@every_format
def test_deep_and_huge_values_cost_only_their_record(tmp_path: Path, format_name: str) -> None:
    log: Any = LINES[format_name]() if format_name in LINES else DOCUMENTS[format_name]()
    text = json.dumps(log) if format_name in DOCUMENTS else "\n".join(map(json.dumps, log))
    for hostile in (DEEP, "9" * 5_000, "NaN", "-Infinity", '"\\ud800"'):
        path = tmp_path / "log.jsonl"
        for marked in ('"look"', '"ls"', '{"x": 1}', '{"p": 1}', '"{}"', " 8,", " 7,", " 5,"):
            path.write_text(text.replace(marked, f" {hostile}," if marked.endswith(",") else hostile, 1))
            assert read_any(path) is not None


@every_format
def test_reading_again_gives_equal_sessions(tmp_path: Path, format_name: str) -> None:
    log: Any = LINES[format_name]() if format_name in LINES else DOCUMENTS[format_name]()
    path = write_lines(tmp_path, log) if format_name in LINES else write_document(tmp_path, log)
    first, second = read_account(path), read_account(path)
    assert first.format == format_name
    assert [session.to_dict() for session in first.sessions] == [session.to_dict() for session in second.sessions]
    assert first.lines == second.lines


@pytest.mark.parametrize("format_name", DOCUMENTS)
def test_a_document_on_one_line_equals_an_indented_one(tmp_path: Path, format_name: str) -> None:
    log: Json = DOCUMENTS[format_name]()
    (single_line,) = read_account(write_document(tmp_path, log, indent=None)).sessions
    (indented,) = read_account(write_document(tmp_path, log, indent=4)).sessions
    assert single_line.to_dict() == indented.to_dict()


@pytest.mark.parametrize("format_name", DOCUMENTS)
def test_invalid_entries_cost_only_themselves(tmp_path: Path, format_name: str) -> None:
    log: Json = DOCUMENTS[format_name]()
    log["messages"][1:1] = [None, 1, "x", [], {}, {"info": 1, "parts": 2}, {"info": {}, "parts": [1, {}, {"type": []}]}]
    account = read_account(write_document(tmp_path, log))
    assert account.format == format_name
    check_account(account)
    assert {line.fate for line in account.lines[1:8]} <= {"damaged", "not context"}
    assert [line.fate for line in account.lines[1:5]] == ["damaged"] * 4
