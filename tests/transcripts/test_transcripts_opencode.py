"""Items made from each kind of message and part in opencode's exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from session import Compaction, Document, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session, Usage
from session.transcripts import read_account
from session.units import request_points
from tests.support.claude_lines import shape
from tests.support.tool_logs import (
    SECONDS,
    Json,
    fates,
    only,
    opencode,
    opencode_said,
    opencode_text,
    opencode_tool,
    picture,
    some_opencode,
    write_document,
)

Read = Callable[..., Session]
START: Json = {"type": "step-start"}


def finish(**tokens: object) -> Json:
    return {"type": "step-finish", "tokens": tokens}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    return lambda *messages, **info: only(write_document(tmp_path, opencode(*messages, **info)), "opencode")


def test_a_bit_of_everything(tmp_path: Path) -> None:
    session = only(write_document(tmp_path, some_opencode()), "opencode")
    assert shape(session) == [
        *(
            "user:look",
            "user:called",
            "thought:hm",
            "call:a",
            "output:a",
            "summary:So far.",
            "user:",
            "assistant:done",
            "call:b",
            "output:b",
        ),
    ]
    assert (session.id, session.metadata["cwd"], session.metadata["model"]) == ("ses_1", "/p", "gpt-x")
    assert session.items[2].usage == Usage(5, 2, 1, 7)


def test_text_that_opencode_added_is_context_and_ignored_text_is_dropped(read: Read) -> None:
    parts = [
        opencode_text("see @x"),
        opencode_text("file text", synthetic=True),
        opencode_text("no", ignored=True),
        opencode_text("thanks"),
    ]
    session = read(opencode_said("user", "m", *parts))
    assert [(item.text, item.category.name, item.extra.get("source")) for item in session.messages()] == [
        ("see @x", "DIALOG", None),
        ("file text", "CONTEXT", "synthetic"),
        ("thanks", "DIALOG", None),
    ]
    assert [item.id for item in session.items] == ["m", "m.2", "m.3"]


def test_files_become_images_and_documents(tmp_path: Path) -> None:
    files: list[Json] = [
        {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{picture()}"},
        {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"},
        {"type": "file", "mime": "text/plain", "url": "file:///x"},
        {"type": "file", "mime": "image/png", "url": "file:///x.png"},
        {"type": "subtask", "agent": "general", "prompt": "check"},
        {"type": "what"},
    ]
    account = read_account(write_document(tmp_path, opencode(opencode_said("user", "m", *files))))
    item = account.sessions[0].items[0]
    assert isinstance(item, Message)
    image, document = item.content
    assert isinstance(image, Image)
    assert isinstance(document, Document)
    assert (document.data, document.title) == (b"%PDF", "a.pdf")
    assert account.sessions[0].items[1].extra == {"source": "subtask"}
    assert "'what'" in account.lines[0].reason
    assert "does not hold" in account.lines[0].reason


def test_each_step_of_an_answer_is_a_response_with_its_usage(read: Read) -> None:
    steps = [
        *(START, opencode_text("one"), opencode_tool("a", output="1"), opencode_tool("b", output="2"), finish(input=3, output=1)),
        *(START, opencode_text("two"), finish(input=5, output=2)),
    ]
    session = read(opencode_said("user", "u", opencode_text("x")), opencode_said("assistant", "m", *steps, tokens={"input": 99}))
    assert shape(session)[1:] == ["assistant:one", "call:a", "call:b", "output:a", "output:b", "assistant:two"]
    assert request_points(session) == [1, 6]
    assert [item.usage for item in session.items if item.usage] == [Usage(3, 0, 0, 1), Usage(5, 0, 0, 2)]


def test_without_steps_the_messages_own_tokens_count(read: Read) -> None:
    session = read(opencode_said("assistant", "m", opencode_text("one"), tokens={"input": 3, "output": 1, "cache": {"read": 2}}))
    assert session.items[0].usage == Usage(3, 2, 0, 1)


@pytest.mark.parametrize(("total", "output"), [(8, 5), (12, 9), (None, 5)])
def test_reasoning_tokens_count_once(read: Read, total: int, output: int) -> None:
    tokens = {"input": 2, "output": 5, "reasoning": 4, "cache": {"read": 1, "write": 0}, "total": total}
    session = read(opencode_said("assistant", "m", opencode_text("one"), tokens=tokens))
    assert session.items[0].usage == Usage(2, 1, 0, output)


def test_finished_tools_are_calls_with_outputs(tmp_path: Path) -> None:
    file = {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{picture()}"}
    time = {"start": (SECONDS + 1) * 1000, "end": (SECONDS + 2) * 1000}
    tools = [
        opencode_tool("a", output="1", attachments=[file, 3], time=time),
        opencode_tool("b", "error", error="no"),
        opencode_tool("c", "running"),
        opencode_tool("d", output="", input=None),
    ]
    account = read_account(write_document(tmp_path, opencode(opencode_said("assistant", "m", *tools))))
    items = account.sessions[0].items
    outputs = [item for item in items if isinstance(item, FunctionCallOutput)]
    assert [(item.call_id, item.text, item.is_error, len(item.output)) for item in outputs] == [
        ("a", "1", False, 2),
        ("b", "no", True, 1),
        ("d", "", False, 0),
    ]
    assert [item.arguments for item in items if isinstance(item, FunctionCall)] == ['{"x":1}'] * 3 + ["{}"]
    assert (items[0].created_at, outputs[0].created_at) == (SECONDS + 1, SECONDS + 2)
    assert account.lines[0].reason == "a call without a result"


def test_redacted_ids_are_made_unique(read: Read) -> None:
    tools = [{**opencode_tool("REDACTED", output=str(number)), "id": "REDACTED"} for number in range(3)]
    session = read(opencode_said("user", "REDACTED", opencode_text("x")), opencode_said("assistant", "REDACTED", *tools))
    calls = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    outputs = [(item.call_id, item.text) for item in session.items if isinstance(item, FunctionCallOutput)]
    assert len(set(calls)) == 3
    assert outputs == [(call, str(number)) for number, call in enumerate(calls)]
    assert not any("REDACTED" in item.id for item in session.items)


@pytest.mark.parametrize(
    ("metadata", "signature", "data", "provider"),
    [
        ({"opencode": {"reasoningEncryptedContent": "seal"}}, None, "seal", "openai"),
        ({"opencode": {"reasoningEncryptedContent": "REDACTED"}}, None, None, "openai"),
        ({"anthropic": {"signature": "seal"}}, "seal", None, None),
        ({"anthropic": {"redactedData": "seal"}}, None, "seal", None),
        ({"google": {"thoughtSignature": "seal"}}, "seal", None, "google"),
        ({"x": 7}, None, None, None),
        (None, None, None, None),
    ],
)
def test_reasoning_is_signed_in_the_providers_form(read: Read, metadata: object, signature: str, data: str, provider: str) -> None:
    thought = {"type": "reasoning", "text": "hm", "metadata": metadata}
    item = read(opencode_said("assistant", "m", thought)).items[0]
    assert isinstance(item, Reasoning)
    assert (item.text, item.signature, item.data, item.extra.get("provider")) == ("hm", signature, data, provider)


def test_a_summary_is_a_compaction_of_all_before_it(read: Read) -> None:
    session = read(
        opencode_said("user", "u", opencode_text("x"), system="be brief"),
        opencode_said("user", "c", {"type": "compaction", "auto": True}),
        opencode_said("assistant", "s", START, opencode_text("So far."), summary=True),
        opencode_said("user", "v", opencode_text("y"), system="be brief"),
        opencode_said("assistant", "t", summary=True, error={"name": "APIError"}),
    )
    assert shape(session) == ["system:be brief", "user:x", "summary:So far.", "user:y"]
    compaction = session.items[2]
    assert isinstance(compaction, Compaction)
    assert compaction.replaces == ("u",)


def test_outputs_that_were_cleared_later_are_complete_with_a_warning(read: Read) -> None:
    session = read(opencode_said("assistant", "m", opencode_tool("a", output="whole", time={"compacted": 1_772_323_200_000})))
    assert shape(session) == ["call:a", "output:a"]
    assert "cleared" in session.metadata["warnings"][0]


def test_reverted_messages_are_not_context(tmp_path: Path) -> None:
    messages = [opencode_said("user", letter, opencode_text(letter)) for letter in "abc"]
    account = read_account(write_document(tmp_path, opencode(*messages, revert={"messageID": "b"})))
    assert shape(account.sessions[0]) == ["user:a"]
    assert fates(account) == ["item", "not context", "not context"]


def test_failed_responses_are_not_context_but_interrupted_ones_are(tmp_path: Path) -> None:
    messages = [
        opencode_said("user", "u", opencode_text("x")),
        opencode_said("assistant", "a", opencode_text("bro"), error={"name": "APIError"}),
        opencode_said("assistant", "b", START, error={"name": "MessageAbortedError"}),
        opencode_said("assistant", "c", opencode_text("half"), error={"name": "MessageAbortedError"}),
    ]
    account = read_account(write_document(tmp_path, opencode(*messages)))
    assert shape(account.sessions[0]) == ["user:x", "assistant:half"]
    assert fates(account) == ["item", "not context", "not context", "item"]


def test_a_sub_agents_export_is_a_sidechain(read: Read) -> None:
    message = opencode_said("user", "u", opencode_text("x"))
    assert read(message, parentID="ses_0").metadata["parent_session"] == "ses_0"
    hidden = read(message, parentID="REDACTED").metadata
    assert hidden["sidechain"] is True
    assert "parent_session" not in hidden
    assert "sidechain" not in read(message).metadata


def test_a_missing_time_repeats_the_previous_one(read: Read) -> None:
    second = opencode_said("user", "v", opencode_text("y"))
    for time in (None, {}, {"created": "now"}, {"created": 10**40}, {"created": True}, {"created": -5}):
        second["info"]["time"] = time
        session = read(opencode_said("user", "u", opencode_text("x"), minute=1), second)
        assert [item.created_at for item in session.items] == [SECONDS + 60] * 2
