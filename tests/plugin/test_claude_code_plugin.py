"""The plugin for Claude Code: its files always, and what the real client makes of them where it is installed.

`tests/gateway/test_real_clients.py` says how to install the client and to run these tests without a network.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import context_window
from context_window.cli import commands
from tests.support.gateways import run_client
from tests.support.shared import ROOT
from tests.support.shell import POSIX
from tests.support.stubs.answers import Say
from tests.support.stubs.anthropic import AnthropicStub

PLUGIN = ROOT / "claude-code-plugin"
CLIENTS = os.environ.get("CONTEXT_WINDOW_CLIENTS")
CLIENT = Path(CLIENTS or "", "node_modules", ".bin", "claude")
REAL = pytest.mark.skipif(
    CLIENTS is None or not CLIENT.exists(), reason="CONTEXT_WINDOW_CLIENTS names no folder with Claude Code (see tests/gateway)"
)
PATIENCE = 120
"""Seconds that the client may take."""
HOOK_EVENTS = ("SessionStart", "UserPromptSubmit")


def json_file(*parts: str) -> dict[str, Any]:
    value = json.loads(ROOT.joinpath(*parts).read_text("utf-8"))
    assert isinstance(value, dict)
    return value


def fields(value: Mapping[str, Any], required: Mapping[str, type], optional: Mapping[str, type] | None = None) -> None:
    """Check the names and the types of an object's fields, as the client's documentation has them."""
    known = {**required, **(optional or {})}
    assert value.keys() >= required.keys()
    assert value.keys() <= known.keys()
    assert all(isinstance(each, known[name]) for name, each in value.items())


def commands_of_ours() -> list[list[str]]:
    """All commands that the plugin runs."""
    groups = [group for event in json_file(PLUGIN.name, "hooks", "hooks.json")["hooks"].values() for group in event]
    texts_of_hooks = [hook["command"] for group in groups for hook in group["hooks"]]
    hooks = [part.partition("||")[0] for text in texts_of_hooks for part in text.split("; ") if part.startswith("context-window ")]
    assert hooks
    servers = json_file(PLUGIN.name, ".mcp.json")["mcpServers"].values()
    texts = "\n".join(file.read_text("utf-8") for file in (PLUGIN / "commands").iterdir())
    slash = re.findall(r"^!`([^`]+)`$", texts, re.MULTILINE)
    assert slash
    shell = [*hooks, *(text.replace("$ARGUMENTS", "") for text in slash)]
    return [*map(shlex.split, shell), *([server["command"], *server["args"]] for server in servers)]


def test_the_manifests_have_what_the_client_asks_for() -> None:
    market = json_file(".claude-plugin", "marketplace.json")
    fields(market, {"name": str, "owner": dict, "plugins": list}, {"description": str})
    (entry,) = market["plugins"]
    fields(entry, {"name": str, "source": str}, {"description": str, "category": str})
    assert (ROOT / entry["source"]).resolve() == PLUGIN.resolve()
    manifest = json_file(PLUGIN.name, ".claude-plugin", "plugin.json")
    fields(manifest, {"name": str}, {"version": str, "description": str, "author": dict, "license": str, "keywords": list})
    assert (manifest["name"], manifest["description"]) == (entry["name"], entry["description"])
    assert manifest["version"] == context_window.__version__
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", manifest["name"])


def test_hooks_servers_and_commands_have_the_client_s_form() -> None:
    hooks = json_file(PLUGIN.name, "hooks", "hooks.json")
    fields(hooks, {"hooks": dict}, {"description": str})
    for event, groups in hooks["hooks"].items():
        assert event in HOOK_EVENTS
        for group in groups:
            fields(group, {"hooks": list}, {"matcher": str})
            for hook in group["hooks"]:
                fields(hook, {"type": str, "command": str}, {"timeout": int})
                assert hook["type"] == "command"
    for server in json_file(PLUGIN.name, ".mcp.json")["mcpServers"].values():
        fields(server, {"command": str}, {"args": list})
    for file in (PLUGIN / "commands").iterdir():
        _, head, body = file.read_text("utf-8").split("---\n", 2)
        assert re.search(r"^description: \S", head, re.MULTILINE)
        assert body.strip()


def test_every_command_is_one_of_ours() -> None:
    """with options that it has"""
    for program, name, *rest in commands_of_ours():
        assert program == "context-window"
        command = commands.commands[name]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("-")} <= known


@POSIX
def test_the_hook_never_keeps_a_prompt_back(tmp_path: Path) -> None:
    """An exit code of 2 would. With a program that fails so, or whose Python is gone, it is 1, and the client shows what it printed."""
    hook = command_of("UserPromptSubmit")
    program = tmp_path / "context-window"
    for text, code, printed in (("#!/bin/sh\necho broken >&2; exit 2\n", 1, "broken"), ("#!/gone/python\n", 1, "not found"), (None, 0, "")):
        program.unlink(missing_ok=True)
        if text is not None:
            program.write_text(text)
            program.chmod(0o700)
        done = subprocess.run(["/bin/sh", "-uc", hook], env={"PATH": str(tmp_path)}, input=b"{}", capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (code, b"")
        assert printed in done.stderr.decode()


@POSIX
def test_without_the_program_a_session_begins_with_what_to_do(tmp_path: Path) -> None:
    """once, not with each prompt"""
    hook = command_of("SessionStart")
    done = subprocess.run(["/bin/sh", "-uc", hook], env={"PATH": str(tmp_path)}, input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "pipx install" in json.loads(done.stdout)["systemMessage"]


def command_of(event: str) -> str:
    (hook,) = json_file(PLUGIN.name, "hooks", "hooks.json")["hooks"][event][0]["hooks"]
    return str(hook["command"])


@pytest.fixture
def client(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Claude Code in an empty home, with our program in its path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    ours = programs / "context-window"
    ours.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m context_window "$@"\n')
    ours.chmod(0o700)
    home = tmp_path / "home"
    home.mkdir()
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        always = {"ANTHROPIC_API_KEY": "made up", "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "PATH": path}
        return run_client([CLIENT, *arguments], home, PATIENCE, **{**always, **variables})

    return run


@REAL
@pytest.mark.parametrize("folder", [ROOT, PLUGIN])
def test_the_client_finds_no_fault(client: Callable[..., subprocess.CompletedProcess[str]], folder: Path) -> None:
    done = client("plugin", "validate", "--strict", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr


@REAL
def test_the_client_installs_it_and_says_what_a_pause_cost(client: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    """From a checkout: its server connects, after a pause the hook answers, and the command writes the status line."""
    for arguments in (["marketplace", "add", str(ROOT)], ["install", "context-window@context-window"]):
        done = client("plugin", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"plugin:context-window:context-window: context-window mcp - .* Connected", client("mcp", "list").stdout)
    options = ["--model", "claude-sonnet-4-6", "--output-format", "stream-json", "--verbose", "--include-hook-events"]
    with AnthropicStub(lambda _: [Say("Done.")]) as stub:
        first = [json.loads(line) for line in client("-p", "Begin.", *options, ANTHROPIC_BASE_URL=stub.url).stdout.splitlines()]
        (start,) = [event for event in first if event.get("subtype") == "init"]
        assert [plugin["name"] for plugin in start["plugins"]] == ["context-window"]
        assert "context-window:statusline" in start["slash_commands"]
        (log,) = (tmp_path / "home" / ".claude" / "projects").glob("*/*.jsonl")
        then = (datetime.now(UTC) - timedelta(hours=3)).isoformat().replace("+00:00", "Z")
        log.write_text(re.sub(r'"timestamp":"[^"]+"', f'"timestamp":"{then}"', log.read_text("utf-8")), "utf-8")
        told = client("-p", "Go on.", "--continue", *options, ANTHROPIC_BASE_URL=stub.url).stdout
        settings = tmp_path / "home" / ".claude" / "settings.json"
        before = settings.read_bytes()
        client("-p", "/context-window:statusline", *options, ANTHROPIC_BASE_URL=stub.url)
        assert json.loads(settings.read_bytes())["statusLine"]["command"] == "context-window statusline"
        client("-p", "/context-window:statusline --undo", *options, ANTHROPIC_BASE_URL=stub.url)
        assert settings.read_bytes() == before
        without = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if not Path(each, "context-window").exists())
        alone = client("-p", "Go.", *options, ANTHROPIC_BASE_URL=stub.url, PATH=without).stdout
    assert "does nothing" not in json.dumps(first)
    assert "context-window does nothing: its program is not in your PATH" in alone
    assert "this pause cost $" not in json.dumps(first)
    assert re.search(r"this pause cost \$[\d.]+: [\d.]+k tokens are written anew, since the cache has forgotten them after 3 hours", told)
