"""A reader accounts for every byte of a log's text, and says so if it does not know a part of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session.errors import TranscriptError
from session.items import Compaction, FunctionCall, FunctionCallOutput, Reasoning
from session.transcripts import grok, kimi, qwen, read_transcript
from session.transcripts.detect import read_account
from session.transcripts.record_feed import prose_of, text_size, texts_in
from session.transcripts.reported_requests import read_requests
from tests.support.shared import TRANSCRIPTS
from tests.transcripts.test_transcripts_goose import GOOSE_FILE
from tests.transcripts.test_transcripts_kimi import KIMI
from tests.transcripts.test_transcripts_traces import LANGFUSE, OTEL

EXAMPLES = TRANSCRIPTS.parent / "other_tools" / "qwen"
DROID: list[dict[str, Any]] = [
    {"type": "session_start", "id": "s1", "title": "A", "cwd": "/w", "version": "0.81.0"},
    {
        "type": "message",
        "id": "m1",
        "timestamp": "2025-12-26T23:50:00.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "Run"}]},
    },
    {
        "type": "message",
        "id": "m2",
        "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Execute", "input": {"command": "ls"}}]},
    },
    {
        "type": "message",
        "id": "m3",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a\nb"}]},
    },
]
GROK: list[dict[str, Any]] = [
    {"type": "system", "content": "You are Grok."},
    {"type": "user", "content": [{"type": "text", "text": "<user_info>"}], "synthetic_reason": "environment_context"},
    {"type": "user", "content": [{"type": "text", "text": "Read it"}], "prompt_index": 0},
    {
        "type": "reasoning",
        "id": "r1",
        "summary": [{"type": "summary_text", "text": "I read."}],
        "encrypted_content": "abc",
        "status": "completed",
    },
    {
        "type": "assistant",
        "content": "Yes.",
        "tool_calls": [{"id": "c1", "name": "read_file", "arguments": '{"f": "a"}'}],
        "model_id": "grok-4.5",
    },
    {"type": "tool_result", "tool_call_id": "c1", "content": "text of the file"},
    {"type": "backend_tool_call", "kind": {"tool_type": "web_search"}},
]
PI: list[dict[str, Any]] = [
    {"type": "session", "id": "p1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"},
    {"type": "message", "id": "a", "timestamp": "2026-01-01T00:00:01Z", "message": {"role": "user", "content": "hello"}},
    {
        "type": "message",
        "id": "b",
        "parentId": "a",
        "timestamp": "2026-01-01T00:00:02Z",
        "message": {"role": "assistant", "content": "yes, hello"},
    },
]
CURSOR: list[dict[str, Any]] = [
    {"role": "user", "message": {"content": [{"type": "text", "text": "Run the tests."}]}},
    {"role": "assistant", "message": {"content": [{"type": "tool_use", "name": "Shell", "input": {"command": "make test"}}]}},
    {"role": "assistant", "message": {"content": [{"type": "text", "text": "They pass."}]}},
    {"type": "turn_ended", "status": "success"},
]


def _qwen(uuid: str, parent: str | None, kind: str, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    role = "model" if kind == "assistant" else "user"
    message = {} if kind == "system" else {"message": {"role": role, "parts": list(parts)}}
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z", "type": kind, **message, **fields}


QWEN_USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 5, "cachedContentTokenCount": 60}
QWEN: list[dict[str, Any]] = [
    _qwen("a", None, "user", {"text": "Read it"}),
    _qwen("b", "a", "assistant", {"text": "A wrong way."}, model="q", usageMetadata={**QWEN_USAGE, "totalTokenCount": 120}),
    _qwen("c", "a", "system", subtype="rewind", systemPayload={"truncatedCount": 1}),
    _qwen("d", "c", "assistant", {"text": "Hm.", "thought": True}, model="q"),
    _qwen("d", "c", "assistant", {"functionCall": {"id": "1", "name": "read", "args": {}}}, usageMetadata={"totalTokenCount": 7}),
    _qwen("e", "d", "tool_result", {"functionResponse": {"id": "1", "name": "read", "response": {"output": "x"}}}),
]
LOGS = {
    "cursor": CURSOR,
    "droid": DROID,
    "goose": GOOSE_FILE,
    "grok": GROK,
    "kimi": KIMI,
    "langfuse": LANGFUSE,
    "otel": OTEL,
    "pi": PI,
    "qwen": QWEN,
}


def _write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", sorted(LOGS))
def test_a_known_log_is_read_whole_and_without_a_warning(name: str, tmp_path: Path) -> None:
    account = read_account(_write(tmp_path / "log.jsonl", LOGS[name]))
    assert account.format == name
    assert account.sessions[0].metadata["warnings"] == []
    assert sum(line.text_bytes for line in account.lines) == sum(map(text_size, LOGS[name]))
    assert sum(line.unknown_bytes for line in account.lines) == 0


def test_calls_and_results_of_droid_are_read(tmp_path: Path) -> None:
    items = read_transcript(_write(tmp_path / "log.jsonl", DROID)).items
    assert [type(item).__name__ for item in items] == ["Message", "FunctionCall", "FunctionCallOutput"]


def test_calls_results_and_reasoning_of_grok_are_read(tmp_path: Path) -> None:
    session = read_transcript(_write(tmp_path / "log.jsonl", GROK))
    calls = [item for item in session.items if isinstance(item, FunctionCall)]
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert len(session.items) == 7  # the response has a text and a call
    assert [(call.name, call.call_id) for call in calls] == [("read_file", outputs[0].call_id)]
    assert any(isinstance(item, Reasoning) for item in session.items)
    assert session.metadata["model"] == "grok-4.5"


@given(
    name=st.sampled_from(sorted(LOGS)),
    unknown=st.lists(st.tuples(st.integers(1, 7), st.text("abcdefg ", min_size=1)), min_size=1, max_size=5),
)
def test_unknown_records_are_reported_and_the_bytes_add_up(
    name: str, unknown: list[tuple[int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every byte of text is in a record that is read, known not to be in the prompt, or unknown."""
    records, added = list(LOGS[name]), 0
    for place, text in unknown:
        record = {"type": "telepathy", "thought": text * 40}
        records.insert(min(place, len(records)), record)
        added += text_size(record)
    account = read_account(_write(tmp_path_factory.mktemp("logs") / "log.jsonl", records))
    assert sum(line.text_bytes for line in account.lines) == sum(map(text_size, records))
    assert sum(line.unknown_bytes for line in account.lines) == added
    first = next(iter(account.sessions[0].metadata["warnings"]), "")
    assert first.startswith("not read in full: ") == (added > 0.05 * sum(map(text_size, records)))


def test_answers_without_usage_are_a_fault_and_not_zero(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="has answers of a model, but no usage"):
        read_requests(_write(tmp_path / "log.jsonl", PI))


def test_a_log_without_answers_has_no_requests_and_no_fault(tmp_path: Path) -> None:
    assert read_requests(_write(tmp_path / "log.jsonl", PI[:2])).requests == ()


@pytest.mark.parametrize("kind", [["user"], {"a": 1}, None, 7])
def test_a_type_that_is_no_text_is_not_grok_s(kind: object) -> None:
    """The fuzzer found a `TypeError`."""
    assert not grok.claims({"type": kind, "model_id": "grok-4.5"})


def test_a_rewind_of_qwen_takes_back_an_answer_but_not_its_usage(tmp_path: Path) -> None:
    path = _write(tmp_path / "log.jsonl", QWEN)
    assert [type(item).__name__ for item in read_transcript(path).items] == ["Message", "Reasoning", "FunctionCall", "FunctionCallOutput"]
    log = read_requests(path)
    amounts = [(request.input_tokens, request.cache_read, request.output_tokens, request.reasoning) for request in log.requests]
    assert amounts == [(40, 60, 20, 5), (7, 0, 0, None)]  # the total says that the thoughts are in the candidates
    assert "only a total" in log.note


def test_a_compression_of_qwen_replaces_what_is_before_it(tmp_path: Path) -> None:
    history = [{"role": "user", "parts": [{"text": "Summary."}]}]
    record = _qwen("f", "e", "system", subtype="chat_compression", systemPayload={"compressedHistory": history})
    session = read_transcript(_write(tmp_path / "log.jsonl", [*QWEN, record]))
    compaction = session.items[-1]
    assert isinstance(compaction, Compaction)
    assert (compaction.summary, len(compaction.replaces)) == ("Summary.", 4)


def test_a_damaged_log_of_qwen_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = _write(tmp_path / "log.jsonl", [*QWEN, _qwen("g", "nowhere", "system", subtype="rewind", systemPayload={})])
    path.write_text(path.read_text("utf-8") + '{"uuid": "h", "pare', "utf-8")
    session = read_transcript(path)
    assert len(session.items) == 4
    assert any("a rewind to an unknown record" in warning for warning in session.metadata["warnings"])


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not there")
def test_the_examples_of_qwen_are_read() -> None:
    paths = sorted(EXAMPLES.glob("*.jsonl"))
    assert {read_account(path).format for path in paths} == {"qwen"}
    session = read_transcript(next(path for path in paths if path.stem.endswith("0004")))
    assert "Discarded branch answer." not in str(session.to_dict()["items"])


@pytest.mark.parametrize("name", ["kimi", "qwen"])
def test_the_lines_that_are_not_parsed_report_no_usage(name: str, tmp_path: Path) -> None:
    """Of a log of lines, only those with a mark are parsed: the requests are those of all lines."""
    path = _write(tmp_path / "log.jsonl", LOGS[name])
    reader = {"kimi": kimi, "qwen": qwen}[name].Requests(path)
    every = [request for record in LOGS[name] for request in reader.read(record) if request.total]
    assert list(read_requests(path).requests) == every != []


def _places(value: object, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the place of each field with prose in it: the fields around it, from the outside."""
    for name, member in value.items() if isinstance(value, dict) else [("", each) for each in value] if isinstance(value, list) else []:
        inside = (*place, name)[: None if name else -1]
        if name and prose_of(member, frozenset()):
            yield inside
        yield from _places(member, inside)


def _at_length(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _at_length(member, key) for key, member in value.items()}
    if isinstance(value, list):
        return [_at_length(member, name) for member in value]
    return f"{value} and so on, at length" if isinstance(value, str) and name in ("text", "content", "output", "command") else value


def _renamed(value: Any, place: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_renamed(member, place) for member in value]
    if not isinstance(value, dict) or place[0] not in value:
        return value
    name = place[0] if place[1:] else f"{place[0]}V2"
    inside = {key: _renamed(member, place[1:]) if place[1:] and key == name else member for key, member in value.items()}
    return {name if key == place[0] else key: member for key, member in inside.items()}


@pytest.mark.parametrize("name", sorted({*LOGS} - {"otel", "pi"}))
def test_a_renamed_field_loses_no_prose_in_silence(name: str, tmp_path: Path) -> None:
    """Formats change. What stood in an item, and stands in none after its field is renamed, is unknown, or the reader refuses."""

    def read(records: list[dict[str, Any]]) -> tuple[set[str], int]:
        account = read_account(_write(tmp_path / "log.jsonl", records))
        items = [item for session in account.sessions for item in session.items]
        return prose_of(list(texts_in(items)), frozenset()), sum(line.unknown_bytes for line in account.lines if line.fate != "damaged")

    records = _at_length(LOGS[name])
    known, _ = read(records)
    lost = unknown = 0
    for place in dict.fromkeys(_places(records)):
        with suppress(TranscriptError):
            found, added = read(_renamed(records, place))
            gone = sum(len(text) for text in known - found)
            lost, unknown = lost + gone, unknown + min(added, gone)
    assert unknown >= lost * 0.75 > 0  # where a part of a record is left out for a reason, the reason stands for all of it
