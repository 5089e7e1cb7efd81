"""OpenAI's own fields go back to OpenAI unchanged: readers and converters use the same names for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from session import FunctionCall
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses
from session.transcripts import read_transcript
from tests.support.tool_logs import codex_item, codex_output, codex_said, write_document, write_lines

Json = dict[str, Any]

ITEMS: list[Json] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "patch it"}]},
    {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "I will"}]},
    {"type": "custom_tool_call", "call_id": "p", "name": "apply_patch", "input": '*** Begin "x"\n'},
    {"type": "custom_tool_call_output", "call_id": "p", "output": "ok"},
    {"type": "function_call", "call_id": "f", "name": "ls", "arguments": "{}", "namespace": "files"},
    {"type": "function_call_output", "call_id": "f", "output": "a"},
]


def rollout(folder: Path) -> Path:
    return write_lines(
        folder, [codex_item(item["type"], **{name: value for name, value in item.items() if name != "type"}) for item in ITEMS]
    )


def request(folder: Path) -> Path:
    return write_document(folder, {"model": "gpt-x", "input": ITEMS})


@pytest.mark.parametrize("write", [rollout, request])
def test_custom_calls_phases_and_namespaces_are_sent_back_unchanged(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    payload = to_openai_responses(read_transcript(write(tmp_path)))
    assert [_with_plain_content(item) for item in payload] == [_with_plain_content(item) for item in ITEMS]


def _with_plain_content(item: Json) -> Json:
    """Return the item with its content as one text, because the number of parts does not matter here."""
    content = item.get("content")
    return item if content is None else {**item, "content": content if isinstance(content, str) else content[0]["text"]}


def test_a_chat_with_a_custom_tool_and_names_is_sent_back_unchanged(tmp_path: Path) -> None:
    messages: list[Json] = [
        {"role": "user", "content": "patch it", "name": "Ann"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "p", "type": "custom", "custom": {"name": "apply_patch", "input": "*** Begin"}}],
        },
        {"role": "tool", "tool_call_id": "p", "content": "ok"},
    ]
    payload = to_openai_chat(read_transcript(write_document(tmp_path, {"model": "gpt-x", "messages": messages})))
    assert (payload[0]["name"], payload[1]["tool_calls"], payload[2]["content"]) == ("Ann", messages[1]["tool_calls"], "ok")


def test_a_patch_in_a_rollout_is_counted_as_it_was_written(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path, [codex_said("user", "x"), codex_item("custom_tool_call", call_id="p", name="n", input="a\nb"), codex_output("p")]
    )
    call = read_transcript(path).items[1]
    assert isinstance(call, FunctionCall)
    assert call.arguments == "a\nb"
