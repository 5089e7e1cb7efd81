"""Runs the chat in a real pseudo-terminal: sends keys, reads the screen, and detects output beyond its edge.

Like a terminal, the screen answers when the program asks for the position of the cursor.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pexpect
import pyte
from wcwidth import wcwidth

from tests.support.shared import ROOT
from tests.support.shell import heed_interrupts

ROWS = 400
"""Rows of the screen: enough that nothing scrolls away."""
PATIENCE = 60.0
"""Seconds to wait at most, also on a busy machine."""


class _Screen(pyte.Screen):
    """A screen that records characters printed beyond its edge, and answers queries."""

    def __init__(self, columns: int, rows: int) -> None:
        self.beyond: list[str] = []
        self.asked: list[str] = []
        super().__init__(columns, rows)

    def draw(self, data: str) -> None:
        for character in data:
            if self.cursor.x + max(0, wcwidth(character)) > self.columns:
                self.beyond.append(character)
            super().draw(character)

    def shown(self) -> list[str]:
        """Return the lines up to the last one with text. `display` would build hundreds of empty lines."""
        lines = [self._row(self.buffer[y]) for y in range(max(self.buffer, default=-1) + 1)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _row(self, row: Mapping[int, pyte.screens.Char]) -> str:
        cells = [row[x].data for x in range(max(row, default=-1) + 1)]
        return "".join(cells).rstrip()  # the cell behind a wide character is empty

    def write_process_input(self, data: str) -> None:
        self.asked.append(data)


class Console:
    """A program in a terminal."""

    def __init__(self, child: pexpect.spawn[str], width: int, rows: int) -> None:
        self._child = child
        self._screen = _Screen(width, rows)
        self._stream = pyte.Stream(self._screen)
        self.sent = ""
        self.ended = False
        self.lines: list[str] = []
        """The lines on the screen, without spaces at their ends."""

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    @property
    def flat(self) -> str:
        """The screen as one line, with all line breaks removed."""
        return " ".join(self.text.split())

    @property
    def beyond(self) -> list[str]:
        """Characters that were printed beyond the last column."""
        return self._screen.beyond

    def type(self, text: str) -> None:
        """Type a text and press Enter."""
        self._child.send(f"{text}\r")

    def press(self, keys: str) -> None:
        """Press keys."""
        self._child.send(keys)

    def widen(self, width: int) -> None:
        """Make the terminal wider."""
        self._screen.resize(ROWS, width)
        self._child.setwinsize(ROWS, width)

    def until(self, text: str, *, times: int = 1) -> None:
        """Wait until the text is on the screen `times` times, broken into lines or not."""
        end = time.monotonic() + PATIENCE
        while max(self.text.count(text), self.flat.count(text)) < times:
            assert time.monotonic() < end, f"no {text!r} on the screen:\n{self.text}"
            assert not self.ended, f"it has ended without {text!r}:\n{self.text}"
            self._take()

    def until_prompt(self) -> None:
        """Wait until the last line on the screen is an empty prompt. Keys pressed before that belong to the turn that is ending."""
        end = time.monotonic() + PATIENCE
        while not self.lines or self.lines[-1].rstrip() != ">":
            assert time.monotonic() < end, f"no prompt on the screen:\n{self.text}"
            assert not self.ended, f"it has ended without a prompt:\n{self.text}"
            self._take()

    def leave(self) -> int | None:
        """Wait for the program to end, and return its exit code."""
        end = time.monotonic() + PATIENCE
        while not self.ended:
            assert time.monotonic() < end, f"it does not end:\n{self.text}"
            self._take()
        self._child.close()
        return self._child.exitstatus

    def _take(self) -> None:
        try:
            output = self._child.read_nonblocking(65_536, timeout=0.2)
        except pexpect.TIMEOUT:
            return
        except pexpect.EOF:
            self.ended = True
            return
        self.sent += output
        self._stream.feed(output)
        for answer in self._screen.asked:
            self._child.send(answer)
        self._screen.asked.clear()
        self.lines = self._screen.shown()


@contextmanager
def console(*args: str, width: int, cwd: str, environment: Mapping[str, str], rows: int = ROWS) -> Iterator[Console]:
    """Run the command line in a terminal.

    Args:
        args: The arguments of the command.
        width: Columns of the terminal.
        cwd: The working directory.
        environment: Additional environment variables.
        rows: Rows of the terminal.
    """
    env = {
        **os.environ,
        "TERM": "xterm-256color",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": str(ROOT),
        "NO_PROXY": "127.0.0.1",
        **environment,
    }
    for name in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "ANTHROPIC_MODEL"} - set(environment):
        env.pop(name, None)
    child: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        ["-m", "context_window", *args],
        dimensions=(rows, width),
        env=env,
        encoding="utf-8",
        timeout=PATIENCE,
        cwd=cwd,
        preexec_fn=heed_interrupts,
    )
    child.delaybeforesend = None  # tests wait for a prompt (`until_prompt`) before they press keys
    child.delayafterclose = child.delayafterterminate = 0.01  # seconds
    try:
        yield Console(child, width, rows)
    finally:
        child.close(force=True)
