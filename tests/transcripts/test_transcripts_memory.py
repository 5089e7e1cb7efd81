"""Cost of reading a long file: little more memory than its session in every format, and little time if it is not a transcript."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from session.errors import TranscriptError
from session.transcripts import TranscriptAccount, read_account
from session.transcripts.detect import EXAMINED_MAX
from session.transcripts.source import VALUES_MAX
from tests.support.tool_logs import (
    LINES,
    codex,
    codex_call,
    codex_output,
    codex_said,
    codex_tokens,
    copilot,
    copilot_request,
    gemini,
    gemini_call,
    gemini_said,
    opencode,
    opencode_said,
    opencode_text,
    opencode_tool,
    pi,
    pi_call,
    pi_text,
    write_document,
    write_lines,
)

pytestmark = pytest.mark.no_cover  # measures memory and time, and a tracer uses both

Json = dict[str, Any]

TURNS = 300
REPEATED = "again " * 600
"""Output that a log repeats for the screen. It must not stay in memory."""


def _prompt(turn: int) -> str:
    return f"{turn} " + "words " * 100


def _output(turn: int) -> str:
    return f"{turn} " + "lines\n" * 600


def _codex(turn: int) -> list[Json]:
    ended = codex("event_msg", type="exec_command_end", call_id=f"a{turn}", aggregated_output=REPEATED)
    tokens = codex_tokens(turn + 1, input_tokens=9, output_tokens=2)
    return [codex_said("user", _prompt(turn)), codex_call(f"a{turn}"), ended, codex_output(f"a{turn}", _output(turn)), tokens]


def _copilot(turn: int) -> list[Json]:
    prompt, call = _prompt(turn), copilot_request(f"t{turn}", command="ls")
    return [
        copilot("user.message", f"u{turn}", content=prompt, transformedContent=prompt),
        copilot("assistant.message", f"m{turn}", apiCallId=f"r{turn}", content="so", toolRequests=[call], outputTokens=4),
        copilot(
            "tool.execution_complete",
            f"x{turn}",
            toolCallId=f"t{turn}",
            success=True,
            result={"content": _output(turn), "detailedContent": REPEATED},
        ),
    ]


def _pi(turn: int) -> list[Json]:
    answer = pi("assistant", [pi_text("so"), pi_call(f"a{turn}")], stopReason="toolUse")
    return [
        pi("user", _prompt(turn)),
        answer,
        pi("toolResult", [pi_text(_output(turn))], toolCallId=f"a{turn}", details={"diff": REPEATED}),
    ]


def _gemini(turn: int) -> list[Json]:
    call = gemini_call(f"a{turn}", {"output": _output(turn)}, resultDisplay=REPEATED)
    return [gemini_said("user", f"u{turn}", _prompt(turn)), gemini_said("gemini", f"g{turn}", "so", toolCalls=[call])]


def _messages(turn: int) -> list[Json]:
    call = {"id": f"a{turn}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    return [
        {"role": "user", "content": _prompt(turn)},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"a{turn}", "content": _output(turn)},
    ]


def _request(turn: int) -> list[Json]:
    answer = {"choices": [{"message": {"role": "assistant", "content": "done"}}], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}
    return [{"request": {"model": "gpt-x", "messages": _messages(turn)}, "response": answer}]


def _events(turn: int) -> list[Json]:
    return [
        {"id": 3 * turn, "timestamp": "2026-03-01T00:00:00", "source": "user", "action": "message", "args": {"content": _prompt(turn)}},
        {"id": 3 * turn + 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "so"}},
        {"id": 3 * turn + 2, "source": "agent", "observation": "run", "cause": 3 * turn + 1, "content": _output(turn), "extras": {}},
    ]


def _run(turn: int) -> list[Json]:
    return [{"instance_id": f"i-{turn}", "history": _events(turn), "metrics": {}}]


HEADER = {"sessionId": "g-1", "projectHash": "h"}
LINE_FORMATS: dict[str, tuple[str, Callable[[int], list[Json]], list[Json]]] = {
    "codex": ("codex", _codex, []),
    "copilot_cli": ("copilot_cli", _copilot, []),
    "pi": ("pi", _pi, []),
    "gemini_cli": ("gemini_cli", _gemini, [HEADER]),
    "messages": ("message_lists", _messages, []),
    "requests": ("message_lists", _request, []),
    "openhands": ("openhands", _run, []),
}
"""JSONL formats: their names, the lines of a turn, and the lines before the first turn."""


def _measure(path: Path) -> tuple[TranscriptAccount, int, int]:
    """Return the account, the bytes that it occupies, and the peak while reading."""
    gc.collect()
    tracemalloc.start()
    try:
        account = read_account(path)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        gc.collect()
        result_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return account, result_bytes, peak_bytes


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in ("codex", "messages") else pytest.mark.long) for each in LINE_FORMATS]
)
def test_a_file_of_lines_takes_little_more_memory_than_its_sessions(tmp_path: Path, name: str) -> None:
    form, lines, head = LINE_FORMATS[name]
    read_account(write_lines(tmp_path, [*head, *lines(0)], "warm.jsonl"))
    path = write_lines(tmp_path, [*head, *(line for turn in range(TURNS) for line in lines(turn))])
    account, result_bytes, peak_bytes = _measure(path)
    assert account.format == form
    assert sum(len(session.items) for session in account.sessions) >= 3 * TURNS
    assert peak_bytes < 1.75 * result_bytes


def test_every_format_of_lines_is_measured() -> None:
    assert LINES.keys() <= LINE_FORMATS.keys()


@pytest.mark.parametrize("indent", [None, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("form", ["opencode", "gemini_cli"])
def test_a_document_is_not_in_memory_as_bytes_text_and_values_at_once(tmp_path: Path, form: str, indent: int | None) -> None:
    def opencode_turn(turn: int) -> Iterator[Json]:
        yield opencode_said("user", f"u{turn}", opencode_text(_prompt(turn)))
        yield opencode_said("assistant", f"m{turn}", opencode_tool(f"a{turn}", output=_output(turn)))

    def document(turns: int) -> Json:
        if form == "opencode":
            return opencode(*(message for turn in range(turns) for message in opencode_turn(turn)))
        return gemini(*(message for turn in range(turns) for message in _gemini(turn)))

    read_account(write_document(tmp_path, document(1), "warm.json"))
    path = write_document(tmp_path, document(TURNS), indent=indent)
    account, result_bytes, peak_bytes = _measure(path)
    assert len(account.sessions[0].items) >= 3 * TURNS
    assert peak_bytes - result_bytes < 1.6 * path.stat().st_size  # with the file's bytes in memory it would be twice the size


# Long files without a transcript


def test_a_long_text_is_not_read_completely(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("no JSON, " * 10 + "\n" + "words\n" * 1_000_000, encoding="utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(TranscriptError, match=rf"found in its first {EXAMINED_MAX + 1:,} lines"):
            read_account(path)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize("content", ["\n", "1 ", "[] ", '{"a": 1}\n'])
def test_a_file_of_many_small_values_is_given_up(tmp_path: Path, content: str) -> None:
    path = tmp_path / "many.json"
    path.write_text(content * (VALUES_MAX + EXAMINED_MAX), encoding="utf-8")
    with pytest.raises(TranscriptError, match="no transcript of a known format"):
        read_account(path)


def test_a_log_after_many_other_lines_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    path.write_text("garbage\n" * 1_000 + json.dumps(codex_said("user", "hi")) + "\n", encoding="utf-8")
    assert read_account(path).format == "codex"


def test_excess_values_on_a_line_are_left_out_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "glued.jsonl"
    path.write_text(json.dumps(codex_said("user", "hi")) + "{}" * VALUES_MAX + "\n", encoding="utf-8")
    account = read_account(path)
    assert [message.text for message in account.sessions[0].messages()] == ["hi"]
    assert f"more than {VALUES_MAX:,} values on one line" in account.lines[0].reason
