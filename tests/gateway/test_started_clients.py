"""Clients that the gateway starts find it: by variables, and by what some need besides. Real ones: `test_real_clients.py`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from context_window.gateway.clients import Start, started

HERE = "http://127.0.0.1:1"


def start(folder: Path, *command: str, **variables: str) -> Start:
    return started(command, HERE, {"HOME": str(folder / "home"), **variables}, folder)


def codex_provider(start: Start) -> Any:
    values = tomllib.loads("\n".join(value for value in start.command if "=" in value))
    assert values["model_provider"] == "gateway"
    return values["model_providers"]["gateway"]


def log_in(folder: Path, content: object) -> None:
    (folder / "home" / ".codex").mkdir(parents=True, exist_ok=True)
    (folder / "home" / ".codex" / "auth.json").write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("program", ["claude", "aider", "/usr/bin/qwen", "sh"])
def test_most_clients_need_nothing_but_variables(tmp_path: Path, program: str) -> None:
    """The gateway's addresses replace the user's, whose other variables stay. The command is the user's."""
    client = start(tmp_path, program, "-p", "Hi", OPENAI_BASE_URL="http://elsewhere", COLOR="1")
    assert tuple(client.command) == (program, "-p", "Hi")
    assert client.variables["OPENAI_BASE_URL"] == f"{HERE}/openai/v1"
    assert client.variables["ANTHROPIC_BASE_URL"] == f"{HERE}/anthropic"
    assert client.variables["COLOR"] == "1"
    assert client.variables["ENABLE_TOOL_SEARCH"] == "true"
    assert start(tmp_path, program, ENABLE_TOOL_SEARCH="false").variables["ENABLE_TOOL_SEARCH"] == "false"
    assert not list(tmp_path.iterdir())


def test_codex_gets_the_address_in_its_arguments(tmp_path: Path) -> None:
    """It does not read one from the environment."""
    client = start(tmp_path, "/usr/bin/codex", "exec", "Hi", OPENAI_API_KEY="k")
    assert [client.command[0], *client.command[-2:]] == ["/usr/bin/codex", "exec", "Hi"]
    own = {"name": "gateway", "base_url": f"{HERE}/openai/v1", "wire_api": "responses", "env_key": "OPENAI_API_KEY"}
    assert codex_provider(client) == own


@pytest.mark.parametrize(
    ("login", "path"),
    [
        ({"tokens": {"access_token": "t"}, "OPENAI_API_KEY": None}, "chatgpt"),
        ({"tokens": None, "OPENAI_API_KEY": "k"}, "openai/v1"),
        ({"tokens": {"access_token": "t"}, "OPENAI_API_KEY": "k"}, "openai/v1"),
        ([], "openai/v1"),
        ("[" * 100_000, "openai/v1"),
        (None, "openai/v1"),
    ],
    ids=["ChatGPT", "key", "both", "list", "nested", "nobody"],
)
def test_codex_goes_where_its_login_is_known(tmp_path: Path, login: object, path: str) -> None:
    """A login to ChatGPT is known by another server than a key. A damaged file is Codex's matter."""
    if login is not None:
        log_in(tmp_path, login)
    provider = codex_provider(start(tmp_path, "codex"))
    assert (provider["base_url"], provider["requires_openai_auth"]) == (f"{HERE}/{path}", True)


def test_opencode_gets_addresses_beside_the_users_configuration(tmp_path: Path) -> None:
    """What the user has in the same variable stays; what cannot be read stays as it is."""
    name = "OPENCODE_CONFIG_CONTENT"
    alone = json.loads(start(tmp_path, "opencode").variables[name])
    assert alone["provider"]["openai"] == {"options": {"baseURL": f"{HERE}/openai/v1"}}
    own: dict[str, Any] = {"theme": "dark", "provider": {"openai": {"options": {"baseURL": "http://mine"}}}}
    beside = json.loads(start(tmp_path, "opencode", **{name: json.dumps(own)}).variables[name])
    assert (beside["theme"], beside["provider"]["openai"]) == ("dark", own["provider"]["openai"])
    assert beside["provider"]["anthropic"]["options"]["baseURL"] == f"{HERE}/anthropic/v1"
    assert start(tmp_path, "opencode", **{name: "{"}).variables[name] == "{"


def test_pi_reads_a_file_of_ours(tmp_path: Path) -> None:
    """Its own settings are not touched."""
    client = start(tmp_path, "pi", "-p", "Hi")
    program, option, file, *rest = tuple(client.command)
    assert (program, option, rest) == ("pi", "--extension", ["-p", "Hi"])
    assert f'registerProvider("anthropic", {{ baseUrl: "{HERE}/anthropic" }})' in Path(file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [
        ({"security": {"auth": {"selectedType": "gemini-api-key"}}}, False),
        ({"security": {"auth": {}}}, True),
        ({"security": []}, True),
        (None, True),
    ],
    ids=["set", "unset", "odd", "none"],
)
def test_who_starts_gemini_without_its_setting_is_told(
    tmp_path: Path, settings: object, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It would end with "Invalid auth method selected." It takes such a setting from files of its own, or of root's, alone."""
    if settings is not None:
        (tmp_path / "home" / ".gemini").mkdir(parents=True)
        (tmp_path / "home" / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    start(tmp_path, "gemini")
    assert ("context-window setup gemini" in caplog.text) == is_told
