"""Readers of the user's lines: an editor with history and completion in a terminal, plain lines from standard input otherwise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .chat import ChatError
from .storage_paths import history_file

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings


class PlainReader:
    """Reads lines from standard input when it is not a terminal."""

    def read(self, prompt: str) -> str | None:  # noqa: ARG002 - there is no terminal to show it
        """Return the next line; None at the end of the input."""
        line = sys.stdin.readline() if sys.stdin is not None else ""
        return line.rstrip("\n") if line else None


class LineEditor:
    """Lets the user edit lines in a terminal, with history, completion of commands, and Alt-Enter for several lines."""

    def __init__(self, names: Sequence[str], history: Path | None = None) -> None:
        """
        Args:
            names: The names of the commands.
            history: The file of the input history; None to keep it in memory only.
        """
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.filters import Condition

        completer = WordCompleter(list(names), sentence=True)
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=completer,
            complete_while_typing=Condition(lambda: self._session.default_buffer.text.startswith("/")),
            key_bindings=_key_bindings(),
            multiline=True,
            prompt_continuation="  ",
            reserve_space_for_menu=4,
        )

    def read(self, prompt: str) -> str | None:
        """Return the next input, which may have several lines; None at Ctrl-D."""
        try:
            return self._session.prompt(prompt)
        except EOFError:
            return None

    async def confirm(self, question: str) -> bool:
        """Return True if the user answers the question with yes. Enter, Ctrl-C and Ctrl-D mean no.

        Keys pressed before the question was shown do not answer it, and are discarded.
        """
        from prompt_toolkit import PromptSession
        from prompt_toolkit.input.typeahead import clear_typeahead

        session: PromptSession[str] = PromptSession()  # a separate session: answers do not belong in the history
        clear_typeahead(session.app.input)
        _discard_unread_keys()
        try:
            answer = await session.prompt_async(question)
        except (EOFError, KeyboardInterrupt):
            return False
        return answer.strip().casefold() in {"y", "yes"}


def _discard_unread_keys() -> None:
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios

        with suppress(termios.error):  # not a terminal: there are no keys to discard
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _history(file: Path | None) -> History:
    """Return an input history, in memory and in the file if there is one."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if file is None:
        return InMemoryHistory()
    folder = file.parent

    class PrivateHistory(FileHistory):
        def store_string(self, string: str) -> None:
            with suppress(ChatError, OSError):  # the line is sent even if it cannot be written to the file
                history_file(folder)  # creates a missing file; prompt_toolkit would make it readable for everybody
                super().store_string(string)

    return PrivateHistory(str(file))


def _key_bindings() -> KeyBindings:
    """Return the keys: Enter sends, Alt-Enter starts a new line. A pasted text with line breaks stays one message."""
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings
