"""No number that a log holds stops a command: not one of 400 digits, none that is no number, no price that nobody can have paid."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from context_window.cli import run
from context_window.transcript_tail import last_requests
from session.transcripts.usage import DOLLARS_MAX, dollars

NUMBERS = (
    "1",
    "-1",
    "9" * 400,
    "-" + "9" * 400,
    "1e400",
    "NaN",
    "-Infinity",
    "5e-324",
    "1e308",
    "1e27",
    "0.1",
    "9" * 5_000,
    '"5"',
    "[]",
    "null",
)
MINUTE = "2026-11-27T0{}:{:02d}:00Z"


def claude_line(number: int, text: str) -> str:
    usage = (
        f'"input_tokens":{text if number % 2 else 7},"output_tokens":5,"cache_read_input_tokens":{text},"server_tool_use":{{"x":{text}}}'
    )
    message = (
        f'{{"id":"m{number}","role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"Hi"}}],"usage":{{{usage}}}}}'
    )
    time = MINUTE.format(1, number)
    return f'{{"type":"assistant","uuid":"u{number}","sessionId":"s","timestamp":"{time}","costUSD":{text},"message":{message}}}'


def codex_line(number: int, text: str) -> str:
    period = f'{{"window_minutes":{text},"used_percent":{text},"resets_at":{text}}}'
    alike = '{"window_minutes":300,"used_percent":5,"resets_at":null},"third":{"window_minutes":300,"used_percent":5,"resets_at":9}'
    counts = f'"last_token_usage":{{"input_tokens":{text},"output_tokens":{text},"reasoning_output_tokens":{text}}}'
    payload = f'{{"type":"token_count","rate_limits":{{"primary":{period},"secondary":{alike}}},"info":{{{counts}}}}}'
    return f'{{"timestamp":"{MINUTE.format(2, number)}","type":"event_msg","payload":{payload}}}'


def qwen_line(number: int, text: str) -> str:
    usage = f'"promptTokenCount":{text},"candidatesTokenCount":{text},"totalTokenCount":{text},"thoughtsTokenCount":{text}'
    message = '{"role":"model","parts":[{"text":"x"}]}'
    head = f'"uuid":"q{number}","parentUuid":null,"type":"assistant","sessionId":"q","timestamp":"{MINUTE.format(3, number)}"'
    return f'{{{head},"model":"qwen3-coder-plus","message":{message},"usageMetadata":{{{usage}}}}}'


def cline_entry(number: int, text: str) -> str:
    amounts = f'{{"tokensIn":{text},"tokensOut":{text},"cacheReads":{text},"cacheWrites":{text},"cost":{text},"apiProtocol":"anthropic"}}'
    return f'{{"ts":{1_795_737_600_000 + number},"say":"api_req_started","text":{json.dumps(amounts)},"modelInfo":{{"modelId":"gpt-5"}}}}'


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A home with a log of each of four tools, in which every figure is hostile."""
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("HOME", "USERPROFILE", "CONTEXT_WINDOW_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    contents = {
        ".claude/projects/p/a.jsonl": "\n".join(claude_line(number, text) for number, text in enumerate(NUMBERS)),
        ".codex/sessions/r.jsonl": "\n".join(codex_line(number, text) for number, text in enumerate(NUMBERS)),
        ".qwen/projects/p/chats/c.jsonl": "\n".join(qwen_line(number, text) for number, text in enumerate(NUMBERS)),
        ".cline/data/tasks/1/ui_messages.json": f"[{','.join(cline_entry(number, text) for number, text in enumerate(NUMBERS))}]",
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
    return [tmp_path / name for name in contents]


COMMANDS = (
    "", "spend", "spend --json", "spend --csv", "spend --by block", "spend --by model --what-if auto", "spend --what-if 1 --json",
    "report -o report.html", "usage LOG", "timeline LOG", "timeline LOG --json", "timeline LOG --why", "timeline LOG --why --json",
    "plan LOG",
)  # fmt: skip


@pytest.mark.parametrize("line", COMMANDS)
def test_no_number_stops_a_command(
    line: str, logs: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(logs[0].parent)
    for log in (logs[0], logs[2]) if "LOG" in line else logs[:1]:
        code = run([str(log) if word == "LOG" else word for word in line.split()])
        shown = capsys.readouterr()
        assert (code, shown.err if code else "") == (0, "")
        if "--json" in line:
            json.loads(shown.out, parse_constant=pytest.fail)


@pytest.mark.parametrize("value", [10**400, 1e300, float("inf"), float("nan"), -1, -0.5, True, "5", None, int(DOLLARS_MAX) + 1])
def test_a_price_that_nobody_can_have_paid_is_none(value: object) -> None:
    """It made sums that could not be rounded, and that stopped every command."""
    assert dollars(value) is None
    assert dollars(0.1) == Decimal("0.1")


def test_an_integer_of_5_000_digits_hides_nothing_of_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = claude_line(0, "9" * 5_000).replace('"costUSD"', '"content":[{"type":"text","text":" "},{"type":"text","text":"Hi"}],"costUSD"')
    (path := tmp_path / "log.jsonl").write_text(f"{line}\n{line}")
    assert run(["repair", str(path), "-o", str(tmp_path / "mended")]) == 0
    assert "mended: line 1: " in capsys.readouterr().out
    assert [request.fresh for request in last_requests([line.encode()])] == [7]
