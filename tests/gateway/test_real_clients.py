"""Real assistants through the gateway, against strict stubs, with a window that must be trimmed several times.

Their programs are no dependency of the project, and want no network here:

    npm install --prefix FOLDER @anthropic-ai/claude-code @openai/codex opencode-ai @google/gemini-cli @mariozechner/pi-coding-agent \\
        @qwen-code/qwen-code
    python -m venv FOLDER/aider && FOLDER/aider/bin/pip install aider-chat
    unshare -rn sh -c 'ip link set lo up && CONTEXT_WINDOW_CLIENTS=FOLDER python -m pytest tests/gateway/test_real_clients.py'

An npm that runs no scripts of packages leaves two of them to you: `node install.cjs` in the folder of Claude Code, and
`node postinstall.mjs` in opencode's.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateways import bare, breaks, recall_ids, run_client
from tests.support.stubs.answers import Call, Say, Think
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.gemini import GeminiStub
from tests.support.stubs.openai_chat import OpenAIChatStub
from tests.support.stubs.openai_responses import OpenAIResponsesStub

from .test_gateway_http import says, upstream_that
from .test_gateway_recall import last_result, offers_recall

FOLDER = os.environ.get("CONTEXT_WINDOW_CLIENTS")
TURNS = 20
PATIENCE = 240
"""Seconds that a client may take."""
TASK = "Count a lot."

pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="CONTEXT_WINDOW_CLIENTS names no folder with the clients (see the module's docstring)"
)


def program(name: str) -> str:
    paths = [Path(FOLDER or "", "node_modules", ".bin", name), Path(FOLDER or "", name, "bin", name)]
    if (path := next(filter(Path.exists, paths), None)) is None:
        pytest.skip(f"{name} is not installed there")
    return str(path)


class Model:
    """A model that thinks, speaks and runs a command twenty times, and then ends. If it can, it recalls something before each third one.

    Attributes:
        results: The results that it got back.
        rounds: Numbers of the requests that answer a recall: the gateway's own.
    """

    def __init__(self, tool: str, argument: str, **more: str) -> None:
        self.tool, self.argument, self.more = tool, argument, more
        self.steps = self.requests = 0
        self.results: list[str] = []
        self.rounds: set[int] = set()

    def __call__(self, request: Mapping[str, Any]) -> list[Any]:
        kinds = [tool.get("functionDeclarations") or [tool.get("function") or tool] for tool in request.get("tools", [])]
        tools = [tool for each in kinds for tool in each]
        if self.tool not in {tool.get("name") for tool in tools}:
            return [Say("Counting")]  # a side request, such as one for a title
        result = last_result(request.get("messages") or request.get("input") or request["contents"])
        if result is not None:
            self.results.append(result)
            self.rounds.add(self.requests)
        self.requests += 1
        self.steps += result is None
        ids = recall_ids(request)
        if ids and offers_recall(request) and result is None and self.steps % 3 == 0:
            return [Think("What was it?"), Call("recall", {"id": ids[-1]})]
        if self.steps > TURNS:
            return [Say("All done.")]
        command = {self.argument: f"seq {self.steps} {self.steps + 1_500}", **self.more}
        return [Think(f"Step {self.steps} is next."), Say(f"Step {self.steps}."), Call(self.tool, command)]


def run_with_gateway(
    client: list[str], upstream: str, tokens: int, home: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a client by the command, as its users start it, with an empty home. A limit of dollars, far away, refuses nothing of it."""
    command = [
        sys.executable,
        "-m",
        "context_window",
        "gateway",
        "--max-tokens",
        str(tokens),
        "--upstream",
        upstream,
        "--max-cost",
        "1000",
        *options,
        "--",
        *client,
    ]
    return run_client(command, home, PATIENCE, **variables)


def check(done: subprocess.CompletedProcess[str], sent: list[list[Any]], *, recall: bool = False) -> None:
    """Check that the client ended well, that its requests were trimmed several times, and that only trims broke the prefix.

    Args:
        done: The client's run.
        sent: The messages of each request that answers no recall.
        recall: True if the model had the recall tool. Without it, nothing may name ids to recall by.
    """
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shortened" in done.stderr
    assert " 0 shortened" not in done.stderr
    assert "not managed" not in done.stderr
    assert len(sent) == TURNS + 1
    assert 2 <= breaks(sent) <= TURNS / 3
    assert ("recall id" in json.dumps(sent)) == recall


def check_recalls(model: Model, requests: list[Any], shown: str) -> None:
    """Check that the recalled text came back, that the tool stayed once it was there, and that the client has not seen it."""
    assert len(model.results) >= 3
    assert not any("Not recalled" in result for result in model.results)
    offers = [offers_recall(request) for request in requests]
    assert offers == sorted(offers)
    assert not offers[0]
    assert "recall" not in shown


RECALL = pytest.mark.parametrize("recall", [False, True], ids=["plain", "recall"])


@RECALL
def test_claude_code_counts_for_twenty_turns(tmp_path: Path, recall: bool) -> None:
    """No request is refused, and the prefix is broken a few times only."""
    model = Model("Bash", "command", description="Counts")
    client = [program("claude"), "-p", TASK, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash(seq:*)", "--output-format", "json"]
    variables = {"ANTHROPIC_API_KEY": "made up", "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    with AnthropicStub(model) as stub:
        done = run_with_gateway(client, f"anthropic={stub.url}", 60_000, tmp_path, *["--recall"] * recall, **variables)
    assert len(stub.answers) == len(stub.requests)
    requests = [request for request in stub.requests if len(request.get("tools", [])) > 5]
    first = [request for number, request in enumerate(requests) if number not in model.rounds]
    check(done, [[bare(message) for message in request["messages"]] for request in first], recall=recall)
    result = json.loads(done.stdout)
    assert (result["result"], result["is_error"]) == ("All done.", False)
    if recall:
        check_recalls(model, requests, done.stdout)


def test_a_large_window_that_the_user_named_stays_large(tmp_path: Path) -> None:
    """Claude Code takes a window of 1,000,000 tokens for a name that ends in `[1m]`, through the gateway too."""
    client = [program("claude"), "-p", TASK, "--model", "claude-sonnet-4-6[1m]", "--output-format", "json"]
    variables = {"ANTHROPIC_API_KEY": "made up", "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    with AnthropicStub(lambda _: [Say("All done.")]) as stub:
        done = run_with_gateway(client, f"anthropic={stub.url}", 60_000, tmp_path, **variables)
    assert json.loads(done.stdout)["modelUsage"]["claude-sonnet-4-6[1m]"]["contextWindow"] == 1_000_000


@RECALL
def test_codex_counts_for_twenty_turns(tmp_path: Path, recall: bool) -> None:
    """No request is refused, and the prefix is broken a few times only. Started by the command, without a configuration of its own."""
    model = Model("exec_command", "cmd")
    client = [program("codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", "gpt-5", TASK]
    with OpenAIResponsesStub(model) as stub:
        options = ["--recall"] * recall
        done = run_with_gateway(
            client, f"openai={stub.url}", 40_000, tmp_path, *options, OPENAI_API_KEY="made up", CODEX_HOME=str(tmp_path)
        )
    assert len(stub.answers) == len(stub.requests)
    assert "All done." in done.stdout
    check(done, [request["input"] for number, request in enumerate(stub.requests) if number not in model.rounds], recall=recall)
    if recall:
        check_recalls(model, stub.requests, done.stdout)


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "zstd"])
def test_codex_counts_for_twenty_turns_with_a_login_to_chatgpt(tmp_path: Path, is_packed: bool) -> None:
    """Its requests go to the server of these logins, with the login's token, over HTTP. No request is refused.

    It compresses them with zstd if the provider in its configuration has the name of its own.
    """
    write_chatgpt_login(tmp_path)
    away = 'chatgpt_base_url="http://127.0.0.1:9/backend-api"'  # what it asks besides, and waits for
    options = ["-c", away, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", "gpt-5"]
    options += ["-c", 'model_providers.gateway.name="OpenAI"'] * is_packed
    client = [program("codex"), "exec", *options, TASK]
    with upstream_that(says(400, b"{}")) as upstream:
        address = f'base_url="{upstream.url}", wire_api="responses", requires_openai_auth=true'
        direct = ["-c", f'model_providers.gateway={{name="x", {address}}}', "-c", 'model_provider="gateway"']
        run_client([*client[:2], *direct, *client[2:]], tmp_path, PATIENCE, CODEX_HOME=str(tmp_path))
    assert ("zstd" in {dict(headers).get("content-encoding") for headers in upstream.headers}) == is_packed
    with OpenAIResponsesStub(Model("exec_command", "cmd"), path="/responses") as stub:
        done = run_with_gateway(client, f"chatgpt={stub.url}", 40_000, tmp_path, CODEX_HOME=str(tmp_path))
    assert len(stub.answers) == len(stub.requests)
    assert "All done." in done.stdout
    check(done, [request["input"] for request in stub.requests])


def write_chatgpt_login(home: Path) -> None:
    """Write what Codex keeps of a login. Its tokens are made up, and as if they were from now."""
    account = {"chatgpt_account_id": "account", "chatgpt_plan_type": "plus"}
    claims = {"email": "somebody@example.org", "exp": int(time.time()) + 86_400, "https://api.openai.com/auth": account}
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    token = f"e30.{part}.e30"
    tokens = {"id_token": token, "access_token": token, "refresh_token": "r", "account_id": "account"}
    login = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": datetime.now(UTC).isoformat()}
    (home / "auth.json").write_text(json.dumps(login), encoding="utf-8")


def test_opencode_counts_for_twenty_turns(tmp_path: Path) -> None:
    """No request is refused, and the prefix is broken a few times only. Its configuration names no address."""
    (tmp_path / "opencode.json").write_text(json.dumps({"permission": "allow"}), encoding="utf-8")
    client = [program("opencode"), "run", "--model", "anthropic/claude-sonnet-4-5", TASK]
    names = ("MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
    variables = {"ANTHROPIC_API_KEY": "made up", **{f"OPENCODE_DISABLE_{name}": "1" for name in names}}
    with AnthropicStub(Model("bash", "command", description="Counts")) as stub:
        done = run_with_gateway(client, f"anthropic={stub.url}", 40_000, tmp_path, **variables)
        sent = [[bare(message) for message in request["messages"]] for request in stub.requests if request.get("tools")]
    check(done, sent)
    assert "All done." in done.stdout


@RECALL
def test_opencode_counts_for_twenty_turns_in_chat_completions(tmp_path: Path, recall: bool) -> None:
    """No request is refused, and the prefix is broken a few times only. A provider of its own, as for a server on the same machine."""
    models = {"gpt-4.1": {"name": "GPT", "tool_call": True, "limit": {"context": 1_000_000, "output": 8_000}}}
    options = {"baseURL": "{env:OPENAI_BASE_URL}", "apiKey": "made up"}
    provider = {"own": {"npm": "@ai-sdk/openai-compatible", "name": "Own", "options": options, "models": models}}
    (tmp_path / "opencode.json").write_text(json.dumps({"provider": provider, "permission": "allow"}), encoding="utf-8")
    client = [program("opencode"), "run", "--model", "own/gpt-4.1", TASK]
    names = ("MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
    variables = {f"OPENCODE_DISABLE_{name}": "1" for name in names}
    model = Model("bash", "command", description="Counts")
    with OpenAIChatStub(model) as stub:
        done = run_with_gateway(client, f"openai={stub.url}", 40_000, tmp_path, *["--recall"] * recall, **variables)
        requests = [request for request in stub.requests if request.get("tools")]
    assert len(stub.answers) == len(stub.requests)
    check(done, [request["messages"] for number, request in enumerate(requests) if number not in model.rounds], recall=recall)
    assert "All done." in done.stdout
    if recall:
        check_recalls(model, requests, done.stdout)


@RECALL
def test_gemini_cli_counts_for_twenty_turns(tmp_path: Path, recall: bool) -> None:
    """No request is refused, and the prefix is broken a few times only. Its settings must name the kind of its key."""
    (tmp_path / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    client = [program("gemini"), "-p", TASK, "-m", "gemini-2.5-pro", "--yolo", "--skip-trust"]
    model = Model("run_shell_command", "command", description="Counts")
    with GeminiStub(model) as stub:
        done = run_with_gateway(client, f"google={stub.url}", 60_000, tmp_path, *["--recall"] * recall, GEMINI_API_KEY="made up")
        sent = [request["contents"] for number, request in enumerate(stub.requests) if number not in model.rounds]
    assert len(stub.answers) == len(stub.requests)
    check(done, sent, recall=recall)
    assert "All done." in done.stdout
    if recall:
        check_recalls(model, stub.requests, done.stdout)


def test_pi_counts_for_twenty_turns(tmp_path: Path) -> None:
    """No request is refused, and the prefix is broken a few times only. It has no configuration."""
    client = [program("pi"), "-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "--no-session", TASK]
    with AnthropicStub(Model("bash", "command")) as stub:
        done = run_with_gateway(client, f"anthropic={stub.url}", 40_000, tmp_path, ANTHROPIC_API_KEY="made up", PI_OFFLINE="1")
        sent = [[bare(message) for message in request["messages"]] for request in stub.requests]
    check(done, sent)
    assert "All done." in done.stdout


def test_qwen_code_counts_for_twenty_turns(tmp_path: Path) -> None:
    """No request is refused, and the prefix is broken a few times only. It has no settings."""
    model = Model("run_shell_command", "command", description="Counts")
    with OpenAIChatStub(model) as stub:
        variables = {"OPENAI_API_KEY": "made up", "OPENAI_MODEL": "gpt-4.1"}
        done = run_with_gateway([program("qwen"), "-p", TASK, "--yolo"], f"openai={stub.url}", 32_000, tmp_path, **variables)
        sent = [request["messages"] for request in stub.requests]
    assert len(stub.answers) == len(stub.requests)
    check(done, sent)
    assert "All done." in done.stdout


@pytest.mark.parametrize(("provider", "model"), [("openai", "gpt-4.1"), ("anthropic", "claude-sonnet-4-5")])
def test_aider_asks_through_the_gateway(tmp_path: Path, provider: str, model: str) -> None:
    """It has no settings, and calls no tools."""
    client = [program("aider"), "--message", "Hi", "--model", model, "--yes-always", "--no-git", "--no-check-update", "--analytics-disable"]
    stubs: dict[str, Any] = {"openai": OpenAIChatStub, "anthropic": AnthropicStub}
    with stubs[provider](lambda _: [Say("Nothing to change.")]) as stub:
        variables = {"OPENAI_API_KEY": "made up", "ANTHROPIC_API_KEY": "made up"}
        done = run_with_gateway(client, f"{provider}={stub.url}", 32_000, tmp_path, **variables)
    assert (done.returncode, len(stub.answers)) == (0, len(stub.requests))
    assert "Nothing to change." in done.stdout
    assert "1 requests" in done.stderr


def test_a_session_of_claude_code_goes_on_without_the_gateway_after_a_compaction(tmp_path: Path) -> None:
    """What has outgrown the model's window behind the gateway cannot go on without it: the last line says so. `/compact` makes it fit."""
    model = Model("Bash", "command", description="Counts")

    def script(request: Mapping[str, Any]) -> list[Any]:
        return [Say("<summary>Counted a lot.</summary>")] if "detailed summary" in json.dumps(request["messages"][-1:]) else model(request)

    variables = {"ANTHROPIC_API_KEY": "made up", "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    options = ["--model", "claude-sonnet-4-5", "--allowedTools", "Bash(seq:*)"]
    client = [program("claude"), "-p"]
    with AnthropicStub(script) as stub:
        upstream = f"anthropic={stub.url}"
        done = run_with_gateway([*client, TASK, *options], upstream, 60_000, tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        model.steps = 0
        grown = len(json.dumps(stub.requests[-1]))
        compacted = run_with_gateway([*client, "--continue", "/compact", *options], upstream, 60_000, tmp_path, **variables)
        assert compacted.returncode == 0, compacted.stderr
        model.steps = TURNS
        direct = run_client([*client, "--continue", "Go on.", *options], tmp_path, PATIENCE, ANTHROPIC_BASE_URL=stub.url, **variables)
    assert "All done." in direct.stdout
    assert len(json.dumps(stub.requests[-1]["messages"])) < grown / 2
    assert len(stub.answers) == len(stub.requests)
