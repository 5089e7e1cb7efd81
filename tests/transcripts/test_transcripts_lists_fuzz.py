"""Logs of message lists, benchmarks and agents with arbitrary values: they are read, or refused with one of our errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session import TranscriptError
from session.transcripts import TranscriptAccount, read_account
from session.units import grouping
from tests.support.list_logs import (
    assistant,
    called,
    lines,
    system,
    tool,
    user,
)
from tests.transcripts.test_transcripts_aider import CHAT_LINES, SESSION_START
from tests.transcripts.test_transcripts_cline import CALL, METRICS, RESULT, session_file, text
from tests.transcripts.test_transcripts_mini_swe_agent import OBSERVATION, answer, trajectory
from tests.transcripts.test_transcripts_openhands import HISTORY, SDK
from tests.transcripts.test_transcripts_swe_agent import CALLS

BLOCKS = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}}]
CHAT = [system("S"), user([text("hi")]), assistant("a", called("c"), reasoning_content="hm"), tool("c"), user("bye")]
RESPONSES = [
    user("hi"),
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e"},
    {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "a"},
]
GOOGLE = [
    {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]},
    {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "s"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"result": "1"}}}]},
]
LOGS: dict[str, Any] = {
    "chat": CHAT,
    "anthropic": {
        "system": "S",
        "messages": [user("hi"), assistant(BLOCKS), user([{"type": "tool_result", "tool_use_id": "t", "content": "a"}])],
    },
    "responses": {"request": {"model": "m", "instructions": "S", "input": RESPONSES}, "usage": {"input_tokens": 1, "output_tokens": 2}},
    "google": {"contents": GOOGLE, "systemInstruction": {"parts": [{"text": "S"}]}},
    "benchmark": {"simulations": [{"id": "s", "messages": CHAT}, {"id": "s", "messages": CHAT[:2]}]},
    "inspect": {
        "samples": [{"id": 1, "messages": CHAT, "attachments": {"x": "y"}, "events": [{"event": "model", "output": {"usage": {}}}]}]
    },
    "displayed": {"messages_display": "user: hi\nassistant: None\ntool: a"},
    "mini_swe_agent": trajectory(answer("a"), user(OBSERVATION), answer("b")),
    "swe_agent": {"trajectory": [], "history": CALLS},
    "openhands": HISTORY,
    "openhands_sdk": SDK,
    "cline": session_file(
        user([text("hi"), {"type": "file", "path": "/a", "content": "b"}]), {**assistant([CALL]), "metrics": METRICS}, user([RESULT])
    ),
}
SMALL = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["user", "assistant", "tool", "text", "c"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "role", "content", "text", "id", "name"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def containers(value: Any) -> list[Any]:
    """Return every non-empty object and list in the value."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    inner = [holder for member in members for holder in containers(member)]
    return [value, *inner] if isinstance(value, dict | list) and value else inner


def check(folder: Path, content: bytes, name: str = "log.jsonl") -> None:
    """Read it: every item is in one record, every record has a fate, and the sessions can be saved."""
    path = folder / name
    path.write_bytes(content)
    try:
        account: TranscriptAccount = read_account(path)
    except TranscriptError:
        return
    account_ids = [item_id for line in account.lines for item_id in line.items]
    assert sorted(account_ids) == sorted(item.id for session in account.sessions for item in session.items)
    for line in account.lines:
        assert bool(line.items) == (line.fate == "item")
        assert line.items or line.reason
    for session in account.sessions:
        grouping(session)
        json.dumps(session.to_dict()).encode()


@pytest.mark.parametrize("name", LOGS)
@SMALL
@given(data=st.data())
def test_any_values_in_a_log_raise_only_our_errors(tmp_path: Path, name: str, data: st.DataObject) -> None:
    log = json.loads(json.dumps(LOGS[name]))
    for _ in range(data.draw(st.integers(1, 4))):
        holders = containers(log)
        holder = data.draw(st.sampled_from(holders))
        if isinstance(holder, dict):
            holder[data.draw(st.sampled_from(sorted(holder)))] = data.draw(JSON)
        else:
            holder[data.draw(st.integers(0, len(holder) - 1))] = data.draw(JSON)
    one_a_line = isinstance(log, list) and data.draw(st.booleans())
    raw = (lines(*log) if one_a_line else json.dumps(log)).encode("utf-8", "surrogatepass")
    check(tmp_path, raw, data.draw(st.sampled_from(["log.json", "log.jsonl"])))


@pytest.mark.parametrize("name", [*LOGS, "aider"])
@SMALL
@given(data=st.data())
def test_any_lost_or_added_bytes_raise_only_our_errors(tmp_path: Path, name: str, data: st.DataObject) -> None:
    log = LOGS.get(name)
    content = SESSION_START + CHAT_LINES if log is None else lines(*log) if isinstance(log, list) else json.dumps(log, indent=1)
    raw = content.encode()
    start = data.draw(st.integers(0, len(raw)))
    check(tmp_path, raw[:start] + data.draw(st.binary(max_size=6)) + raw[start + data.draw(st.integers(0, 40)) :])
