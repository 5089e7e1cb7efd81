"""The command line in a real terminal, as a user sees it: read off the screen, at 60, 80 and 120 columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("pexpect", reason="needs a pty, which Windows has not")

import pexpect
import pyte

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.display.render import SHADES
from session.transcripts import read_transcript
from tests.support.screens import long_session, read_report, saved
from tests.support.shared import ROOT

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pty")


ROWS = 150
WIDTHS = [60, 80, 120]


@dataclass(frozen=True)
class Screen:
    """The screen after a command has ended.

    Attributes:
        lines: The lines, without blanks at their ends.
        unwrapped: The same lines on a far wider screen.
        styles: Colours and weights that are on it.
        code: How the command ended.
        output: Everything written to the terminal.
    """

    lines: list[str]
    unwrapped: list[str]
    styles: set[str]
    code: int | None
    output: str


@cache
def screen(*args: str, width: int, **environment: str) -> Screen:
    """Runs the command line in a terminal of this width; once, however many tests look at it."""
    env = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **environment}
    for name in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"} - set(environment):
        env.pop(name, None)
    child = pexpect.spawn(
        sys.executable, ["-m", "context_window", *args], dimensions=(ROWS, width), env=env, encoding="utf-8", timeout=60, cwd=str(ROOT)
    )
    child.expect(pexpect.EOF)
    child.close()
    output = child.before
    assert isinstance(output, str)
    pyte_screen, wide = _shown(output, width), _shown(output, width + 300)
    styles = {
        "bold" if cell.bold else cell.fg
        for row in pyte_screen.buffer.values()
        for cell in row.values()
        if cell.data.strip() and (cell.bold or cell.fg != "default")
    }
    return Screen(_lines(pyte_screen), _lines(wide), styles, child.exitstatus, output)


def _shown(output: str, width: int) -> pyte.Screen:
    pyte_screen = pyte.Screen(width, ROWS)
    pyte.Stream(pyte_screen).feed(output)
    return pyte_screen


def _lines(pyte_screen: pyte.Screen) -> list[str]:
    lines = [line.rstrip() for line in pyte_screen.display]
    while lines and not lines[-1]:
        lines.pop()
    return lines


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(long_session(model="claude-sonnet-4-5"), tmp_path_factory.mktemp("terminal") / "a session with a rather long name.json")


@pytest.mark.parametrize(("width", "tokens"), [*((width, 3_000) for width in WIDTHS), (80, 60_000)])
def test_the_rows_on_the_screen_sum_to_the_total_on_the_screen(path: str, width: int, tokens: int) -> None:
    printed = screen("usage", path, "--max-tokens", str(tokens), width=width)
    report = read_report("\n".join(printed.lines))
    usage = ContextWindowManager(
        "claude-sonnet-4-5", context_window=ContextWindow(max_tokens=tokens, keep_first_message=True)
    ).get_token_usage(read_transcript(path))
    assert printed.code == 0
    assert len(report.rows) == 5
    assert sum(report.rows.values()) == report.total == usage["total"]
    assert (report.free, report.over) == ((usage["available"], None) if usage["available"] >= 0 else (None, -usage["available"]))


@pytest.mark.parametrize(
    ("command", "width"), [*(("usage", width) for width in WIDTHS), ("plan", 60), ("plan", 120), ("demo", 60), ("demo", 80)]
)
def test_no_line_is_wider_than_the_screen(path: str, command: str, width: int) -> None:
    args = [command] if command == "demo" else [command, path, "--max-tokens", "3000"]
    printed = screen(*args, width=width)
    assert printed.code == 0
    assert len(printed.lines) > 10
    assert printed.lines == printed.unwrapped  # a line that had been wrapped would be one on the wider screen


def test_there_are_colours_and_they_can_be_turned_off(path: str) -> None:
    colours = {SHADES[name][1].lstrip("#") for name in ("magenta", "cyan", "green", "yellow", "blue")}
    assert {"bold", *colours} <= screen("usage", path, "--max-tokens", "60000", width=80).styles
    for off in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        printed = screen("usage", path, width=80, **off)
        assert "\x1b" not in printed.output
        assert read_report("\n".join(printed.lines)).total


def test_a_terminal_without_utf_8_gets_ascii(path: str) -> None:
    printed = screen("usage", path, width=80, PYTHONIOENCODING="ascii")
    assert printed.output.isascii()
    assert read_report("\n".join(printed.lines)).total


STEERING = "\x1b[2J\x1b]0;title\x07\x9b31m\x9d8;;x\x9c\u202egnp.exe\u2066\u200b\u2028\x7f日本 é"


@pytest.fixture(scope="module")
def steering(tmp_path_factory: pytest.TempPathFactory) -> str:
    session = Session(id="steering")
    session.add_message("user", STEERING, message_id="1", created_at=1)
    return saved(session, tmp_path_factory.mktemp("steering") / "s.json")


@pytest.mark.parametrize("out", ["-", "/dev/stdout", "/dev/tty"])
@pytest.mark.parametrize("command", ["convert", "process"])
def test_json_that_is_printed_on_a_terminal_steers_nothing(steering: str, command: str, out: str) -> None:
    """On a terminal, the JSON is printed with every control, format, unassigned, private and surrogate character escaped."""
    printed = screen(command, steering, "-o", out, width=120)
    assert printed.code == 0
    output = printed.output.replace("\r\n", "\n")
    assert [character for character in output if character != "\n" and not character.isprintable()] == []
    document = next(line for line in output.splitlines() if line.startswith("{"))
    assert Session.from_dict(json.loads(document)).messages()[0].text == STEERING
    assert "日本 é" in document


def test_json_for_a_terminal_of_another_encoding_is_ascii(steering: str) -> None:
    """In UTF-8, `日` has a byte that begins an escape sequence on a terminal of eight bits."""
    printed = screen("convert", steering, "-o", "-", width=120, PYTHONIOENCODING="latin-1")
    assert printed.output.isascii()
    assert STEERING in json.loads(printed.output.splitlines()[0])["items"][0]["content"][0]["text"]


def test_json_that_is_piped_is_not_escaped(steering: str, tmp_path: Path) -> None:
    """To a pipe or a file, the bytes are those of the document."""
    document = f"{json.dumps(read_transcript(steering).to_dict(), ensure_ascii=False)}\n".encode()
    line = [sys.executable, "-m", "context_window", "convert", steering, "-o"]
    for name in ("-", "/dev/stdout"):
        assert subprocess.run([*line, name], check=True, capture_output=True, cwd=ROOT).stdout == document
    subprocess.run([*line, str(tmp_path / "out.json")], check=True, capture_output=True, cwd=ROOT)
    assert (tmp_path / "out.json").read_bytes() == document
