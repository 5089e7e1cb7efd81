"""The loop of the chat: a line comes in, drawings go out. How lines are edited and where drawings go, others know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import isawaitable
from typing import Protocol

import click

from session.errors import SessionError, StoreError

from ..display.rendering import Draw
from ..errors import ContextWindowError
from ..loop.turn import UserInput
from .chat import Chat
from .commanding import now
from .commands import find
from .drawing import blank, fault, quiet
from .live import Access, Voice, take_turn
from .questions import Questions
from .replay import Replay

LEAVE = "Ctrl-D or /quit leaves"
ELSEWHERE = "/save FILE writes it elsewhere"
UNEXPECTED = 200
"""Characters of an unexpected fault's words that are shown."""


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
        voice: Where drawings and texts go.
        debug: Whether a fault that nobody expects ends the chat, with all that Python says of it.
        questions: Puts the tools' questions to the user; None if nobody can be asked.
    """

    reader: Reader
    voice: Voice
    debug: bool = False
    questions: Questions | None = None

    def show(self, draw: Draw) -> None:
        """Prints what is drawn."""
        self.voice.show(draw)

    def show_all(self, draws: Iterable[Draw]) -> None:
        """Prints what is drawn, one after the other."""
        for draw in draws:
            self.voice.show(draw)

    def tell_unexpected(self, error: Exception, then: str) -> None:
        """Tells of a fault that nobody expects, in one line. The conversation goes on: it is kept, and worth more than the traceback.

        Args:
            error: The fault.
            then: How to go on.
        """
        if self.debug or isinstance(error, click.exceptions.Exit):  # nobody reads the output any more
            raise error
        words = " ".join(str(error).split())[:UNEXPECTED]
        told = f"{type(error).__name__}, which nobody expected here{f': {words}' if words else ''}."
        self.show(fault(f"{told} What was said is kept: {then}. --debug shows where it came from."))


def obey(chat: Chat, line: str, terminal: Terminal, runner: asyncio.Runner) -> None:
    """Runs a command, and shows what it gives, or what was in its way."""
    try:
        command, rest = find(line, replaying=chat.replaying)
        found = command.run(chat, rest)
        terminal.show_all(runner.run(_awaited(found)) if isawaitable(found) else found)
    except (SessionError, ContextWindowError, OSError) as error:
        terminal.show(fault(str(error)))
    except KeyboardInterrupt:
        terminal.voice.write("\n")
        terminal.show(quiet("stopped"))
    except Exception as error:  # noqa: BLE001 - it is told of, and raised with --debug
        terminal.tell_unexpected(error, "go on")


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
                terminal.show(quiet(LEAVE))
                continue
            if line is None:
                return
            if replay.left and not line.strip():
                _next_turn(chat, replay, terminal)
                continue
            if line.strip().startswith("/"):
                obey(chat, line, terminal, runner)
            elif line.strip():
                terminal.show(fault("a replay takes no messages: Enter shows the next turn, /help the commands"))
            else:
                terminal.show(quiet("that was the last turn; /quit leaves"))
            terminal.show(blank)


def _next_turn(chat: Chat, replay: Replay, terminal: Terminal) -> None:
    """Shows the next turn. Ctrl-C stops the showing alone: the turn is in the log before it begins."""
    drawn = list(replay.step(chat))
    try:
        terminal.show_all(drawn)
    except KeyboardInterrupt:
        terminal.voice.write("\n")
        terminal.show_all([quiet("stopped: the turn is in the log, with all that was not shown"), now(chat), blank])


def run_chat(chat: Chat, terminal: Terminal, access: Access) -> None:
    """Talks until the user leaves. Ctrl-C stops an answer or a command, and nothing else.

    Args:
        chat: The conversation.
        terminal: Where it is held.
        access: The way to the model.
    """
    with asyncio.Runner() as runner:
        try:
            while not chat.over:
                _next(chat, terminal, access, runner)
            if not _is_kept(chat, terminal):
                chat.over = False  # once: who leaves again means it
                while not chat.over:
                    _next(chat, terminal, access, runner)
        finally:
            runner.run(access.close())


def _is_kept(chat: Chat, terminal: Terminal) -> bool:
    """Whether nothing is lost when the user leaves now; if not, says so."""
    try:
        chat.keep()
    except StoreError as error:
        terminal.show(fault(f"{error}. Not all of this is kept: {ELSEWHERE}, leaving again loses it."))
        return False
    return True


def _next(chat: Chat, terminal: Terminal, access: Access, runner: asyncio.Runner) -> None:
    """Takes a line, and does what it says."""
    waiting = len(chat.attached)
    try:
        line = terminal.reader.read(f"[{waiting} image{'s' if waiting > 1 else ''}] > " if waiting else "> ")
    except KeyboardInterrupt:
        terminal.show(quiet(LEAVE))
        return
    if line is None:
        chat.over = True
    elif line.lstrip().startswith("/"):
        obey(chat, line, terminal, runner)
        if chat.again:
            chat.again = False
            _turn(chat, None, terminal, access, runner)
        terminal.show(blank)
    elif line.strip() or chat.attached:
        said: UserInput = [*chat.attached, *([line] if line.strip() else [])] if chat.attached else line
        _turn(chat, said, terminal, access, runner)
        terminal.show(blank)


def _turn(chat: Chat, said: UserInput, terminal: Terminal, access: Access, runner: asyncio.Runner) -> None:
    try:
        runner.run(_with_questions(take_turn(chat, said, access, terminal.voice), terminal.questions))
    except KeyboardInterrupt:
        terminal.voice.write("\n")  # the terminal has echoed ^C
        terminal.show(quiet(f"stopped: what was said so far is kept; {_going_on(chat)}"))
        terminal.show(now(chat))
    except StoreError as error:
        terminal.show(fault(f"{error}. What was said is in memory alone: {ELSEWHERE}."))
        terminal.show(now(chat))
    except (SessionError, ContextWindowError, OSError) as error:
        terminal.show(fault(str(error)))
    except Exception as error:  # noqa: BLE001 - it is told of, and raised with --debug
        terminal.tell_unexpected(error, _going_on(chat))


async def _with_questions(turn: Awaitable[None], questions: Questions | None) -> None:
    """Await a turn whose tools may ask the user, if anybody can be asked."""
    async with questions.during_turn() if questions is not None else nullcontext():
        await turn


def _going_on(chat: Chat) -> str:
    return "say how to go on" if chat.answered else "/retry asks again"
