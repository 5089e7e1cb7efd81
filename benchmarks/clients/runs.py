"""Runs an assistant on the made-up project, with or without the gateway, against a strict stub of its provider."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.gateways import run_client
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.openai_chat import OpenAIChatStub
from tests.support.stubs.openai_responses import OpenAIResponsesStub

from .coder import CLAUDE_CODE, CODEX, DONE, QWEN_CODE, TASK, Coder, write_project
from .figures import GPT_4_1, GPT_5, SONNET, Figures, figures

PATIENCE = 1_200
"""Seconds that a run may take."""
TURNS = 5
"""Requests for each file, if no line must be looked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """A way to run the assistant.

    Attributes:
        name: What it is called in the table.
        gateway: Options of the gateway; None to do without.
        variables: Environment of the assistant.
        options: Options of the assistant.
        headroom: Options of headroom's proxy, if that runs instead of the gateway; None if not.
    """

    name: str
    gateway: Sequence[str] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    headroom: Sequence[str] | None = None


CLAUDE_ROWS = {
    "direct": Row("direct"),
    "own-120": Row("its own compaction at 120,000", None, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "120000"}),
    "own-80": Row("its own compaction at 80,000", None, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "80000"}),
    "auto": Row("gateway, no setting", ()),
    "120": Row("gateway, 120,000", ("--max-tokens", "120000")),
    "80": Row("gateway, 80,000", ("--max-tokens", "80000")),
    "recall": Row("gateway, no setting, recall", ("--recall",)),
    "headroom": Row("headroom", headroom=()),
    "headroom-token": Row("headroom, token mode", headroom=("--mode", "token")),
}
CODEX_ROWS = {
    "direct": Row("direct"),
    "own-120": Row("its own compaction at 120,000", options=("-c", "model_auto_compact_token_limit=120000")),
    "auto": Row("gateway, no setting", ()),
    "120": Row("gateway, 120,000", ("--max-tokens", "120000")),
    "60": Row("gateway, 60,000", ("--max-tokens", "60000")),
}


QWEN_ROWS = {
    "direct": Row("direct"),
    "auto": Row("gateway, no setting", ()),
    "120": Row("gateway, 120,000", ("--max-tokens", "120000")),
}


def run_claude_code(program: Path, row: Row, requests: int) -> Figures:
    """Run Claude Code on the project, and return what that came to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        coder = Coder(CLAUDE_CODE, write_project(folder, requests // TURNS))
        client = [program / "claude", "-p", TASK, "--model", "claude-sonnet-4-5", "--dangerously-skip-permissions", *row.options]
        variables = {
            "ANTHROPIC_API_KEY": "made up",
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "true",
            **row.variables,
        }
        with AnthropicStub(coder) as stub, _headroom(program.parent.parent, row, stub.url) as url:
            _run(client, row, folder, variables | {"ANTHROPIC_BASE_URL": url}, f"anthropic={stub.url}")
        return figures(coder, stub.requests, stub.answers, SONNET)


def run_codex(program: Path, row: Row, requests: int) -> Figures:
    """Run Codex on the project, and return what that came to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        coder = Coder(CODEX, write_project(folder, requests // TURNS))
        client = [program / "codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", "gpt-5"]
        with OpenAIResponsesStub(coder) as stub:
            own: list[str] = []
            if row.gateway is None:
                provider = f'{{name="stub", base_url="{stub.url}/v1", wire_api="responses", env_key="OPENAI_API_KEY"}}'
                own = ["-c", 'model_provider="stub"', "-c", f"model_providers.stub={provider}"]
            variables = {"OPENAI_API_KEY": "made up", "CODEX_HOME": name}
            _run([*client, *row.options, *own, TASK], row, folder, variables, f"openai={stub.url}")
        return figures(coder, stub.requests, stub.answers, GPT_5)


def run_qwen_code(program: Path, row: Row, requests: int) -> Figures:
    """Run Qwen Code on the project, and return what that came to. Nothing in the gateway is made for it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        coder = Coder(QWEN_CODE, write_project(folder, requests // TURNS))
        with OpenAIChatStub(coder) as stub:
            variables = {"OPENAI_API_KEY": "made up", "OPENAI_MODEL": "gpt-4.1", "OPENAI_BASE_URL": f"{stub.url}/v1"}
            _run([program / "qwen", "-p", TASK, "--yolo", *row.options], row, folder, variables | row.variables, f"openai={stub.url}")
        return figures(coder, stub.requests, stub.answers, GPT_4_1)


@contextmanager
def _headroom(clients: Path, row: Row, upstream: str) -> Iterator[str]:
    """Run headroom's proxy, if the row is about it. Yields the address for the assistant."""
    if row.headroom is None:
        yield upstream
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [clients / "headroom" / "bin" / "headroom", "proxy", "--port", str(port), "--anthropic-api-url", upstream, "--no-rate-limit"]
    with tempfile.TemporaryDirectory() as home:
        variables = {"PATH": os.environ["PATH"], "HOME": home, "HF_HUB_OFFLINE": "1", "HEADROOM_TELEMETRY": "off"}
        with subprocess.Popen([*command, *row.headroom], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                while process.poll() is None:
                    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                        break
                    time.sleep(0.2)
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()


def _run(client: Sequence[str | Path], row: Row, folder: Path, variables: Mapping[str, str], upstream: str) -> None:
    gateway = [sys.executable, "-m", "context_window", "gateway", "--upstream", upstream, *(row.gateway or ()), "--"]
    done = run_client([*client] if row.gateway is None else [*gateway, *client], folder, PATIENCE, **variables)
    if DONE not in done.stdout:
        raise SystemExit(f"{row.name}: the assistant broke off: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    if row.gateway is not None:
        print(done.stderr.strip().splitlines()[-1], file=sys.stderr)
