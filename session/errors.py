"""The exceptions of `session`: what can be wrong with a log, an edit of it, or a file it comes from.

SessionError
├── DuplicateItemError   an item's id is already in the session          (also a ValueError)
├── ReadOnlyError        an edit of a read-only session                  (also a TypeError)
├── FormatError          data that does not have the documented shape    (also a ValueError; `.where`)
└── TranscriptError      a file that cannot be read as a transcript      (`.path`, `.line`)
"""

from __future__ import annotations

import os


class SessionError(Exception):
    """The root: catch this to catch everything that `session` raises on purpose."""


class DuplicateItemError(SessionError, ValueError):
    """An item id, or the answer to a call, is already in the session.

    Attributes:
        item_id: The id that was there before.
    """

    def __init__(self, item_id: str, message: str | None = None) -> None:
        self.item_id = item_id
        super().__init__(
            message
            or f"the session already holds an item with id {item_id!r}: "
            "ids are unique in a session; leave `id` out to have one made"
        )


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
    """

    def __init__(self, path: str | os.PathLike[str], problem: str, line: int | None = None) -> None:
        self.path = os.fspath(path)
        self.line = line
        self.problem = problem
        place = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{place}: {problem}")
