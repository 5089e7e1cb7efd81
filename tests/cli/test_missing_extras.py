"""The base is small, and a command that needs more says in one line how this installation gets it.

Each command runs in an interpreter that can import what `pip install .` brings, and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import resources
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from context_window.cli import commands
from session.extras import install_line
from tests.support.screens import long_session, saved
from tests.support.shared import ROOT

MOST = 28
"""Packages of the base, this one among them."""
OLD = {"distro", "httpcore", "httpx"}
"""Packages that only older versions of the base's dependencies bring."""

WORKING = {
    "demo": [],
    "usage": ["LOG"],
    "timeline": ["LOG", "--why"],
    "spend": ["SAMPLE", "--by", "session"],
    "plan": ["LOG", "--max-tokens", "3000"],
    "process": ["LOG", "--max-tokens", "3000", "-o", "-"],
    "convert": ["LOG", "--to", "openai", "-o", "-"],
    "models": ["gpt-5"],
    "completion": ["bash"],
    "repair": ["REQUEST", "-o", "-"],
    "setup": ["--help"],
    "statusline": ["--help"],
}
"""Commands of the base, with arguments."""
NEEDING = {
    "report": ("pages", ["LOG", "-o", "-"]),
    "chat": ("chat", ["--replay", "LOG", "--auto"]),
    "gateway": ("gateway", ["--", "true"]),
    "mcp": ("mcp", []),
    "top": ("top", ["SAMPLE"]),
    "gateway --store": ("gateway", ["--store", "postgresql://db/x"]),
    "spend --parquet": ("fleet", ["SAMPLE", "--parquet", "rows.parquet"]),
    "spend --scheduler": ("fleet", ["SAMPLE", "--scheduler", "tcp://127.0.0.1:1"]),
    "spend s3://": ("fleet", ["s3://logs/a"]),
}
"""Other commands, with the extra that they need and arguments."""


def base() -> set[str]:
    """Return the names of the packages that `pip install .` brings, this one among them."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found, waiting = {"context-window"}, list(project["dependencies"])
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        try:
            waiting += requires(name) or []
        except PackageNotFoundError:  # of another platform
            continue
        found.add(name)
    return found


BASE = base()
ABSENT = sorted(module for module, owners in packages_distributions().items() if BASE.isdisjoint(map(canonicalize_name, owners)))


def run(*line: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys\nsys.modules.update(dict.fromkeys({ABSENT!r}))\nfrom context_window.cli import main\nmain(sys.argv[1:])"
    return subprocess.run([sys.executable, "-c", code, *line], capture_output=True, encoding="utf-8", timeout=120, check=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("logs")
    request = folder / "request.json"
    request.write_text('{"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}', encoding="utf-8")
    sample = resources.files("context_window").joinpath("data", "sample_session.jsonl")
    return {"LOG": saved(long_session(), folder / "log.json"), "SAMPLE": str(sample), "REQUEST": str(request)}


def test_the_base_is_small() -> None:
    assert len(BASE - OLD) <= MOST, sorted(BASE)
    assert BASE & {"jinja2", "prompt-toolkit", "rich", "starlette", "uvicorn"} == set()
    assert {"jinja2", "prompt_toolkit", "rich", "starlette", "mcp", "dask"} <= set(ABSENT)


def test_every_command_is_tried_here() -> None:
    assert set(WORKING) | {name for name in NEEDING if " " not in name} == set(commands.commands)


@pytest.mark.parametrize("name", WORKING)
def test_a_command_of_the_base_needs_no_extra(name: str, files: dict[str, str]) -> None:
    done = run(name, *(files.get(word, word) for word in WORKING[name]))
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert done.stdout


def test_colours_need_no_extra(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[38;5;" in run("usage", files["LOG"]).stdout


@pytest.mark.parametrize("name", NEEDING)
def test_another_command_says_the_line_that_adds_its_extra(
    name: str, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    extra, words = NEEDING[name]
    done = run(name.partition(" ")[0], *(files.get(word, word) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("context-window: ")
    assert done.stderr.endswith(f": {install_line(extra)}\n")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
