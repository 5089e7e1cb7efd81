"""A call that the MCP library would not answer is mended; every other line passes as it is."""

from __future__ import annotations

import io
import json
from codecs import BOM_UTF8
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.integrations.mcp_lines import CleanedLines, cleaned

CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@given(
    st.binary(max_size=80) | st.dictionaries(st.text(max_size=5), st.integers() | st.text()).map(lambda value: json.dumps(value).encode())
)
def test_lines_come_out_whole_whatever_the_size_of_the_buffer(line: bytes) -> None:
    whole = io.BufferedReader(CleanedLines(io.BytesIO(line)), buffer_size=7).read()
    assert whole == b"".join(cleaned(part) for part in io.BytesIO(line))


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none()))
def test_a_sound_call_keeps_its_values(params: dict[str, Any]) -> None:
    assert json.loads(cleaned(json.dumps({**CALL, "params": params}).encode())) == {**CALL, "params": params}


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}',
        b'{"id": 1, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}',
        b'{"jsonrpc": ["2.0"], "id": 1, "method": "ping", "\\ud800": -1e400}',
        BOM_UTF8 + json.dumps(CALL).encode(),
        b'{"jsonrpc": "2.0", \r"id": 1, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ' + b"[" * 9_000 + b"]" * 9_000 + b"}}",
    ],
)
def test_a_call_is_mended(line: bytes) -> None:
    assert cleaned(line).count(b"\n") == 1
    assert b"\r" not in cleaned(line)
    value = json.loads(cleaned(line).decode())
    assert {**value, **CALL} == value
    assert isinstance(value.get("params", {}), dict)
    assert cleaned(cleaned(line)) == cleaned(line)


@pytest.mark.parametrize("line", [b"", b"\n", b"[]", b"null", b"{", b"[" * 100_000, b"\xff"])
def test_anything_else_is_left_to_the_library(line: bytes) -> None:
    assert cleaned(line) == line
