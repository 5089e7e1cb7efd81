"""Targets `statusline`, `mcp` and `recall`: input that other programs and models give to ours.

The promises, whatever the input:

1. `context-window statusline` prints one line that can be shown, or refuses in one line with exit code 2. With `--pause` it prints a
   hook's answer or nothing, and never ends with 2.
2. `context-window mcp` answers each call that has an id, or refuses it with a JSON-RPC error, and goes on.
3. The recall tool returns an answer of bounded length that can be sent.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from context_window import FunctionCall, Session
from context_window.printable import printable
from context_window.recall import Recalled, recall_tool
from context_window.statusline import PLAIN, RED, YELLOW, main, pause_main
from tests.support.claude_lines import a_bit_of_everything
from tests.support.screens import long_session

from .checks import REFUSED
from .folder import folder
from .seeds import Seed, make_seed

PATIENCE = 30
"""Seconds that the server may take for an answer, on a busy machine."""
SLACK = 2_000
"""Characters of an answer of the recall tool beyond its limit: headings, and the line about the page."""
USAGE = {"input_tokens": 1_000, "cache_creation_input_tokens": 2_000, "cache_read_input_tokens": 90_000, "output_tokens": 500}
STATUS = {
    "model": {"id": "claude-sonnet-5-5", "display_name": "Sonnet"},
    "context_window": {"context_window_size": 200_000, "current_usage": USAGE},
    "cost": {"total_cost_usd": 1.5},
    "rate_limits": {"five_hour": {"used_percentage": 23.5, "resets_at": 1_900_000_000}, "seven_day": {"used_percentage": 4}},
    "transcript_path": "none.jsonl",
}
LOG = [
    {
        "type": "assistant",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {"id": f"m{turn}", "usage": {**USAGE, "input_tokens": turn * 900}},
    }
    for turn in range(8)
]
CALLS: dict[str, Any] = {
    "recall": {"name": "recall", "arguments": {"query": "hi", "id": "", "from_line": 0, "lines": 0}},
    "usage": {"name": "context_usage", "arguments": {}},
}
ARGUMENTS = [{"id": "item", "from_line": 1, "lines": 5}, {"query": "What does file 3 hold"}, {"id": "first to last"}]


def statusline_seeds() -> Iterator[Seed]:
    """Yield what Claude Code passes, and a transcript that it names."""
    yield make_seed("status", "file", "document", STATUS, "statusline")
    yield make_seed("transcript", "file", "lines", LOG, "statusline")


def check_statusline(seed: Seed, raw: bytes, _: int) -> str:
    """Check the first promise for one mutant."""
    if seed.name == "transcript":
        path = folder() / "status.jsonl"
        path.write_bytes(raw)
        window = {"context_window_size": 200_000}
        raw = json.dumps({**STATUS, "context_window": window, "transcript_path": str(path)}).encode()
    code, out, err = _run(raw, pause_main)
    assert code in {0, 1}
    assert err.count("\n") == code
    if out:
        told = json.loads(out)["systemMessage"]
        assert printable(told) == told
    code, out, err = _run(raw, main)
    if code == 2:
        assert not out
        assert err.count("\n") == 1
        return REFUSED
    line = out.decode()
    for colour in (RED, YELLOW, PLAIN):
        line = line.replace(colour, "")
    assert code == 0
    assert not err
    assert line[-1] == "\n"
    assert line[:-1].strip()
    assert printable(line[:-1]) == line[:-1], "the line has characters that steer a terminal"
    return "statusline"


def _run(raw: bytes, program: Callable[[], int]) -> tuple[int, bytes, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with (
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw))),
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", err),
        patch.dict(os.environ, {"ANTHROPIC_BASE_URL": "", "CONTEXT_WINDOW_HOME": str(folder())}),
    ):
        code = program()
    assert isinstance(out.buffer, io.BytesIO)
    return code, out.buffer.getvalue(), err.getvalue()


def mcp_seeds() -> Iterator[Seed]:
    """Yield calls of every kind that the server answers."""
    for name, params in CALLS.items():
        yield make_seed(name, "file", "document", {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}, "mcp")
        yield make_seed("parameters", "file", "document", params, "mcp")
    for method in ("tools-list", "ping"):
        yield make_seed(method, "file", "document", {"jsonrpc": "2.0", "id": "a", "method": method.replace("-", "/"), "params": {}}, "mcp")


def check_mcp(seed: Seed, raw: bytes, number: int) -> str:
    """Check the second promise for one mutant: a line, or the parameters of a call. A ping after it must be answered, too."""
    from context_window.cli.mcp import mcp

    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
    head = [
        {"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": info},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    raw = raw.replace(b"\r", b" ").replace(b"\n", b" ") if number % 8 else raw  # one line, as clients write it
    if seed.name == "parameters":
        raw = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": %b}' % raw
    calls = ids_of_calls(raw)
    wire = _Wire(b"".join(json.dumps(line).encode() + b"\n" for line in head) + raw + b"\n", [*calls, "after"])
    assert mcp.callback is not None
    with patch.object(sys, "stdin", wire.stdin), patch.object(sys, "stdout", wire.stdout):
        mcp.callback(path=str(_log()), max_tokens=None)
    assert not wire.awaited, f"no answer to the calls {wire.awaited!r:.80}"
    return "mcp" if calls else REFUSED


def ids_of_calls(raw: bytes) -> list[Any]:
    """Return the ids of the calls in these lines: JSON objects with a method, and an id that is a text or a whole number."""
    calls = []
    for line in raw.split(b"\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("method"), str) and type(value.get("id")) in (str, int):
            calls.append(value["id"])
    return calls


class _Wire:
    """Standard input and output of a server. Input ends when all awaited answers have come, or after `PATIENCE`.

    Attributes:
        awaited: The ids of calls without an answer.
    """

    def __init__(self, lines: bytes, awaited: list[Any]) -> None:
        self.awaited = [_shown(id) for id in awaited]
        self._is_answered = threading.Event()
        ping = json.dumps({"jsonrpc": "2.0", "id": "after", "method": "ping"}).encode() + b"\n"
        self.stdin = io.TextIOWrapper(io.BufferedReader(_Reading(lines + ping, self._is_answered)))
        self.stdout = io.TextIOWrapper(_Writing(self))

    def take(self, line: bytes) -> None:
        answer = json.loads(line)
        assert "error" in answer or "result" in answer
        if (answered := _shown(answer.get("id"))) in self.awaited:
            self.awaited.remove(answered)
        if not self.awaited:
            self._is_answered.set()


def _shown(id: Any) -> Any:
    """Return an id as an answer can show it: JSON in UTF-8 has no lone surrogates. How many marks stand for bad bytes is left open."""
    if not isinstance(id, str):
        return id
    return re.sub("\ufffd+", "\ufffd", id.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


class _Reading(io.RawIOBase):
    def __init__(self, content: bytes, is_answered: threading.Event) -> None:
        self._content, self._is_answered = io.BytesIO(content), is_answered

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self._content.readinto(buffer)
        if not size:
            self._is_answered.wait(PATIENCE)
        return size


class _Writing(io.BytesIO):
    def __init__(self, wire: _Wire) -> None:
        super().__init__()
        self._wire, self._rest = wire, b""

    def write(self, content: Any) -> int:
        *lines, self._rest = (self._rest + bytes(content)).split(b"\n")
        for line in lines:
            self._wire.take(line)
        return len(content)


@cache
def _log() -> Path:
    path = folder() / "mcp.jsonl"
    lines = [json.loads(line) for line in a_bit_of_everything().lines]
    path.write_text("\n".join(json.dumps(line).replace('"hi"', '"hi \\ud800"') for line in lines), encoding="utf-8")
    return path


def recall_seeds() -> Iterator[Seed]:
    """Yield arguments of the recall tool."""
    for arguments in ARGUMENTS:
        yield make_seed("arguments", "arguments", "document", arguments, "recall")


def check_recall(_: Seed, arguments: Any, number: int) -> str:
    """Check the third promise for one mutant, passed as an object or, if it has one, as JSON text."""
    if number % 2:
        with suppress(ValueError, TypeError, RecursionError):
            arguments = json.dumps(arguments)
    tool = recall_tool("anthropic", (1_000, 20_000)[number % 3 == 0])
    answer = tool.handle(_session(), arguments)
    assert isinstance(answer, Recalled)
    answer.text.encode()
    assert len(answer.text) <= tool.characters + SLACK
    answer.item_for(FunctionCall("recall", "{}", "c"))
    return REFUSED if answer.is_error else "recall"


@cache
def _session() -> Session:
    session = long_session()
    session.add_message("user", "\n".join(f"{number}: a line" for number in range(500)), "item")
    return session
