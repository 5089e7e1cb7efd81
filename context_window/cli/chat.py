"""`context-window chat`: a coding assistant in the terminal, and transcripts gone through turn by turn."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import BadInputError, reader_may_go, show
from .readable import READABLE
from .settings import Settings, max_tokens_option, read_files_option

if TYPE_CHECKING:
    from session.session import Session
    from session.store import SessionStore

    from ..display.glyphs import Glyphs
    from ..repl.terminal import Terminal

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Where the client looks for a key."""
MODEL = "claude-sonnet-5-5"
"""The model where none is named."""
TOOL_CALLS = 40
"""Tool calls that a turn may have: to look around in a project takes more than the loop's default."""

EPILOG = """\b
Examples:
  context-window chat
  context-window chat --continue
  context-window chat --model claude-haiku-4-5 --max-tokens 30000
  context-window chat --replay session.jsonl --max-tokens 20000
"""


@click.command(epilog=READABLE + EPILOG)
@click.option("--model", metavar="NAME", help="The model. Default: ANTHROPIC_MODEL, else a current one; in a replay, the transcript's.")
@max_tokens_option
@click.option("--continue", "resume", is_flag=True, help="Go on with the last session.")
@click.option("--replay", "transcript", metavar="TRANSCRIPT", help="Go through a session log instead; needs no key and no network.")
@click.option("--auto", is_flag=True, help="With --replay: all turns, without waiting for Enter.")
@click.option("--session", "session_id", metavar="ID", help="With --replay: the session to take, where there are several.")
@read_files_option
@click.option("--debug", is_flag=True, help="Let a fault of the program end the chat with Python's traceback, and show warnings.")
def chat(transcript: str | None, resume: bool, auto: bool, session_id: str | None, debug: bool, **options: Any) -> None:
    """Talk to a coding assistant, and see what fills its window.

    It can read, list and search files of the working directory, nothing else. Before it reads a file that may hold secrets, such as
    .env or a private key, you are asked; without a terminal it cannot. The API is Anthropic's: the key is taken from
    ANTHROPIC_API_KEY, another address from ANTHROPIC_BASE_URL. Sessions are kept on this machine (CONTEXT_WINDOW_HOME says
    in which folder), for --continue and /load.

    With --replay no model is asked: each Enter shows the next turn of the transcript, and what the window held then.
    """
    settings = Settings(**options)
    if transcript is not None:
        if resume:
            raise BadInputError("--continue goes on with a session of yours, --replay shows another: pass one of them")
        _replay(transcript, session_id, settings, auto=auto, debug=debug)
        return
    if auto or session_id is not None:
        raise BadInputError(f"{'--auto' if auto else '--session'} goes with --replay TRANSCRIPT")
    with warnings.catch_warnings():
        if not debug and not sys.warnoptions:
            warnings.simplefilter("ignore")  # those of libraries, in the middle of an answer: they are for programmers
        _talk(settings, resume=resume, debug=debug)


def _talk(settings: Settings, *, resume: bool, debug: bool) -> None:
    from ..repl.chat import Chat, ChatError, News
    from ..repl.commands import NAMES
    from ..repl.live import AnthropicAccess, begun
    from ..repl.places import SESSIONS, folder, history_in
    from ..repl.sessions import goodbye, welcome
    from ..repl.terminal import run_chat
    from ..repl.workspace import Workspace
    from .files import Files

    if not any(os.environ.get(name) for name in KEYS):
        raise BadInputError(f"{KEYS[0]} is not set: export your key, or look at a session log with --replay TRANSCRIPT, which needs none")
    for name in KEYS:
        key = os.environ.get(name, "")
        if key != key.strip() or not key.isprintable():
            raise BadInputError(f"{name} holds blanks, a line break or another sign that no key has: export the key alone")
    directory = str(Path.cwd())
    try:
        place = folder()
        history = history_in(place)
    except ChatError as error:
        raise BadInputError(str(error)) from None
    with _opened(place / SESSIONS) as keeper:
        session = _resumed(keeper) if resume else begun(directory)
        named = session.metadata.get("model")
        model = settings.model or (named if isinstance(named, str) and named else None) or os.environ.get("ANTHROPIC_MODEL") or MODEL
        news = News()
        manager, _ = replace(settings, model=model, max_tool_calls=TOOL_CALLS).manager(session, news.hear)
        files = Files(read_files_below=settings.read_files_below)
        chat = Chat(manager, session, news, files.write, files.read, keeper=keeper)
        terminal = _terminal(NAMES, history, debug=debug)
        may_read = terminal.questions.may_read if terminal.questions is not None else None
        try:
            access = AnthropicAccess(chat, Workspace(directory, allow_secret=may_read))
            chat.check_model(model)
        except ChatError as error:
            raise BadInputError(str(error)) from None
        chat.model = session.metadata["model"] = model
        terminal.show_all(welcome(chat, directory))
        run_chat(chat, terminal, access)
        if chat.begun:
            terminal.show_all(goodbye(chat))


def _resumed(keeper: SessionStore) -> Session:
    """The last session."""
    from session.errors import StoreDamagedError

    try:
        last = keeper.latest()
        if last is None:
            raise BadInputError("there is no session to go on with yet; start one without --continue")
        return keeper.load(last.id)
    except StoreDamagedError as error:
        raise BadInputError(f"{error}; without --continue the chat begins a new session") from None


def _opened(path: Path) -> SessionStore:
    """The file of sessions."""
    from session.errors import StoreDamagedError
    from session.store import SessionStore

    try:
        return SessionStore(path)
    except StoreDamagedError as error:
        raise BadInputError(f"{error}; move it elsewhere, and the chat begins a new one") from None


def _replay(transcript: str, session_id: str | None, settings: Settings, *, auto: bool, debug: bool) -> None:
    from ..repl.chat import Chat, News
    from ..repl.commands import REPLAYED
    from ..repl.replay import Replay, empty_copy
    from ..repl.terminal import run_replay
    from .files import Files
    from .reading import STDIN, read_one

    if transcript == STDIN and not auto:
        raise BadInputError("standard input is the transcript, so that Enter cannot be read from it; add --auto")
    log = read_one(transcript, session_id, settings.read_files_below).session
    news = News()
    manager, _ = settings.manager(log, news.hear)
    files = Files([transcript], settings.read_files_below)
    chat = Chat(manager, empty_copy(log), news, files.write, files.read, model=manager.usage().model, replaying=True)
    run_replay(chat, Replay(log), _terminal(REPLAYED, asks=not auto, debug=debug), auto=auto)


def _terminal(names: Sequence[str], history: Path | None = None, *, asks: bool = True, debug: bool = False) -> Terminal:
    from ..repl.editor import Editor, PlainReader
    from ..repl.live import Voice
    from ..repl.questions import Questions
    from ..repl.terminal import Terminal

    voice = Voice(show, _write, _layout)
    if asks and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        editor = Editor(names, history)
        return Terminal(editor, voice, debug, Questions(editor.confirm))
    return Terminal(PlainReader(), voice, debug)


def _layout() -> tuple[int, Glyphs]:
    from ..display.glyphs import glyphs_for
    from ..display.rendering import screen_width

    return screen_width(), glyphs_for(sys.stdout.encoding)


def _write(text: str) -> None:
    with reader_may_go():
        sys.stdout.write(text)
        sys.stdout.flush()
