"""The exceptions of `session`.

SessionError
├── DuplicateItemError   an item's id is already in the session          (also a ValueError)
├── UnknownItemError     no item of the session has this id              (also a KeyError)
├── PositionError        the session has no item at this position        (also an IndexError)
├── ReadOnlyError        an edit of a view or a read-only session        (also a TypeError)
├── SummaryError         no usable summary was written; the log is unchanged
├── FormatError          data does not have the documented shape         (also a ValueError; `.where`)
├── TranscriptError      a file cannot be read as a transcript           (`.path`, `.line`)
└── StoreError           a store of sessions cannot be used              (`.path`, `.problem`)
    ├── StoreBusyError        another process locked it for too long; nothing was written          (`.seconds`)
    ├── StoreConflictError    the store has other items than the session; nothing was written      (`.session_id`)
    ├── StoreDamagedError     the store is damaged, or is not one                                  (`.session_id`)
    └── UnknownSessionError   the store has no session with this id    (also a KeyError; `.session_id`)

The first four are mistakes of the caller. SummaryError comes from the summarizer, FormatError from the data, TranscriptError from the
file, and StoreError from the store's file or server, or the system around it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .redaction import short

__all__ = [
    "DuplicateItemError",
    "FormatError",
    "PositionError",
    "ReadOnlyError",
    "SessionError",
    "StoreBusyError",
    "StoreConflictError",
    "StoreDamagedError",
    "StoreError",
    "SummaryError",
    "TranscriptError",
    "UnknownItemError",
    "UnknownSessionError",
    "short",
]


class SessionError(Exception):
    """The root. Catch it to catch everything that `session` raises on purpose."""

    def __reduce__(self) -> tuple[Callable[..., SessionError], tuple[Any, ...]]:
        # By default exceptions are pickled as class and message, which these constructors do not accept.
        return _restored, (type(self), self.args, dict(vars(self)))


def _restored(kind: type[SessionError], args: tuple[Any, ...], attributes: dict[str, Any]) -> SessionError:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


class DuplicateItemError(SessionError, ValueError):
    """An item id is already in the session, or a call already has an output.

    Attributes:
        item_id: The id in use: an item's, or a call's.
    """

    def __init__(self, item_id: str, message: str | None = None) -> None:
        self.item_id = item_id
        super().__init__(
            message
            or f"the session already has an item with id {short(item_id)}: ids are unique in a session; leave `id` out to get a new one"
        )


class UnknownItemError(SessionError, KeyError):
    """No item of the session has this id.

    Attributes:
        item_id: The unknown id.
    """

    def __init__(self, item_id: str) -> None:
        self.item_id = item_id
        super().__init__(f"no item of the session has the id {short(item_id)}; `items` lists all items")

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show the message in quotes


class PositionError(SessionError, IndexError):
    """The session has no item at this position.

    Attributes:
        position: The position that was requested.
        length: Number of items in the session.
    """

    def __init__(self, position: int, length: int) -> None:
        self.position = position
        self.length = length
        advice = f"the session has {length}; pass {-length} to {length - 1}" if length else "the session is empty"
        super().__init__(f"no item at position {short(position)}: {advice}")


class SummaryError(SessionError):
    """No usable summary was written. The log is unchanged.

    Attributes:
        problem: The reason.
        usage: The usage that the provider reported for an answer that is no usable summary; None without an answer or a report.
    """

    def __init__(self, problem: str, usage: object = None) -> None:
        self.problem = problem
        self.usage = usage
        super().__init__(f"no summary was written, and the log is unchanged: {problem}")


class ReadOnlyError(SessionError, TypeError):
    """A method that changes a session was called on a view or a read-only session.

    Attributes:
        operation: The name of the method, or of the attribute that was set.
    """

    def __init__(self, operation: str, *, is_view: bool = False) -> None:
        self.operation = operation
        kind = "view" if is_view else "read-only session"
        other = "to go on from the view as a log of its own, use Session.from_view(view)" if is_view else "or change a copy()"
        super().__init__(f"{operation} would change a {kind}; append to the session that it was made from; {other}")


class FormatError(SessionError, ValueError):
    """Data does not have the documented shape.

    Attributes:
        where: The place in the data, e.g. `items[3].content[0].text`.
        problem: The problem at that place.
    """

    def __init__(self, where: str, problem: str) -> None:
        self.where = where
        self.problem = problem
        super().__init__(f"{where}: {problem}" if where else problem)


class TranscriptError(SessionError):
    """A file cannot be read as a transcript.

    Attributes:
        path: The file.
        line: The line at which the reader stopped, counted from 1; None for the whole file.
        problem: The problem there.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str, line: int | None = None) -> None:
        self.path = os.fspath(path)
        self.line = line
        self.problem = problem
        location = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{location}: {problem}")


class StoreError(SessionError):
    """A store of sessions cannot be used as requested. Sessions in memory are unchanged, and no failed save is in the store.

    One exception: if the connection to a server is lost while a save ends, it may be stored or not. Saving again is right in both
    cases.

    Attributes:
        path: The file, or the server's URL without its password.
        problem: The problem with it.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        self.path = os.fspath(path)
        self.problem = problem
        super().__init__(f"{self.path}: {problem}")


class StoreBusyError(StoreError):
    """Another process, or another store in this process, locked the store for too long. Nothing was written.

    Attributes:
        seconds: Seconds waited.
    """

    def __init__(self, path: str | os.PathLike[str], seconds: float) -> None:
        self.seconds = seconds
        super().__init__(path, f"another process locked the store for more than {seconds:g} seconds and nothing was written; save again")


class StoreConflictError(StoreError):
    """The store has other items of a session than the session in memory begins with. Nothing was written.

    Attributes:
        session_id: The session.
    """

    def __init__(self, path: str | os.PathLike[str], session_id: str, problem: str) -> None:
        self.session_id = session_id
        super().__init__(path, f"session {short(session_id)} {problem}")


class StoreDamagedError(StoreError):
    """The file or the server's tables are damaged, or are not a store. Nothing was changed.

    Undamaged sessions still load, and so do earlier revisions of the damaged one. `sqlite3 FILE .recover | sqlite3 NEW` writes a new
    file with everything that can be recovered: see `session.store`. A server's tables are restored from a backup.

    Attributes:
        session_id: The session that cannot be read, or None if it is the whole store.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str, session_id: str | None = None) -> None:
        self.session_id = session_id
        where = "" if session_id is None else f"session {short(session_id)} is damaged: "
        scope = "if it was a store, " if session_id is None else "earlier revisions and other sessions may still load; "
        is_file = not os.fspath(path).startswith("postgresql://")
        repair = "run `sqlite3 FILE .recover | sqlite3 NEW` with sqlite.org's sqlite3 and open NEW"
        advice = repair if is_file else "restore the schema `context_window` from a backup"
        super().__init__(path, f"{where}{problem}; {scope}{advice}")


class UnknownSessionError(StoreError, KeyError):
    """The store holds no session of this id.

    Attributes:
        session_id: The id that was asked for.
    """

    def __init__(self, path: str | os.PathLike[str], session_id: str) -> None:
        self.session_id = session_id
        super().__init__(path, f"no session has the id {short(session_id)}; `list()` names those there are")

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show the message in quotes
