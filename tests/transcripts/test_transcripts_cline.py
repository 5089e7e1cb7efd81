"""Cline's session files: blocks, files that the model sees, compactions, and the file that names the messages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from session import Compaction, Document, Message, MessageCategory, TranscriptError, Usage
from session.transcripts import read_account, read_transcript
from tests.support.list_logs import Json, account, assistant, shown, user


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def session_file(*messages: Any, **fields: Any) -> Json:
    return {
        "version": 1,
        "updated_at": "2026-01-01",
        "agent": "lead",
        "sessionId": "s-1",
        "messages": list(messages),
        "system_prompt": "S",
        **fields,
    }


METRICS = {"inputTokens": 100, "outputTokens": 7, "cacheReadTokens": 90, "cacheWriteTokens": 4, "cost": 0.1}
CALL = {"type": "tool_use", "id": "t1", "name": "read_files", "input": {"files": []}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "name": "read_files", "content": [{"query": "a", "result": "A", "success": True}]}


def test_messages_have_their_times_models_and_usage(tmp_path: Path) -> None:
    answer = {**assistant([text("I read."), CALL]), "id": "m2", "ts": 1_700_000_000_500, "modelInfo": {"id": "opus"}, "metrics": METRICS}
    transcript = account(tmp_path, session_file({**user([text("hi")]), "id": "m1", "ts": 1_700_000_000_000}, answer, user([RESULT])))
    session = transcript.sessions[0]
    assert transcript.format == "cline"
    assert (session.id, session.metadata["model"]) == ("s-1", "opus")
    assert shown(session) == [
        "system: S",
        "user: hi",
        "assistant: I read.",
        'call t1 read_files {"files":[]}',
        'output t1 read_files: [{"query":"a","result":"A","success":true}]',
    ]
    assert [item.usage for item in session.items if item.usage] == [Usage(6, 90, 4, 7)]
    assert session.items[2].created_at == 1_700_000_000.5
    assert session.items[1].id == "m1"
    assert [line.line for line in transcript.lines] == [1, 2, 3, 4]


def test_a_file_that_the_tool_added_is_a_context_document(tmp_path: Path) -> None:
    shown_file = {"type": "file", "path": "/src/a.py", "content": "x = 1"}
    session = account(tmp_path, session_file(user([text("look at @a.py"), shown_file, text("and hurry")]))).sessions[0]
    assert shown(session)[1:] == ["user: look at @a.py", "user (file): document", "user: and hurry"]
    message = session.items[2]
    assert isinstance(message, Message)
    assert message.category is MessageCategory.CONTEXT
    assert message.content == (Document(text="x = 1", media_type="text/plain", title="/src/a.py"),)


def test_a_result_with_only_failed_parts_is_an_error(tmp_path: Path) -> None:
    failed = {**RESULT, "content": [{"query": "a", "result": "", "error": "none", "success": False}]}
    assert shown(account(tmp_path, session_file(user("hi"), assistant([CALL]), user([failed]))).sessions[0])[-1].startswith("error t1")


def test_a_summary_is_a_compaction_and_a_notice_is_context(tmp_path: Path) -> None:
    summary = {**user([text("Context summary: all good")]), "id": "c", "metadata": {"kind": "compaction_summary", "tokensBefore": 21}}
    notice = {**user([text("hi"), text("<SYSTEM_NOTICE>\nEarlier context was compacted.")]), "metadata": {"kind": "compaction"}}
    session = account(tmp_path, session_file(summary, notice)).sessions[0]
    assert shown(session)[1:] == [
        "compaction: Context summary: all good",
        "user: hi",
        "user (compaction): <SYSTEM_NOTICE>\nEarlier context was compacted.",
    ]
    compaction = session.items[1]
    assert isinstance(compaction, Compaction)
    assert (compaction.id, compaction.extra) == ("c", {"tokens_before": 21})


def test_the_file_that_describes_a_session_leads_to_its_messages(tmp_path: Path) -> None:
    (tmp_path / "s.messages.json").write_text(json.dumps(session_file(user("hi"))), encoding="utf-8")
    described = {"session_id": "s-1", "messages_path": "C:\\elsewhere\\s.messages.json", "status": "completed"}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(described), encoding="utf-8")
    assert shown(read_transcript(path)) == ["system: S", "user: hi"]
    assert read_account(path).lines[0].file == "s.messages.json"


@pytest.mark.parametrize("named", ["/gone/x.messages.json", "", "..", "a\0b", "s.json", "x" * 5_000])
def test_a_missing_file_of_messages_is_named_in_the_error(tmp_path: Path, named: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"session_id": "s-1", "messages_path": named}), encoding="utf-8")
    with pytest.raises(TranscriptError, match=r"s\.messages\.json, which is not in the same folder"):
        read_transcript(path)


@pytest.mark.parametrize("named", ["out/s.messages.json", "../out/s.messages.json", "{folder}/out/x.messages.json", "out\\x.messages.json"])
def test_a_description_names_no_file_outside_its_own_folder(tmp_path: Path, named: str) -> None:
    """Only the last component of the path counts, in the folder of the file that names it."""
    (tmp_path / "out").mkdir()
    for name in ("s.messages.json", "x.messages.json"):
        (tmp_path / "out" / name).write_text(json.dumps(session_file(user("secret"))), encoding="utf-8")
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"session_id": "s-1", "messages_path": named.format(folder=tmp_path)}), encoding="utf-8")
    with pytest.raises(TranscriptError, match=r"s\.messages\.json, which is not in the same folder"):
        read_transcript(path)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
@pytest.mark.parametrize("linked", ["x.messages.json", "s.messages.json"])
def test_a_link_next_to_a_description_is_not_followed(tmp_path: Path, linked: str) -> None:
    """A folder may come from an untrusted source, and so may links in it."""
    (tmp_path / "in").mkdir()
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(session_file(user("secret"))), encoding="utf-8")
    (tmp_path / "in" / linked).symlink_to(secret)
    path = tmp_path / "in" / "s.json"
    path.write_text(json.dumps({"session_id": "s-1", "messages_path": "x.messages.json"}), encoding="utf-8")
    with pytest.raises(TranscriptError, match="which is not in the same folder"):
        read_transcript(path)


def test_a_pipe_next_to_a_description_does_not_block(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(tmp_path / "s.messages.json")
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"session_id": "s-1", "messages_path": "s.messages.json"}), encoding="utf-8")
    with pytest.raises(TranscriptError, match="which is not in the same folder"):
        read_transcript(path)


@pytest.mark.parametrize(
    "broken", [None, "x", {"role": "user"}, user([7]), user([{"type": "file", "path": 5}]), {**user("a"), "metadata": 3, "ts": "x"}]
)
def test_a_damaged_message_costs_only_itself(tmp_path: Path, broken: Any) -> None:
    transcript = account(tmp_path, session_file(user("hi"), broken, assistant("bye"), system_prompt=7))
    assert shown(transcript.sessions[0])[-1] == "assistant: bye"
    assert len(transcript.lines) == 3
