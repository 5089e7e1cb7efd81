"""`setup` shows what it writes into an assistant's settings, and takes it out byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_window.cli import run

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
FILES = {"claude-code": ".claude/settings.json", "gemini": ".gemini/settings.json"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("assistant", FILES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.none() | st.dictionaries(st.text(), VALUES), indent=st.sampled_from((None, 2, 4)))
def test_what_was_there_stays_and_comes_back(assistant: str, fields: dict[str, object] | None, indent: int | None, home: Path) -> None:
    """Whatever the settings, and if there are none: other fields stay, a second time changes nothing, and --undo restores every byte."""
    path = home / FILES[assistant]
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    old = None if fields is None else json.dumps(fields, indent=indent).encode()
    if old is not None:
        path.write_bytes(old)
    assert run(["setup", assistant, "--yes"]) == 0
    written = path.read_bytes()
    settings_now = json.loads(written)
    ours = "statusLine" if assistant == "claude-code" else "security"
    assert {name: value for name, value in settings_now.items() if name != ours} == {
        name: value for name, value in (fields or {}).items() if name != ours
    }
    assert run(["setup", assistant, "--yes"]) == 0
    assert path.read_bytes() == written
    if written != old:
        assert run(["setup", assistant, "--undo"]) == 0
    assert (path.read_bytes() if path.exists() else None) == old
    assert [file.name for file in path.parent.iterdir()] == ([] if old is None else [path.name])


def test_nothing_is_written_without_a_yes(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    assert run(["setup", "claude-code"]) == 0
    shown = capsys.readouterr().out
    assert '+    "command": "context-window statusline"' in shown
    assert "nothing was written" in shown
    assert not list(home.rglob("*.json"))


def test_settings_that_were_changed_since_are_not_overwritten(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / FILES["claude-code"]
    assert run(["setup", "claude-code", "--undo"]) == 2
    assert "was not changed by setup" in capsys.readouterr().err
    assert run(["setup", "claude-code", "--yes"]) == 0
    path.write_text('{"mine": 1}', encoding="utf-8")
    assert run(["setup", "claude-code", "--undo"]) == 2
    assert "was changed since" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == '{"mine": 1}'


@pytest.mark.parametrize("text", ["[1]", "{", '"a"', "\x00"])
def test_settings_that_cannot_be_read_are_left_alone(home: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    path = home / FILES["claude-code"]
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    assert run(["setup", "claude-code", "--yes"]) == 2
    assert "was not changed" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == text
    assert len(list(path.parent.iterdir())) == 1
