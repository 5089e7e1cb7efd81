"""Tools of a real MCP server, in a process of its own, over stdio, through the official client."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from context_window import ClientError, Document, FunctionCallOutput, Image, Session, Text, Toolbox, run_turn
from context_window.integrations.mcp import mcp_tools
from tests.support.looping import ScriptedModel, manager
from tests.support.pictures import pdf, png
from tests.support.shared import ROOT
from tests.support.stubs import Call, Say

pytest.importorskip("mcp")


@asynccontextmanager
async def client_of_server() -> AsyncIterator[Any]:
    """Start the server and yield a connected client."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONIOENCODING": "utf-8"}
    server = StdioServerParameters(command=sys.executable, args=["-m", "tests.support.mcp_server"], cwd=str(ROOT), env=environment)
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as client:
        await client.initialize()
        yield client


def outputs_of(*calls: Call) -> list[FunctionCallOutput]:
    """Return the outputs of calls that a model makes in one turn with the server's tools."""

    async def scene() -> Session:
        session = Session()
        async with client_of_server() as client:
            model = ScriptedModel(calls, [Say("Done.")])
            await run_turn(session, "Go.", model=model, tools=await mcp_tools(client, prefix="x_"), manager=manager())
        return session

    return [item for item in asyncio.run(scene()).items if isinstance(item, FunctionCallOutput)]


def test_a_turn_runs_the_tools_of_a_server_process() -> None:
    calls = [
        Call("x_add", {"a": 2, "b": 3}),
        Call("x_files_read", {"path": "a.py"}),
        Call("x_fail", {"reason": "disk full"}),
        Call("x_add", {}),
        Call("x_add", {"a": "two"}),
        Call("x_draw", {}),
        Call("x_other", {}),
    ]
    added, read, failed, missing, wrong, drawn, unknown = outputs_of(*calls)
    assert (added.text, added.is_error) == ("5", False)
    assert (read.text, read.is_error) == ("text of a.py: ü", False)
    assert failed.is_error
    assert wrong.is_error  # the server checks types
    assert (missing.text, missing.is_error) == ("x_add was not run, its arguments are wrong: a: missing", True)
    assert "Error executing tool fail" in failed.text  # newer servers do not show the error
    assert unknown.is_error
    assert drawn.output == (
        Text("Here:"),
        Image(data=png(2, 2), media_type="image/png"),
        Document(text="# A", media_type="text/markdown", title="file:///a.md"),
        Document(data=pdf(), media_type="application/pdf", title="file:///a.pdf"),
        Text("the log: file:///log"),
    )


def test_the_definitions_are_the_servers() -> None:
    async def scene() -> Any:
        async with client_of_server() as client:
            return Toolbox(await mcp_tools(client)).definitions

    definitions = {definition["name"]: definition for definition in asyncio.run(scene())}
    assert sorted(definitions) == ["add", "draw", "fail", "files_read"]
    assert definitions["add"]["description"] == "Adds two numbers."
    assert definitions["add"]["input_schema"]["required"] == ["a"]


def test_a_server_that_is_gone_gives_an_error_output() -> None:
    async def scene() -> Session:
        session = Session()
        async with client_of_server() as client:
            tools = await mcp_tools(client)
        model = ScriptedModel([Call("add", {"a": 1})], [Say("Done.")])
        await run_turn(session, "Go.", model=model, tools=tools, manager=manager())
        return session

    [output] = [item for item in asyncio.run(scene()).items if isinstance(item, FunctionCallOutput)]
    assert output.is_error


class Page(SimpleNamespace):
    """A page of a list of tools, with the method that the client's objects have."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return dict(self.fields)


@pytest.mark.parametrize("by", ["params", "cursor"])
def test_all_pages_of_the_list_are_read(by: str) -> None:
    """Both forms of the argument: `cursor` and `params` (the official server above has one page)."""

    def page(cursor: str | None) -> Page:
        number = int(cursor or 0)
        tools = [{"name": "same", "inputSchema": {"type": "object"}}]
        return Page(fields={"tools": tools, **({"nextCursor": str(number + 1)} if number < 2 else {})})

    class ByParams:
        async def list_tools(self, *, params: Any = None) -> Page:
            return page(None if params is None else params.cursor)

        async def call_tool(self, name: str, arguments: Any) -> Any:
            raise AssertionError(name)

    class ByCursor(ByParams):
        async def list_tools(self, *, cursor: str | None = None) -> Page:  # type: ignore[override]
            return page(cursor)

    client: Any = ByParams() if by == "params" else ByCursor()
    tools = asyncio.run(mcp_tools(client))
    assert [tool.definition["name"] for tool in tools] == ["same", "same_2", "same_3"]


@pytest.mark.parametrize("client", [object(), None, SimpleNamespace(list_tools=print)])
def test_what_is_no_client_is_refused(client: Any) -> None:
    with pytest.raises(ClientError) as caught:
        asyncio.run(mcp_tools(client))
    assert caught.value.field == "client"
