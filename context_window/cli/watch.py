"""`--watch`: draws again whenever a log has grown, until Ctrl-C. Items are counted once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from .output import BadInputError

if TYPE_CHECKING:
    from session.session import Session

    from ..manager import ContextWindowManager
    from .options import CommandOptions

INTERVAL = 0.5
"""Seconds between two looks at the log."""

watch_option = click.option("--watch", "is_watched", is_flag=True, help="Draw again whenever the log has grown, until Ctrl-C.")


def watch(path: str, look: Callable[[], None], *, as_json: bool) -> None:
    """Call a function now and whenever the file has changed, until Ctrl-C.

    Args:
        path: The file.
        look: Reads the file and prints it.
        as_json: True if it prints JSON.

    Raises:
        BadInputError: Standard output is no terminal, and no JSON was asked for; or the path is `-`.
        OSError: The file has gone.
    """
    if path == "-":
        raise BadInputError("--watch looks at a file again and again; pass a path instead of -")
    if not as_json and not sys.stdout.isatty():
        raise BadInputError("--watch draws on a terminal; with --json it prints a line whenever the log has grown")
    last_stamp: tuple[int, int] | None = None
    try:
        while True:
            status = os.stat(os.path.expanduser(path))  # noqa: PTH111 - as a text, beside `os.stat`
            if (status.st_size, status.st_mtime_ns) != last_stamp:
                last_stamp = status.st_size, status.st_mtime_ns
                look()
            time.sleep(INTERVAL)
    except KeyboardInterrupt:
        return


class LiveSession:
    """A session that grows as its log does, and the manager that counts it."""

    def __init__(self, settings: CommandOptions) -> None:
        """
        Args:
            settings: The values of the command's options.
        """
        self._settings = settings
        self._session: Session | None = None
        self._manager: tuple[ContextWindowManager, str] | None = None

    def grown(self, session: Session) -> tuple[Session, ContextWindowManager, str]:
        """Return the session to count, the manager, and the source of its budget in words.

        If the log was only appended to, that is the session of the call before with the new items, so that only these are counted.
        Assistants also change what stands at the end of their logs; then all is counted again.

        Args:
            session: The session as the log has it now.
        """
        current, manager = self._session, self._manager
        if current is None or manager is None or not _has_grown(current, session):
            current, manager = session, self._settings.manager(session)
        else:
            for item in session.items[len(current.items) :]:
                current.append(item)
            current.metadata = session.metadata
        self._session, self._manager = current, manager
        return current, *manager


def _has_grown(earlier: Session, session: Session) -> bool:
    is_same = earlier.id == session.id and earlier.metadata.get("model") == session.metadata.get("model")
    has_same_seams = earlier.response_breaks == session.response_breaks and earlier.request_ends == session.request_ends
    return is_same and has_same_seams and list(session.items[: len(earlier.items)]) == list(earlier.items)
