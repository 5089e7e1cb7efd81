"""The loop of the chat: read a line, run a command or a turn, show the result. `terminal.py` reads and writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import nullcontext
from inspect import isawaitable

from session.errors import SessionError, StoreError

from ..display.render import Draw
from ..errors import ContextWindowError
from ..loop.turn import UserInput
from .chat import Chat
from .commands import find_command
from .model_access import ModelAccess
from .model_turn import take_turn
from .permission_prompt import PermissionPrompt
from .render import dim, empty_line, error_text, plural
from .replay import Replay
from .terminal import Terminal

HOW_TO_LEAVE = "use Ctrl-D or /quit to leave"
HOW_TO_SAVE = "/save FILE writes it to another place"


def run_command(chat: Chat, line: str, terminal: Terminal, runner: asyncio.Runner) -> None:
    """Run the command that the line names, and show its result or its error."""
    try:
        command, rest = find_command(line, is_replay=chat.is_replay)
        result = command.run(chat, rest)
        terminal.show_all(runner.run(_awaited(result)) if isawaitable(result) else result)
    except (SessionError, ContextWindowError, OSError) as error:
        terminal.show(error_text(str(error)))
    except KeyboardInterrupt:
        terminal.output.write("\n")
        terminal.show(dim("interrupted"))
    except Exception as error:  # noqa: BLE001 - shown to the user, and raised with --debug
        terminal.report_unexpected(error, "you can continue")


async def _awaited(result: object) -> Iterable[Draw]:
    return await result  # type: ignore[no-any-return,misc]  # `run_command` has checked that it is awaitable


def run_replay(chat: Chat, replay: Replay, terminal: Terminal, *, auto: bool) -> None:
    """Step through a transcript: one turn for each empty line, or all turns at once.

    Args:
        chat: The chat that the turns are appended to.
        replay: The transcript.
        terminal: The terminal.
        auto: True to show all turns without reading any line.
    """
    with asyncio.Runner() as runner:
        if replay.turns_left:
            terminal.show_all(replay.step(chat))
        while auto and replay.turns_left:
            terminal.show_all(replay.step(chat))
        if auto:
            return
        terminal.show(dim("Press Enter for the next turn, or type /help for the commands."))
        while not chat.is_over:
            try:
                line = terminal.reader.read(f"{plural(replay.turns_left, 'turn')} left> " if replay.turns_left else "end> ")
            except KeyboardInterrupt:
                terminal.show(dim(HOW_TO_LEAVE))
                continue
            if line is None:
                return
            if replay.turns_left and not line.strip():
                _show_next_turn(chat, replay, terminal)
                continue
            if line.strip().startswith("/"):
                run_command(chat, line, terminal, runner)
            elif line.strip():
                terminal.show(error_text("a replay does not take messages: press Enter for the next turn, or type /help for the commands"))
            else:
                terminal.show(dim("that was the last turn; /quit leaves"))
            terminal.show(empty_line)


def _show_next_turn(chat: Chat, replay: Replay, terminal: Terminal) -> None:
    """Show the next turn. The whole turn is appended first, so Ctrl-C stops only the output."""
    draws = list(replay.step(chat))
    try:
        terminal.show_all(draws)
    except KeyboardInterrupt:
        terminal.output.write("\n")
        terminal.show_all([dim("interrupted; the log holds the whole turn, including the part not shown"), chat.usage_line(), empty_line])


def run_chat(chat: Chat, terminal: Terminal, access: ModelAccess) -> None:
    """Talk until the user leaves. Ctrl-C stops an answer or a command, never the chat.

    Args:
        chat: The conversation.
        terminal: The terminal.
        access: Access to the model.
    """
    with asyncio.Runner() as runner:
        try:
            while not chat.is_over:
                _handle_line(chat, terminal, access, runner)
            if not _is_saved(chat, terminal):
                chat.is_over = False  # stay once; leaving again discards the unsaved part
                while not chat.is_over:
                    _handle_line(chat, terminal, access, runner)
        finally:
            runner.run(access.close())


def _is_saved(chat: Chat, terminal: Terminal) -> bool:
    """Save the session. False, with a message to the user, if that fails."""
    try:
        chat.save()
    except StoreError as error:
        terminal.show(error_text(f"{error}. The session is not fully saved: {HOW_TO_SAVE}; leaving again discards the rest."))
        return False
    return True


def _handle_line(chat: Chat, terminal: Terminal, access: ModelAccess, runner: asyncio.Runner) -> None:
    """Read a line, and run it as a command or send it as a message."""
    images = chat.attached_images
    try:
        line = terminal.reader.read(f"[{plural(len(images), 'image')}] > " if images else "> ")
    except KeyboardInterrupt:
        terminal.show(dim(HOW_TO_LEAVE))
        return
    if line is None:
        chat.is_over = True
    elif line.lstrip().startswith("/"):
        run_command(chat, line, terminal, runner)
        if chat.is_retry_requested:
            chat.is_retry_requested = False
            _run_turn(chat, None, terminal, access, runner)
        terminal.show(empty_line)
    elif line.strip() or images:
        user_input: UserInput = [*images, *([line] if line.strip() else [])] if images else line
        _run_turn(chat, user_input, terminal, access, runner)
        terminal.show(empty_line)


def _run_turn(chat: Chat, user_input: UserInput, terminal: Terminal, access: ModelAccess, runner: asyncio.Runner) -> None:
    try:
        runner.run(with_permission_prompt(take_turn(chat, user_input, access, terminal.output), terminal.permission_prompt))
    except KeyboardInterrupt:
        terminal.output.write("\n")  # the terminal has echoed ^C
        terminal.show(dim(f"interrupted; the log holds everything so far: {_next_step(chat)}"))
        terminal.show(chat.usage_line())
    except StoreError as error:
        terminal.show(error_text(f"{error}. The conversation is only in memory: {HOW_TO_SAVE}."))
        terminal.show(chat.usage_line())
    except (SessionError, ContextWindowError, OSError) as error:
        terminal.show(error_text(str(error)))
    except Exception as error:  # noqa: BLE001 - shown to the user, and raised with --debug
        terminal.report_unexpected(error, _next_step(chat))


async def with_permission_prompt(turn: Awaitable[None], prompt: PermissionPrompt | None) -> None:
    """Await a turn. While it runs, its tools can ask the user through `prompt`, if there is one."""
    async with prompt.during_turn() if prompt is not None else nullcontext():
        await turn


def _next_step(chat: Chat) -> str:
    return "send a new message" if chat.is_answered else "/retry asks again"
