"""`context-window top` in a real terminal, and what it says where it cannot run."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from pathlib import Path

import pytest

from context_window.cli import run
from session.extras import install_line
from tests.cli.test_cli_hostile import MARK
from tests.support.shell import Shell

from .logs import Session, two_projects, written

HAS_PTY = os.name == "posix"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ESCAPES = re.compile(r"\x1b(\]22;[a-z]+\x07|\[[0-9;?<>=$]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78])|\r|\n|\x0f|\x0e")
"""Sequences that move, colour and ask, and the one for the mouse pointer's shape; no titles, links or device strings."""


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "cache"))
    return Shell(capsys, monkeypatch)


@pytest.mark.skipif(not HAS_PTY, reason="needs a pty")
def test_it_runs_in_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """Keys go in and out, a log that grows is followed, q ends it with exit code 0 and gives the terminal back."""
    from tests.support.console import console

    logs = two_projects(tmp_path / "logs")
    with console("top", str(logs), width=80, rows=24, cwd=str(tmp_path), environment=environment(tmp_path)) as screen:
        screen.until("2 projects")
        screen.press("\x1b[<65;10;5M")  # the mouse's wheel
        screen.until("> /work/shop")
        screen.press("\x1b[<64;10;5M")
        screen.until("> /work/garden")
        click = "\x1b[<0;10;4M\x1b[<0;10;4m"
        screen.press(click)  # a click selects, a second one opens
        screen.until("> /work/shop")
        screen.press(click)
        screen.until("The blue door")
        screen.until("Mend the till.")
        screen.press("\x1b[B\r")
        screen.until("5 requests")
        till = Session("s-till")
        for _ in range(6):
            till.turn()
        written(till, logs)
        screen.until("7 requests")
        screen.press("\r")
        screen.until("Read output: src/till.py")
        screen.until("14 items")  # the last line is drawn, so "7 requests" below is a new one
        assert len(screen.lines) == 24
        assert max(map(len, screen.lines)) <= 80
        assert screen.beyond == []
        screen.press("\x1b")
        screen.until("7 requests")
        screen.press("q")
        assert screen.leave() == 0
        assert screen.sent.rindex("\x1b[?1049l") > screen.sent.rindex("\x1b[?1049h")


@pytest.mark.skipif(not HAS_PTY, reason="needs a pty")
@pytest.mark.parametrize("colours", [True, False])
def test_what_is_sent_to_the_terminal_is_colours_and_places(tmp_path: Path, *, colours: bool) -> None:
    """Nothing of a hostile log is, and with NO_COLOR no colour either."""
    from tests.support.console import console

    hostile = Session("s", f"/work/{MARK}", MARK)
    hostile.turn(file=MARK)
    hostile.write(tmp_path / "logs", "log.jsonl")
    none: dict[str, str] = {} if colours else {"NO_COLOR": "1"}
    with console("top", str(tmp_path / "logs"), width=120, rows=24, cwd=str(tmp_path), environment=environment(tmp_path) | none) as screen:
        for shown in ("1 project", "1 session", "2 requests", "4 items"):
            screen.until(shown)
            screen.press("\r")
        screen.press("q")
        assert screen.leave() == 0
        left = ESCAPES.sub("", screen.sent)
        assert [character for character in left if unicodedata.category(character)[0] == "C"] == []
        numbers = {number for code in COLOURS.findall(screen.sent) for number in re.findall(r"\d+", code)}
        assert bool(numbers & {str(number) for number in (*range(30, 38), *range(90, 98), 38)}) is colours


@pytest.mark.skipif(not HAS_PTY, reason="needs a pty")
@pytest.mark.parametrize(("reader", "shown"), [("schedulers.read_batch", "2 projects"), ("logs.never_done", "reading 0%")])
def test_many_logs_are_read_by_several_processes_behind_the_screen(tmp_path: Path, reader: str, shown: str) -> None:
    """And q does not wait for them."""
    import pexpect

    folder = two_projects(tmp_path / "logs")
    code = f"""
from context_window.cli import main
from context_window.spend import log_files, schedulers
from tests.top import logs
schedulers.WORTH_PROCESSES, log_files.BATCH_LOGS = 0, 1
schedulers.read_here, schedulers.read_batch = None, {reader}
main(["top", {str(folder)!r}])
"""
    env = {**os.environ, **environment(tmp_path), "TERM": "xterm-256color"}
    child: pexpect.spawn[str] = pexpect.spawn(sys.executable, ["-c", code], dimensions=(24, 80), env=env, encoding="utf-8", timeout=60)
    child.expect_exact(shown)
    child.send("q")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def environment(folder: Path) -> dict[str, str]:
    return {"CONTEXT_WINDOW_HOME": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.mark.parametrize("args", [["-"], [""], ["s3://logs/x"], ["gone.jsonl"]])
def test_a_path_that_is_none_is_one_line(shell: Shell, args: list[str]) -> None:
    code, out, err = shell("top", *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert ("does not exist" in err) is (args == ["gone.jsonl"])


def test_without_logs_it_says_where_it_looked(shell: Shell, tmp_path: Path) -> None:
    assert shell("top")[2] == (
        "context-window: no logs found where the known tools write them; pass the path of a log or of a folder of logs\n"
    )
    assert "below the given paths" in shell("top", tmp_path)[2]


def test_without_a_terminal_it_names_other_commands(shell: Shell, tmp_path: Path) -> None:
    code, out, err = shell("top", two_projects(tmp_path / "logs"))
    assert (code, out) == (2, "")
    assert err == "context-window: top needs a terminal; `context-window spend` prints the same figures, `timeline` those of one session\n"


def test_without_the_extra_it_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("textual", "context_window.top"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert run(["top", str(two_projects(tmp_path / "logs"))]) == 2
    assert capsys.readouterr().err == f"context-window: the browser needs more packages: {install_line('top')}\n"
