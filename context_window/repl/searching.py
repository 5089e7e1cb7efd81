"""Lines that match a regular expression, found within bounds of number, length and time. Opens no file."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..errors import ContextWindowError

MAX_PATTERN = 1_000
"""Characters that a pattern may have."""
MAX_FOUND = 200
"""Lines that are given."""
MAX_SHOWN = 300
"""Characters of a line that are given."""


class PatternError(ContextWindowError):
    """The pattern cannot be searched for; the message says why."""


class Finding(NamedTuple):
    """A line that matches.

    Attributes:
        name: The file.
        line: Its number, counted from 1.
        text: The line, cut.
    """

    name: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.name}:{self.line}: {self.text}"


class Search:
    """One search, text by text.

    Attributes:
        found: What was found.
        over: Whether a bound is reached.
        cut: Files of which only the beginning was searched.
        unread: Files that could not be read.
    """

    def __init__(self, pattern: str, *, seconds: float, clock: Callable[[], float]) -> None:
        """
        Args:
            pattern: A regular expression.
            seconds: How long the search may take.
            clock: What tells the seconds.

        Raises:
            PatternError: It is none.
        """
        import regex  # unlike `re`, it can be told to stop: some patterns would take for ever

        if not pattern or len(pattern) > MAX_PATTERN:
            raise PatternError(f"pass a pattern of 1 to {MAX_PATTERN:,} characters")
        try:
            self._pattern = regex.compile(pattern, regex.MULTILINE)
        except (regex.error, RecursionError, OverflowError, MemoryError, ValueError) as error:
            raise PatternError(
                f"the pattern is no regular expression: {error}; put a backslash before a sign that is meant itself"
            ) from None
        self.found: list[Finding] = []
        self.over = False
        self.cut = 0
        self.unread = 0
        self._late = False
        self._seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    def is_late(self) -> bool:
        """Whether the time is over; then so is the search."""
        if self._clock() >= self._end:
            self._late = self.over = True
        return self._late

    def look(self, name: str, text: str) -> None:
        """Searches a text."""
        left = self._end - self._clock()
        if left <= 0:
            self._late = self.over = True
            return
        number, upto = 1, 0
        try:
            for match in self._pattern.finditer(text, timeout=left):
                start = match.start()
                if start < upto:  # a line is given once
                    continue
                number += text.count("\n", upto, start)
                begin = text.rfind("\n", 0, start) + 1
                end = text.find("\n", start)
                line = text[begin : end if end >= 0 else len(text)].rstrip("\r")
                self.found.append(Finding(name, number, line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]} …"))
                if len(self.found) == MAX_FOUND:
                    self.over = True
                    return
                if end < 0:
                    return
                number, upto = number + 1, end + 1
        except TimeoutError:
            self._late = self.over = True

    def told(self) -> str:
        """What was found, and what the bounds left out, as a text."""
        lines = [str(one) for one in self.found] or ["[nothing found]"]
        if self._late:
            lines.append(f"[stopped after {self._seconds:g} seconds; search in a folder, or for something simpler]")
        elif self.over:
            lines.append(f"[these are the first {MAX_FOUND}; search in a folder, or for something rarer]")
        if self.cut:
            lines.append(f"[of {self.cut:,} large file{'s' if self.cut > 1 else ''} only the beginning was searched]")
        if self.unread:
            lines.append(f"[{self.unread:,} file{'s' if self.unread > 1 else ''} could not be read]")
        return "\n".join(lines)
