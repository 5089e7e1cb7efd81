"""Logs with arbitrary values: they are read, or refused with one of our errors."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session import TranscriptError
from session.transcripts import read_account
from session.units import grouping
from tests.support.claude_lines import a_bit_of_everything

WORDS = st.sampled_from(["user", "tool_use", "00000001", "a"])
KEYS = st.sampled_from(["type", "text", "id", "source", "content", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        *("type", "uuid", "parentUuid", "sessionId", "timestamp", "isSidechain", "isMeta", "isCompactSummary", "message", "content"),
        *("role", "id", "subtype", "attachment", "data", "agentId", "origin", "usage", "model", "compactMetadata", "tool_use_id"),
        *("input", "name", "operation"),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid log with a few values replaced by arbitrary ones."""
    lines = [json.loads(line) for line in a_bit_of_everything().lines]
    for _ in range(draw(st.integers(1, 4))):
        line = draw(st.sampled_from(lines))
        objects = [line, *(inner for inner in line.values() if isinstance(inner, dict))]
        for inner in list(objects):
            blocks = inner.get("content")
            objects += [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        draw(st.sampled_from(objects))[draw(FIELDS)] = draw(JSON)
    order = draw(st.permutations(lines)) if draw(st.booleans()) else lines
    raw = "\n".join(json.dumps(line) for line in order).encode("utf-8", "surrogatepass")
    start = draw(st.integers(0, len(raw)))
    return raw[:start] + draw(st.binary(max_size=4)) + raw[start + draw(st.integers(0, 3)) :]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=mutated() | st.binary(max_size=200))
def test_only_our_errors_are_raised_and_every_line_has_a_fate(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    try:
        account = read_account(path)
    except TranscriptError:
        return
    assert [line.line for line in account.lines] == list(range(1, len(content.split(b"\n")) + (not content.endswith(b"\n"))))
    account_ids = [item_id for line in account.lines for item_id in line.items]
    session_ids = [item.id for session in account.sessions for item in session.items]
    assert sorted(account_ids) == sorted(session_ids)
    for line in account.lines:
        assert bool(line.items) == (line.fate == "item")
        assert line.items or line.reason
    for session in account.sessions:
        grouping(session)
        json.dumps(session.to_dict()).encode()
