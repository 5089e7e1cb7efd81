"""Recorded logs of Claude Code, checked against a second, simple reading of their lines.

The recordings are not part of the project (see `tests/support/shared.py`); the sample in the package is checked the same way.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from session import Compaction, FunctionCall, FunctionCallOutput, Image, MessageCategory, Session, Text
from session.transcripts import LineRecord, read_account, read_transcript
from session.units import KIND_ORPHAN, grouping, request_points
from tests.support.recordings import account_of
from tests.support.shared import TRANSCRIPTS, needs_transcripts

Json = dict[str, Any]

SAMPLE = Path(str(files("context_window"))) / "data" / "sample_session.jsonl"
REAL = sorted(TRANSCRIPTS.glob("claude_code*/**/*.jsonl"))
DAMAGED = [path for path in REAL if path.name == "edge_cases.jsonl"]
INTACT = [*(path for path in REAL if path not in DAMAGED), SAMPLE]

every_file = pytest.mark.parametrize("path", INTACT, ids=lambda path: path.name[:20])


def blocks(record: Json) -> list[Json]:
    content = record["message"]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@cache
def message_records(path: Path) -> list[tuple[int, Json]]:
    """Return the user and assistant records with their line numbers, without API errors."""
    records = [(number, json.loads(line)) for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)]
    return [
        (number, record) for number, record in records if record["type"] in ("user", "assistant") and not record.get("isApiErrorMessage")
    ]


def own_lines(path: Path) -> list[LineRecord]:
    return [line for line in account_of(path).lines if line.file == path.name]


def sessions_of(path: Path) -> list[Session]:
    """Return the sessions whose records are in this file."""
    named = {line.session for line in own_lines(path) if line.items}
    return [session for session in account_of(path).sessions if session.id in named]


def parts_of(session: Session) -> list[object]:
    return [part for item in session.items for part in (*getattr(item, "content", ()), *getattr(item, "output", ()))]


@needs_transcripts
def test_the_recordings_exist() -> None:
    assert len(REAL) >= 37


@every_file
def test_every_line_is_accounted_for(path: Path) -> None:
    records = own_lines(path)
    assert [record.line for record in records] == list(range(1, len(path.read_bytes().splitlines()) + 1))
    assert all(record.items or record.reason for record in records)
    assert not [record for record in records if record.fate == "damaged" or "unknown" in record.reason]
    account_ids = Counter(item_id for record in account_of(path).lines for item_id in record.items)
    session_ids = Counter(item.id for session in account_of(path).sessions for item in session.items)
    assert account_ids == session_ids


@every_file
def test_every_message_became_an_item(path: Path) -> None:
    fates = {record.line: record for record in own_lines(path)}
    assert [number for number, _ in message_records(path) if not fates[number].items] == []


@every_file
def test_reading_only_the_main_session_gives_an_equal_session(path: Path) -> None:
    assert read_transcript(path).items == account_of(path).sessions[0].items


@every_file
def test_all_calls_and_outputs_are_present(path: Path) -> None:
    calls, results = set(), set()
    for _, record in message_records(path):
        for block in blocks(record):
            if block["type"] == "tool_use":
                calls.add(block["id"])
            elif block["type"] == "tool_result":
                results.add(block["tool_use_id"])
    lines = {record.line: record for record in own_lines(path)}
    from_here = {item_id for number, _ in message_records(path) for item_id in lines[number].items}
    mine = [item for session in sessions_of(path) for item in session.items if item.id in from_here]
    assert Counter(item.call_id for item in mine if isinstance(item, FunctionCall)) == Counter(calls)
    assert Counter(item.call_id for item in mine if isinstance(item, FunctionCallOutput)) == Counter(results)


@every_file
def test_every_output_has_its_call_before_it_and_its_name(path: Path) -> None:
    for session in account_of(path).sessions:
        assert KIND_ORPHAN not in grouping(session).kind
        names = {item.call_id: item.name for item in session.items if isinstance(item, FunctionCall)}
        assert all(names[item.call_id] == item.name for item in session.items if isinstance(item, FunctionCallOutput))


@every_file
def test_a_response_is_contiguous_and_one_request(path: Path) -> None:
    lines = {record.line: record for record in own_lines(path)}
    position_of = {item.id: (session.id, number) for session in sessions_of(path) for number, item in enumerate(session.items)}
    responses: dict[str, list[tuple[str, int]]] = {}
    for number, record in message_records(path):
        if record["type"] == "assistant":
            responses.setdefault(record["message"]["id"], []).extend(position_of[item_id] for item_id in lines[number].items)
    for positions in responses.values():
        assert len({session for session, _ in positions}) == 1
        assert [number for _, number in positions] == list(range(positions[0][1], positions[0][1] + len(positions)))
    starts = {(session.id, point) for session in sessions_of(path) for point in request_points(session) if point < len(session.items)}
    assert {positions[0] for positions in responses.values()} <= starts


@every_file
def test_usage_is_counted_once_per_response_from_its_last_line(path: Path) -> None:
    last: dict[str, Json] = {}
    for _, record in message_records(path):
        message = record["message"]
        if record["type"] == "assistant" and message["model"] != "<synthetic>":
            last[message["id"]] = message["usage"]
    lines = {record.line: record for record in own_lines(path)}
    mine = {item_id for number, _ in message_records(path) for item_id in lines[number].items}
    used = [item.usage for session in sessions_of(path) for item in session.items if item.usage and item.id in mine]
    assert len(used) == len(last)
    assert sum(usage.output_tokens for usage in used) == sum(usage["output_tokens"] for usage in last.values())
    prompt = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert sum(usage.total_input for usage in used) == sum(usage[name] for usage in last.values() for name in prompt)


@every_file
def test_texts_and_images_are_complete(path: Path) -> None:
    texts: Counter[str] = Counter()
    images = 0
    for _, record in message_records(path):
        inner = [b for b in blocks(record) if b["type"] == "tool_result" and isinstance(b["content"], list)]
        all_blocks = [*blocks(record), *(block for outer in inner for block in outer["content"])]
        texts.update(block["text"] for block in all_blocks if block["type"] == "text" and not record.get("isCompactSummary"))
        texts.update(b["content"] for b in all_blocks if b["type"] == "tool_result" and isinstance(b["content"], str))
        images += sum(block["type"] == "image" for block in all_blocks)
    parts = [part for session in sessions_of(path) for part in parts_of(session)]
    assert not texts - Counter(part.text for part in parts if isinstance(part, Text))
    assert sum(isinstance(part, Image) for part in parts) == images
    assert all(part.width and part.height for part in parts if isinstance(part, Image))


@needs_transcripts
def test_the_recorded_compaction_replaces_the_items_before_it() -> None:
    (path,) = [path for path in REAL if path.name.startswith("53ea1606")]
    session = read_transcript(path)
    position, summary = next((position, item) for position, item in enumerate(session.items) if isinstance(item, Compaction))
    assert summary.replaces == tuple(item.id for item in session.items[:position])
    assert summary.extra["pre_tokens"] == 174_247


@needs_transcripts
def test_the_recorded_queued_prompts_are_present() -> None:
    """Two recordings have a prompt only in their queue, and a response to it."""
    for start, words in (("53ea1606", "draft PR please"), ("90d7d497", "Can you ensure these logos files")):
        (path,) = [path for path in REAL if path.name.startswith(start)]
        assert [item for item in read_transcript(path).messages() if item.role == "user" and item.text.startswith(words)]


@needs_transcripts
def test_the_recorded_sub_agents_are_found() -> None:
    (path,) = [path for path in REAL if path.name.startswith("ef958aa1")]
    sessions = account_of(path).sessions
    assert len(sessions) == 7
    assert {session.metadata["agent_id"] for session in sessions[1:]} == {
        file.stem.removeprefix("agent-") for file in path.parent.glob("*/*/agent-*")
    }
    (path,) = [path for path in REAL if path.name.startswith("85ec650c")]
    assert [(session.id[-7:], len(session.items)) for session in account_of(path).sessions[1:]] == [("a972d08", 33)]


@needs_transcripts
@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.name)
def test_the_damaged_recording_loses_only_its_damaged_lines(path: Path) -> None:
    account = read_account(path)
    assert [record.line for record in account.lines if record.fate == "damaged"] == [10, 11, 13, 14, 15, 16]
    assert [record.line for record in account.lines if record.fate == "not context"] == [19]
    assert read_transcript(path).id == "edge_cases"
    assert account.sessions[0].items[-1].text == "wow error"  # type: ignore[union-attr]


def test_the_sample_suits_the_demo() -> None:
    main, side = read_account(SAMPLE).sessions
    assert SAMPLE.stat().st_size < 250_000
    assert 24_000 < main.estimated_tokens() < 40_000
    assert main.turn_count() == 5
    assert {item.category for item in main.items} == set(MessageCategory)
    pictures = [part for part in parts_of(main) if isinstance(part, Image)]
    assert [(picture.width, picture.height) for picture in pictures] == [(1440, 900), (1280, 800)]
    outputs = [item for item in main.items if isinstance(item, FunctionCallOutput)]
    assert max(len(output.text) // 4 for output in outputs) > 4_000
    assert sum(output.is_error for output in outputs) == 1
    read_paths = Counter(
        json.loads(item.arguments)["file_path"] for item in main.items if isinstance(item, FunctionCall) and item.name == "Read"
    )
    assert max(read_paths.values()) >= 3
    assert side.metadata["sidechain"] is True
