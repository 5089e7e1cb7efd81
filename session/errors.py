"""The exceptions of `session`: what can be wrong with a log, an edit of it, or a file it comes from or is kept in.

SessionError
├── DuplicateItemError   an item's id is already in the session          (also a ValueError)
├── UnknownItemError     no item of the session has this id              (also a KeyError)
├── PositionError        the session has no item at this position        (also an IndexError)
├── ReadOnlyError        an edit of a read-only session                  (also a TypeError)
├── SummaryError         nobody wrote a usable summary; the log is as it was
├── FormatError          data that does not have the documented shape    (also a ValueError; `.where`)
├── TranscriptError      a file that cannot be read as a transcript      (`.path`, `.line`)
└── StoreError           a file of sessions that cannot be used          (`.path`, `.problem`)
    ├── StoreBusyError        another process kept it too long; nothing was written       (`.seconds`)
    ├── StoreConflictError    what it holds of a session is not what is to be gone on with (`.session_id`)
    ├── StoreDamagedError     it is damaged, or no store at all                            (`.session_id`)
    └── UnknownSessionError   it holds no session of this id           (also a KeyError; `.session_id`)

The first four are the caller's doing; SummaryError is of whoever was asked to write one, FormatError of whoever made the data,
TranscriptError of the file, StoreError of the file or the system around it.
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
    """The root: catch this to catch everything that `session` raises on purpose."""

    def __reduce__(self) -> tuple[Callable[..., SessionError], tuple[Any, ...]]:
        # Exceptions are pickled as their class and message, which the constructors here do not take.
        return _revived, (type(self), self.args, dict(vars(self)))


def _revived(kind: type[SessionError], args: tuple[Any, ...], attributes: dict[str, Any]) -> SessionError:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


class DuplicateItemError(SessionError, ValueError):
    """An item id, or the answer to a call, is already in the session.

    Attributes:
        item_id: The id that was there before: an item's, or a call's.
    """

    def __init__(self, item_id: str, message: str | None = None) -> None:
        self.item_id = item_id
        super().__init__(
            message
            or f"the session already holds an item with id {short(item_id)}: ids are unique in a session; leave `id` out to have one made"
        )


class UnknownItemError(SessionError, KeyError):
    """No item of the session has this id.

    Attributes:
        item_id: The id that was asked for.
    """

    def __init__(self, item_id: str) -> None:
        self.item_id = item_id
        super().__init__(f"no item of the session has the id {short(item_id)}; `items` lists those there are")

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show the message in quotes


class PositionError(SessionError, IndexError):
    """The session has no item at this position.

    Attributes:
        position: What was asked for.
        length: How many items there are.
    """

    def __init__(self, position: int, length: int) -> None:
        self.position = position
        self.length = length
        there = f"the session has {length}; pass {-length} to {length - 1}" if length else "the session is empty"
        super().__init__(f"no item at position {short(position)}: {there}")


class SummaryError(SessionError):
    """Nobody wrote a usable summary. The log is as it was before it was asked for.

    Attributes:
        problem: What came instead.
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"no summary was written, and the log is unchanged: {problem}")


class ReadOnlyError(SessionError, TypeError):
    """A read-only session was asked to change.

    Attributes:
        operation: The name of the method that was refused.
    """

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(f"{operation}() would change a read-only session; call it on the session it was made from, or on a copy()")


class FormatError(SessionError, ValueError):
    """Data does not have the documented shape.

    Attributes:
        where: The place in the data, e.g. `items[3].content[0].text`.
        problem: What is wrong there.
    """

    def __init__(self, where: str, problem: str) -> None:
        self.where = where
        self.problem = problem
        super().__init__(f"{where}: {problem}" if where else problem)


class TranscriptError(SessionError):
    """A file cannot be read as a transcript.

    Attributes:
        path: The file.
        line: The line the reader stopped at, counted from 1, or None where the whole file is meant.
        problem: What is wrong there.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str, line: int | None = None) -> None:
        self.path = os.fspath(path)
        self.line = line
        self.problem = problem
        place = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{place}: {problem}")


class StoreError(SessionError):
    """A file of sessions cannot be used as asked. What was not acknowledged is not in it; the sessions in memory are as they were.

    Attributes:
        path: The file.
        problem: What is wrong with it.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        self.path = os.fspath(path)
        self.problem = problem
        super().__init__(f"{self.path}: {problem}")


class StoreBusyError(StoreError):
    """Another process, or another store of this one, kept the file too long. Nothing was written.

    Attributes:
        seconds: How long was waited.
    """

    def __init__(self, path: str | os.PathLike[str], seconds: float) -> None:
        self.seconds = seconds
        super().__init__(path, f"another process kept the file for more than {seconds:g} seconds, and nothing was written; save again")


class StoreConflictError(StoreError):
    """What the file holds of a session is not what the session in memory goes on from. Nothing was written.

    Attributes:
        session_id: The session.
    """

    def __init__(self, path: str | os.PathLike[str], session_id: str, problem: str) -> None:
        self.session_id = session_id
        super().__init__(path, f"session {short(session_id)} {problem}")


class StoreDamagedError(StoreError):
    """The file is damaged, or is no store. It is left as it is; `session.store.salvage` gives what can be read.

    Attributes:
        session_id: The session that cannot be read, or None where it is the whole file.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str, session_id: str | None = None) -> None:
        self.session_id = session_id
        where = "" if session_id is None else f"session {short(session_id)} is damaged: "
        super().__init__(path, f"{where}{problem}; `session.store.salvage` gives what can be read")


class UnknownSessionError(StoreError, KeyError):
    """The file holds no session of this id.

    Attributes:
        session_id: The id that was asked for.
    """

    def __init__(self, path: str | os.PathLike[str], session_id: str) -> None:
        self.session_id = session_id
        super().__init__(path, f"no session has the id {short(session_id)}; `list()` names those there are")

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show the message in quotes
