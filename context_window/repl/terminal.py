"""The two ends of a terminal: a reader of lines and an output for drawings. The loop that uses them is in `chat_loop.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import click

from ..display.glyphs import Glyphs
from ..display.render import Draw
from .permission_prompt import PermissionPrompt
from .render import error_text

MAX_ERROR_TEXT = 200
"""Characters of an unexpected error's message that are shown."""


class Reader(Protocol):
    """Reads lines from the user."""

    def read(self, prompt: str) -> str | None:
        """Return the next line; None at the end of the input.

        Raises:
            KeyboardInterrupt: The user has pressed Ctrl-C.
        """


@dataclass(frozen=True, slots=True)
class Output:
    """Writes to the user.

    Attributes:
        show: Prints a drawing.
        write: Prints a text unchanged, at once.
        layout: Returns the current width of the terminal, and the characters that it can show.
    """

    show: Callable[[Draw], None]
    write: Callable[[str], None]
    layout: Callable[[], tuple[int, Glyphs]]


@dataclass(frozen=True, slots=True)
class Terminal:
    """Both ends of a terminal.

    Attributes:
        reader: Reads lines.
        output: Writes drawings and texts.
        debug: True to let unexpected errors end the chat with a traceback.
        permission_prompt: Asks the user for the tools' permissions; None if nobody can be asked.
    """

    reader: Reader
    output: Output
    debug: bool = False
    permission_prompt: PermissionPrompt | None = None

    def show(self, draw: Draw) -> None:
        """Print a drawing."""
        self.output.show(draw)

    def show_all(self, draws: Iterable[Draw]) -> None:
        """Print drawings one after the other."""
        for draw in draws:
            self.output.show(draw)

    def report_unexpected(self, error: Exception, next_step: str) -> None:
        """Show an unexpected error in one line, so that the chat can continue. With `debug`, raise it.

        Args:
            error: The error.
            next_step: What the user can do next.
        """
        if self.debug or isinstance(error, click.exceptions.Exit):  # Exit: the reader of our output has closed it
            raise error
        message = " ".join(str(error).split())[:MAX_ERROR_TEXT]
        title = f"unexpected {type(error).__name__}{f': {message}' if message else ''}."
        self.show(error_text(f"{title} The conversation is intact: {next_step}. Run with --debug for a traceback."))
