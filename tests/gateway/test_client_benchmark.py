"""The benchmark with real assistants, without one: its scripted coder, its project and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.clients.__main__ import line
from benchmarks.clients.coder import CLAUDE_CODE, DONE, RULE, TASK, Coder, write_project
from benchmarks.clients.figures import SONNET, figures
from tests.support.stubs.answers import Call, Say

Json = dict[str, Any]
TOOLS = [{"name": name} for name in ("Bash", "Read", "Edit")]


def played(coder: Coder, *, forgets: bool, refuses: bool = False) -> list[Json]:
    """Let an assistant work that runs the coder's tools. Return its requests.

    Args:
        coder: The coder.
        forgets: True if each request has only the last three results.
        refuses: True if a second read of a file is refused.
    """
    requests: list[Json] = []
    results: list[Json] = []
    read: set[str] = set()
    while len(requests) < 100:
        messages = [{"role": "user", "content": f"{TASK} {RULE}"}, *(results[-3:] if forgets else results)]
        requests.append({"messages": messages, "tools": TOOLS})
        said = coder(requests[-1])
        if Say(DONE) in said:
            return requests
        (call,) = [block for block in said if isinstance(block, Call)]
        results.append({"role": "user", "content": [{"type": "tool_result", "content": result(call, read, refuses=refuses)}]})
    raise AssertionError("the coder does not come to an end")


def result(call: Call, read: set[str], *, refuses: bool) -> str:
    """Run a tool, roughly."""
    if call.name == "Read":
        path = call.arguments["file_path"]
        if refuses and path in read:
            return "Wasted call: file unchanged since your last Read. Refer to that earlier result."
        read.add(path)
        return Path(path).read_text(encoding="utf-8", errors="replace")
    if call.name == "Edit":
        path = Path(call.arguments["file_path"])
        path.write_text(
            path.read_text(encoding="utf-8").replace(call.arguments["old_string"], call.arguments["new_string"]), encoding="utf-8"
        )
    return "done"


def answers(requests: list[Json]) -> list[Json]:
    usage = {"cache_read_input_tokens": 1_000_000, "cache_creation_input_tokens": 0, "input_tokens": 0, "output_tokens": 0}
    return [{"usage": usage} for _ in requests]


@pytest.fixture
def coder(tmp_path: Path) -> Coder:
    return Coder(CLAUDE_CODE, write_project(tmp_path, 4))


def test_a_coder_that_sees_everything_needs_five_requests_for_a_file(coder: Coder) -> None:
    requests = played(coder, forgets=False)
    row = figures(coder, requests, answers(requests), SONNET)
    assert (row.requests, row.whole, row.working, row.recovered, row.given_up, row.lacking) == (21, 16, 16, 0, 0, 0)
    assert row.dollars == pytest.approx(21 * SONNET.read)
    assert all(file.new in file.path.read_text(encoding="utf-8") for file in coder.files)
    assert "| a row | 0 |" in line("a row", row)


def test_a_coder_that_forgets_looks_for_the_line_or_gives_up(coder: Coder) -> None:
    """Where the client refuses to show the file again, it is blind."""
    requests = played(coder, forgets=True, refuses=True)
    row = figures(coder, requests, answers(requests), SONNET)
    assert row.whole < row.working
    assert row.blind == row.notices > 0
