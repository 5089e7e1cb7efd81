"""Items made from each kind of event in Copilot CLI's logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from session import Compaction, FunctionCall, FunctionCallOutput, Image, Message, MessageCategory, Reasoning, Session, Usage
from session.transcripts import read_account, read_transcript, read_transcripts
from session.units import request_points
from tests.support.claude_lines import shape
from tests.support.tool_logs import SECONDS, copilot, copilot_request, fates, only, picture, some_copilot, write_lines

Read = Callable[..., Session]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    return lambda *records: only(write_lines(tmp_path, list(records)), "copilot_cli")


def test_a_bit_of_everything(tmp_path: Path) -> None:
    main, side = read_transcripts(write_lines(tmp_path, some_copilot()))
    assert shape(main) == [
        "system:You are Copilot.",
        "user:<now>x</now>",
        "user:look",
        "user:<system_reminder>y</system_reminder>",
        "assistant:so",
        "call:t1",
        "output:t1",
        "summary:So far.",
        "thought:hm",
        "assistant:done",
    ]
    assert main.id == "s-1"
    assert {"session_id": "s-1", "version": "1.0", "cwd": "/p", "model": "claude-x"}.items() <= main.metadata.items()
    assert shape(side) == ["assistant:inner"]
    assert {"agent_id": "t2", "agent": "task", "sidechain": True, "session_id": "s-1"}.items() <= side.metadata.items()
    assert read_transcript(write_lines(tmp_path, some_copilot())).items == main.items


def test_text_that_the_tool_adds_around_a_prompt_is_context(read: Read) -> None:
    session = read(copilot("user.message", "u", content="look", transformedContent="A\n\nlook\n\nB"))
    messages = [(item.text, item.category, item.extra.get("source")) for item in session.messages()]
    context = MessageCategory.CONTEXT
    assert messages == [("A", context, "prompt frame"), ("look", MessageCategory.DIALOG, None), ("B", context, "prompt frame")]


def test_a_rewritten_prompt_appears_as_it_was_sent(read: Read) -> None:
    session = read(copilot("user.message", "u", content="/fix", transformedContent="Fix it."), copilot("user.message", "v", content="ok"))
    assert shape(session) == ["user:Fix it.", "user:ok"]


def test_messages_from_elsewhere_and_notifications_are_context(read: Read) -> None:
    session = read(
        copilot("user.message", "u", content="x", transformedContent="skill text", source="skill-pdf"),
        copilot("system.notification", "n", content="shell done"),
        copilot("system.message", "s", role="developer", content="be brief"),
    )
    assert [item.extra.get("source") for item in session.items] == ["skill-pdf", "system notification", None]
    assert [item.category.name for item in session.items] == ["CONTEXT", "CONTEXT", "SYSTEM"]


def test_attached_images_are_kept_and_files_are_noted_as_left_out(tmp_path: Path) -> None:
    files = [{"type": "blob", "data": picture(), "mimeType": "image/png"}, {"type": "file", "path": "/x"}, 7]
    account = read_account(write_lines(tmp_path, [copilot("user.message", "u", content="see", attachments=files)]))
    item = account.sessions[0].items[0]
    assert isinstance(item, Message)
    assert [type(part).__name__ for part in item.content] == ["Text", "Image"]
    assert "'file'" in account.lines[0].reason


def test_a_response_is_reasoning_text_and_calls_before_their_outputs(read: Read) -> None:
    calls = [copilot_request("a"), copilot_request("b")]
    session = read(
        copilot("user.message", "u", content="x"),
        copilot("assistant.message", "m", apiCallId="r1", content="so", reasoningText="hm", toolRequests=calls, outputTokens=5),
        copilot("tool.execution_start", "s", toolCallId="a", toolName="bash"),
        copilot("tool.execution_complete", "o", toolCallId="b", success=False, error={"message": "no", "code": "failure"}),
        copilot("tool.execution_complete", "p", toolCallId="a", success=True, result={"content": "yes", "detailedContent": "more"}),
        copilot("assistant.message", "n", apiCallId="r2", content="then", toolRequests=[]),
        copilot("assistant.message", "q", apiCallId="r3", content="and", toolRequests=[]),
    )
    assert shape(session)[1:] == [
        "thought:hm",
        "assistant:so",
        "call:a",
        "call:b",
        "output:b",
        "output:a",
        "assistant:then",
        "assistant:and",
    ]
    assert request_points(session) == [1, 7, 8]
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert [(item.name, item.text, item.is_error) for item in outputs] == [("bash", "no", True), ("bash", "yes", False)]
    assert session.items[1].usage == Usage(output_tokens=5)


def test_two_messages_of_one_api_call_are_one_response(read: Read) -> None:
    session = read(
        copilot("user.message", "u", content="x"),
        copilot("assistant.message", "m", apiCallId="r1", content="so", toolRequests=[], phase="commentary"),
        copilot("assistant.message", "n", apiCallId="r1", content="", toolRequests=[copilot_request("a")]),
    )
    assert request_points(session) == [1]


@pytest.mark.parametrize(
    ("model", "signature", "data", "provider"),
    [("claude-x", "seal", None, None), ("gpt-x", None, "seal", "openai"), ("gemini-x", None, "seal", "google")],
)
def test_reasoning_is_signed_in_the_providers_form(read: Read, model: str, signature: str, data: str, provider: str) -> None:
    session = read(copilot("assistant.message", "m", model=model, content="", reasoningText="hm", reasoningOpaque="seal", toolRequests=[]))
    item = session.items[0]
    assert isinstance(item, Reasoning)
    assert (item.text, item.signature, item.data, item.extra.get("provider")) == ("hm", signature, data, provider)


def test_a_redacted_signature_is_dropped(read: Read) -> None:
    message = copilot("assistant.message", "m", model="claude-x", reasoningText="hm", reasoningOpaque="REDACTED/x", toolRequests=[])
    item = read(message).items[0]
    assert isinstance(item, Reasoning)
    assert item.signature is None


def test_usage_events_have_all_counts_and_totals_are_metadata(read: Read) -> None:
    sums = {"m": {"requests": {"count": 1}, "usage": {"inputTokens": 9, "outputTokens": 2}}, "n": 7}
    session = read(
        copilot("user.message", "u", content="x"),
        copilot("assistant.message", "m", apiCallId="r1", content="so", outputTokens=2),
        copilot("assistant.usage", "v", apiCallId="r1", inputTokens=9, cacheReadTokens=4, cacheWriteTokens=1, outputTokens=2),
        copilot("session.shutdown", "z", modelMetrics=sums),
    )
    assert session.items[1].usage == Usage(4, 4, 1, 2)
    assert session.metadata["reported_usage"] == {"m": {"inputTokens": 9, "outputTokens": 2}}


def test_outputs_may_contain_images(read: Read) -> None:
    result = {
        "content": "see",
        "contents": [{"type": "image", "data": picture(), "mimeType": "image/png"}, {"type": "text", "text": "see"}],
    }
    session = read(
        copilot("assistant.message", "m", content="", toolRequests=[copilot_request("a")]),
        copilot("tool.execution_complete", "o", toolCallId="a", success=True, result=result),
    )
    output = session.items[1]
    assert isinstance(output, FunctionCallOutput)
    assert isinstance(output.output[1], Image)


def test_commands_that_the_user_ran_are_context_not_calls(tmp_path: Path) -> None:
    records = [
        copilot("user.message", "u", content="x"),
        copilot("tool.user_requested", "r", toolCallId="k", toolName="bash", arguments={"command": "ls"}),
        copilot("tool.execution_start", "s", toolCallId="k", toolName="bash"),
        copilot("tool.execution_complete", "o", toolCallId="k", success=True, result={"content": "files"}),
    ]
    account = read_account(write_lines(tmp_path, records))
    assert shape(account.sessions[0]) == ["user:x", 'user:bash {"command":"ls"}\nfiles']
    assert account.sessions[0].items[1].extra == {"source": "shell command"}
    assert fates(account) == ["item", "merged", "merged", "item"]


def test_an_output_without_a_call_has_the_tool_of_its_start_event(read: Read) -> None:
    session = read(
        copilot("user.message", "u", content="x"),
        copilot("tool.execution_start", "s", toolCallId="a", toolName="view"),
        copilot("tool.execution_complete", "o", toolCallId="a", success=True, result={"content": "y"}),
    )
    assert [item.name for item in session.items if isinstance(item, FunctionCallOutput)] == ["view"]


def test_repeated_call_ids_are_made_unique(read: Read) -> None:
    done = copilot("tool.execution_complete", "o", toolCallId="REDACTED", success=True, result={"content": "y"})
    session = read(copilot("assistant.message", "m", toolRequests=[copilot_request("REDACTED"), copilot_request("REDACTED")]), done, done)
    calls = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    assert calls == [item.call_id for item in session.items if isinstance(item, FunctionCallOutput)]
    assert len(set(calls)) == 2


def test_a_compaction_replaces_everything_before_it_except_system_messages(read: Read) -> None:
    session = read(
        copilot("system.message", "s", content="sys"),
        copilot("user.message", "u", content="x"),
        copilot("session.compaction_complete", "f", success=False, summaryContent="no"),
        copilot("session.compaction_complete", "c", success=True, summaryContent="So far.", preCompactionTokens=90),
        copilot("user.message", "v", content="y"),
    )
    compaction = session.items[2]
    assert isinstance(compaction, Compaction)
    assert compaction.replaces == ("u",)
    assert compaction.extra == {"source": "compaction", "pre_tokens": 90}


def test_a_rewind_removes_the_event_and_all_later_ones(tmp_path: Path) -> None:
    records = [
        copilot("user.message", "u", content="one"),
        copilot("user.message", "v", content="two"),
        copilot("assistant.message", "m", content="2"),
        copilot("session.snapshot_rewind", "w", upToEventId="v", eventsRemoved=2),
        copilot("session.snapshot_rewind", "x", upToEventId="nowhere"),
    ]
    account = read_account(write_lines(tmp_path, records))
    assert shape(account.sessions[0]) == ["user:one"]
    assert [line.reason for line in account.lines[1:3]] == ["rewound on line 4"] * 2


def test_a_truncated_view_is_a_warning(read: Read) -> None:
    session = read(copilot("user.message", "u", content="x"), copilot("session.truncation", "t", messagesRemovedDuringTruncation=3))
    assert session.metadata["warnings"] == ["line 2: from here on the model no longer saw 3 older messages; the session has them all"]


def test_a_model_change_and_a_missing_time(read: Read) -> None:
    records = [copilot("user.message", "u", 1, content="x"), {**copilot("user.message", "v", content="y"), "timestamp": None}]
    session = read(*records, copilot("session.model_change", "c", newModel="m2"))
    assert session.metadata["model"] == "m2"
    assert [item.created_at for item in session.items] == [SECONDS + 60] * 2


@pytest.mark.parametrize("data", [None, 1, "x", []])
def test_invalid_data_costs_only_its_line(tmp_path: Path, data: object) -> None:
    broken = {**copilot("user.message", "v"), "data": data}
    account = read_account(write_lines(tmp_path, [copilot("user.message", "u", content="x"), broken]))
    assert fates(account) == ["item", "damaged"]
