"""Claude Code and Codex through the gateway, against strict stubs, with a window that must be trimmed several times.

Their programs are no dependency of the project, and want no network here:

    npm install --prefix FOLDER @anthropic-ai/claude-code @openai/codex
    unshare -rn sh -c 'ip link set lo up && CONTEXT_WINDOW_CLIENTS=FOLDER python -m pytest tests/gateway/test_real_clients.py'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from context_window.gateway.ledger import Ledger
from tests.support.gateways import bare, breaks, gateway
from tests.support.stubs.answers import Call, Say, Think
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.openai_responses import OpenAIResponsesStub

FOLDER = os.environ.get("CONTEXT_WINDOW_CLIENTS")
TURNS = 20
PATIENCE = 240
"""Seconds that a client may take."""
TASK = "Count a lot."

pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="CONTEXT_WINDOW_CLIENTS names no folder with the clients (see the module's docstring)"
)


def program(name: str) -> str:
    return str(Path(FOLDER or "", "node_modules", ".bin", name))


class Model:
    """A model that thinks, speaks and runs a command twenty times, and then ends."""

    def __init__(self, tool: str, argument: str, **more: str) -> None:
        self.tool, self.argument, self.more = tool, argument, more
        self.steps = 0

    def __call__(self, request: Mapping[str, Any]) -> list[Any]:
        if self.tool not in {tool.get("name") for tool in request.get("tools", [])}:
            return [Say("Counting")]  # a side request, such as one for a title
        self.steps += 1
        if self.steps > TURNS:
            return [Say("All done.")]
        command = {self.argument: f"seq {self.steps} {self.steps + 1_500}", **self.more}
        return [Think(f"Step {self.steps} is next."), Say(f"Step {self.steps}."), Call(self.tool, command)]


def test_claude_code_counts_for_twenty_turns(tmp_path: Path) -> None:
    """No request is refused, and the prefix is broken a few times only. Started by the command, as its users start it."""
    model = Model("Bash", "command", description="Counts")
    command = [sys.executable, "-m", "context_window", "gateway", "--max-tokens", "60000"]
    client = [program("claude"), "-p", TASK, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash(seq:*)", "--output-format", "json"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "made up", "IS_SANDBOX": "1"}
    environment |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    with AnthropicStub(model) as stub:
        done = subprocess.run(
            [*command, "--upstream", f"anthropic={stub.url}", "--", *client],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        sent = [[bare(message) for message in request["messages"]] for request in stub.requests if len(request.get("tools", [])) > 5]
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert (result["result"], result["is_error"]) == ("All done.", False)
    assert "shortened" in done.stderr
    assert "not managed" not in done.stderr
    assert len(sent) == TURNS + 1
    assert 1 <= breaks(sent) <= TURNS / 3


def test_codex_counts_for_twenty_turns(tmp_path: Path) -> None:
    """No request is refused, and the prefix is broken a few times only."""
    model, ledger = Model("exec_command", "cmd"), Ledger()
    with OpenAIResponsesStub(model) as stub, gateway(stub.url, 40_000, ledger=ledger) as address:
        provider = (
            f'[model_providers.here]\nname = "here"\nbase_url = "{address}/openai/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        )
        (tmp_path / "config.toml").write_text(f'model = "gpt-5"\nmodel_provider = "here"\n{provider}', encoding="utf-8")
        done = subprocess.run(
            [program("codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "OPENAI_API_KEY": "made up"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        sent = [request["input"] for request in stub.requests]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All done." in done.stdout
    assert not ledger.unmanaged
    assert ledger.shortened > 0
    assert len(sent) == TURNS + 1
    assert 1 <= breaks(sent) <= TURNS / 3
