"""The examples run as their first lines say, without a key and without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import context_window
from tests.support.shared import ROOT

EXAMPLES = ROOT / "examples"


def ran(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run an example in a process of its own, without a key and without a network."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    environment["PYTHONPATH"] = str(Path(context_window.__file__).parents[1])  # the tested package, wherever it is installed
    environment |= {"PYTHONIOENCODING": "utf-8", "ANTHROPIC_API_KEY": "no key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=120, check=False)


def test_the_travel_planner_books_every_trip_in_a_window_that_holds_two_or_three() -> None:
    done = ran("-W", "error", EXAMPLES / "travel_planner.py")
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.count("booked ") == done.stdout.count("3 calls, 4 requests") == 8
    assert "tokens freed" in done.stdout
    assert "The first tool output can be recalled: True." in done.stdout
    assert "over budget" not in done.stdout


@pytest.mark.long
def test_the_live_travel_planner_names_the_problem() -> None:
    done = ran(EXAMPLES / "travel_planner.py", "--live")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("the model did not answer")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("example", "package"), [("langchain_agent", "langchain"), ("openai_agents_run", "agents"), ("pydantic_ai_agent", "pydantic_ai")]
)
def test_an_example_without_its_framework_says_what_to_install(example: str, package: str) -> None:
    without = (
        f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_path({str(EXAMPLES / f'{example}.py')!r}, run_name='__main__')"
    )
    done = ran("-c", without)
    assert (done.returncode, done.stdout) == (1, "")
    assert package in done.stderr
    assert done.stderr.endswith(" This example needs what this installs: pip install '.[integrations]'\n")
    assert done.stderr.count("\n") == 1
