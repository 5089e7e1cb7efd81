"""`context-window chat`: a coding assistant in the terminal, and transcripts gone through turn by turn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from .output import BadInputError, reader_may_go, show
from .readable import READABLE
from .settings import Settings

if TYPE_CHECKING:
    from session.session import Session

    from ..repl.terminal import Reader, Terminal

EPILOG = """\b
Examples:
  context-window chat
  context-window chat --continue
  context-window chat --model claude-haiku-4-5 --max-tokens 30000
  context-window chat --replay session.jsonl --max-tokens 20000
"""


@click.command(epilog=READABLE + EPILOG)
@click.option("--model", metavar="NAME", help="The model. Default: ANTHROPIC_MODEL, else a current one; in a replay, the transcript's.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens a prompt may have. Default: what the model allows.")
@click.option("--continue", "resume", is_flag=True, help="Go on with the last session.")
@click.option("--replay", "transcript", metavar="TRANSCRIPT", help="Go through a session log instead; needs no key and no network.")
@click.option("--auto", is_flag=True, help="With --replay: all turns, without waiting for Enter.")
@click.option("--session", "session_id", metavar="ID", help="With --replay: the session to take, where there are several.")
def chat(transcript: str | None, resume: bool, auto: bool, session_id: str | None, **options: Any) -> None:
    """Talk to a coding assistant that looks at the working directory, and see what fills its context window.

    It can read, list and search files of the working directory, nothing else. The API is Anthropic's: the key is taken from
    ANTHROPIC_API_KEY, another address from ANTHROPIC_BASE_URL. Sessions are kept on this machine, for --continue and /load.

    With --replay no model is asked: each Enter shows the next turn of the transcript, and what the window held then.
    """
    settings = Settings(**options)
    if transcript is not None:
        if resume:
            raise BadInputError("--continue goes on with a session of yours, --replay shows another: pass one of them")
        _replay(transcript, session_id, settings, auto=auto)
        return
    if auto or session_id is not None:
        raise BadInputError(f"{'--auto' if auto else '--session'} goes with --replay TRANSCRIPT")


def _replay(transcript: str, session_id: str | None, settings: Settings, *, auto: bool) -> None:
    from ..repl.chat import Chat, News
    from ..repl.commands import COMMANDS
    from ..repl.replay import Replay, empty_copy
    from ..repl.terminal import run_replay
    from .reading import STDIN, read_one

    if transcript == STDIN and not auto:
        raise BadInputError("standard input is the transcript, so that Enter cannot be read from it; add --auto")
    log = read_one(transcript, session_id).session
    news = News()
    manager, _ = settings.manager(log, news.hear)
    chat = Chat(manager, empty_copy(log), news, _written, _read, model=manager.usage().model, replaying=True)
    run_replay(chat, Replay(log), _terminal([command.name for command in COMMANDS], asks=not auto), auto=auto)


def _terminal(names: list[str], *, asks: bool) -> Terminal:
    from ..repl.editor import Editor, PlainReader
    from ..repl.terminal import Terminal

    typed = asks and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    reader: Reader = Editor(names) if typed else PlainReader()
    return Terminal(reader, show, _write)


def _write(text: str) -> None:
    with reader_may_go():
        sys.stdout.write(text)
        sys.stdout.flush()


def _written(content: bytes, path: str) -> None:
    """Writes a file for a command."""
    from ..repl.chat import ChatError
    from .saving import check_target, save

    try:
        check_target(path, "")
        save(content, path)
    except BadInputError as error:
        raise ChatError(error.message) from None


def _read(path: str) -> Session:
    """Reads a file for a command."""
    from ..repl.chat import ChatError
    from .reading import read_one

    try:
        return read_one(path, None).session
    except BadInputError as error:
        raise ChatError(error.message) from None
