"""Paths of the chat: its private folder with the saved sessions and the input history, and paths that the user types."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from session.store.paths import create_private_folder

from .chat import ChatError

SESSIONS = "sessions.db"
HISTORY = "history"


def data_folder() -> Path:
    """Return the chat's folder, created if necessary: CONTEXT_WINDOW_HOME, else the system's usual place. Only the user can read it.

    Raises:
        ChatError: The folder cannot be created.
    """
    home = os.environ.get("CONTEXT_WINDOW_HOME")
    try:
        folder = Path(home).expanduser() if home else _system_folder() / "context-window"
        create_private_folder(folder)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user's home is unknown
        raise ChatError(f"sessions cannot be saved: {error}; set CONTEXT_WINDOW_HOME to a writable folder") from None
    return folder


def _system_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def history_file(folder: Path) -> Path:
    """Return the file of the input history, created if necessary. Only the user can read it.

    Raises:
        ChatError: The file cannot be created.
    """
    file = folder / HISTORY
    try:
        descriptor = os.open(
            file, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o600
        )  # O_NONBLOCK: opening a pipe must not wait for its other end
        try:
            is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ChatError(f"the input history cannot be saved in {file}: {error.strerror}") from None
    if not is_regular:
        raise ChatError(f"the input history cannot be saved in {file}: it is not a regular file; move it away")
    return file


def parse_path(text: str) -> Path:
    """Return the path that the user typed, with `~` replaced by the home folder.

    Raises:
        ChatError: The text holds a NUL character, or names the home of an unknown user.
    """
    if "\0" in text:
        raise ChatError("a path cannot hold a NUL character")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ChatError(f"{text[:60]} names a user whose home folder is unknown; write the path out") from None
