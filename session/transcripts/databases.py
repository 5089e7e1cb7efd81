"""SQLite databases in which tools keep their sessions: opened without a change to them, and read row by row."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from .source import COMPLETE, decode, open_file, parse
from .values import JsonObject

HEADER = b"SQLite format 3\0"
"""The first bytes of a database."""
WAIT = 1.0
"""Seconds to wait for another process that has locked a database."""
VALUE_MAX = 100_000_000
"""Characters of one value. A longer one counts as damaged."""


def is_file(path: Path) -> bool:
    """Return True for a file; False also in a folder that may not be entered, where `Path.is_file` raises an error."""
    return os.path.isfile(path)  # noqa: PTH113


def beside(path: Path, ending: str) -> Path:
    """Return the path of the file beside it whose name has this ending more."""
    return path.with_name(path.name + ending)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database without a change to it or to the files beside it.

    A log of writes is read together with its index, or from a copy if it has none. A database without one can be read without a lock.
    """
    open_file(path).close()  # raises an error with the fault of a path that cannot be read
    with ExitStack() as stack:
        options = "mode=ro&readonly_shm=1"
        log = beside(path, "-wal")
        if not log.is_file() or log.stat().st_size == 0:
            options = "mode=ro" if beside(path, "-journal").exists() else "mode=ro&immutable=1"
        elif not beside(path, "-shm").exists():
            folder = stack.enter_context(TemporaryDirectory())
            copy = Path(folder, path.name)
            shutil.copyfile(path, copy)
            shutil.copyfile(log, beside(copy, "-wal"))
            path, options = copy, "mode=ro"
        database = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{options}", uri=True, timeout=WAIT)
        stack.callback(database.close)
        database.text_factory = decode
        yield database


def rows(database: sqlite3.Connection, table: str, condition: str = "", *values: str, by: str = "seq id") -> Iterator[JsonObject]:
    """Yield the rows of a table, with the value of each column. Versions differ in the columns.

    Args:
        database: The database.
        table: The table.
        condition: A condition of SQL; empty for all rows.
        *values: The values of the question marks in the condition.
        by: The columns that order the rows, as far as the table has them.
    """
    names = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
    columns = ", ".join(f'CASE WHEN length("{name}") <= {VALUE_MAX} THEN "{name}" END' for name in names if '"' not in name)
    if not names:
        return
    order = ", ".join(name for name in by.split() if name in names or name == "rowid")
    for row in database.execute(f"SELECT {columns} FROM {table} {condition} ORDER BY {order}", values):  # noqa: S608 - names of columns
        yield dict(zip((name for name in names if '"' not in name), row, strict=True))


def object_of(value: object) -> JsonObject | None:
    """Return the object that the text is, or None if it is damaged."""
    text = decode(value) if isinstance(value, bytes) else value
    values, problem = parse(text) if isinstance(text, str) else ((), None)
    return values[0] if len(values) == 1 and problem in COMPLETE and isinstance(values[0], dict) else None
