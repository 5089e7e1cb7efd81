"""`context-window chat` from a shell: replays without a terminal, lines from a pipe, and errors of one line."""

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
from context_window.display.render import text_of
from context_window.repl.screenshot import BUDGET, PICTURES, sample, scene
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
def test_auto_replays_every_turn_without_input(shell: Shell, path: str, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = shell("chat", "--replay", path, "--auto", "--max-tokens", 3_000)
    assert (code, err) == (0, "")
    assert re.findall(r"turn (\d+) of 6", out) == list("123456")
    assert out.count("of 3,000 tokens") == 6
    assert max(map(width_of, out.splitlines())) <= width
    assert "\x1b" not in out


def test_replay_reads_lines_from_a_pipe(shell: Shell, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n/context\n/nonsense\n\n/quit\n\n"))
    code, out, _ = shell("chat", "--replay", path, "--max-tokens", 3_000)
    assert code == 0
    assert re.findall(r"turn (\d+) of 6", out) == list("123")
    assert read_report(out[out.index("what the model sees") :]).total
    assert "unknown command /nonsense" in out


def test_save_in_a_replay_writes_only_the_turns_so_far(shell: Shell, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"/save {out}\n/save {tmp_path / 'no' / 'folder'}\n"))
    code, output, _ = shell("chat", "--replay", path)
    assert code == 0
    assert "is in no folder" in output
    assert "What does file" not in out.read_text(encoding="utf-8")
    assert shell("usage", out)[0] == 0


def test_a_replay_never_overwrites_its_transcript(shell: Shell, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transcript is a saved session with the same id, but holds more than the turns so far."""
    before = Path(path).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"/save {path}\n/save --force {path}\n"))
    code, out, _ = shell("chat", "--replay", path)
    assert code == 0
    assert " ".join(out.split()).count("which is never overwritten; choose another name") == 2
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "ANTHROPIC_API_KEY is not set: export your key, or"),
        (("--continue",), "ANTHROPIC_API_KEY is not set"),
        (("--replay", "{path}", "--continue"), "use one of them"),
        (("--auto",), "--auto needs --replay"),
        (("--session", "x"), "--session needs --replay"),
        (("--replay", "nowhere.json"), "nowhere.json"),
        (("--replay", "-"), "add --auto"),
        (("--replay", "{path}", "--model", "nobody-knows"), "is unknown"),
    ],
)
def test_an_error_is_one_line(shell: Shell, path: str, args: tuple[str, ...], expected: str) -> None:
    code, out, err = shell("chat", *(arg.format(path=path) for arg in args))
    assert code == 2
    assert out == ""
    assert expected in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--continue",), "there is no session to continue yet"),
        (("--model", "gpt-5"), "gpt-5 is not a model of Anthropic"),
        (("--model", "claud-sonnet-4-5"), "did you mean"),
    ],
)
def test_an_error_with_a_key_set_is_one_line(shell: Shell, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], expected: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    code, _, err = shell("chat", *args)
    assert code == 2
    assert expected in err
    assert err.count("\n") == 1


def test_a_damaged_session_file_is_named_in_one_line(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sessions.db").write_bytes(b"no database, but long enough to be one" * 100)
    code, _, err = shell("chat", "--continue")
    assert code == 2
    assert "sessions.db" in err
    assert err.count("\n") == 1


@POSIX
def test_a_data_folder_that_cannot_be_created_is_an_error(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    (tmp_path / "file").touch()
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "file" / "home"))
    code, _, err = shell("chat")
    assert code == 2
    assert "set CONTEXT_WINDOW_HOME" in err


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-sec\nret", " sk-secret", "sk-sec\x7fret", " "])
def test_an_invalid_key_is_an_error_that_does_not_show_it(shell: Shell, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    code, out, err = shell("chat")
    assert (code, out) == (2, "")
    assert "ANTHROPIC_API_KEY contains" in err
    assert "sec" not in err


@POSIX
@pytest.mark.parametrize("name", ["history", "sessions.db"])
def test_a_pipe_in_the_data_folder_does_not_block(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    (tmp_path / "home").mkdir()
    os.mkfifo(tmp_path / "home" / name)
    code, _, err = shell("chat")
    assert code == 2
    assert name in err
    assert err.count("\n") == 1


def test_the_error_for_a_damaged_session_file_says_to_move_it(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sessions.db").write_bytes(b"no database, but long enough to be one" * 100)
    code, _, err = shell("chat")
    assert code == 2
    assert "move it elsewhere, and the chat will create a new one" in err


def test_a_damaged_session_does_not_prevent_using_the_others(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    assert "start a new session without --continue" in err
    assert err.count("\n") == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("/load\n/load one\n/load three\n/load two\n"))
    code, out, _ = shell("chat")
    assert code == 0
    assert "is damaged" in out
    assert out.count(".recover") == 2
    assert "no session has the id 'three'" in " ".join(out.split())
    assert "> what is whole" in out


def test_load_refuses_a_file_with_several_sessions(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    lists = [{"messages": [{"role": "user", "content": f"Question {number}?"}]} for number in range(3)]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, lists)), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"/load {tmp_path / 'many.jsonl'}\n"))
    code, out, _ = shell("chat")
    assert code == 0
    assert "many.jsonl holds 3 sessions; to see one of them, run `context-window chat --replay` with" in out


@POSIX
def test_a_closed_output_ends_the_replay_silently(path: str) -> None:
    command = shlex.join(program("chat", "--replay", path, "--auto")) + " >&-"
    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True, timeout=60, cwd=HERE)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_chat_without_messages_calls_no_model_and_saves_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setattr(sys, "stdin", io.StringIO("/help\n/context\n"))
    code, out, err = shell("chat", "--max-tokens", 9_000)
    assert (code, err) == (0, "")
    assert "/compact" in out
    assert "saved as" not in out
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert shell("chat", "--continue")[0] == 2
    assert sorted(entry.name for entry in (tmp_path / "home").iterdir())[:1] == ["history"]


def test_prompt_toolkit_and_anthropic_are_imported_only_when_needed() -> None:
    code = "import sys, context_window.cli; print('prompt_toolkit' in sys.modules, 'anthropic' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60, cwd=HERE).stdout
    assert output.split() == ["False", "False"]
    assert program("chat")[-1] == "chat"


def test_the_picture_shows_a_trim_and_the_figures_of_the_view() -> None:
    text = "\n".join(text_of(draw, 100) for draw in scene(sample()))
    report = read_report(text[text.index("> /context") :])
    assert f"{report.total:,} of {BUDGET:,} tokens" in text[: text.index("> /context")]


@pytest.mark.parametrize(
    ("name", "phrase"),
    [("chat.svg", "what&#160;the&#160;model&#160;sees"), ("usage.svg", "SYSTEM_OUTPUT"), ("timeline.svg", "Largest&#160;jumps")],
)
def test_the_pictures_in_the_documents_are_current_and_fetch_nothing(name: str, phrase: str) -> None:
    for text in (PICTURES[name](), (ROOT / "docs" / name).read_text(encoding="utf-8")):
        root = ET.fromstring(text)
        assert root.tag.endswith("svg")
        assert "url(http" not in text
        assert phrase in text
    if name == "chat.svg":
        assert "trimmed" in text  # other counters may trim at other turns; the picture shows a turn that was trimmed
