"""Nothing that a transcript holds steers the terminal that a command prints to.

No command, given a transcript whose every text, id, name, path and model is full of control and bidi characters, ever prints one of
them raw. What colours need (SGR) is the only escape sequence there is.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import Session
from context_window.cli import run
from context_window.cli.output import guard_terminal
from context_window.cli.progress import progress_bar
from context_window.printable import escaped, printable
from session.store import SessionStore
from tests.session.test_secret_finder import shows
from tests.support.made_up_keys import made_up_keys
from tests.support.shell import HERE

HOSTILE = (
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31m",
    "\x9d0;title\x9c",
    "\x90q\x9c",
    "\x08\r\x7f\x0e\x00",
    "\u202egnp.exe\u202c",
    "\u2066\u2069\u200f\u061c",
    "\ufeff\u200b\u2028\u2029\u0085",
    "\U000e0041\ue000\U0010fffe",
)
"""ESC, CSI and OSC in both spellings, DCS, C0, bidi overrides and isolates, zero width, line separators, tags, private, unassigned."""
MARK = "".join(HOSTILE)
SGR = re.compile(r"\x1b\[[0-9;]*m")
KEY = made_up_keys()[0]
PROVIDERS = ("anthropic", "openai", "openai-responses", "google")


class Tty(io.TextIOWrapper):
    """A terminal that records its output."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, errors="replace", newline="", write_through=True)

    def isatty(self) -> bool:
        return True

    def sent(self) -> str:
        self.flush()
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode(self.encoding, "replace")


def raw(text: str) -> list[str]:
    """Characters of the text that a terminal would act on, or that could be anything."""
    remaining = SGR.sub("", text).replace("\n", "")
    return [
        character for character in remaining if unicodedata.category(character)[0] == "C" or unicodedata.category(character) in {"Zl", "Zp"}
    ]


def hostile(mark: str) -> Session:
    """A session with the mark in every place that takes a text."""
    session = Session(id=f"id{mark}", metadata={"model": f"model{mark}", "title": f"title{mark}", "directory": f"/place{mark}"})
    session.metadata["warnings"] = [f"line 7: {mark}"]
    session.metadata["source"] = {"format": f"format{mark}", "path": f"path{mark}"}
    session.add_message("system", f"Be terse. {mark}", message_id=f"system{mark}")
    session.add_context(f"Notes {mark} " * 40, source=f"NOTES{mark}.md")
    for turn in range(3):
        session.add_message("user", f"{mark} look {mark}", message_id=f"user{turn}{mark}")
        session.add_function_call(f"tool{mark}", {f"path{mark}": f"{mark}/x"}, f"call{turn}{mark}")
        session.add_function_output(f"tool{mark}", f"out {mark} " * 80, f"call{turn}{mark}", is_error=turn == 1)
        session.add_message("assistant", f"answer {mark}", message_id=f"answer{turn}{mark}")
    session.add_message("user", f"and now? {mark}")
    return session


def file_name(mark: str) -> str:
    return "log" + mark.replace("/", "").replace("\0", "") + ".json"


def lines_of(path: Path, mark: str, tmp_path: Path) -> list[list[str]]:
    """Command lines whose every argument may hold the mark."""
    mark = mark.replace("\0", "")
    name, other = str(path), str(tmp_path / f"out{mark.replace('/', '')}")
    reading = [
        ["usage", name],
        ["usage", name, "--json"],
        ["usage", name, name, "--max-tokens", "100", "--strict"],
        ["usage", name, "--session", mark],
        ["usage", name, "--model", f"claude{mark}"],
        ["plan", name, "--max-tokens", "300", "--all"],
        ["plan", name, "--max-tokens", "300", "--one-shot", "--json"],
        ["plan", name, "--max-tokens", "10", "--strict"],
        ["chat", "--replay", name, "--auto", "--max-tokens", "300"],
        ["chat", "--replay", name],
        ["demo"],
    ]
    writing = [
        *(["convert", name, "-o", "-", "--to", to] for to in ("session", *PROVIDERS)),
        ["process", name, "-o", "-", "--max-tokens", "300"],
        ["process", name, "-o", "-", "--max-tokens", "10", "--json"],
        ["process", name, "-o", "/dev/stdout", "--max-tokens", "10", "--to", "anthropic"],
        ["convert", name, "-o", other],
        ["convert", name, "-o", other],
        ["convert", name, "-o", other, "--to", "openai"],
        ["convert", name, "-o", name, "--force"],
        ["process", name, "-o", other, "--json"],
        ["process", name, "-o", f"{other}/none/x"],
    ]
    wrong = [
        ["usage", f"{name}{mark}"],
        ["plan", f"{name}{mark}"],
        ["models", mark],
        ["models", mark, "--json"],
        [f"x{mark}"],
        ["usage", f"--{mark}"],
        ["usage", name, "--max-tokens", mark],
        ["plan", name, "--target-ratio", mark],
        ["process", name, "-o", other, "--to", mark],
        ["plan", name, mark],
        ["chat", "--replay", f"{name}{mark}"],
        ["chat", mark],
        ["chat", "--replay", name, "--session", mark],
    ]
    return [*reading, *writing, *wrong]


CHAT = """\
/usage
/plan all
/recall
/recall answer0{0}
/recall {0}
/model
/model {0}
/load
/load {0}
/load {1}
/save {1}
/save {1}{0}/none/x
hello {0}
/{0}
/help
/quit
"""


@pytest.mark.skipif(os.name != "posix", reason="names that Windows does not allow")
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_no_command_prints_what_steers_a_terminal(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / file_name(MARK)
    path.write_text(json.dumps(hostile(MARK).to_dict()), encoding="utf-8")
    damaged = tmp_path / f"damaged{file_name(MARK)}"
    damaged.write_text('{"version": 1, "id": "x", "items": [{"type": ' + json.dumps(MARK) + "}]}", encoding="utf-8")
    home = tmp_path / f"home{MARK.replace('/', '').replace(chr(0), '')}"
    with SessionStore(home / "sessions.db") as store:
        store.save(hostile(MARK))
    typed = CHAT.replace("{0}", MARK.replace("\n", "").replace("\r", "")).replace("{1}", str(path))
    lines = [*lines_of(path, MARK, tmp_path), ["usage", str(damaged)], ["convert", str(damaged), "-o", "-"], ["chat", "--continue"]]
    for line in lines:
        assert (line, raw(printed(line, typed, home, encoding))) == (line, [])


def printed(line: list[str], typed: str, home: Path, encoding: str) -> str:
    """Return the output of a command on a terminal, standard output and standard error together."""
    out, err = Tty(encoding), Tty(encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTEXT_WINDOW_HOME", str(home))
        patch.setenv("ANTHROPIC_API_KEY", "key")
        patch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        patch.setenv("TERM", "xterm-256color")
        patch.delenv("NO_COLOR", raising=False)
        patch.delenv("ANTHROPIC_MODEL", raising=False)
        patch.setattr(sys, "stdin", io.StringIO(typed))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        run(line)
        output = out.sent() + err.sent()
    assert output
    return output


def test_a_progress_bar_shows_no_file_name_that_steers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plain name has the same control sequences: those by which the bar is drawn again."""
    monkeypatch.setattr("context_window.cli.progress.PATIENCE", 0.0)
    output = []
    for mark in ("", MARK):
        path = tmp_path / file_name(mark)
        path.write_text(json.dumps(hostile(mark).to_dict()), encoding="utf-8")
        screen = Tty()
        monkeypatch.setattr(sys, "stderr", screen)
        with progress_bar(f"reading {printable(path.name)}", 1):
            give_up = time.monotonic() + 20
            while "reading log" not in screen.sent() and time.monotonic() < give_up:
                time.sleep(0.01)
        output.append(screen.sent())
    assert "reading log" in output[0]
    assert set(raw(output[1])) == set(raw(output[0]))
    assert "\x1b]" not in output[1]


@given(st.text(st.characters() | st.sampled_from(MARK)))
def test_a_printable_text_steers_nothing(text: str) -> None:
    """The text on one line, without anything that a terminal would act on."""
    printed = printable(text)
    assert [
        character for character in printed if character != "\N{REPLACEMENT CHARACTER}" and not (character.isprintable() or character == " ")
    ] == []


# JSON for a terminal


TEXTS = st.text(st.characters())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS, lambda some: st.lists(some) | st.dictionaries(TEXTS, some), max_leaves=10
)


@given(VALUES, st.sampled_from([None, 1]), st.booleans(), st.booleans())
def test_escaped_json_has_the_same_value(value: Any, indent: int | None, ascii_before: bool, only_ascii: bool) -> None:
    """Valid JSON with the same value, without a control, format, unassigned, private or surrogate character."""
    text = json.dumps(value, ensure_ascii=ascii_before, indent=indent)
    printed = escaped(text, only_ascii=only_ascii)
    assert raw(printed) == []
    assert printed.isascii() or not only_ascii
    assert json.loads(printed) == json.loads(json.dumps(json.loads(text)))
    assert escaped(printed, only_ascii=only_ascii) == printed


def test_every_character_survives() -> None:
    """All of Unicode, one character at a time in one text."""
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    printed = escaped(json.dumps([everything], ensure_ascii=False))
    assert json.loads(printed) == [everything]
    assert raw("".join(set(printed))) == []
    for surrogate in map(chr, range(0xD800, 0xE000)):
        printed = escaped(f'"{surrogate}"')
        assert printed.isascii()
        assert json.loads(printed) == surrogate


def test_texts_that_do_no_harm_stay_readable() -> None:
    text = json.dumps({"naïve": "日本語 é 👍 \u00a0"}, ensure_ascii=False)
    assert escaped(text) == text


# Faults that nobody expects


@contextmanager
def guarded() -> Iterator[Tty]:
    """A terminal that only what `guard_terminal` has put in place writes to."""
    screen = Tty()
    last = logging.lastResort
    assert last is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", screen)
        patch.setattr(last, "formatter", None)
        for module, name in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook"), (warnings, "showwarning")):
            patch.setattr(module, name, getattr(module, name))
        guard_terminal()
        yield screen


def raised() -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """A fault that quotes the mark, with its traceback."""
    with pytest.raises(ValueError, match="odd") as caught:
        exec(f"raise ValueError({f'odd things: {MARK}'!r})", {})
    return caught.type, caught.value, caught.tb


def a_log() -> None:
    """As asyncio logs what nobody has awaited: no handler is there, so that Python's last resort prints it."""
    record = logging.LogRecord("asyncio", logging.ERROR, "x.py", 7, "odd\nthings: %s", (MARK,), raised())
    assert logging.lastResort is not None
    logging.lastResort.handle(record)


def a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning(UserWarning(f"odd {MARK} things"), UserWarning, f"{MARK}.py", 7)


def a_crash() -> None:
    sys.excepthook(*raised())


def a_crash_in_a_thread() -> None:
    def crash() -> None:
        raise ValueError(f"odd things: {MARK}")

    thread = threading.Thread(target=crash)
    thread.start()
    thread.join()


def a_fault_that_cannot_be_raised() -> None:
    class Odd:
        def __del__(self) -> None:
            raise ValueError(f"odd things: {MARK}")

    Odd()


@pytest.mark.parametrize("fault", [a_log, a_warning, a_crash, a_crash_in_a_thread, a_fault_that_cannot_be_raised])
def test_what_python_says_of_a_fault_steers_nothing(fault: Callable[[], None]) -> None:
    with guarded() as screen:
        fault()
        output = screen.sent()
    assert "odd" in output
    assert "things" in output
    assert raw(output) == []


def test_a_traceback_is_as_python_prints_it_but_for_what_steers(tmp_path: Path) -> None:
    """A programmer sees the same traceback as Python would print."""
    code = "import sys; sys.argv[0] = 'x'\nimport context_window.cli as cli\n"
    code += "cli.run = lambda args: 1 / 0 if args else None\ncli.main(['x'])"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert "\n    sys.exit(run(args))\n" in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize(
    "line",
    [
        "usage KEY",
        "spend --by KEY",
        "spend --since KEY",
        "spend --scheduler tcp://me:KEY@elsewhere:8786",
        "convert - --to KEY",
        "gateway --host KEY",
        "gateway --max-cost KEY",
        "gateway --upstream openai=http://me:KEY@localhost:99999",
        "gateway -- KEY",
        "setup KEY",
        "KEY",
        "--KEY",
    ],
)
def test_no_complaint_shows_a_key(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """that was given in the wrong place, or in an address"""
    assert run(line.replace("KEY", KEY).split()) == 2
    shown = capsys.readouterr()
    assert shown.err
    assert not shows(shown.out + shown.err, KEY)
