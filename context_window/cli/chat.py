"""`context-window chat`: a coding assistant in the terminal, and the replay of transcripts turn by turn."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import READABLE_FORMATS, CommandOptions, max_tokens_option, read_files_option, strategy_option
from .output import BadInputError, show, tolerate_closed_pipe

if TYPE_CHECKING:
    from session.session import Session
    from session.store import SessionStore

    from ..display.glyphs import Glyphs
    from ..repl.terminal import Terminal

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Environment variables in which the client looks for a key."""
MODEL = "claude-sonnet-5-5"
"""The default model."""
TOOL_CALLS = 40
"""Maximum tool calls per turn. Exploring a project takes more than the loop's default."""

EPILOG = """\b
Examples:
  context-window chat
  context-window chat --continue
  context-window chat --model claude-haiku-4-5 --max-tokens 30000
  context-window chat --replay session.jsonl --max-tokens 20000
"""


@click.command(epilog=READABLE_FORMATS + EPILOG)
@click.option("--model", metavar="NAME", help=f"Model to use. Default: ANTHROPIC_MODEL, else {MODEL}; in a replay, the transcript's.")
@max_tokens_option
@strategy_option("extract")
@click.option("--continue", "resume", is_flag=True, help="Continue the last session.")
@click.option("--replay", "transcript", metavar="TRANSCRIPT", help="Replay a session log instead. Needs no key and no network.")
@click.option("--auto", is_flag=True, help="With --replay: show all turns without waiting for Enter.")
@click.option("--session", "session_id", metavar="ID", help="With --replay: session to use if the transcript has several.")
@read_files_option
@click.option("--debug", is_flag=True, help="On an error in the program, exit with Python's traceback; also show warnings.")
def chat(transcript: str | None, resume: bool, auto: bool, session_id: str | None, debug: bool, **options: Any) -> None:
    """Talk to a coding assistant and see what fills its context window.

    The assistant can read, list and search files in the working directory, and nothing else. You are asked before it reads a file
    that may hold secrets, such as .env or a private key; without a terminal, such files are not read. The chat uses Anthropic's API
    with the key in ANTHROPIC_API_KEY, at the address in ANTHROPIC_BASE_URL if that is set. Sessions are saved on this machine, for
    --continue and /load; CONTEXT_WINDOW_HOME sets the folder.

    --replay calls no model: each Enter shows the next turn of the transcript and the content of the window at that point.
    """
    settings = CommandOptions(**options)
    if transcript is not None:
        if resume:
            raise BadInputError("--continue resumes your last session and --replay shows a transcript: use one of them")
        _replay(transcript, session_id, settings, auto=auto, debug=debug)
        return
    if auto or session_id is not None:
        raise BadInputError(f"{'--auto' if auto else '--session'} needs --replay TRANSCRIPT")
    with warnings.catch_warnings():
        if not debug and not sys.warnoptions:
            warnings.simplefilter("ignore")  # warnings of libraries would appear in the middle of an answer
        _talk(settings, resume=resume, debug=debug)


def _talk(settings: CommandOptions, *, resume: bool, debug: bool) -> None:
    from ..repl.chat import Chat, ChatError, Notices
    from ..repl.chat_loop import run_chat
    from ..repl.commands import NAMES
    from ..repl.model_access import AnthropicAccess, new_session
    from ..repl.session_commands import goodbye, welcome
    from ..repl.storage_paths import SESSIONS, data_folder, history_file
    from ..repl.workspace import Workspace
    from .chat_files import ChatFiles

    if not any(os.environ.get(name) for name in KEYS):
        raise BadInputError(f"{KEYS[0]} is not set: export your key, or replay a session log with --replay TRANSCRIPT, which needs no key")
    for name in KEYS:
        key = os.environ.get(name, "")
        if key != key.strip() or not key.isprintable():
            raise BadInputError(f"{name} contains blanks, a line break or another character that keys never have: export just the key")
    directory = str(Path.cwd())
    try:
        chat_folder = data_folder()
        history = history_file(chat_folder)
    except ChatError as error:
        raise BadInputError(str(error)) from None
    with _open_store(chat_folder / SESSIONS) as store:
        session = _last_session(store) if resume else new_session(directory)
        recorded_model = session.metadata.get("model")
        recorded_model = recorded_model if isinstance(recorded_model, str) else None
        model = settings.model or recorded_model or os.environ.get("ANTHROPIC_MODEL") or MODEL
        notices = Notices()
        manager, _ = replace(settings, model=model, max_tool_calls=TOOL_CALLS).manager(session, notices.add_event)
        files = ChatFiles(read_files_below=settings.read_files_below)
        chat = Chat(manager, session, notices, files.write, files.read, store=store)
        terminal = _terminal(NAMES, history, debug=debug)
        may_read = terminal.permission_prompt.may_read if terminal.permission_prompt is not None else None
        try:
            access = AnthropicAccess(chat, Workspace(directory, allow_secret=may_read))
            chat.check_model(model)
        except ChatError as error:
            raise BadInputError(str(error)) from None
        chat.model = session.metadata["model"] = model
        terminal.show_all(welcome(chat, directory))
        run_chat(chat, terminal, access)
        if chat.has_started:
            terminal.show_all(goodbye(chat))


def _last_session(store: SessionStore) -> Session:
    """Return the last session."""
    from session.errors import StoreDamagedError

    try:
        last = store.latest()
        if last is None:
            raise BadInputError("there is no session to continue yet; start one without --continue")
        return store.load(last.id)
    except StoreDamagedError as error:
        raise BadInputError(f"{error}; start a new session without --continue") from None


def _open_store(path: Path) -> SessionStore:
    """Open the file of saved sessions."""
    from session.errors import StoreDamagedError
    from session.store import SessionStore

    try:
        return SessionStore(path)
    except StoreDamagedError as error:
        raise BadInputError(f"{error}; move it elsewhere, and the chat will create a new one") from None


def _replay(transcript: str, session_id: str | None, settings: CommandOptions, *, auto: bool, debug: bool) -> None:
    from ..repl.chat import Chat, Notices
    from ..repl.chat_loop import run_replay
    from ..repl.commands import REPLAY_NAMES
    from ..repl.replay import Replay, empty_copy
    from .chat_files import ChatFiles
    from .read_transcript import STDIN, read_one

    if transcript == STDIN and not auto:
        raise BadInputError("the transcript comes from standard input, so Enter cannot be read from it; add --auto")
    log = read_one(transcript, session_id, settings.read_files_below).session
    notices = Notices()
    manager, _ = settings.manager(log, notices.add_event)
    files = ChatFiles([transcript], settings.read_files_below)
    chat = Chat(manager, empty_copy(log), notices, files.write, files.read, model=manager.usage().model, is_replay=True)
    run_replay(chat, Replay(log), _terminal(REPLAY_NAMES, is_interactive=not auto, debug=debug), auto=auto)


def _terminal(names: Sequence[str], history: Path | None = None, *, is_interactive: bool = True, debug: bool = False) -> Terminal:
    from ..repl.line_editor import LineEditor, PlainReader
    from ..repl.permission_prompt import PermissionPrompt
    from ..repl.terminal import Output, Terminal

    output = Output(show, _write, _layout)
    if is_interactive and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        editor = LineEditor(names, history)
        return Terminal(editor, output, debug, PermissionPrompt(editor.confirm))
    return Terminal(PlainReader(), output, debug)


def _layout() -> tuple[int, Glyphs]:
    from ..display.glyphs import glyphs_for
    from ..display.render import screen_width

    return screen_width(), glyphs_for(sys.stdout.encoding)


def _write(text: str) -> None:
    with tolerate_closed_pipe():
        sys.stdout.write(text)
        sys.stdout.flush()
