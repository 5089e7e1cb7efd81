"""The loop of the chat: read a line, run a command or a turn. Ctrl-C stops the command or the turn, never the chat."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from session.errors import SessionError, StoreError

from ..errors import ContextWindowError
from ..loop.unanswered import awaits_model
from .chat import Chat
from .commands import COMMANDS, run_command
from .turns import ModelTurns, Replay

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession


def line_editor(history: Path | None) -> PromptSession[str] | None:
    """Return an editor of lines; None if standard input or output is no terminal. A paste of several lines stays one message."""
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory, InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    store = InMemoryHistory() if history is None else FileHistory(str(history))
    completer = WordCompleter(list(COMMANDS), sentence=True)
    return PromptSession(history=store, completer=completer, key_bindings=bindings, reserve_space_for_menu=4)


async def talk(chat: Chat, turns: ModelTurns | Replay, history: Path | None = None) -> None:
    """Talk until the user leaves. The history is the file of earlier lines; None to keep them in memory only."""
    editor = line_editor(history)
    while not chat.is_over:
        try:
            line = await editor.prompt_async(turns.prompt) if editor is not None else _piped_line()
        except KeyboardInterrupt:
            chat.screen.inform("Ctrl-D or /quit leaves")
            continue
        except EOFError:
            return
        await _attempt(chat, run_command(chat, line) if line.startswith("/") else turns.take(line.strip()))
        if not chat.is_over:
            chat.screen.console.print()


def _piped_line() -> str:
    line = sys.stdin.readline() if sys.stdin is not None else ""
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


async def _attempt(chat: Chat, work: Coroutine[Any, Any, None]) -> None:
    """Run a command or a turn to its end, or until Ctrl-C. An error is shown in one line."""
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(task.cancel))
    try:
        await asyncio.wait([task])
        task.result()
    except asyncio.CancelledError:
        next_step = "Enter asks again" if awaits_model(chat.session) else "the next message goes on from there"
        chat.screen.inform(f"stopped; the log keeps what was said so far: {next_step}")
    except OSError as error:
        chat.screen.inform(f"{error.filename or 'that'} cannot be used: {error.strerror or error}", "red")
    except StoreError as error:
        chat.screen.inform(f"{error}; the session is only in memory: /save FILE writes it to another place", "red")
    except (SessionError, ContextWindowError) as error:
        chat.screen.inform(str(error), "red")
    finally:
        signal.signal(signal.SIGINT, before)
