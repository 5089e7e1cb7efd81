"""`setup` shows what it writes into an assistant's settings, and takes it out byte for byte."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_window.cli import run
from context_window.gateway.client_settings import text_of

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
FILES = {
    "claude-code": ".claude/settings.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "codex": ".codex/config.toml",
}
OURS = {
    ("claude-code", ""): "statusLine",
    ("claude-code", "--gateway"): "statusLine env",
    ("gemini", ""): "security",
    ("gemini", "--mcp"): "security mcpServers",
    ("opencode", "--gateway"): "provider",
    ("opencode", "--mcp"): "mcp",
    ("opencode", "--gateway --mcp"): "provider mcp",
}
"""By assistant and options, the fields that hold something of ours."""
CODEX = st.sampled_from(
    [
        "",
        'model = "gpt-5"',
        '# mine\nmodel = "gpt-5"\n\n[tui]\nnotifications = true\n',
        '[mcp_servers.other]\ncommand = "x"',
        '[model_providers.other]\nname = "x"\n\n\n',
    ]
)


FEWER = settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""An example writes three times, and there are ten tests of them."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "made up")
    return tmp_path


@pytest.mark.parametrize(("assistant", "options"), OURS)
@FEWER
@given(fields=st.none() | st.dictionaries(st.text(), VALUES), indent=st.sampled_from((None, 2, 4)))
def test_what_was_there_stays_and_comes_back(
    assistant: str, options: str, fields: dict[str, object] | None, indent: int | None, home: Path
) -> None:
    """Whatever the settings, and if there are none: other fields stay, a second time changes nothing, and --undo restores every byte."""
    ours = OURS[assistant, options].split()
    content = None if fields is None else json.dumps(fields, indent=indent)
    written = written_and_undone(home / FILES[assistant], ["setup", assistant, *options.split(), "--yes"], content)
    assert {name: value for name, value in json.loads(written).items() if name not in ours} == {
        name: value for name, value in (fields or {}).items() if name not in ours
    }


@pytest.mark.parametrize("options", ["--gateway", "--mcp", "--gateway --mcp"])
@FEWER
@given(content=CODEX)
def test_codex_keeps_its_own_settings(options: str, content: str, home: Path) -> None:
    """Every line of them stays, and its tables mean the same."""
    written = written_and_undone(home / FILES["codex"], ["setup", "codex", *options.split(), "--yes"], content)
    assert content in written
    now, before = tomllib.loads(written), tomllib.loads(content)
    assert now.get("model") == before.get("model")
    assert now.get("tui") == before.get("tui")
    if "--gateway" in options:
        assert now["model_providers"][now["model_provider"]]["base_url"] == "http://127.0.0.1:8383/openai/v1"
    if "--mcp" in options:
        assert now["mcp_servers"]["context-window"] == {"command": "context-window", "args": ["mcp"]}
    assert {**now.get("mcp_servers", {}), **before.get("mcp_servers", {})} == now.get("mcp_servers", {})


def written_and_undone(path: Path, command: list[str], content: str | None) -> str:
    """Write our part twice, undo it, and check that nothing is left of it. Returns what was written."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.unlink(missing_ok=True)
    old = None if content is None else content.encode()
    if old is not None:
        path.write_bytes(old)
    assert run(command) == 0
    written = path.read_bytes()
    assert run(command) == 0
    assert path.read_bytes() == written
    if written != old:
        assert run([*command[:2], "--undo"]) == 0
    assert (path.read_bytes() if path.exists() else None) == old
    assert [file.name for file in path.parent.iterdir()] == ([] if old is None else [path.name])
    return written.decode()


def test_parts_are_added_one_after_the_other(home: Path) -> None:
    """And taken out together."""
    path = home / FILES["codex"]
    path.parent.mkdir()
    path.write_text('model = "gpt-5"\n', encoding="utf-8")
    for option in ("--mcp", "--gateway"):
        assert run(["setup", "codex", option, "--yes"]) == 0
    assert set(tomllib.loads(path.read_text(encoding="utf-8"))) == {"model", "model_provider", "model_providers", "mcp_servers"}
    assert run(["setup", "codex", "--undo"]) == 0
    assert path.read_text(encoding="utf-8") == 'model = "gpt-5"\n'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('model_provider = "mine"', "model_provider of its own"),
        ('[model_providers.gateway]\nname = "x"', "gateway of its own"),
        ("=", "not changed"),
    ],
)
def test_what_the_user_has_in_the_same_place_is_left_alone(
    home: Path, content: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / FILES["codex"]
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    assert run(["setup", "codex", "--gateway", "--yes"]) == 2
    assert problem in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == content


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("claude-code --mcp", "run claude mcp add context-window -- context-window mcp"),
        ("gemini --gateway", "run context-window gateway -- gemini"),
        ("codex", "pass --gateway or --mcp"),
    ],
)
def test_what_cannot_be_set_up_is_said_with_the_way(home: Path, line: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup", *line.split(), "--yes"]) == 2
    assert problem in capsys.readouterr().err
    assert not list(home.iterdir())


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("assistant", sorted(FILES))
def test_a_pipe_in_the_place_of_settings_is_not_waited_for(assistant: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither by setup, nor by the gateway that starts the assistant."""
    path = home / FILES[assistant]
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert run(["setup", assistant, *(["--gateway"] if assistant != "gemini" else []), "--yes"]) == 2
    assert "regular file" in capsys.readouterr().err
    assert text_of(path) == ""


def test_a_status_line_of_one_s_own_is_kept_and_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is replaced once, as the command says. One that came later is not, since the place to keep it is taken."""
    path = home / FILES["claude-code"]
    path.parent.mkdir()
    own = json.dumps({"statusLine": {"type": "command", "command": "mine"}})
    path.write_text(own)
    assert run(["setup", "claude-code", "--yes"]) == 0
    assert "your own statusLine.command is replaced" in capsys.readouterr().err
    path.write_text(own)
    assert run(["setup", "claude-code", "--yes"]) == 2
    assert "its statusLine.command is not ours" in capsys.readouterr().err
    assert path.read_text() == own
