"""Items made from each kind of message in Gemini CLI's chats, in documents and in JSONL."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from session import Document, FunctionCall, FunctionCallOutput, Image, Message, MessageCategory, Reasoning, Session, Usage
from session.transcripts import read_account
from session.units import request_points
from tests.support.claude_lines import shape
from tests.support.tool_logs import (
    SECONDS,
    Json,
    at,
    check_account,
    fates,
    gemini,
    gemini_call,
    gemini_said,
    only,
    picture,
    some_gemini,
    write_document,
    write_lines,
)

Read = Callable[..., Session]
HEADER: Json = {"sessionId": "g-1", "projectHash": "h", "startTime": at(0), "kind": "main"}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    return lambda *messages, **fields: only(write_document(tmp_path, gemini(*messages, **fields)), "gemini_cli")


def test_a_bit_of_everything(tmp_path: Path) -> None:
    account = read_account(write_document(tmp_path, some_gemini()))
    session = account.sessions[0]
    assert shape(session) == ["user:look", "thought:Look\nfirst", "call:a", "output:a", "user:see", "assistant:done"]
    assert fates(account) == ["item", "item", "not context", "item", "item"]
    assert {"session_id": "g-1", "project_hash": "h", "model": "gemini-x"}.items() <= session.metadata.items()
    assert request_points(session) == [1, 5]


def test_input_includes_cached_tokens_and_output_excludes_thoughts(read: Read) -> None:
    tokens = {"input": 10, "output": 2, "cached": 4, "thoughts": 3, "tool": 1, "total": 16}
    usage = read(gemini_said("user", "u", "x"), gemini_said("gemini", "g", "y", tokens=tokens)).items[1].usage
    assert usage == Usage(7, 4, 0, 5)
    assert usage.total_input + usage.output_tokens == tokens["total"]


def test_text_that_the_tool_sends_for_the_user_is_context(read: Read) -> None:
    session = read(gemini_said("user", "u", "System: Please continue."), gemini_said("user", "v", "System: Please continue. Why?"))
    assert [item.category for item in session.items] == [MessageCategory.CONTEXT, MessageCategory.DIALOG]
    assert session.items[0].extra == {"source": "continuation"}


def test_thoughts_have_google_as_provider(read: Read) -> None:
    thoughts = [{"subject": "A", "description": "b"}, {"description": "c"}, 7, {}]
    item = read(gemini_said("gemini", "g", "", thoughts=thoughts)).items[0]
    assert isinstance(item, Reasoning)
    assert (item.text, item.extra) == ("A\nb\n\nc", {"provider": "google"})


def test_results_are_outputs_with_text_and_images(read: Read) -> None:
    response_part = {
        "functionResponse": {
            "name": "x",
            "response": {"output": ""},
            "parts": [{"inlineData": {"mimeType": "image/png", "data": picture()}}],
        }
    }
    session = read(
        gemini_said(
            *("gemini", "g", ""),
            toolCalls=[
                gemini_call("a", {"output": "yes"}, timestamp=at(5)),
                gemini_call("b", {"error": "no"}, "error"),
                gemini_call("c", {"rows": [1], "output": "two"}),
                {"id": "d", "name": "x", "args": {}, "result": [response_part], "status": "success"},
                {"id": "e", "name": "x", "args": {}, "result": None, "status": "cancelled"},
                {"id": "f", "name": "x", "args": {}, "result": "plain", "status": "cancelled"},
            ],
        )
    )
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert [(item.call_id, item.text, item.is_error) for item in outputs] == [
        ("a", "yes", False),
        ("b", "no", True),
        ("c", '{"rows":[1],"output":"two"}', False),
        ("d", "", False),
        ("f", "plain", True),
    ]
    assert isinstance(outputs[3].output[0], Image)
    assert outputs[0].created_at == SECONDS + 300
    assert shape(session)[:6] == ["call:a", "call:b", "call:c", "call:d", "call:e", "call:f"]


def test_repeated_call_ids_are_made_unique(read: Read) -> None:
    session = read(gemini_said("gemini", "g", "", toolCalls=[gemini_call("a"), gemini_call("a"), gemini_call("")]))
    calls = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    assert len(set(calls)) == 3
    assert calls == [item.call_id for item in session.items if isinstance(item, FunctionCallOutput)]


def test_contents_may_be_a_text_a_part_or_a_list(tmp_path: Path) -> None:
    parts = [
        {"text": "a"},
        "b",
        {"text": "secret", "thought": True},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/x.png"}},
        {"functionCall": {}},
        {"what": 1},
        {},
        7,
    ]
    account = read_account(write_document(tmp_path, gemini(gemini_said("user", "u", parts), gemini_said("user", "v", {"text": "c"}))))
    item = account.sessions[0].items[0]
    assert isinstance(item, Message)
    assert [type(part) for part in item.content[2:]] == [Document, Image]
    assert [message.text for message in account.sessions[0].messages()] == ["a\nb", "c"]
    assert "'what'" in account.lines[0].reason


def test_notes_for_the_user_and_unknown_messages_are_not_context(tmp_path: Path) -> None:
    kinds = ["info", "warning", "error", "later", ""]
    account = read_account(
        write_document(tmp_path, gemini(gemini_said("user", "u", "x"), *(gemini_said(kind, kind, "y") for kind in kinds)))
    )
    assert fates(account) == ["item", *["not context"] * 4, "damaged"]


def test_missing_times_repeat_the_previous_one(read: Read) -> None:
    second = {**gemini_said("user", "v", "y"), "timestamp": 7}
    session = read({**gemini_said("user", "u", "x"), "timestamp": None}, second, startTime=at(1))
    assert [item.created_at for item in session.items] == [SECONDS + 60] * 2


def test_a_jsonl_chat_equals_its_document(tmp_path: Path) -> None:
    document = some_gemini()
    lines = [HEADER, *document["messages"], {"$set": {"lastUpdated": at(9)}}]
    session = only(write_lines(tmp_path, lines), "gemini_cli")
    from_document = only(write_document(tmp_path, document), "gemini_cli")
    assert shape(session) == shape(from_document)
    assert [item.usage for item in session.items] == [item.usage for item in from_document.items]


def test_the_last_version_of_a_repeated_line_counts(tmp_path: Path) -> None:
    first = gemini_said("gemini", "g", "draft")
    lines = [HEADER, gemini_said("user", "u", "x"), first, {**first, "content": "final", "toolCalls": [gemini_call("a")]}]
    account = read_account(write_lines(tmp_path, lines))
    check_account(account)
    assert shape(account.sessions[0]) == ["user:x", "assistant:final", "call:a", "output:a"]
    assert fates(account) == ["not context", "item", "merged", "item"]


def test_a_rewind_removes_the_message_and_all_later_ones(tmp_path: Path) -> None:
    messages = [gemini_said("user", letter, letter) for letter in "abc"]
    lines = [HEADER, *messages, {"$rewindTo": "b"}, {"$rewindTo": "nowhere"}, {"$rewindTo": 7}, gemini_said("user", "d", "d")]
    account = read_account(write_lines(tmp_path, lines))
    check_account(account)
    assert shape(account.sessions[0]) == ["user:a", "user:d"]
    assert account.lines[2].reason == "rewound on line 5"


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    for damage in ("{", "7", "[]", '{"type": 7}', '{"id": "x", "type": "user", "content": ' + "[" * 600 + "]" * 600 + "}"):
        account = read_account(write_lines(tmp_path, [HEADER, gemini_said("user", "a", "a"), damage, gemini_said("user", "b", "b")]))
        check_account(account)
        assert shape(account.sessions[0]) == ["user:a", "user:b"]


def test_a_sub_agents_chat_is_a_sidechain(tmp_path: Path) -> None:
    session = only(write_lines(tmp_path, [{**HEADER, "kind": "subagent"}, gemini_said("user", "a", "a")]), "gemini_cli")
    assert session.metadata["sidechain"] is True


@pytest.mark.parametrize("messages", [None, {}, 7, "x"])
def test_a_document_without_messages_is_refused(tmp_path: Path, messages: object) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"sessionId": "g", "projectHash": "h", "messages": messages}))
    with pytest.raises(Exception, match=r"known format|contains no messages") as caught:
        read_account(path)
    assert type(caught.value).__name__ == "TranscriptError"


def test_a_chat_without_a_hash_is_recognized_by_its_messages(tmp_path: Path) -> None:
    document = gemini({"type": [], "content": ""}, {"type": {}}, gemini_said("user", "u", "x"))
    document["messages"].insert(2, 7)
    del document["projectHash"]
    account = read_account(write_document(tmp_path, document))
    assert account.format == "gemini_cli"
    assert fates(account) == ["damaged", "damaged", "damaged", "item"]
