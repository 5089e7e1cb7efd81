"""`context-window chat` from a shell: replays without a terminal, lines from a pipe, and one line for each fault."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from context_window.display.lines import width_of
from context_window.display.rendering import text_of
from context_window.repl.picture import BUDGET, sample, scene, svg
from session.store import SessionStore
from tests.support.screens import long_session, read_report, saved
from tests.support.shared import ROOT
from tests.support.shell import HERE, POSIX, Shell, program


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "home"))
    return Shell(capsys, monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return saved(long_session(4), tmp_path / "session.json")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_replay_runs_by_itself_with_auto(shell: Shell, path: str, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = shell("chat", "--replay", path, "--auto", "--max-tokens", 3_000)
    assert (code, err) == (0, "")
    assert re.findall(r"turn (\d+) of 6", out) == list("123456")
    assert out.count("of 3,000 tokens") == 6
    assert max(map(width_of, out.splitlines())) <= width
    assert "\x1b" not in out


def test_lines_may_come_from_a_pipe(shell: Shell, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n/context\n/nonsense\n\n/quit\n\n"))
    code, out, _ = shell("chat", "--replay", path, "--max-tokens", 3_000)
    assert code == 0
    assert re.findall(r"turn (\d+) of 6", out) == list("123")
    assert read_report(out[out.index("what the model sees") :]).total
    assert "/nonsense is no command" in out


def test_what_is_saved_in_a_replay_is_what_was_gone_through(
    shell: Shell, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"/save {out}\n/save {tmp_path / 'no' / 'folder'}\n"))
    code, said, _ = shell("chat", "--replay", path)
    assert code == 0
    assert "there is no folder" in said
    assert "pass another name" in said
    assert "pass -o" not in said
    assert "What does file" not in out.read_text(encoding="utf-8")
    assert shell("usage", out)[0] == 0


def test_a_replay_never_overwrites_its_transcript(shell: Shell, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a saved session with the same id, and yet it holds more than has been gone through."""
    before = Path(path).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"/save {path}\n/save --force {path}\n"))
    code, out, _ = shell("chat", "--replay", path)
    assert code == 0
    assert " ".join(out.split()).count("which is never overwritten; pass another name") == 2
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "ANTHROPIC_API_KEY is not set: export your key, or"),
        (("--continue",), "ANTHROPIC_API_KEY is not set"),
        (("--replay", "{path}", "--continue"), "pass one of them"),
        (("--auto",), "--auto goes with --replay"),
        (("--session", "x"), "--session goes with --replay"),
        (("--replay", "nowhere.json"), "nowhere.json"),
        (("--replay", "-"), "add --auto"),
        (("--replay", "{path}", "--model", "nobody-knows"), "is not known"),
    ],
)
def test_a_fault_is_one_line(shell: Shell, path: str, args: tuple[str, ...], told: str) -> None:
    code, out, err = shell("chat", *(arg.format(path=path) for arg in args))
    assert code == 2
    assert out == ""
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--continue",), "there is no session to go on with yet"),
        (("--model", "gpt-5"), "none of Anthropic's models"),
        (("--model", "claud-sonnet-4-5"), "did you mean"),
    ],
)
def test_so_is_one_with_a_key(shell: Shell, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], told: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    code, _, err = shell("chat", *args)
    assert code == 2
    assert told in err
    assert err.count("\n") == 1


def test_a_damaged_file_of_sessions_is_said_to_be_one(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sessions.db").write_bytes(b"no database, but long enough to be one" * 100)
    code, _, err = shell("chat", "--continue")
    assert code == 2
    assert "sessions.db" in err
    assert err.count("\n") == 1


@POSIX
def test_a_home_that_cannot_be_made_is_said(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    (tmp_path / "file").touch()
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "file" / "home"))
    code, _, err = shell("chat")
    assert code == 2
    assert "set CONTEXT_WINDOW_HOME" in err


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-sec\nret", " sk-secret", "sk-sec\x7fret", " "])
def test_a_key_that_is_none_is_said_to_be_one_and_not_shown(shell: Shell, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    code, out, err = shell("chat")
    assert (code, out) == (2, "")
    assert "ANTHROPIC_API_KEY holds" in err
    assert "sec" not in err


@POSIX
@pytest.mark.parametrize("name", ["history", "sessions.db"])
def test_a_pipe_among_what_is_kept_makes_nobody_wait(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    (tmp_path / "home").mkdir()
    os.mkfifo(tmp_path / "home" / name)
    code, _, err = shell("chat")
    assert code == 2
    assert name in err
    assert err.count("\n") == 1


def test_a_file_of_sessions_that_is_damaged_need_not_stop_the_chat_for_ever(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sessions.db").write_bytes(b"no database, but long enough to be one" * 100)
    code, _, err = shell("chat")
    assert code == 2
    assert "move it elsewhere, and the chat begins a new one" in err


def test_a_session_that_is_damaged_can_be_left_alone(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    with SessionStore(tmp_path / "home" / "sessions.db") as store:
        session = store.create("one")
        session.add_message("user", "what was said long ago")
        store.create("two").add_message("user", "what is whole")
        session.add_message("user", "and what came last")
    file = tmp_path / "home" / "sessions.db"
    file.write_bytes(file.read_bytes().replace(b"long ago", b"lone ago"))
    code, _, err = shell("chat", "--continue")
    assert code == 2
    assert "without --continue the chat begins a new session" in err
    assert err.count("\n") == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("/load\n/load one\n/load three\n/load two\n"))
    code, out, _ = shell("chat")
    assert code == 0
    assert "is damaged" in out
    assert out.count("salvage") == 2
    assert "no session has the id 'three'" in " ".join(out.split())
    assert "> what is whole" in out


def test_of_a_file_with_many_sessions_none_is_loaded(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    lists = [{"messages": [{"role": "user", "content": f"Question {number}?"}]} for number in range(3)]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, lists)), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"/load {tmp_path / 'many.jsonl'}\n"))
    code, out, _ = shell("chat")
    assert code == 0
    assert "many.jsonl holds 3 sessions; `context-window chat --replay` with" in out


@POSIX
def test_a_closed_output_is_nobody_to_tell(path: str) -> None:
    command = shlex.join(program("chat", "--replay", path, "--auto")) + " >&-"
    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True, timeout=60, cwd=HERE)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_chat_in_which_nothing_is_said_asks_nobody_and_keeps_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setattr(sys, "stdin", io.StringIO("/help\n/context\n"))
    code, out, err = shell("chat", "--max-tokens", 9_000)
    assert (code, err) == (0, "")
    assert "/compact" in out
    assert "kept as" not in out
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert shell("chat", "--continue")[0] == 2
    assert sorted(one.name for one in (tmp_path / "home").iterdir())[:1] == ["history"]


def test_the_line_editor_waits_until_it_is_needed() -> None:
    code = "import sys, context_window.cli; print('prompt_toolkit' in sys.modules, 'anthropic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60, cwd=HERE).stdout
    assert said.split() == ["False", "False"]
    assert program("chat")[-1] == "chat"


def test_the_picture_shows_a_trim_and_the_figures_of_the_view() -> None:
    told = "\n".join(text_of(draw, 100) for draw in scene(sample()))
    shown = read_report(told[told.index("> /context") :])
    assert f"{shown.total:,} of {BUDGET:,} tokens" in told[: told.index("> /context")]


def test_the_picture_in_the_readme_is_one_that_fetches_nothing() -> None:
    for text in (svg(), (ROOT / "docs" / "chat.svg").read_text(encoding="utf-8")):
        root = ET.fromstring(text)
        assert root.tag.endswith("svg")
        assert "url(http" not in text
        assert "what&#160;the&#160;model&#160;sees" in text
    assert "trimmed" in text  # other counters may trim at other turns; the picture is of one that does
