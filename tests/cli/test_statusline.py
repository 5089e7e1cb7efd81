"""Claude Code's status line: true figures, one line for any input, and no more imports than it needs."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import statusline
from context_window.display.render import CODES
from context_window.statusline import status_line
from session.plan_limits import limits_of
from tests.support.gateways import gateway
from tests.support.stubs.answers import Say
from tests.support.stubs.anthropic import AnthropicStub


def usage(read: int, written: int = 0, fresh: int = 0, output: int = 0) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }


def answer(name: str, tokens: Mapping[str, object], **fields: Any) -> str:
    return json.dumps({"type": "assistant", "message": {"id": name, "usage": tokens}, **fields})


def transcript(folder: Path, lines: list[str]) -> str:
    path = folder / "log.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def run(text: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "context_window", "statusline"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=False, env={**os.environ, **environment})


def test_all_figures(tmp_path: Path) -> None:
    """Ten requests grow by 2,000 tokens each: 100,000 free tokens are room for 50 more."""
    lines = [answer(f"m{number}", usage(60_000 + 2_000 * number)) for number in range(9)]
    lines += [answer("m9", usage(75_000, written=2_000, fresh=1_000, output=22_000))]
    status = {
        "model": {"display_name": "Opus"},
        "context_window": {"context_window_size": 200_000},
        "transcript_path": transcript(tmp_path, lines),
        "cost": {"total_cost_usd": 1234.5},
    }
    assert status_line(status) == "Opus · 100k of 200k (50%) · cache 96% · room for about 50 more requests · $1,234.50"


def test_the_figures_that_are_passed_win_over_those_of_the_transcript(tmp_path: Path) -> None:
    window = {"context_window_size": 1_000_000, "current_usage": usage(2_000, fresh=500, output=100)}
    status = {"context_window": window, "transcript_path": transcript(tmp_path, [answer("m", usage(9))])}
    assert status_line(status) == "3k of 1M (0%) · cache 80%"


def test_a_compaction_begins_the_forecast_anew(tmp_path: Path) -> None:
    """Five requests of 100,000 more tokens each, then a compaction, then four steps of 1,000."""
    lines = [answer(f"a{number}", usage(100_000 * number)) for number in range(1, 6)]
    lines += [answer(f"b{number}", usage(10_000 + 1_000 * number)) for number in range(5)]
    status = {"context_window": {"context_window_size": 20_000}, "transcript_path": transcript(tmp_path, lines)}
    assert "room for about 6 more requests" in status_line(status)
    status["transcript_path"] = transcript(tmp_path, lines[:-1])
    assert "room" not in status_line(status)


def test_repeated_lines_sub_agents_and_damaged_lines_do_not_count(tmp_path: Path) -> None:
    lines = []
    for number in range(1, 6):
        tokens = usage(1_000 * number)
        lines += [answer(f"m{number}", tokens)] * 3 + [answer("other", usage(900_000), isSidechain=True), '{"type": "assis', "[]", "null"]
    status = {"context_window": {"context_window_size": 10_000}, "transcript_path": transcript(tmp_path, lines)}
    assert status_line(status) == "5k of 10k (50%) · cache 100% · room for about 5 more requests"


def test_only_the_end_of_a_long_transcript_is_read(tmp_path: Path) -> None:
    lines = [json.dumps({"type": "user", "message": {"content": "x" * 1_000}})] * 10_000 + [answer("m", usage(5_000))]
    assert status_line({"transcript_path": transcript(tmp_path, lines)}) == "5k · cache 100%"
    assert status_line({"transcript_path": transcript(tmp_path, lines[::-1])}) == "no request yet"


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    paths: list[object] = [str(tmp_path), str(tmp_path / "none"), "a\0b", 7, None]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        paths.append(str(tmp_path / "pipe"))
    for path in paths:
        assert status_line({"transcript_path": path, "cost": {"total_cost_usd": 0}}) == "$0.00"


@pytest.mark.parametrize(("filled", "colour"), [(139_999, ""), (140_000, statusline.YELLOW), (180_000, statusline.RED)])
def test_a_window_that_is_nearly_full_is_coloured(filled: int, colour: str) -> None:
    window = {"context_window_size": 200_000, "current_usage": usage(filled)}
    line = status_line({"context_window": window}, colours=True)
    assert line.startswith(colour)
    assert ("\033[0m" in line) == bool(colour)
    assert "\033" not in status_line({"context_window": window})


def test_its_colours_are_those_of_all_commands() -> None:
    assert (f"\033[{CODES['yellow']}m", f"\033[{CODES['red']}m") == (statusline.YELLOW, statusline.RED)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.data())
def test_any_json_gives_one_printable_line(data: st.DataObject) -> None:
    names = ["display_name", "id", "context_window_size", "current_usage", "total_cost_usd", "input_tokens", "output_tokens"]
    objects = st.dictionaries(st.sampled_from([*names[:-2], "x"]), VALUES | st.dictionaries(st.sampled_from(names), VALUES))
    status = data.draw(st.dictionaries(st.sampled_from(["model", "context_window", "cost", "transcript_path"]), objects | VALUES))
    line = status_line(status)
    assert line
    assert line.isprintable()


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "\x00", "[" * 100_000])
def test_anything_but_an_object_is_refused_in_one_line(text: str) -> None:
    result = run(text)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"context-window: ")
    assert result.stderr.count(b"\n") == 1


def test_the_program_prints_it_without_loading_the_command_line() -> None:
    window = {"context_window_size": 100, "current_usage": usage(95)}
    result = run(json.dumps({"model": {"id": "ä"}, "context_window": window}), NO_COLOR="1", PYTHONPROFILEIMPORTTIME="1")
    assert result.stdout.decode() == "ä · 95 of 100 (95%) · cache 100%\n"
    loaded = {line.rpartition(b"|")[2].strip() for line in result.stderr.splitlines()}
    assert b"context_window.statusline" in loaded
    assert loaded.isdisjoint({b"click", b"rich", b"pydantic", b"tiktoken", b"context_window.cli", b"session.items"})
    assert statusline.RED.encode() in run(json.dumps({"context_window": window}), NO_COLOR="").stdout


def test_the_command_says_how_to_install_it() -> None:
    command = [sys.executable, "-m", "context_window", "statusline", "--help"]
    assert '"statusLine": {"type": "command"' in subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("minutes", "hour", "shown"),
    [
        (4, False, ""),
        (7, False, "the cache is 7 minutes old: the next prompt writes 180k tokens, $0.68"),
        (50, True, ""),
        (180, True, "the cache is 3 hours old: the next prompt writes 180k tokens, $1.08"),
    ],
)
def test_the_price_of_a_resume_is_told_before_it_happens(tmp_path: Path, minutes: int, hour: bool, shown: str) -> None:
    """Once the provider's cache has forgotten the session: after five minutes, or an hour if it was written for so long."""
    then = (datetime.now(UTC) - timedelta(minutes=minutes, seconds=5)).isoformat().replace("+00:00", "Z")
    tokens = {**usage(170_000, written=8_000, output=2_000), "cache_creation": {"ephemeral_1h_input_tokens": 8_000 if hour else 0}}
    path = transcript(tmp_path, [answer("m", tokens, timestamp=then)])
    line = status_line({"model": {"id": "claude-sonnet-4-6"}, "transcript_path": path})
    assert line.endswith(shown) if shown else "cache is" not in line


def test_the_gateway_of_the_session_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its view and limit, which falls once the provider counts more than we do, its trims and savings; nothing without one, and soon."""
    with AnthropicStub(lambda _: [Say("Fine.")]) as stub, gateway(stub.url, 5_000) as address:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{address}/anthropic")
        assert "gateway" not in status_line({})
        messages: list[Any] = []
        with anthropic.Anthropic(base_url=f"{address}/anthropic", api_key="made up", max_retries=0) as client:
            for number in range(12):
                messages.append({"role": "user", "content": f"{number} " + "words " * 600})
                client.messages.create(model="claude-sonnet-4-6", max_tokens=10, messages=messages)
                messages.append({"role": "assistant", "content": "Fine."})
        shown = status_line({})
        assert re.search(r"gateway [2345]k of [2345]k, \d trims?, (saved \$0\.\d\d|\$0\.\d\d dearer)$", shown), shown
    assert "gateway" not in status_line({})
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://api.example")
    assert status_line({}) == "no request yet"


def test_an_integer_of_400_digits_is_left_out(tmp_path: Path) -> None:
    """On standard input and in the transcript: no float holds it."""
    huge = 10**400
    window = {"context_window_size": huge, "current_usage": usage(huge)}
    path = transcript(tmp_path, [answer("m", usage(huge))])
    line = status_line({"context_window": window, "cost": {"total_cost_usd": huge}, "transcript_path": path})
    assert line == status_line({"context_window": {"current_usage": usage(0)}})


def test_the_plan_s_limits_are_shown(tmp_path: Path) -> None:
    """Of Claude Code since 2.1.80: used so far, and when it is full at this pace if it is before it begins anew."""
    now = datetime.now(UTC).timestamp()
    limits = {
        "five_hour": {"used_percentage": 23.5, "resets_at": now + 9_000},
        "seven_day": {"used_percentage": 90, "resets_at": now + 300_000},
    }
    line = status_line({}, limits_of("claude_code", limits, now))
    assert re.fullmatch(r"5h 24% · 7d 90%, full (?:\w{3} )?\d\d:\d\d", line)
    home = tmp_path / "home"
    result = run(json.dumps({"rate_limits": limits}), CONTEXT_WINDOW_HOME=str(home))
    assert result.stdout.decode() == f"{line}\n"
    assert json.loads((home / "limits.json").read_bytes())["claude_code"]["rate_limits"] == limits
    result = run(json.dumps({"rate_limits": {"five_hour": {"used_percentage": "much"}}}), CONTEXT_WINDOW_HOME=str(home))
    assert result.stdout == b"no request yet\n"


def test_after_a_compaction_its_size_is_shown(tmp_path: Path) -> None:
    """The newest usage is that of before it: it would show a window that is no longer full."""
    lines = [
        answer("m", usage(140_000)),
        json.dumps({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"postTokens": 28_000}}),
    ]
    window = {"context_window_size": 200_000, "current_usage": None}
    assert status_line({"context_window": window, "transcript_path": transcript(tmp_path, lines)}).startswith("28k of 200k (14%)")
    lines.append(answer("n", usage(30_000)))
    assert status_line({"context_window": window, "transcript_path": transcript(tmp_path, lines)}).startswith("30k of 200k (15%)")


def test_after_a_compaction_of_unknown_size_nothing_is_shown(tmp_path: Path) -> None:
    """Claude Code has not always logged how much is left."""
    lines = [answer("m", usage(140_000)), json.dumps({"type": "system", "subtype": "compact_boundary", "compactMetadata": None})]
    window = {"context_window_size": 200_000, "current_usage": None}
    assert status_line({"context_window": window, "transcript_path": transcript(tmp_path, lines)}) == "no request yet"


@pytest.mark.parametrize("is_passed", ["whole", "sums", "nothing"])
def test_of_several_passes_the_window_holds_the_last(tmp_path: Path, is_passed: str) -> None:
    """An advisor's pass is another model's, and the totals sum up what one answer has read."""
    passes = [usage(117_000, output=45), usage(0, fresh=159_000, output=900), usage(117_000, 500, 50, 450)]
    kinds = ("message", "advisor_message", "message")
    sums = usage(234_000, 500, 50, 495)
    whole = sums | {"iterations": [each | {"type": kind} for each, kind in zip(passes, kinds, strict=True)]}
    window = {"context_window_size": 200_000, "current_usage": {"whole": whole, "sums": sums, "nothing": None}[is_passed]}
    status = {"context_window": window, "transcript_path": transcript(tmp_path, [answer("m", whole)])}
    assert status_line(status) == "118k of 200k (59%) · cache 99%"


def test_a_window_that_cannot_be_right_is_not_shown() -> None:
    """200,000 is stated in a session of a million tokens."""
    window = {"context_window_size": 200_000, "current_usage": usage(260_000)}
    assert status_line({"context_window": window}) == "260k · cache 100%"
    assert (
        status_line({"context_window": window, "model": {"id": "claude-opus-5[1m]"}}) == "claude-opus-5[1m] · 260k of 1M (26%) · cache 100%"
    )


@pytest.mark.parametrize("size", [700_000, 3_000_000])
def test_a_long_last_line_does_not_hide_the_requests(size: int, tmp_path: Path) -> None:
    lines = [answer("m", usage(5_000)), json.dumps({"type": "user", "message": {"content": "x" * size}})]
    assert status_line({"transcript_path": transcript(tmp_path, lines)}) == "5k · cache 100%"


def test_a_model_s_name_of_spaces_is_none() -> None:
    assert status_line({"model": {"id": "claude-sonnet-5-5", "display_name": "\r\n"}}) == "claude-sonnet-5-5"
    assert status_line({"model": {"id": " "}}) == "no request yet"


def pause_hook(event: object) -> str:
    """What the hook's answer tells the user; empty if it answers nothing. It never ends with 2, which would keep the prompt back."""
    command = [sys.executable, "-m", "context_window", "statusline", "--pause"]
    result = subprocess.run(command, input=json.dumps(event).encode(), capture_output=True, check=True)
    return json.loads(result.stdout)["systemMessage"] if result.stdout else ""


@pytest.mark.parametrize(
    ("minutes", "hour", "told"),
    [
        (4, False, ""),
        (7, False, "this pause cost $0.62: 180k tokens are written anew, since the cache has forgotten them after 7 minutes"),
        (50, True, ""),
        (180, True, "this pause cost $1.03: 180k tokens are written anew, since the cache has forgotten them after 3 hours"),
    ],
)
def test_the_hook_says_what_a_pause_cost(tmp_path: Path, minutes: int, hour: bool, told: str) -> None:
    """It is what reading the tokens from the cache would have saved: at $3.75 to write, $6 for an hour, and $0.30 to read a million."""
    then = (datetime.now(UTC) - timedelta(minutes=minutes, seconds=5)).isoformat().replace("+00:00", "Z")
    tokens = {**usage(170_000, written=8_000, output=2_000), "cache_creation": {"ephemeral_1h_input_tokens": 8_000 if hour else 0}}
    answered = json.loads(answer("m", tokens, timestamp=then))
    answered["message"]["model"] = "claude-sonnet-4-6"
    later = [answer("s", usage(5), timestamp=datetime.now(UTC).isoformat(), isSidechain=True), answer("e", usage(0), timestamp="2026")]
    path = transcript(tmp_path, [json.dumps(answered), *later, json.dumps({"type": "user"})])
    assert pause_hook({"transcript_path": path, "hook_event_name": "UserPromptSubmit", "prompt": "Go on."}) == told
    answered["message"]["model"] = "no-such-model"
    path = transcript(tmp_path, [json.dumps(answered)])
    unpriced = pause_hook({"transcript_path": path})
    assert unpriced == (told and f"after this pause{told.partition(':')[2]}")


def test_the_hook_answers_nothing_without_a_log_and_never_keeps_a_prompt_back(tmp_path: Path) -> None:
    for event in ({}, {"transcript_path": str(tmp_path / "no.jsonl")}, {"transcript_path": transcript(tmp_path, ["{", "[]", ""])}):
        assert pause_hook(event) == ""
    for text in ("", "[]", "[" * 100_000):
        command = [sys.executable, "-m", "context_window", "statusline", "--pause"]
        result = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
        assert (result.returncode, result.stdout, result.stderr.count(b"\n")) == (1, b"", 1)


def test_who_answers_byte_by_byte_in_the_place_of_the_gateway_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any program of this machine may listen there once the gateway has ended."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def dribble() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"HTTP/1.1 200 OK\r\n")
                    for _ in range(400):
                        connection.sendall(b"x")
                        time.sleep(0.05)

        threading.Thread(target=dribble, daemon=True).start()
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/anthropic")
        begun = time.monotonic()
        assert status_line({}) == "no request yet"
        assert time.monotonic() - begun < 5
