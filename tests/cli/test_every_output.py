"""Whatever a command is given, and by whichever option, nothing that data holds steers the terminal, the page or the table it goes to.

The command lines are made from the commands themselves: a new option is tried as soon as there is one.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest

import context_window
from context_window.cli import commands, run
from context_window.cli.options import TokenBudget, WholeNumber
from context_window.cli.output import CLEAR
from context_window.cli.watch import INTERVAL

from .test_cli_hostile import MARK, file_name, hostile, raw

PACKAGE = Path(context_window.__file__).parent
"""Of what is tried: the tree, or what was installed."""
FORMULA = f"=1+1{MARK}\r=2+2\n"
TEXT = MARK.replace("\0", "").replace("/", "")
"""The mark, as an argument or a file's name may hold it."""
MOVES = re.compile(r"\x1b\[(?:\d*A|2K|\?25[lh])|\r")
"""How a bar or a line is drawn again, by us or by rich."""
DAYS_AND_ZONES = {"since": "2026-01-01", "until": "yesterday", "zone": "UTC"}
RUNNING = frozenset({"mcp"})
"""Commands that speak a protocol to a program and nothing to a terminal."""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="names that Windows does not allow, and ptys")


def test_only_one_module_writes_to_standard_output() -> None:
    """The writers of `output.py` are the only way there. The status line has its own, since it loads nothing."""
    writing = {
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "click.echo", "click.secho", *STREAMS}
    }
    assert writing == {"cli/output.py", "statusline.py"}


STREAMS = {f"sys.{stream}.{write}" for stream in ("stdout", "stderr") for write in ("write", "buffer.write", "writelines")}


def command_lines(name: str, logs: list[str]) -> Iterator[list[str]]:
    """Return a line with every value of every option of a command, beside what it needs."""
    command = commands.commands[name]
    arguments = [word for parameter in command.params if isinstance(parameter, click.Argument) for word in words(parameter, logs)[0]]
    needed = [word for option in command.params if option.required and option.opts[0].startswith("-") for word in (option.opts[0], "-")]
    end = ["--", "true"] if name == "gateway" else []
    yield [name, *needed, *arguments, *end]
    for option in command.params:
        if isinstance(option, click.Option):
            for values in words(option, logs):
                others = [] if option.required else needed
                line = [name, *others, option.opts[0], *values, *arguments]
                yield [*line, *end]
                if any("--json" in each.opts for each in command.params):
                    yield [*line, "--json"]
        elif isinstance(option.type, click.Choice):
            yield from ([name, *needed, *values] for values in words(option, logs))


def words(parameter: click.Parameter, logs: list[str]) -> list[list[str]]:
    """Return values that a parameter may have, each as the words of a command line."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [[]]
    if isinstance(parameter.type, click.Choice):
        return [[str(choice)] for choice in parameter.type.choices]
    if isinstance(parameter.type, (TokenBudget, WholeNumber, click.IntRange)):
        return [["0" if "--port" in parameter.opts else "300"], [TEXT]]
    if isinstance(parameter.type, click.FloatRange):
        return [["0.5"], [TEXT]]
    if parameter.name in DAYS_AND_ZONES:
        return [[DAYS_AND_ZONES[parameter.name]], [TEXT]]
    if isinstance(parameter, click.Argument):
        given: dict[str, list[list[str]]] = {"command": [[]], "words": [[TEXT]]}
        return given.get(str(parameter.name), [[logs[0]]])
    return [[TEXT], [logs[0]], ["-"]]


@pytest.mark.parametrize("name", sorted(set(commands.commands) - RUNNING))
def test_no_option_prints_what_steers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a pty, for a session and for a log whose every text, name and path is hostile."""
    logs = [written_session(tmp_path), written_log(tmp_path)]
    prepare(tmp_path, monkeypatch)
    lines = {tuple(line) for log in logs for line in command_lines(name, [log])}
    assert lines
    for line in sorted(lines):
        assert (line, raw(printed([*line]))) == (line, [])
    for page in tmp_path.rglob("*.html"):
        assert raw(page.read_text("utf-8")) == []


def prepare(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Give commands a home and a folder of their own, and let none wait."""
    home = folder / f"home{TEXT}"
    home.mkdir()
    patch.chdir(home)
    for variable in ("HOME", "XDG_CACHE_HOME", "CONTEXT_WINDOW_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        patch.setenv(variable, str(home))
    patch.setenv("ANTHROPIC_API_KEY", "key")
    patch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    patch.setenv("TERM", "xterm-256color")
    patch.delenv("NO_COLOR", raising=False)
    sleep = time.sleep

    def interrupted(seconds: float) -> None:
        if seconds == INTERVAL:
            raise KeyboardInterrupt
        sleep(seconds)

    patch.setattr("context_window.cli.watch.time.sleep", interrupted)


def printed(line: list[str]) -> str:
    """Return what a command prints on a pty, by standard output and standard error."""
    with pty() as (terminal, shown), pytest.MonkeyPatch.context() as patch:
        status = json.dumps({"model": {"display_name": MARK, "id": MARK}, "cost": {"total_cost_usd": 1}, "transcript_path": line[-1]})
        one_line = re.sub(r"[\r\n]", "", f"{MARK}|{line[-1]}").split("|")
        typed = f"/load {one_line[1]}\n/usage\n/recall {one_line[0]}\n/{one_line[0]}\n/quit\n" if line[0] == "chat" else status
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()), "utf-8"))
        patch.setattr(sys, "stdout", terminal)
        patch.setattr(sys, "stderr", terminal)
        run(line)
        terminal.flush()
    return MOVES.sub("", b"".join(shown).decode().replace(CLEAR, ""))


@contextmanager
def pty() -> Iterator[tuple[io.TextIOWrapper, list[bytes]]]:
    """A pty, as a stream, and what is printed on it. It has no input."""
    ours, theirs = os.openpty()
    shown: list[bytes] = []

    def read() -> None:
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # nobody has the other end
                return
            if not piece:
                return
            shown.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with open(theirs, "wb", buffering=0) as file, io.TextIOWrapper(file, "utf-8", errors="replace", write_through=True) as terminal:
            yield terminal, shown
    finally:
        reader.join(10)
        os.close(ours)


def written_session(folder: Path) -> str:
    """Write a hostile session, and return its path."""
    path = folder / file_name(MARK)
    path.write_text(json.dumps(hostile(MARK).to_dict()), encoding="utf-8")
    return str(path)


def written_log(folder: Path) -> str:
    """Write a log of Claude Code in which every text, name and path begins like a formula and is hostile, and return its path."""
    path = folder / f"project{TEXT}" / f"{FORMULA.replace(chr(0), '').replace('/', '')}.jsonl"
    path.parent.mkdir()
    common = {"sessionId": FORMULA, "cwd": f"/place/{FORMULA}", "gitBranch": FORMULA, "version": FORMULA}
    call = {"type": "tool_use", "id": "c1", "name": FORMULA, "input": {"command": FORMULA, FORMULA: FORMULA}}
    answer = {"id": "m1", "role": "assistant", "model": FORMULA, "content": [call], "usage": {"input_tokens": 100_000, "output_tokens": 9}}
    result: list[Any] = [{"type": "tool_result", "tool_use_id": "c1", "content": FORMULA * 50}]
    records: list[dict[str, Any]] = [
        {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": FORMULA}},
        {"type": "assistant", "uuid": "2", "parentUuid": "1", "requestId": "r1", "message": answer},
        {"type": "user", "uuid": "3", "parentUuid": "2", "message": {"role": "user", "content": result}},
        {"type": "assistant", "uuid": "4", "parentUuid": "3", "requestId": "r2", "message": {**answer, "id": "m2", "content": FORMULA}},
        {"type": FORMULA, "uuid": "5"},
    ]
    stamped = [{**common, "timestamp": f"2026-01-02T03:04:{number:02}Z", **record} for number, record in enumerate(records)]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in stamped), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("grouping", ["project", "model", "session", "tool", "agent", "day"])
def test_no_name_leaves_its_cell_or_runs(
    grouping: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`spend --csv` has one row for each group, and no cell that a spreadsheet runs."""
    log = written_log(tmp_path)
    prepare(tmp_path, monkeypatch)
    assert run(["spend", log, "--csv", "--by", grouping]) == 0
    rows = list(csv.reader(io.StringIO(capfd.readouterr().out)))
    assert [len(row) for row in rows] == [len(rows[0])] * 2
    assert not [cell for cell in rows[1] if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


@pytest.mark.parametrize("many", [False, True], ids=["session", "folder"])
def test_a_page_shows_no_name_reversed_and_none_as_markup(many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has no bidi or control character, and no element whose name data gave."""
    log = Path(written_log(tmp_path))
    prepare(tmp_path, monkeypatch)
    assert run(["report", str(log.parent if many else log), "-o", "page.html"]) == 0
    page = Path("page.html").read_text("utf-8")
    assert raw(page) == []
    parser = HTMLParser()
    names: set[str] = set()
    monkeypatch.setattr(parser, "handle_starttag", lambda name, _: names.add(name))
    parser.feed(page)
    assert "table" in names
    assert all(name.isascii() and name.isalnum() for name in names)
