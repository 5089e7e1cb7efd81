"""`context-window mcp`: an assistant's questions about its own log, through the official client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from context_window import FunctionCall, FunctionCallOutput, Image, Session
from context_window.integrations.log_tools import ANSWER_MOST, LogTools, answered, newest_claude_log
from session.extras import install_line
from tests.support.claude_lines import Log, call, result
from tests.support.looping import manager
from tests.support.pictures import png
from tests.support.shell import Shell


def a_log(*turns: str) -> Log:
    log = Log()
    for number, text in enumerate(turns):
        log.user(text)
        log.answer(f"m{number}", call(f"c{number}"))
        log.user([result(f"c{number}", f"output of {text}")])
    return log


def tools_for(path: Path) -> LogTools:
    return LogTools(lambda: path, lambda _: manager())


def saved(folder: Path, session: Session) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps(session.to_dict()), encoding="utf-8")
    return path


def test_what_is_found_can_be_recalled_whole(tmp_path: Path) -> None:
    session = Session()
    session.add_message("user", "Look for the Needle in the hay.", "first")
    session.append(FunctionCall("grep", '{"pattern": "needle"}', "c", id="call"))
    session.append(FunctionCallOutput("grep", "x" * 500 + "\nneedle\n" + "y" * 500, "c", id="output"))
    tools = tools_for(saved(tmp_path, session))
    told = tools.recall(query="NEEDLE")
    assert told.startswith("## user message first\n1: Look for the Needle in the hay.\n## grep call call\n1: grep(")
    assert f"## grep output output\n1: {'x' * 500}\n2: needle\n" in told
    assert tools.recall("output") == "x" * 500 + "\nneedle\n" + "y" * 500
    assert tools.recall(query="nothing") == "None of the 3 items has 'nothing'."
    assert tools.recall(query=" ").startswith("Pass ")
    assert "nothing in the session has it" in tools.recall("none")


def test_a_long_item_is_read_in_pages(tmp_path: Path) -> None:
    session = Session()
    lines = [f"{number} " * 9 for number in range(20_000)]
    session.add_message("user", "\n".join(lines), "long")
    tools = tools_for(saved(tmp_path, session))
    read: list[str] = []
    while len(read) < len(lines):
        *page, last = tools.recall("long", len(read) + 1).split("\n")
        assert sum(map(len, page)) <= ANSWER_MOST
        read += page
        assert last.startswith("[lines ")
    assert read == lines
    assert tools.recall("long", -5) == tools.recall("long")


def test_images_are_named(tmp_path: Path) -> None:
    session = Session()
    session.add_message("user", ["See:", Image(data=png(2, 2))], "seen")
    assert tools_for(saved(tmp_path, session)).recall("seen") == "See:\n[image]"


def test_the_log_is_read_again_when_it_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log("one")
    path = log.write(tmp_path)
    tools = tools_for(path)
    assert "one" in tools.recall(query="one")
    assert "None of" in tools.recall(query="two")
    log.user("two")
    log.write(tmp_path)
    assert "1: two" in tools.recall(query="two")
    monkeypatch.setattr("context_window.integrations.log_tools.read_transcript", None)
    assert "1: two" in tools.recall(query="two")  # unchanged: not read once more


def test_the_usage_is_that_of_the_report(tmp_path: Path) -> None:
    report = tools_for(a_log("one", "two").write(tmp_path)).context_usage()
    assert "this session" in report
    assert "DIALOG" in report
    assert "\033" not in report


def test_a_log_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    assert answered(tools_for(tmp_path / "none").context_usage).startswith("The log cannot be used: ")
    (tmp_path / "words").write_text("no log", encoding="utf-8")
    assert answered(tools_for(tmp_path / "words").context_usage).startswith("The log cannot be used: ")


def test_the_newest_log_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    folder = Path("/home/me/my_project.x")
    assert newest_claude_log(folder) is None
    logs = tmp_path / "projects" / "-home-me-my-project-x"
    logs.mkdir(parents=True)
    for number, name in enumerate(("new.jsonl", "old.jsonl", "agent-newer.jsonl", "newer.txt")):
        (logs / name).touch()
        os.utime(logs / name, ns=(0, [30, 20, 40, 50][number]))
    (logs / "newest.jsonl").mkdir()
    assert newest_claude_log(folder) == logs / "new.jsonl"
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert newest_claude_log(folder) is None


def test_the_official_client_calls_the_tools(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    logs = tmp_path / "projects" / "-the-project"
    logs.mkdir(parents=True)
    a_log("the secret word is xyzzy").write(logs)
    environment = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "CLAUDE_CONFIG_DIR": str(tmp_path),
        "CLAUDE_PROJECT_DIR": "/the/project",
    }
    server = StdioServerParameters(command=sys.executable, args=["-m", "context_window", "mcp"], cwd=str(tmp_path), env=environment)

    async def scene() -> list[Any]:
        async with (
            stdio_client(server, errlog=sys.__stderr__ or sys.stderr) as (reading, writing),
            ClientSession(reading, writing) as client,
        ):
            await client.initialize()
            names = sorted(tool.name for tool in (await client.list_tools()).tools)
            found: Any = await client.call_tool("recall", {"query": "XYZZY"})
            id = found.content[0].text.splitlines()[0].rpartition(" ")[2]
            return [names, await client.call_tool("recall", {"id": id}), await client.call_tool("context_usage", {})]

    names, recalled, used = asyncio.run(scene())
    assert names == ["context_usage", "recall"]
    assert recalled.content[0].text == "the secret word is xyzzy"
    assert "tokens" in used.content[0].text


def test_without_the_library_the_command_names_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mcp", "mcp.server", "mcp.server.mcpserver", "mcp.server.fastmcp"):
        monkeypatch.setitem(sys.modules, name, None)
    code, _, err = Shell(capsys, monkeypatch)("mcp")
    assert (code, err) == (2, f"context-window: the server needs another package: {install_line('mcp')}\n")
