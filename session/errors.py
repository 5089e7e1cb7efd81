"""The exceptions of `session`: what can be wrong with a log, an edit of it, or a file it comes from.

SessionError
├── DuplicateItemError   an item's id is already in the session          (also a ValueError)
├── UnknownItemError     no item of the session has this id              (also a KeyError)
├── PositionError        the session has no item at this position        (also an IndexError)
├── ReadOnlyError        an edit of a read-only session                  (also a TypeError)
├── SummaryError         nobody wrote a usable summary; the log is as it was
├── FormatError          data that does not have the documented shape    (also a ValueError; `.where`)
└── TranscriptError      a file that cannot be read as a transcript      (`.path`, `.line`)

The first four are the caller's doing; SummaryError is of whoever was asked to write one, FormatError of whoever made the data,
TranscriptError of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

SHOWN = 60
"""Characters of a value that a message repeats."""


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


def short(value: object) -> str:
    """The value as a message may show it: a text or number in at most some 60 characters, of all else the type.

    It never fails: `repr` does on integers of 5,000 digits and on deep nesting, and takes gigabytes for large data.
    """
    if isinstance(value, str):
        text = str.__str__(value)
        return repr(text) if len(text) <= SHOWN else f"{text[: SHOWN - 3]!r}..."
    if isinstance(value, int) and value.bit_length() > 3 * SHOWN:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a value of type {type(value).__name__}"
