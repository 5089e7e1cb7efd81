"""Recorded logs that keep whole message lists, checked against a second, simple reading of their files.

The recordings are not part of the project (see `tests/support/shared.py`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from session import FunctionCall, FunctionCallOutput, Image, Message, Session, TranscriptError
from session.items import Item
from session.providers import validate_anthropic
from session.transcripts import read_account
from session.transcripts.detect import FORMATS, GENERIC_FORMATS, TEXT_FORMATS
from session.units import request_points
from tests.support.recordings import account_of
from tests.support.shared import TRANSCRIPTS, needs_transcripts

pytestmark = needs_transcripts

Json = dict[str, Any]

FORMATS_BY_FOLDER = {
    "aider": "aider",
    "cline": "cline",
    "inspect_eval_log": "message_lists",
    "mini_swe_agent": "mini_swe_agent",
    "openhands": "openhands",
    "openhands_llm_logs": "message_lists",
    "provider_truth": "message_lists",
    "swe_agent": "swe_agent",
    "tau2_bench": "message_lists",
    "tau_bench": "message_lists",
}
LIST_FORMATS = frozenset(FORMATS_BY_FOLDER.values())
REAL = sorted(path for folder in FORMATS_BY_FOLDER for path in TRANSCRIPTS.glob(f"{folder}/**/*.*") if path.is_file())
OTHERS = sorted(
    path for path in TRANSCRIPTS.glob("*/**/*.*") if path.is_file() and path.relative_to(TRANSCRIPTS).parts[0] not in FORMATS_BY_FOLDER
)
RECORDED_REQUESTS = sorted(TRANSCRIPTS.glob("provider_truth/*.jsonl"))

every_file = pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[-40:])


def folder_of(path: Path) -> str:
    return path.relative_to(TRANSCRIPTS).parts[0]


def raw(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def raw_lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def items(path: Path) -> list[Item]:
    return [item for session in account_of(path).sessions for item in session.items]


def item_counts(path: Path) -> Counter[str]:
    return Counter(getattr(item, "role", item.type) for item in items(path))


def reported_tokens(path: Path) -> tuple[int, int]:
    """Return the input and output tokens of all usage in the file's sessions."""
    usages = [item.usage for item in items(path) if item.usage is not None]
    return sum(usage.total_input for usage in usages), sum(usage.output_tokens for usage in usages)


@every_file
def test_each_file_is_detected_as_its_format(path: Path) -> None:
    wanted = "openhands" if path.name == "events.jsonl" else FORMATS_BY_FOLDER[folder_of(path)]
    assert account_of(path).format == wanted


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name[:30])
def test_no_file_of_another_format_is_claimed(path: Path) -> None:
    assert {reader.NAME for reader in (*FORMATS, *GENERIC_FORMATS, *TEXT_FORMATS)} >= LIST_FORMATS
    try:
        outcome = read_account(path).format
    except TranscriptError as error:
        outcome = str(error)
        assert "known format" not in outcome
    assert outcome not in LIST_FORMATS


@every_file
def test_every_entry_is_accounted_for(path: Path) -> None:
    account = account_of(path)
    account_ids = [item_id for line in account.lines for item_id in line.items]
    session_ids = [item.id for session in account.sessions for item in session.items]
    assert sorted(account_ids) == sorted(session_ids)
    assert all(line.items or line.reason for line in account.lines)
    assert not [line for line in account.lines if line.fate == "damaged"]
    assert sorted({line.line for line in account.lines}) == list(range(1, account.lines[-1].line + 1))
    if path.suffix in (".md", ".jsonl"):
        assert account.lines[-1].line == path.read_bytes().count(b"\n") + (not path.read_bytes().endswith(b"\n"))


@every_file
def test_each_output_has_its_call_before_it(path: Path) -> None:
    for session in account_of(path).sessions:
        called: set[str] = set()
        finished: set[str] = set()
        orphans = 0
        for item in session.items:
            if isinstance(item, FunctionCall):
                assert item.call_id not in called
                called.add(item.call_id)
            elif isinstance(item, FunctionCallOutput):
                assert item.call_id not in finished
                finished.add(item.call_id)
                orphans += item.call_id not in called
        if path.name == "log_tool_call_error.json":  # it contains only tool results
            assert orphans == len(session.items) == 11
        else:
            assert orphans == (1 if path.name == "events.jsonl" else 0)  # the last action of this one was removed from the file


@every_file
def test_sessions_cut_at_a_request_point_are_valid_requests(path: Path) -> None:
    for session in account_of(path).sessions:
        cut = Session(list(session.items)[: request_points(session)[-1]])
        assert validate_anthropic(cut.to_anthropic_messages()) == []


@pytest.mark.parametrize("path", RECORDED_REQUESTS, ids=lambda path: path.stem)
def test_recorded_requests_have_the_tokens_that_the_provider_counted(path: Path) -> None:
    account, records = account_of(path), raw_lines(path)
    assert len(account.sessions) == len(records)
    for session, record in zip(account.sessions, records, strict=True):
        usage = session.metadata["usage"]
        total = usage["input_tokens"] + usage["cache_read_tokens"] + usage["cache_write_tokens"]
        assert total == record["input_tokens_total"] == session.metadata["record"]["input_tokens_total"]
        assert session.metadata["record"]["kind"] == record["kind"]
        request = record["request"]
        tools = request.get("tools") or request.get("toolConfig", {}).get("tools") or []
        assert session.metadata.get("tools", [])[: len(tools)] == tools


@pytest.mark.parametrize("path", RECORDED_REQUESTS, ids=lambda path: path.stem)
def test_recorded_requests_keep_every_text_and_image(path: Path) -> None:
    for session, record in zip(account_of(path).sessions, raw_lines(path), strict=True):
        saved_items = json.dumps(session.to_dict()["items"], ensure_ascii=False)
        request = record["request"].get("input", {}) if "converse" in record["request"].get("input", {}) else record["request"]
        for text in texts_in(request):
            assert json.dumps(text, ensure_ascii=False)[1:-1] in saved_items or json.dumps(json.dumps(text)[1:-1])[1:-1] in saved_items
        images = [part for item in session.items if isinstance(item, Message) for part in item.content if isinstance(part, Image)]
        assert sum(image.data is not None for image in images) == sum(
            medium["media_type"].startswith("image/") for medium in record["media"]
        )


def texts_in(value: Any, name: str = "") -> list[str]:
    """Return all texts of a request except those in its settings and tools."""
    if isinstance(value, dict):
        skipped = ("tools", "toolConfig", "text", "reasoning", "output_config", "response_format") if not name else ()
        return [text for key, member in value.items() if key not in skipped for text in texts_in(member, key)]
    if isinstance(value, list):
        return [text for member in value for text in texts_in(member, name)]
    return [value] if isinstance(value, str) and name in ("text", "content", "arguments", "instructions", "system", "thinking") else []


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("mini_swe_agent/*/*.json")), ids=lambda path: path.name[:25])
def test_mini_swe_agent_has_each_message_and_the_reported_usage(path: Path) -> None:
    document = raw(path)
    messages = document if isinstance(document, list) else document["messages"]
    role_counts = Counter(message["role"] for message in messages)
    counts = item_counts(path)
    assert (counts["system"], counts["assistant"]) == (role_counts["system"], role_counts["assistant"])
    assert counts["user"] in (role_counts["user"], role_counts["user"] - 1)  # without the submitted result
    usages = [message["extra"]["response"]["usage"] for message in messages if "extra" in message]
    assert reported_tokens(path) == (sum(usage["prompt_tokens"] for usage in usages), sum(usage["completion_tokens"] for usage in usages))


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("swe_agent/*/*.traj")), ids=lambda path: path.name[-25:])
def test_swe_agent_has_each_entry_of_the_history(path: Path) -> None:
    history = raw(path)["history"]
    counts = item_counts(path)
    for role in ("system", "user", "assistant"):
        assert counts[role] == sum(entry["role"] == role for entry in history)
    assert counts["function_call"] == counts["function_call_output"] == sum(len(entry.get("tool_calls") or ()) for entry in history)


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("openhands/*/*")), ids=lambda path: path.name[-30:])
def test_openhands_has_each_response_once(path: Path) -> None:
    records = raw_lines(path) if path.suffix == ".jsonl" else [{"history": raw(path)}]
    events = [event for record in records for event in record["history"]]
    responses = {
        event["tool_call_metadata"]["model_response"]["id"]: event["tool_call_metadata"]["model_response"]
        for event in events
        if "tool_call_metadata" in event
    }
    usages = [response["usage"] for response in responses.values()]
    assert reported_tokens(path) == (
        sum(usage["prompt_tokens"] for usage in usages),
        sum(usage["completion_tokens"] for usage in usages),
    )
    calls = sum(len(response["choices"][0]["message"]["tool_calls"]) for response in responses.values())
    calls = calls or sum(event.get("action") in ("run", "run_ipython") for event in events)
    assert item_counts(path)["function_call"] == calls
    assert item_counts(path)["function_call_output"] == sum(event.get("observation") in ("run", "run_ipython", "edit") for event in events)
    typed = sum(event.get("action") == "message" and event.get("source", "user") == "user" for event in events)
    assert item_counts(path)["user"] == typed


def test_cline_has_each_block_and_the_reported_usage() -> None:
    (path,) = TRANSCRIPTS.glob("cline/*/session.messages.json")
    messages = raw(path)["messages"]
    blocks = Counter(block["type"] for message in messages for block in message["content"])
    counts = item_counts(path)
    assert (counts["function_call"], counts["function_call_output"]) == (blocks["tool_use"], blocks["tool_result"])
    assert counts["user"] + counts["assistant"] == blocks["text"] + blocks["file"]
    metrics = [message["metrics"] for message in messages if "metrics" in message]
    assert reported_tokens(path) == (sum(metric["inputTokens"] for metric in metrics), sum(metric["outputTokens"] for metric in metrics))


def test_aider_has_each_session_with_a_prompt() -> None:
    (path,) = TRANSCRIPTS.glob("aider/*/*.md")
    chats = re.split(r"^# aider chat started at .*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    prompted_chats = [chat for chat in chats if re.search(r"^#### (?!/)", chat, re.MULTILINE)]
    assert len(chats) == 20
    assert len(account_of(path).sessions) >= len(prompted_chats) > 10
    reports = re.findall(r"^> Tokens: ([\d.]+)(k?) sent, ([\d.]+)(k?) received", path.read_text(encoding="utf-8"), re.MULTILINE)
    sums = [sum(round(float(report[at]) * (1_000 if report[at + 1] else 1)) for report in reports) for at in (0, 2)]
    assert reported_tokens(path) == tuple(sums)


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("tau*/*/*.json")), ids=lambda path: path.name[:30])
def test_tau_has_each_message_of_each_simulation(path: Path) -> None:
    document = raw(path)
    runs = document if isinstance(document, list) else document.get("simulations") or [document["simulation_run"]]
    assert len(account_of(path).sessions) == len(runs)
    messages = [message for run in runs for message in run.get("traj") or run["messages"]]
    counts = item_counts(path)
    assert counts["user"] == sum(message["role"] == "user" for message in messages)
    assert counts["assistant"] == sum(message["role"] == "assistant" and bool(message["content"]) for message in messages)
    assert counts["function_call"] == sum(len(message.get("tool_calls") or ()) for message in messages)
    assert counts["function_call_output"] == sum(message["role"] == "tool" for message in messages)
    usages = [message["usage"] for message in messages if message["role"] == "assistant" and message.get("usage")]
    assert reported_tokens(path) == (sum(usage["prompt_tokens"] for usage in usages), sum(usage["completion_tokens"] for usage in usages))


def test_conversations_written_out_as_text_are_nineteen() -> None:
    (path,) = TRANSCRIPTS.glob("tau_bench/*/*few_shot.jsonl")
    assert len(account_of(path).sessions) == len(raw_lines(path)) == 19
    turns = re.findall(r"^(user|tool):", "\n".join(record["messages_display"] for record in raw_lines(path)), re.MULTILINE)
    assert item_counts(path)["user"] == turns.count("user")
    assert item_counts(path)["function_call_output"] == turns.count("tool")


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("inspect_eval_log/*/*.json")), ids=lambda path: path.stem)
def test_inspect_has_each_sample_with_its_images_and_usage(path: Path) -> None:
    samples = raw(path)["samples"]
    assert len(account_of(path).sessions) == len(samples)
    item_lines = [line for line in account_of(path).lines if line.fate == "item"]
    assert len(item_lines) == sum(len(sample["messages"]) for sample in samples)
    usages = [
        sample["output"].get("usage") for sample in samples if sample.get("output", {}).get("usage") and item_counts(path)["assistant"]
    ]
    assert reported_tokens(path) == (sum(usage["input_tokens"] for usage in usages), sum(usage["output_tokens"] for usage in usages))
    parts = [part for item in items(path) if isinstance(item, Message) for part in item.content]
    pictured = sum(
        block["type"] == "image" for sample in samples for message in sample["messages"] for block in as_list(message["content"])
    )
    assert sum(isinstance(part, Image) and part.width is not None for part in parts) == pictured


def as_list(content: Any) -> list[Json]:
    return content if isinstance(content, list) else []


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("openhands_llm_logs/*/litellm*.json")), ids=lambda path: path.name[-15:])
def test_recorded_completions_end_in_their_answer(path: Path) -> None:
    record, session = raw(path), account_of(path).sessions[0]
    assert request_points(session)[-1] < len(session.items)
    assert len([line for line in account_of(path).lines if line.fate == "item"]) == len(record["messages"]) + 1
    usage = record["response"]["usage"]
    assert reported_tokens(path) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert session.metadata["tools"] == record["tools"]
