r"""Searches texts for lines that match a pattern. Time and memory are bounded for any pattern and any text. Opens no files.

1. The engine is RE2. It compiles a pattern in time and memory bounded by `MAX_MEMORY`, or refuses it, and matches in time linear in
   the text. It supports neither look-around nor back-references.
2. Linear is not enough: RE2's slow path takes time in proportion to pattern size times text, two minutes for
   `((a{0,100}){0,10})b` on 4 MiB. So a text is searched in windows, which are smaller for larger compiled patterns, and
   the clock is read between windows.
3. A match lies within one line (RE2's `never_nl`), and windows end at line ends. A line longer than a window is searched in windows
   that overlap by half, so a match of up to half a window is always found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ContextWindowError

if TYPE_CHECKING:
    import re2

MAX_PATTERN = 1_000
"""Characters of the longest pattern."""
MAX_MATCHES = 200
"""Matching lines in one result, at most."""
MAX_LINE_SHOWN = 300
"""Characters of a matching line that are shown."""
MAX_MEMORY = 2 * 1024 * 1024
"""Bytes that RE2 may use for a compiled pattern and its caches."""
WINDOW_STEPS = 50_000_000
"""Limit for one uninterruptible match: pattern instructions times bytes. About one second on RE2's slow path."""

SYNTAX = "The syntax is RE2: no look-around such as (?=x) or (?<!x), no back-references such as \\1, repetition up to {1000}."

_ADVICE = (
    (
        ("operator: (?=", "operator: (?!", "operator: (?<"),
        "Look-around is not supported: search for the text itself, and read the lines that match.",
    ),
    (
        ("operator: (?P", *(f"sequence: \\{digit}" for digit in range(1, 10))),
        "Back-references are not supported: write the repeated text out, or search for its first part.",
    ),
    (("operator: (?",), "This kind of group is not supported: use (x), (?:x), or (?i) at the beginning to ignore case."),
    (("repetition size", "too large"), "Write smaller repetitions: x+ instead of x{1000}, or a part of the pattern."),
    (("repetition op",), "Use one of *, +, ? or {n,m} after a character or group; put a backslash before one that is meant literally."),
    (("sequence: \\Z",), "Write \\z instead."),
    (("sequence: \\u", "sequence: \\U", "sequence: \\N"), "Write the character itself, or \\x{1F600} with its code."),
)
"""Advice for a refused pattern, by a part of RE2's message. The first entry that matches is used."""


class PatternError(ContextWindowError):
    """The pattern is not supported. The message says why, and what to write instead."""


class Match(NamedTuple):
    """A matching line.

    Attributes:
        name: The file's name.
        line: The line's number, from 1.
        text: The line, shortened.
    """

    name: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.name}:{self.line}: {self.text}"


class Search:
    """One search, over any number of texts.

    Attributes:
        matches: The matching lines so far.
        is_over: True once the time or the number of matches has run out.
        partial_files: Number of files searched only in part, at the beginning.
        unreadable_files: Number of files that could not be read.
    """

    def __init__(self, pattern: str, *, seconds: float, clock: Callable[[], float]) -> None:
        """
        Args:
            pattern: A regular expression in RE2's syntax.
            seconds: Seconds that the search may take, counted from now.
            clock: Returns the time in seconds.

        Raises:
            PatternError: RE2 does not accept the pattern.
        """
        self._pattern = _compiled(pattern)
        self._window = max(1, WINDOW_STEPS // max(1, self._pattern.programsize))
        self.matches: list[Match] = []
        self.is_over = False
        self.partial_files = 0
        self.unreadable_files = 0
        self._is_late = False
        self._seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    def is_late(self) -> bool:
        """True once the time is up, which also ends the search."""
        if self._clock() >= self._end:
            self._is_late = self.is_over = True
        return self._is_late

    def add_text(self, name: str, data: bytes) -> None:
        """Search a text.

        Args:
            name: The file name for its matches.
            data: The text in UTF-8. Bytes that are not valid UTF-8 match no character.
        """
        line_number, counted_to, start = 1, 0, 0
        while start < len(data) and not self.is_late():
            end, next_start = self._window_at(data, start)
            match = self._pattern.search(data, start, end)
            if match is None:
                start = next_start
                continue
            begin = data.rfind(b"\n", 0, match.start()) + 1
            line_end = data.find(b"\n", begin)
            line_end = len(data) if line_end < 0 else line_end
            line_number += data.count(b"\n", counted_to, begin)
            self.matches.append(Match(name, line_number, _visible_text(data[begin:line_end])))
            if len(self.matches) == MAX_MATCHES:
                self.is_over = True
                return
            counted_to, start = begin, line_end + 1

    def _window_at(self, data: bytes, start: int) -> tuple[int, int]:
        """Return the end of the window that starts at `start`, and the start of the next window."""
        end = start + self._window
        if end >= len(data):
            return len(data) - data.endswith(b"\n"), len(data)
        line_end = data.rfind(b"\n", start, end)
        if line_end >= 0:
            return line_end, line_end + 1
        return end, start + max(1, self._window // 2)

    def report(self) -> str:
        """Return the matches, one per line, and notes on the limits that ended the search."""
        lines = [str(match) for match in self.matches] or ["[nothing found]"]
        if self._is_late:
            lines.append(f"[stopped after {self._seconds:g} seconds; search in a folder, or for something simpler]")
        elif self.is_over:
            lines.append(f"[these are the first {MAX_MATCHES}; search in a folder, or for something rarer]")
        if self.partial_files:
            lines.append(f"[of {self.partial_files:,} large file{'s' if self.partial_files > 1 else ''} only the beginning was searched]")
        if self.unreadable_files:
            lines.append(f"[{self.unreadable_files:,} file{'s' if self.unreadable_files > 1 else ''} could not be read]")
        return "\n".join(lines)


def _visible_text(line: bytes) -> str:
    text = line[: 4 * (MAX_LINE_SHOWN + 1)].decode("utf-8", "replace").rstrip("\r")  # a character has at most 4 bytes
    return text if len(text) <= MAX_LINE_SHOWN else f"{text[:MAX_LINE_SHOWN]} …"


def _compiled(pattern: str) -> re2._Regexp:
    import re2

    if not pattern or len(pattern) > MAX_PATTERN:
        raise PatternError(f"pass a pattern of 1 to {MAX_PATTERN:,} characters")
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False  # they would be printed to the terminal
    try:
        # (?m): ^ and $ match at every line. Bytes, because RE2 would count all characters of a str to report a position.
        return re2.compile(f"(?m){pattern}".encode(), options)
    except UnicodeEncodeError:
        raise PatternError("the pattern holds half a character (a lone surrogate); write the whole character") from None
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        reason = reason.replace("(?m)", "", 1)  # added above
        advice = next((text for parts, text in _ADVICE if any(part in reason for part in parts)), None)
        advice = advice or "Put a backslash before a character that is meant literally, such as ( or [ or *."
        raise PatternError(f"the pattern cannot be searched for: {reason[:100]}. {SYNTAX} {advice}") from None
    finally:
        re2.purge()  # its cache would keep 128 patterns of up to `MAX_MEMORY` each
