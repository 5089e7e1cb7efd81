"""Reading threads of Amp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend.newest import newest_log
from session.items import Compaction, FunctionCallOutput, Message, MessageCategory
from session.parts import Image
from session.transcripts import read_transcript
from session.transcripts.detect import read_account
from session.transcripts.record_feed import text_size
from session.transcripts.reported_requests import read_requests
from tests.support.tool_logs import picture, write_document

Json = dict[str, Any]


def usage(**amounts: Any) -> Json:
    return {"model": "claude-sonnet-4-5", "inputTokens": 10, "cacheCreationInputTokens": 30, "cacheReadInputTokens": 60, **amounts}


def event(number: int | None, kind: str = "inference", tokens: int = 7) -> Json:
    amounts = {"input": tokens, "output": 1}
    return {
        "id": f"e{number}{kind}",
        "toMessageId": number,
        "operationType": kind,
        "model": "m",
        "timestamp": "2026-01-01",
        "tokens": amounts,
    }


AMP: Json = {
    "v": 195,
    "id": "T-019b9d03-62e3-772f-9780-3e637f90eaec",
    "created": 1767865803494,
    "title": "A thread",
    "env": {"initial": {"trees": [{"displayName": "w", "uri": "file:///w/a%20b"}]}},
    "messages": [
        {
            "role": "user",
            "messageId": 0,
            "content": [{"type": "text", "text": "Read it"}],
            "fileMentions": {"files": [{"uri": "file:///w/a.md", "content": "text of a file"}]},
            "meta": {"sentAt": 1767865803494},
        },
        {
            "role": "assistant",
            "messageId": 1,
            "content": [
                {"type": "thinking", "thinking": "I read.", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"cmd": "ls"}, "complete": True},
            ],
            "state": {"type": "complete", "stopReason": "tool_use"},
            "usage": usage(outputTokens=5, totalInputTokens=100, timestamp="2026-01-08T10:00:00Z"),
        },
        {
            "role": "user",
            "messageId": 2,
            "content": [{"type": "tool_result", "toolUseID": "t1", "run": {"status": "done", "result": {"output": "a", "exitCode": 0}}}],
        },
        {"role": "assistant", "messageId": 3, "content": [{"type": "text", "text": "Done."}], "usage": usage(outputTokens=6)},
    ],
    "usageLedger": {"events": [event(1), event(None, "title-generation")]},
}


def thread(*messages: Json) -> Json:
    return {**AMP, "messages": [*AMP["messages"], *messages]}


def test_a_thread_is_read(tmp_path: Path) -> None:
    session = read_transcript(write_document(tmp_path, AMP))
    kinds = [type(item).__name__ for item in session.items]
    assert kinds == ["Message", "Message", "Reasoning", "FunctionCall", "FunctionCallOutput", "Message"]
    assert session.metadata["cwd"] == "/w/a b"
    file = session.items[0]
    assert isinstance(file, Message)
    assert (file.text, file.category) == ("text of a file", MessageCategory.CONTEXT)
    assert [text for item in session.items if isinstance(item, FunctionCallOutput) for text in (item.text,)] == [
        '{"output":"a","exitCode":0}'
    ]
    assert session.metadata["warnings"] == []


def test_a_message_s_usage_counts_once_and_the_ledger_s_rest_counts(tmp_path: Path) -> None:
    """The event of message 1 repeats its usage; that of the title stands alone."""
    log = read_requests(write_document(tmp_path, AMP))
    assert [(request.input_tokens, request.prompt, request.output_tokens) for request in log.requests] == [
        (10, 100, 5),
        (10, 100, 6),
        (7, 7, 1),
    ]
    assert {request.project for request in log.requests} == {"/w/a b"}


def test_an_old_thread_has_its_usage_in_the_ledger(tmp_path: Path) -> None:
    messages = [{name: value for name, value in message.items() if name != "usage"} for message in AMP["messages"]]
    log = read_requests(write_document(tmp_path, {**AMP, "messages": messages}))
    assert [request.total for request in log.requests] == [8, 8]


def test_input_that_includes_the_cache_is_split(tmp_path: Path) -> None:
    report = usage(totalInputTokens=100) | {"inputTokens": 100}
    message = {"role": "assistant", "messageId": 4, "content": [{"type": "text", "text": "x"}], "usage": report}
    request = read_requests(write_document(tmp_path, thread(message))).requests[2]
    assert (request.input_tokens, request.prompt) == (10, 100)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"status": "done", "result": "out"}, ("out", False)),
        ({"status": "error", "error": {"message": "no such file"}}, ("no such file", True)),
        ({"status": "cancelled"}, ("cancelled", True)),
        ({"status": "in-progress", "progress": {"output": "half"}}, ('{"output":"half"}', False)),
    ],
)
def test_a_call_s_result_is_read_in_every_state(tmp_path: Path, run: Json, expected: tuple[str, bool]) -> None:
    messages = list(AMP["messages"])
    messages[2] = {"role": "user", "messageId": 2, "content": [{"type": "tool_result", "toolUseID": "t1", "run": run}]}
    outputs = [
        item
        for item in read_transcript(write_document(tmp_path, {**AMP, "messages": messages})).items
        if isinstance(item, FunctionCallOutput)
    ]
    assert [(output.text, output.is_error) for output in outputs] == [expected]


def test_a_summary_replaces_what_is_before_it(tmp_path: Path) -> None:
    info = {"role": "info", "messageId": 4, "content": [{"type": "summary", "summary": {"type": "message", "summary": "In short."}}]}
    summary = read_transcript(write_document(tmp_path, thread(info))).items[-1]
    assert isinstance(summary, Compaction)
    assert (summary.summary, len(summary.replaces)) == ("In short.", 6)


@given(unknown=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["role", "field"]), st.text("abc ", min_size=1)), max_size=4))
def test_every_byte_is_read_known_or_unknown(unknown: list[tuple[int, str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Messages of an unknown role and those with an unknown field are weighed as unknown, the others as known."""
    messages, added = list(AMP["messages"]), 0
    for place, kind, text in unknown:
        message = {"role": "telepath", "content": text} if kind == "role" else {"role": "user", "content": text, "aura": text}
        messages.insert(place, message)
        added += text_size(message)
    account = read_account(write_document(tmp_path_factory.mktemp("logs"), {**AMP, "messages": messages}))
    assert account.format == "amp"
    assert sum(line.text_bytes for line in account.lines) == text_size(messages)
    assert sum(line.unknown_bytes for line in account.lines) == added


def test_ids_of_messages_that_are_no_numbers_are_read(tmp_path: Path) -> None:
    """The fuzzer found a `TypeError`."""
    message = {"role": "assistant", "messageId": {"a": 1}, "content": [{"type": "text", "text": "x"}], "usage": usage(outputTokens=1)}
    ledger = {"events": [{**event(None), "toMessageId": {"a": 1}}]}
    path = write_document(tmp_path, {**AMP, "messages": [message], "usageLedger": ledger})
    assert [request.output_tokens for request in read_requests(path).requests] == [1]


def test_a_message_without_content_is_unknown(tmp_path: Path) -> None:
    """The fuzzer found a `KeyError`."""
    account = read_account(write_document(tmp_path, thread({"role": "user", "parts": [{"text": "hidden"}]})))
    assert (account.lines[-1].fate, account.lines[-1].unknown_bytes) == ("not context", len("userhidden"))


def test_the_newest_thread_of_a_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = tmp_path / ".local" / "share" / "amp" / "threads"
    threads.mkdir(parents=True)
    path = write_document(threads, AMP, "T-1.json")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for variable in ("AMP_DATA_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    assert newest_log(Path("/w/a b/c")) == path
    assert newest_log(Path("/w")) is None


def test_an_image_is_read_however_its_media_type_is_spelled(tmp_path: Path) -> None:
    sources = [{"type": "base64", name: "image/png", "data": picture()} for name in ("mediaType", "media_type")]
    user = {"role": "user", "messageId": 4, "content": [{"type": "image", "source": source} for source in sources]}
    message = read_transcript(write_document(tmp_path, thread(user))).items[-1]
    assert isinstance(message, Message)
    assert [part.media_type for part in message.content if isinstance(part, Image)] == ["image/png", "image/png"]
