"""Keys and contents pass through the gateway and are never logged, stored or shown; and the command line around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from importlib import import_module
from pathlib import Path

import pytest

import context_window.gateway
from context_window import ContextWindow, Extract, PriorityTrim, Strategy
from context_window.cli import run
from session.extras import install_line
from tests.gateway.test_gateway_http import long_body, says, upstream_that
from tests.support.pictures import png

KEY = "sk-ant-verysecretkey0123456789"
CLIENT = """
import os, sys, urllib.error, urllib.request
body = sys.stdin.buffer.read()
for content in (body, body[:-1], body.replace(b"claude-sonnet-5-5", b"no-such-model"), body.replace(b'"user"', b'"nobody"')):
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", data=content, headers={"x-api-key": sys.argv[1]})
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        error.read()
sys.exit(7)
"""


def test_nothing_of_a_request_is_printed_or_written(tmp_path: Path) -> None:
    """For a fitted, a malformed and a refused body, and one of an unknown model; and the client's exit code is the command's."""
    body = long_body().replace(b"And now?", b"the secret question")
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "CONTEXT_WINDOW_HOME": str(home), "NO_PROXY": "*"}
    command = [sys.executable, "-W", "error", "-m", "context_window", "gateway", "--max-tokens", "2000"]
    with upstream_that(says(400, json.dumps({"error": {"message": f"bad {KEY}"}}).encode())) as upstream:
        done = subprocess.run(
            [*command, "--upstream", f"anthropic={upstream.url}", "--", sys.executable, "-c", CLIENT, KEY],
            input=body,
            env=environment,
            cwd=home,
            capture_output=True,
            timeout=120,
            check=False,
        )
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 7, output
    assert len(upstream.bodies) == 4
    assert "4 requests" in output or "3 requests" in output or "2 requests" in output
    assert KEY not in output
    assert "secret" not in output
    assert not any(home.iterdir())


@pytest.mark.parametrize(("images", "sent"), [(None, 5), (5, 5), (4, 2), (0, 0)])
def test_images_have_a_cap_if_it_is_set(images: int | None, sent: int, tmp_path: Path) -> None:
    """what fits goes out byte for byte, images included; `--images N` for a cap"""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64encode(png(8, 8)).decode()}}
    turns = [{"role": role, "content": [picture] if role == "user" else "Seen."} for _ in range(5) for role in ("user", "assistant")]
    body = json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": [*turns, {"role": "user", "content": "And?"}]}).encode()
    option = [] if images is None else ["--images", str(images)]
    with upstream_that(says(200, b"{}")) as upstream:
        command = [sys.executable, "-m", "context_window", "gateway", *option, "--upstream", f"anthropic={upstream.url}"]
        subprocess.run(
            [*command, "--", sys.executable, "-c", CLIENT, KEY],
            input=body,
            env={**os.environ, "NO_PROXY": "*"},
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert upstream.bodies[0].count(b"image/png") == sent
    assert (upstream.bodies[0] == body) == (sent == 5)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (["--upstream", "openai"], "needs a name and an address"),
        (["--upstream", "other=http://a"], "the names are anthropic, openai, chatgpt, google"),
        (["--upstream", "openai=file:///etc"], "pass an address such as"),
        (["--host", "203.0.113.1", "--token", "tokens"], "cannot listen at 203.0.113.1"),
        (["--port", "70000"], "70000"),
        (["--", "no-such-program-anywhere"], "cannot run no-such-program-anywhere"),
    ],
)
def test_wrong_input_is_one_line(
    line: list[str], problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["gateway", *line]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert "Traceback" not in error


@pytest.mark.parametrize(("line", "strategy"), [([], Extract()), (["--strategy", "priority"], PriorityTrim())])
def test_conversations_keep_their_most_valuable_lines_unless_told_otherwise(
    line: list[str], strategy: Strategy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    windows: list[ContextWindow] = []
    monkeypatch.setattr(import_module("context_window.gateway.app"), "gateway_app", lambda window, **_: windows.append(window))
    assert run(["gateway", "--host", "203.0.113.1", "--token", str(tmp_path / "tokens"), *line]) == 2  # nobody can listen there
    assert [window.strategy for window in windows] == [strategy]


def test_without_its_packages_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(context_window, "gateway", context_window.gateway)  # the import below puts another one in its place
    for name in [name for name in sys.modules if name.startswith("context_window.gateway")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(["gateway"]) == 2
    assert install_line("gateway") in capsys.readouterr().err
