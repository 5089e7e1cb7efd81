"""`context-window mcp`: a server of tools with which an assistant looks at the log of its own session."""

from __future__ import annotations

import io
import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from session.extras import install_line

from .options import READABLE_FORMATS, CommandOptions, max_tokens_option
from .output import BadInputError

INSTRUCTIONS = (
    "Tools over the log of this session. The log keeps what a compaction has removed from the conversation: search it before you ask the "
    "user to repeat something or read a file again."
)
EPILOG = """\b
Examples:
  claude mcp add context-window -- context-window mcp
  context-window mcp ~/.codex/sessions/2026/11/23/rollout.jsonl
"""


@click.command(epilog=READABLE_FORMATS + EPILOG)
@click.argument("path", required=False, metavar="[PATH]")
@max_tokens_option
def mcp(path: str | None, max_tokens: int | None) -> None:
    """Serve an assistant tools over its own log.

    An MCP server on standard input and output, with two tools: context_usage shows what fills the window, and recall finds text
    anywhere in the session and returns any item, also after a compaction.

    PATH is a session log. Default: the one that Claude Code wrote last for the folder in which the server is started.
    """
    from ..integrations.log_tools import LogTools, answered, newest_claude_log
    from ..integrations.mcp_lines import CleanedLines

    kind = server_class()
    folder = Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())

    def log() -> Path:
        log_path = Path(path).expanduser() if path is not None else newest_claude_log(folder)
        if log_path is None:
            raise FileNotFoundError(f"Claude Code has no log for {folder}; name one as PATH")
        return log_path

    tools = LogTools(log, lambda session: CommandOptions(max_tokens=max_tokens).manager(session)[0])
    server = kind("context-window", instructions=INSTRUCTIONS, log_level="WARNING")

    @server.tool()  # type: ignore[untyped-decorator,unused-ignore]
    def context_usage() -> str:
        """Show what fills the context window of this session: tokens by category, the largest items, the tools that use most."""
        return answered(tools.context_usage)

    @server.tool()  # type: ignore[untyped-decorator,unused-ignore]
    def recall(id: str = "", from_line: int = 0, lines: int = 0, query: str = "") -> str:
        """Find text anywhere in this session by a query, also in what a compaction has removed, or return an item by its id.

        Of a long item you get a page; pass `from_line` to read on.
        """
        return answered(partial(tools.recall, id, from_line, lines, query))

    sys.stdin = io.TextIOWrapper(io.BufferedReader(CleanedLines(sys.stdin.buffer)), "utf-8", errors="replace")
    server.run()


def server_class() -> Any:
    """Return the class of servers, which has another name in each version of the library."""
    for module, name in (("mcp.server.mcpserver", "MCPServer"), ("mcp.server.fastmcp", "FastMCP")):
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name not in {"mcp", "mcp.server", module}:
                raise
    raise BadInputError(f"the server needs another package: {install_line('mcp')}")
