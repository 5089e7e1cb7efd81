"""The tools of a chat: Python functions by their names, and the tools of MCP servers, which run as long as the chat."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from session.extras import install_line
from session.printable import printable

from ..loop import SchemaTool
from ..loop.toolbox import describe_error
from .chat import ChatError
from .connection import PROVIDERS


def functions(names: str) -> list[Callable[..., Any]]:
    """Return the functions that `MODULE:FUNCTION,FUNCTION` names. Modules of the working directory can be imported."""
    module_name, _, function_names = names.partition(":")
    if not module_name or not function_names:
        raise ChatError(f"--tools {names}: write MODULE:FUNCTION, such as mytools:search,read_page")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = import_module(module_name)
        return [getattr(module, name) for name in function_names.split(",")]
    except Exception as error:  # the module is the user's, and may raise anything
        raise ChatError(f"--tools {names}: {printable(describe_error(error))}") from error


@asynccontextmanager
async def mcp_server(command: str, prefix: str) -> AsyncIterator[Sequence[SchemaTool]]:
    """Run an MCP server for as long as the block lasts, and yield its tools, with a prefix before each name.

    It runs in a task of its own: if it dies, its calls fail and nothing else does. It gets the environment without the keys of the chat's
    providers. Its standard error is shown only if it does not start.

    Raises:
        ChatError: It does not start, or the package `mcp` is missing.
    """
    try:
        from mcp import ClientSession, StdioServerParameters, stdio_client
    except ModuleNotFoundError:
        raise ChatError(f"--mcp needs another package: {install_line('mcp')}") from None
    from ..integrations.mcp import mcp_tools

    keys = {key for provider in PROVIDERS.values() for key in provider.keys}
    ready: asyncio.Future[list[SchemaTool]] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            try:
                program, *arguments = shlex.split(command, posix=os.name != "nt")
                environment = {name: value for name, value in os.environ.items() if name not in keys}
                server = StdioServerParameters(command=program, args=arguments, env=environment)
                async with stdio_client(server, errlog=log) as (reading, writing), ClientSession(reading, writing) as client:
                    async with asyncio.timeout(60):  # the first start of a server may install it
                        await client.initialize()
                        ready.set_result(await mcp_tools(client, prefix=prefix))
                    await asyncio.Event().wait()
            except Exception as error:  # noqa: BLE001 - raised where the tools are awaited
                if not ready.done():
                    log.seek(0)
                    reason = log.read().strip().rpartition("\n")[2] or describe_error(_cause(error))
                    ready.set_exception(ChatError(f"--mcp {command}: the server does not start: {printable(reason)}"))

    task = asyncio.create_task(run())
    try:
        yield await ready
    finally:
        task.cancel()
        await asyncio.wait([task])


def _cause(error: BaseException) -> BaseException:
    return _cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
