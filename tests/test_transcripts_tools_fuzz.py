"""Logs of the tools with anything in them: read, or refused with an error of ours; and damage costs what it touches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session import Session, TranscriptError
from session.transcripts import TranscriptAccount, read_account
from session.units import grouping
from tests.support.tool_logs import DOCUMENTS, LINES, Json, check_account, write_document, write_lines

anything = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
every_line_format = pytest.mark.parametrize("form", LINES)
every_format = pytest.mark.parametrize("form", [*LINES, *DOCUMENTS])

WORDS = st.sampled_from(["", "a", "e3", "t1", "text", "user", "assistant", "REDACTED", "\ud800", "x" * 5_000, "data:image/png;base64,AAAA"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | WORDS, inner, max_size=3),
    max_leaves=6,
)
DEEP = "[" * 600 + "]" * 600


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every value inside a value: what holds it, and under which name or at which place."""
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    return [(value, key) for key, _ in inside] + [place for _, member in inside for place in places(member)]


@st.composite
def mutated(draw: st.DrawFn, form: str) -> bytes:
    """A good log with a few values in it replaced, taken out or doubled, and a few bytes broken."""
    whole: Any = LINES[form]() if form in LINES else DOCUMENTS[form]()
    for _ in range(draw(st.integers(1, 4))):
        holder, key = draw(st.sampled_from(places(whole)))
        if draw(st.integers(0, 3)) == 0 and key in (holder if isinstance(holder, dict) else range(len(holder))):
            del holder[key]
        elif isinstance(holder, dict) or key < len(holder):
            holder[key] = draw(ANYTHING)
        if not places(whole):
            break
    if isinstance(whole, list) and draw(st.booleans()):
        whole = draw(st.permutations(whole))
    text = "\n".join(json.dumps(line) for line in whole) if form in LINES else json.dumps(whole)
    raw = text.encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        return raw
    start = draw(st.integers(0, len(raw)))
    return raw[:start] + draw(st.binary(max_size=4)) + raw[start + draw(st.integers(0, 3)) :]


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


@every_format
@anything
@given(data=st.data())
def test_only_our_errors_come_out_and_all_is_accounted_for(tmp_path: Path, form: str, data: st.DataObject) -> None:
    content = data.draw(mutated(form))
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    account = read_any(path)
    if account is not None and account.format in LINES:
        assert {line.line for line in account.lines} == set(range(1, len(content.split(b"\n")) + (not content.endswith(b"\n"))))


@every_line_format
@pytest.mark.parametrize(
    "damage", ["{", "42", "[]", "null", '{"type":', '{"data": {}}', '{"type":"x","data":7,"payload":7,"message":7}', DEEP]
)
def test_a_damaged_line_is_lost_alone(tmp_path: Path, form: str, damage: str) -> None:
    records: list[Any] = LINES[form]()
    whole = read_account(write_lines(tmp_path, records))
    for place in (1, 4, len(records)):
        account = read_account(write_lines(tmp_path, [*records[:place], damage, *records[place:]]))
        assert account.format == form
        assert account.lines[place].fate in ("damaged", "not context")
        check_account(account)
        if form != "pi" or place > 4:  # there a compaction counts lines
            assert [item.type for item in account.sessions[0].items] == [item.type for item in whole.sessions[0].items]


@every_line_format
def test_a_log_cut_off_anywhere_is_read_as_far_as_it_goes(tmp_path: Path, form: str) -> None:
    raw = write_lines(tmp_path, list(LINES[form]())).read_bytes()
    path = tmp_path / "cut.jsonl"
    for end in range(0, len(raw), 61):
        path.write_bytes(raw[:end])
        read_any(path)


@every_format
def test_deep_and_endless_values_cost_their_record(tmp_path: Path, form: str) -> None:
    whole: Any = LINES[form]() if form in LINES else DOCUMENTS[form]()
    text = json.dumps(whole) if form in DOCUMENTS else "\n".join(map(json.dumps, whole))
    for hostile in (DEEP, "9" * 5_000, "NaN", "-Infinity", '"\\ud800"'):
        path = tmp_path / "log.jsonl"
        for marked in ('"look"', '"ls"', '{"x": 1}', '{"p": 1}', '"{}"', " 8,", " 7,", " 5,"):
            path.write_text(text.replace(marked, f" {hostile}," if marked.endswith(",") else hostile, 1))
            assert read_any(path) is not None


@every_format
def test_reading_again_gives_the_same(tmp_path: Path, form: str) -> None:
    whole: Any = LINES[form]() if form in LINES else DOCUMENTS[form]()
    path = write_lines(tmp_path, whole) if form in LINES else write_document(tmp_path, whole)
    first, second = read_account(path), read_account(path)
    assert first.format == form
    assert [session.to_dict() for session in first.sessions] == [session.to_dict() for session in second.sessions]
    assert first.lines == second.lines


@pytest.mark.parametrize("form", DOCUMENTS)
def test_a_document_on_one_line_is_the_same_as_on_many(tmp_path: Path, form: str) -> None:
    whole: Json = DOCUMENTS[form]()
    (one,) = read_account(write_document(tmp_path, whole, indent=None)).sessions
    (many,) = read_account(write_document(tmp_path, whole, indent=4)).sessions
    assert one.to_dict() == many.to_dict()


@pytest.mark.parametrize("form", DOCUMENTS)
def test_entries_of_another_kind_cost_themselves(tmp_path: Path, form: str) -> None:
    whole: Json = DOCUMENTS[form]()
    whole["messages"][1:1] = [None, 1, "x", [], {}, {"info": 1, "parts": 2}, {"info": {}, "parts": [1, {}, {"type": []}]}]
    account = read_account(write_document(tmp_path, whole))
    assert account.format == form
    check_account(account)
    assert {line.fate for line in account.lines[1:8]} <= {"damaged", "not context"}
    assert [line.fate for line in account.lines[1:5]] == ["damaged"] * 4
