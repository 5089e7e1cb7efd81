"""Items made from each kind of entry in pi's logs, with and without a tree."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from session import Compaction, FunctionCall, FunctionCallOutput, Image, MessageCategory, Reasoning, Session, Usage
from session.transcripts import read_account
from session.units import request_points
from tests.support.claude_lines import shape
from tests.support.tool_logs import SECONDS, Json, at, check_account, fates, only, pi, pi_call, pi_text, picture, some_pi, write_lines

Read = Callable[..., Session]
HEADER: Json = {"type": "session", "version": 3, "id": "p-1", "timestamp": at(0), "cwd": "/p"}


def entry(kind: str, **fields: object) -> Json:
    return {"type": kind, "timestamp": at(9), **fields}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    return lambda *records: only(write_lines(tmp_path, list(records)), "pi")


def compaction_of(session: Session) -> Compaction:
    return next(item for item in session.items if isinstance(item, Compaction))


def test_a_bit_of_everything(tmp_path: Path) -> None:
    session = only(write_lines(tmp_path, some_pi()), "pi")
    assert shape(session) == [
        "user:look",
        "thought:hm",
        "assistant:so",
        "call:a",
        "output:a",
        "summary:So far.",
        "user:more",
        "assistant:done",
    ]
    assert session.id == "p-1"
    assert {"session_id": "p-1", "cwd": "/p", "provider": "anthropic", "model": "claude-x"}.items() <= session.metadata.items()
    assert session.items[1].usage == Usage(5, 3, 1, 2)
    assert session.items[1].created_at == SECONDS + 120


def test_incomplete_responses_are_not_context(tmp_path: Path) -> None:
    broken = [pi("assistant", [pi_text("bro"), pi_call("a")], stopReason=reason, usage={"input": 5}) for reason in ("aborted", "error")]
    account = read_account(write_lines(tmp_path, [pi("user", "x"), *broken, pi("assistant", [pi_text("so")], stopReason="length")]))
    assert shape(account.sessions[0]) == ["user:x", "assistant:so"]
    assert fates(account) == ["item", "not context", "not context", "item"]


def test_adjacent_responses_stay_separate(read: Read) -> None:
    session = read(pi("user", "x"), pi("assistant", [pi_text("a")]), pi("assistant", "b"))
    assert request_points(session) == [1, 2]


def test_results_have_text_images_and_errors(read: Read) -> None:
    content = [pi_text("see"), {"type": "image", "data": picture(), "mimeType": "image/png"}]
    session = read(
        pi("assistant", [pi_call("a", "bash"), pi_call("b")]),
        pi("toolResult", content, toolCallId="b", toolName="read", isError=False),
        pi("toolResult", "no", toolCallId="a", toolName="bash", isError=True, details={"diff": "x"}),
        pi("toolResult", "late", toolCallId="z", toolName="grep"),
    )
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert [(item.name, item.text, item.is_error) for item in outputs] == [
        ("read", "see", False),
        ("bash", "no", True),
        ("grep", "late", False),
    ]
    assert isinstance(outputs[0].output[1], Image)


def test_repeated_call_ids_are_made_unique(read: Read) -> None:
    answer, result = pi("assistant", [pi_call("a")]), pi("toolResult", "x", toolCallId="a")
    session = read(answer, result, answer, result, result)
    calls = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    assert len(set(calls)) == 2
    assert [item.call_id for item in session.items if isinstance(item, FunctionCallOutput)] == calls


@pytest.mark.parametrize(
    ("provider", "block", "signature", "data", "named"),
    [
        ("anthropic", {"thinkingSignature": "seal"}, "seal", None, None),
        ("anthropic", {"thinkingSignature": "seal", "redacted": True, "thinking": ""}, None, "seal", None),
        ("openai", {"thinkingSignature": json.dumps({"id": "rs_1", "encrypted_content": "seal"})}, None, "seal", "openai"),
        ("openai", {"thinkingSignature": "{broken"}, None, None, "openai"),
        ("google-gemini-cli", {"thinkingSignature": "seal"}, "seal", None, "google"),
        ("x", {}, None, None, None),
    ],
)
def test_reasoning_is_signed_in_the_providers_form(
    read: Read, provider: str, block: Json, signature: str, data: str, named: str | None
) -> None:
    item = read(pi("assistant", [{"type": "thinking", "thinking": "hm", **block}], provider=provider)).items[0]
    assert isinstance(item, Reasoning)
    assert (item.signature, item.data, item.extra.get("provider")) == (signature, data, named)


def test_calls_keep_their_thought_signatures(read: Read) -> None:
    call = read(pi("assistant", [{**pi_call("a"), "thoughtSignature": "seal"}])).items[0]
    assert isinstance(call, FunctionCall)
    assert call.metadata == {"thought_signature": "seal"}


def test_text_of_the_tool_and_its_extensions_is_context(tmp_path: Path) -> None:
    records = [
        pi("bashExecution", None, command="ls", output="files", exitCode=2),
        pi("bashExecution", None, command="ls", output="x", excludeFromContext=True),
        pi("custom", "note", customType="plan"),
        pi("hookMessage", [pi_text("hook")]),
        entry("custom_message", customType="ext", content="told"),
        entry("branch_summary", summary="the other way"),
        entry("session_info", name="x"),
        entry("custom", data={"x": 1}),
        pi("alien", "x"),
    ]
    account = read_account(write_lines(tmp_path, [HEADER, *records]))
    check_account(account)
    items = account.sessions[0].items
    assert {item.category for item in items} == {MessageCategory.CONTEXT}
    assert [item.extra["source"] for item in items] == ["shell command", "plan", "extension", "ext", "branch summary"]
    assert shape(account.sessions[0])[0] == "user:$ ls\nfiles\n(exit code 2)"
    assert fates(account)[2] == fates(account)[7] == "not context"


# Compactions


def test_a_compaction_by_index_counts_entries_with_the_header(read: Read) -> None:
    messages = [pi("user", word) for word in "abc"]
    session = read(HEADER, *messages, entry("compaction", summary="sum", firstKeptEntryIndex=3, tokensBefore=9), pi("user", "d"))
    assert compaction_of(session).replaces == tuple(item.id for item in session.items[:2])
    assert compaction_of(session).extra == {"source": "compaction", "pre_tokens": 9}


def test_a_compaction_by_id_keeps_that_entry_and_later_ones(read: Read) -> None:
    ids = ["a", "b", "c", "d"]
    messages = [pi("user", entry_id, id=entry_id, parentId=parent_id) for entry_id, parent_id in zip(ids, [None, *ids], strict=False)]
    session = read(HEADER, *messages, entry("compaction", id="e", parentId="d", summary="sum", firstKeptEntryId="c"))
    assert compaction_of(session).replaces == ("a", "b")


@pytest.mark.parametrize("kept", [{}, {"firstKeptEntryIndex": 99}, {"firstKeptEntryIndex": "2"}, {"firstKeptEntryId": "nowhere"}])
def test_a_compaction_without_a_valid_entry_replaces_everything_before_it(read: Read, kept: Json) -> None:
    session = read(HEADER, pi("user", "a"), pi("user", "b"), entry("compaction", summary="sum", **kept))
    assert len(compaction_of(session).replaces) == 2


def test_a_second_compaction_replaces_the_first_summary(read: Read) -> None:
    session = read(
        HEADER,
        pi("user", "a"),
        entry("compaction", summary="one", firstKeptEntryIndex=2),
        pi("user", "b"),
        entry("compaction", summary="two", firstKeptEntryIndex=3),
    )
    assert shape(session) == ["user:a", "summary:one", "user:b", "summary:two"]
    assert session.items[3].replaces == (session.items[1].id,)  # type: ignore[union-attr]  # the first names the other


# Trees


def test_the_session_is_the_path_to_the_last_entry(tmp_path: Path) -> None:
    records = [
        *(pi("user", "a", id="a", parentId=None), pi("user", "b", id="b", parentId="a"), pi("user", "c", id="c", parentId="b")),
        *(pi("user", "B", id="B", parentId="a"), pi("user", "d", id="d", parentId="c"), entry("label", id="e", parentId="d", label="x")),
    ]
    account = read_account(write_lines(tmp_path, [HEADER, *records]))
    check_account(account)
    assert shape(account.sessions[0]) == ["user:a", "user:b", "user:c", "user:d"]
    assert account.lines[4].reason == "on a branch that the user left"


@pytest.mark.parametrize(("count", "is_told"), [(5, False), (6, True)])
def test_a_long_branch_is_left_out_with_a_warning(tmp_path: Path, count: int, is_told: bool) -> None:
    left = [pi("user", "left", id=f"l{number}", parentId=f"l{number - 1}" if number else "a") for number in range(count)]
    path = write_lines(tmp_path, [pi("user", "look", id="a"), *left, pi("user", "right", id="z", parentId="a")])
    session = only(path, "pi")
    assert len(session.items) == 2
    assert session.metadata["warnings"] == (
        ["line 2: left out 6 messages, from here on, on branches that the user left"] if is_told else []
    )


@pytest.mark.parametrize("parent", ["gone", "c", "d", 7])
def test_a_missing_or_invalid_parent_means_the_previous_entry(read: Read, parent: object) -> None:
    records = [pi("user", "a", id="a"), pi("user", "b", id="b", parentId="a"), pi("user", "c", id="c", parentId=parent)]
    session = read(HEADER, *records, pi("user", "d", id="d", parentId="c"))
    assert shape(session)[-2:] == ["user:c", "user:d"]
    if parent != 7:  # a value that is not a text means a root
        assert shape(session) == ["user:a", "user:b", "user:c", "user:d"]


def test_a_long_log_with_every_parent_missing_takes_no_longer_than_any_other(tmp_path: Path) -> None:
    records = [HEADER, *(pi("user", "x", id=f"n{number}", parentId=f"gone{number}") for number in range(20_000))]
    path = write_lines(tmp_path, records)
    begin = time.process_time()
    assert len(read_account(path).sessions[0].items) == 20_000
    assert time.process_time() - begin < 10


@pytest.mark.parametrize("message", [None, 1, "x", []])
def test_an_invalid_message_costs_only_its_line(tmp_path: Path, message: object) -> None:
    account = read_account(write_lines(tmp_path, [HEADER, pi("user", "x"), entry("message", message=message)]))
    assert fates(account) == ["not context", "item", "damaged"]


def test_each_response_names_its_model_unless_it_is_that_of_the_session(read: Read) -> None:
    usage = {"input": 5, "output": 2}
    session = read(
        HEADER,
        pi("user", "one", 1),
        pi("assistant", [pi_text("so"), pi_call("a")], 2, usage=usage, model="claude-x"),
        pi("toolResult", [pi_text("out")], 3, toolCallId="a"),
        pi("assistant", [pi_text("and")], 4, model="gpt-y"),
        pi("user", "two", 5),
        pi("assistant", [pi_text("done")], 6, usage=usage, model="gpt-z"),
    )
    assert session.metadata["model"] == "gpt-z"
    assert [item.extra.get("model") for item in session.items] == [None, "claude-x", None, None, "gpt-y", None, None]
    assert session.items[1].usage == Usage(5, 0, 0, 2)
