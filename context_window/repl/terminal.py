"""The loop of the chat: a line comes in, drawings go out. How lines are edited and where drawings go, others know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Protocol

from session.errors import SessionError

from ..display.rendering import Draw
from ..errors import ContextWindowError
from .chat import Chat
from .commands import find
from .drawing import blank, fault, quiet
from .replay import Replay


class Reader(Protocol):
    """Where lines come from."""

    def read(self, prompt: str) -> str | None:
        """The next line; None where there are no more.

        Raises:
            KeyboardInterrupt: The user has pressed Ctrl-C.
        """


@dataclass(frozen=True, slots=True)
class Terminal:
    """Both ends of a terminal.

    Attributes:
        reader: Where lines come from.
        show: Prints what is drawn.
        write: Prints a text as it is, at once.
    """

    reader: Reader
    show: Callable[[Draw], None]
    write: Callable[[str], None]

    def show_all(self, draws: Iterable[Draw]) -> None:
        """Prints what is drawn, one after the other."""
        for draw in draws:
            self.show(draw)


def obey(chat: Chat, line: str, terminal: Terminal, runner: asyncio.Runner) -> None:
    """Runs a command, and shows what it gives, or what was in its way."""
    try:
        command, rest = find(line)
        found = command.run(chat, rest)
        terminal.show_all(runner.run(_awaited(found)) if isawaitable(found) else found)
    except (SessionError, ContextWindowError, OSError) as error:
        terminal.show(fault(str(error)))
    except KeyboardInterrupt:
        terminal.show(quiet("stopped"))


async def _awaited(found: object) -> Iterable[Draw]:
    return await found  # type: ignore[no-any-return,misc]  # `obey` has looked


def run_replay(chat: Chat, replay: Replay, terminal: Terminal, *, auto: bool) -> None:
    """Goes through a transcript: a turn for each empty line, or all of it at once.

    Args:
        chat: The conversation that it becomes.
        replay: The transcript.
        terminal: Where it is shown.
        auto: Whether to ask for nothing.
    """
    with asyncio.Runner() as runner:
        if replay.left:
            terminal.show_all(replay.step(chat))
        while auto and replay.left:
            terminal.show_all(replay.step(chat))
        if auto:
            return
        terminal.show(quiet("Enter shows the next turn, /help the commands."))
        while not chat.over:
            try:
                line = terminal.reader.read(f"{replay.left} left> " if replay.left else "end> ")
            except KeyboardInterrupt:
                continue
            if line is None:
                return
            if line.strip().startswith("/"):
                obey(chat, line, terminal, runner)
            elif line.strip():
                terminal.show(fault("a replay takes no messages: Enter shows the next turn, /help the commands"))
            elif replay.left:
                terminal.show_all(replay.step(chat))
            else:
                terminal.show(quiet("that was the last turn; /quit leaves"))
            terminal.show(blank)
