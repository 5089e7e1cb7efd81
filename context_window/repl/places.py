"""Where the chat keeps sessions and what was typed: a folder of the user's own, readable by nobody else."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from session.store.paths import private_folder

from .chat import ChatError

SESSIONS = "sessions.db"
HISTORY = "history"


def folder() -> Path:
    """The folder, made where there is none: CONTEXT_WINDOW_HOME, else where the system has such things.

    Raises:
        ChatError: It cannot be made.
    """
    home = os.environ.get("CONTEXT_WINDOW_HOME")
    try:
        found = Path(home).expanduser() if home else _state() / "context-window"
        private_folder(found)
    except (OSError, RuntimeError) as error:  # RuntimeError: nobody knows the user's home
        raise ChatError(f"sessions cannot be kept: {error}; set CONTEXT_WINDOW_HOME to a folder that can be written") from None
    return found


def _state() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def history_in(place: Path) -> Path:
    """The file of what was typed, made for the user alone.

    Raises:
        ChatError: It cannot be made.
    """
    found = place / HISTORY
    try:
        descriptor = os.open(
            found, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o600
        )  # a pipe must not make us wait
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ChatError(f"what is typed cannot be kept in {found}: {error.strerror}") from None
    if not regular:
        raise ChatError(f"what is typed cannot be kept in {found}: it is no file; move it away")
    return found


def path_of(typed: str) -> Path:
    """The path that was typed; `~` is the user's home.

    Raises:
        ChatError: It is none.
    """
    if "\0" in typed:
        raise ChatError("a path cannot hold a NUL character")
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        raise ChatError(f"{typed[:60]} is no path: nobody knows that user's home; write it out") from None
