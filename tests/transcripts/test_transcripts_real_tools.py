"""Recorded logs of several tools, checked against a second, simple reading of them.

The recordings are not part of the project (see `tests/support/shared.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from session import Compaction, FunctionCall, FunctionCallOutput, Session, TranscriptError
from session.providers import validate_anthropic
from session.transcripts import codex, copilot_cli, gemini_cli, opencode, pi, read_transcript
from session.units import KIND_ORPHAN, grouping, request_points
from tests.support.recordings import account_of
from tests.support.shared import TRANSCRIPTS, needs_transcripts
from tests.support.tool_logs import check_account

Json = dict[str, Any]

FOLDERS = {"codex": "codex", "copilot_cli": "copilot_cli", "opencode": "opencode", "gemini_chat": "gemini_cli", "pi": "pi"}
"""Folders of the recordings, and the format of each."""
MODULES = (codex, copilot_cli, gemini_cli, opencode, pi)

FILES = sorted(path for folder in FOLDERS for path in (TRANSCRIPTS / folder).rglob("*.json*"))
WITHOUT_MESSAGES = [path for path in FILES if path.name.startswith("29eb990e")]
WITH_MESSAGES = [path for path in FILES if path not in WITHOUT_MESSAGES]

every_file = pytest.mark.parametrize("path", WITH_MESSAGES, ids=lambda path: path.name[:20])


def format_of(path: Path) -> str:
    return FOLDERS[path.relative_to(TRANSCRIPTS).parts[0]]


def records(path: Path) -> list[Json]:
    """Return the lines of a log, or the messages of a document."""
    text = path.read_text(encoding="utf-8")
    if format_of(path) in ("opencode", "gemini_cli"):
        messages: list[Json] = json.loads(text)["messages"]
        return messages
    return [json.loads(line) for line in text.splitlines()]


def session_of(path: Path) -> Session:
    (session,) = account_of(path).sessions
    return session


def calls_of(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the tool of every complete call, and whether it has a result."""
    form = format_of(path)
    answered_ids = set()
    for record in records(path):
        if form == "codex" and record["payload"].get("type", "").endswith("_output"):
            answered_ids.add(record["payload"]["call_id"])
        elif form == "copilot_cli" and record["type"] == "tool.execution_complete":
            answered_ids.add(record["data"]["toolCallId"])
        elif form == "pi" and record["type"] == "message":
            answered_ids.add(record["message"].get("toolCallId"))
    for record in records(path):
        if form == "codex" and record["type"] == "response_item" and record["payload"]["type"].endswith("_call"):
            payload = record["payload"]
            yield (
                payload.get("name", payload["type"].removesuffix("_call")),
                payload.get("call_id") in answered_ids or "name" not in payload,
            )
        elif form == "copilot_cli" and record["type"] == "assistant.message":
            yield from ((call["name"], call["toolCallId"] in answered_ids) for call in record["data"]["toolRequests"])
        elif form == "pi" and record["type"] == "message" and record["message"].get("stopReason") not in ("aborted", "error"):
            blocks = record["message"]["content"]
            yield from ((block["name"], block["id"] in answered_ids) for block in blocks if block["type"] == "toolCall")
        elif form == "opencode":
            yield from ((part["tool"], "output" in part["state"]) for part in record["parts"] if part["type"] == "tool")
        elif form == "gemini_cli":
            yield from ((call["name"], bool(call["result"])) for call in record.get("toolCalls", ()))


def reported_tokens(path: Path) -> tuple[int, int, int, int]:
    """Return the totals reported for non-empty responses: uncached, cache-read and cache-written input, and output tokens."""
    sums: Counter[str] = Counter()
    last: Any = None
    for record in records(path):
        match format_of(path):
            case "codex":
                info = record["payload"].get("info")
                if record["payload"].get("type") == "token_count" and info and info["total_token_usage"] != last:
                    last, usage = info["total_token_usage"], info["last_token_usage"]
                    sums["fresh"] += usage["input_tokens"] - usage["cached_input_tokens"]
                    sums["read"] += usage["cached_input_tokens"]
                    sums["output"] += usage["output_tokens"]
            case "copilot_cli":
                data = record["data"]
                if record["type"] == "assistant.message" and (data["content"] or data["toolRequests"]):
                    sums["output"] += data["outputTokens"]
            case "opencode":
                if record["info"]["role"] == "assistant":
                    usage = record["info"]["tokens"]
                    sums["fresh"] += usage["input"]
                    sums["read"] += usage["cache"]["read"]
                    sums["written"] += usage["cache"]["write"]
                    sums["output"] += usage["total"] - usage["input"] - usage["cache"]["read"] - usage["cache"]["write"]
            case "gemini_cli":
                if usage := record.get("tokens"):
                    sums["read"] += usage["cached"]
                    sums["fresh"] += usage["input"] + usage["tool"] - usage["cached"]
                    sums["output"] += usage["total"] - usage["input"] - usage["tool"]
            case "pi":
                message = record.get("message", {})
                if message.get("role") == "assistant" and message["stopReason"] not in ("aborted", "error"):
                    usage = message["usage"]
                    sums["fresh"] += usage["input"]
                    sums["read"] += usage["cacheRead"]
                    sums["written"] += usage["cacheWrite"]
                    sums["output"] += usage["output"]
    return sums["fresh"], sums["read"], sums["written"], sums["output"]


@needs_transcripts
def test_the_recordings_exist() -> None:
    assert len(WITH_MESSAGES) >= 16
    assert {format_of(path) for path in WITH_MESSAGES} == set(FOLDERS.values())


@needs_transcripts
def test_each_file_is_detected_as_its_format_and_no_other_file_is() -> None:
    for path in WITH_MESSAGES:
        assert account_of(path).format == format_of(path)
    for path in TRANSCRIPTS.rglob("*"):
        if not path.is_file() or path.relative_to(TRANSCRIPTS).parts[0] in FOLDERS:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        values: list[object] = []
        for piece in (text, *text.splitlines()):
            try:
                values.append(json.loads(piece))
            except ValueError:
                continue
        claiming = {module.NAME for module in MODULES for value in values if module.claims(value)}
        assert not claiming, f"{path.name} is claimed by {claiming}"


@needs_transcripts
def test_a_value_of_one_tool_is_claimed_by_no_other() -> None:
    for path in FILES:
        values = [json.loads(path.read_text())] if format_of(path) in ("opencode", "gemini_cli") else records(path)
        claiming = {module.NAME for module in MODULES for value in values if module.claims(value)}
        assert claiming == {format_of(path)}


@needs_transcripts
def test_a_chat_with_only_notes_to_the_user_is_refused() -> None:
    for path in WITHOUT_MESSAGES:
        with pytest.raises(TranscriptError, match="contains no messages"):
            read_transcript(path)


@every_file
def test_every_entry_is_accounted_for(path: Path) -> None:
    account = account_of(path)
    check_account(account)
    assert [line.line for line in account.lines] == list(range(1, len(records(path)) + 1))
    assert not [line for line in account.lines if line.fate == "damaged" or "unknown" in line.reason or "left out" in line.reason]
    assert session_of(path).metadata["warnings"] == []


@every_file
def test_calls_and_outputs_are_those_of_the_log(path: Path) -> None:
    items = session_of(path).items
    assert Counter(item.name for item in items if isinstance(item, FunctionCall)) == Counter(tool for tool, _ in calls_of(path))
    outputs = Counter(item.name for item in items if isinstance(item, FunctionCallOutput))
    assert outputs == Counter(tool for tool, is_answered in calls_of(path) if is_answered)


@every_file
def test_every_output_has_its_call_before_it_and_call_ids_are_unique(path: Path) -> None:
    session = session_of(path)
    assert KIND_ORPHAN not in grouping(session).kind
    ids = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    assert len(ids) == len(set(ids))


@every_file
def test_reported_usage_equals_the_logs(path: Path) -> None:
    usages = [item.usage for item in session_of(path).items if item.usage is not None]
    sums = tuple(sum(getattr(usage, f"{name}_tokens") for usage in usages) for name in ("input", "cache_read", "cache_write", "output"))
    assert sums == reported_tokens(path)


@every_file
def test_usage_is_on_the_first_item_of_a_response(path: Path) -> None:
    session = session_of(path)
    starts = set(request_points(session))
    assert all(position in starts for position, item in enumerate(session.items) if item.usage is not None)


@every_file
def test_its_last_request_is_valid_for_anthropic(path: Path) -> None:
    session = session_of(path)
    cut = Session(session.items[: request_points(session)[-1]])
    cut.restore_seams(frozenset(item.id for item in cut.items) & session.response_breaks, 0)
    messages = cut.to_anthropic_messages()
    assert validate_anthropic(messages) == []
    assert messages[0]


@every_file
def test_times_are_plausible(path: Path) -> None:
    times = [item.created_at for item in session_of(path).items if not isinstance(item, FunctionCallOutput)]
    assert all(1_700_000_000 < time < 1_900_000_000 for time in times)


@every_file
def test_user_messages_are_verbatim(path: Path) -> None:
    user_text = "\n".join(item.text for item in session_of(path).messages() if item.role == "user")
    for record in records(path):
        match format_of(path):
            case "codex" if record["payload"].get("type") == "user_message":
                assert record["payload"]["message"] in user_text
            case "copilot_cli" if record["type"] == "user.message":
                assert record["data"]["content"] in user_text
            case "gemini_cli" if record["type"] == "user":
                assert record["content"] in user_text
            case "pi" if record["type"] == "message" and record["message"]["role"] == "user":
                assert record["message"]["content"][0]["text"] in user_text
            case "opencode" if record["info"]["role"] == "user":
                assert all(part["text"] in user_text for part in record["parts"])


@needs_transcripts
def test_compactions_of_codex_keep_the_users_prompts() -> None:
    compactions = [(path, item) for path in WITH_MESSAGES for item in session_of(path).items if isinstance(item, Compaction)]
    assert len(compactions) == 2
    for path, compaction in compactions:
        session = session_of(path)
        replaced = {item.type for item in session.items if item.id in compaction.replaces}
        prompts = [item.id for item in session.messages() if item.role == "user"]
        assert "function_call_output" in replaced
        assert not set(prompts) & set(compaction.replaces)
