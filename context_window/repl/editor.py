"""Where lines come from: a line editor with history and completion in a terminal, plain lines from anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .chat import ChatError
from .places import history_in

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings


class PlainReader:
    """Lines of standard input, where it is no terminal."""

    def read(self, prompt: str) -> str | None:  # noqa: ARG002 - nobody would see it
        """The next line."""
        line = sys.stdin.readline() if sys.stdin is not None else ""
        return line.rstrip("\n") if line else None


class Editor:
    """Lines that a user types: with history, completion of commands, and several lines with Alt-Enter."""

    def __init__(self, names: Sequence[str], history: Path | None = None) -> None:
        """
        Args:
            names: The commands.
            history: The file that keeps what was typed; None for memory alone.
        """
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.filters import Condition

        completer = WordCompleter(list(names), sentence=True)
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=completer,
            complete_while_typing=Condition(lambda: self._session.default_buffer.text.startswith("/")),
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation="  ",
            reserve_space_for_menu=4,
        )

    def read(self, prompt: str) -> str | None:
        """The next line, or lines; None at Ctrl-D."""
        try:
            return self._session.prompt(prompt)
        except EOFError:
            return None

    async def confirm(self, question: str) -> bool:
        """True if the user answers the question with yes. Enter, Ctrl-C and Ctrl-D mean no.

        What was typed before the question was shown is no answer to it, and is discarded.
        """
        from prompt_toolkit import PromptSession
        from prompt_toolkit.input.typeahead import clear_typeahead

        session: PromptSession[str] = PromptSession()  # one of its own: answers are no history
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

        with suppress(termios.error):  # no terminal: nobody types
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _history(file: Path | None) -> History:
    """Return what keeps the lines: in memory, and in the file if there is one."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if file is None:
        return InMemoryHistory()
    folder = file.parent

    class PrivateHistory(FileHistory):
        def store_string(self, string: str) -> None:
            with suppress(ChatError, OSError):  # a line that can only be kept in memory is sent all the same
                history_in(folder)  # prompt_toolkit would make the file anew for everybody to read
                super().store_string(string)

    return PrivateHistory(str(file))


def _keys() -> KeyBindings:
    """Enter sends, Alt-Enter begins a new line: a pasted text with line breaks stays one message."""
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
