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
from session.parts import Text
from session.session import Session
from session.transcripts import read_transcript

from ..decision.placeholders import shown_id
from ..decision.plan import describe
from ..errors import ContextWindowError
from ..printable import printable
from ..recall import content_of, recall_tool

if TYPE_CHECKING:
    from session.items import Item

    from ..manager import ContextWindowManager

__all__ = ["LogTools", "newest_claude_log"]

FOUND_MOST = 50
"""Items that one search returns, at most."""
SHOWN_BEFORE, SHOWN_AFTER = 60, 120
"""Characters around a match that are shown."""
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

    def search_log(self, query: str, limit: int = 20) -> str:
        """Return the items whose text contains the query, newest first, a line each: an id for `recall`, its kind, and the match.

        Args:
            query: Words as they stand in the log. Upper and lower case are the same.
            limit: Items to return at most, from 1 to 50.

        Raises:
            SessionError: The log cannot be read.
        """
        words = query.strip()
        if not words:
            return "Pass a query: words as they stand in the log."
        session = self._read()
        pattern = re.compile(re.escape(words), re.IGNORECASE)
        matches = [line for item in reversed(session.items) if (line := _found(item, pattern)) is not None]
        if not matches:
            return f"None of the session's {len(session.items):,} items contains {printable(words)!r}."
        newest = matches[: max(1, min(limit, FOUND_MOST))]
        omitted = len(matches) - len(newest)
        return "\n".join([*newest, *([f"{omitted:,} older items contain it too"] if omitted else [])])

    def recall(self, id: str, start: int = 0) -> str:
        """Return the whole content of an item, whether or not it is still in the window. Images and documents are only named.

        Args:
            id: The item's id, as `search_log` or a placeholder names it, or a range of ids.
            start: Characters to skip, to read on where a long content was cut.

        Raises:
            SessionError: The log cannot be read.
        """
        recalled = recall_tool("anthropic").handle(self._read(), {"id": id})
        text = "\n".join(part.text if isinstance(part, Text) else f"[{type(part).__name__.lower()}]" for part in recalled.output)
        start = max(0, start)
        end = start + ANSWER_MOST
        return text[start:end] + (f"\n[{len(text) - end:,} more characters: recall with start={end}]" if end < len(text) else "")

    def _read(self) -> Session:
        path = self._path()
        status = os.stat(path)
        stamp = path, status.st_size, status.st_mtime_ns
        if stamp != self._stamp:
            self._session = read_transcript(path)
            self._stamp = stamp
        return self._session


def _found(item: Item, pattern: re.Pattern[str]) -> str | None:
    """Return a line about the item's first match; None if its text has none."""
    for part in content_of(item):
        if isinstance(part, Text) and (match := pattern.search(part.text)) is not None:
            first, end = max(0, match.start() - SHOWN_BEFORE), match.end() + SHOWN_AFTER
            around = f"{'…' if first else ''}{part.text[first:end]}{'…' if end < len(part.text) else ''}"
            return f"{shown_id(item.id)}: {describe(item)}: {printable(' '.join(around.split()))}"
    return None


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
