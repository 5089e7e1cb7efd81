"""Tools with which an assistant looks at the log of its own session: the contents of the window, earlier items, and any item whole.

An assistant that compacts its conversation loses what the summary leaves out. Its log still has all of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from session.errors import SessionError
from session.session import Session
from session.transcripts import read_transcript

from ..errors import ContextWindowError
from ..printable import printable
from ..recall import recall_tool

if TYPE_CHECKING:
    from ..manager import ContextWindowManager

__all__ = ["LogTools", "newest_claude_log"]

ANSWER_MOST = 40_000
"""Characters of an answer, some 10,000 tokens. Assistants refuse longer ones."""
REPORT_WIDTH = 100
"""Columns of the usage report."""


class LogTools:
    """Reads a session's log and answers questions about it. The log is read again once the file has changed.

    The log may be written to while it is read. Answers are plain text.
    """

    def __init__(self, path: Callable[[], Path], manager: Callable[[Session], ContextWindowManager]) -> None:
        """
        Args:
            path: Returns the log's path. It is asked at every call, since an assistant begins new logs.
            manager: Returns the manager that counts a session.
        """
        self._path = path
        self._manager = manager
        self._stamp: tuple[Path, int, int] | None = None
        self._session = Session()

    def context_usage(self) -> str:
        """Return what fills the window now: the tokens of each category, the largest items, the tools that use most.

        Raises:
            SessionError: The log cannot be read.
            ContextWindowError: It cannot be counted.
        """
        from ..display.render import text_of
        from ..display.usage import usage_draw

        session = self._read()
        return text_of(usage_draw(self._manager(session).usage(session, title="this session")), REPORT_WIDTH)

    def recall(self, id: str = "", from_line: int = 0, lines: int = 0, query: str = "") -> str:
        """Return content of the session, whether or not it is still in the window.

        Images, and documents whose text is not known, are only named.

        Args:
            id: The item's id, as a search or a placeholder names it, or a range of ids.
            from_line: The first line to show of a long content, from 1.
            lines: The number of lines to show; 0 for as many as there is room for.
            query: Words to find, or a text as it stands, instead of an id.

        Raises:
            SessionError: The log cannot be read.
        """
        arguments = {"id": id, "from_line": from_line, "lines": lines, "query": query}
        return recall_tool("anthropic", ANSWER_MOST).handle(self._read(), arguments).text

    def _read(self) -> Session:
        path = self._path()
        status = os.stat(path)
        stamp = path, status.st_size, status.st_mtime_ns
        if stamp != self._stamp:
            self._session = read_transcript(path)
            self._stamp = stamp
        return self._session


def newest_claude_log(folder: Path) -> Path | None:
    """Return the log that Claude Code wrote last for a working folder; None if there is none.

    Claude Code keeps the logs of a folder in `projects/NAME` of its own folder, where NAME is the path with a hyphen for each character
    that is no ASCII letter or digit. `CLAUDE_CONFIG_DIR` names another folder than `~/.claude`.

    Args:
        folder: The folder in which Claude Code was started.
    """
    name = re.sub(r"[^a-zA-Z0-9]", "-", str(folder))
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    return max(_logs(home / "projects" / name), default=(0, None))[1]


def _logs(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield the logs in a folder with the times of their last change, in nanoseconds."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".jsonl") and not entry.name.startswith("agent-") and entry.is_file(follow_symlinks=False):
            yield entry.stat().st_mtime_ns, Path(entry.path)


def answered(tool: Callable[[], str]) -> str:
    """Return what a tool answers, or in a sentence why it cannot."""
    try:
        return tool()
    except (SessionError, ContextWindowError, OSError) as error:
        return f"The log cannot be used: {printable(str(error))}"
