"""Keeps the rows of logs between runs, so that only new and changed logs are read. A file in the user's cache folder, for the user alone.

It holds what `rows.py` writes: numbers, times, hashed ids, names of models and tools, folders, ids of sessions. Logs are found by a hash
of their path. A log counts as changed if its size or its time of modification is another one. Both are taken before the log is read, so
a log that grows meanwhile is read again in the next run.

Tools delete their logs, Claude Code after 30 days. The rows of logs that were found where the tools write them therefore stay, with the
log's path, and count as long as nobody forgets them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

from session.opening import create_private_folder

from ..user_folder import user_folder
from .log_files import LogFile
from .remote import is_remote
from .rows import FORMAT, DamagedRowsError, LogRows, decode

NAME = "spend.sqlite3"
LOGS_MAX = 500_000
"""Logs to keep. A cache with more is emptied: most of them no longer exist."""
FIRST_KEPT = 9
"""First format whose rows are still readable."""
COMMIT_EVERY = 500
"""Logs between two commits, so that an interrupted run keeps most of its work."""
DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Errors of a file that is not ours any more: other tables, damaged pages, no database at all."""
WAIT = 2.0
"""Seconds to wait for another process that is writing."""


def cache_file(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    """Return the path of the cache, which is in the folder that `user_folder` returns.

    Args:
        environment: As for `user_folder`.
        home: As for `user_folder`.

    Raises:
        RuntimeError: The user's home folder is unknown.
    """
    return user_folder(environment, home) / NAME


class SpendCache:
    """The rows of logs that were read before.

        with SpendCache(cache_file()) as cache:
            ledger = read_ledger(find_logs(), cache=cache)

    A cache that cannot be used costs time and no figures: its methods raise nothing, and `problem` names the fault.

    Attributes:
        path: The file.
        problem: The reason why the cache was thrown away or is not used, in words; None if all is well.
    """

    def __init__(self, path: Path) -> None:
        """Args:
        path: The file. It is created if necessary.
        """
        self.path = path
        self.problem: str | None = None
        self._added = 0
        self._database: sqlite3.Connection | None = None
        self._try(self._open)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._try(self._commit)
        self._close()

    def get(self, log: LogFile, *, keep: bool = False) -> LogRows | None:
        """Return the rows of the log, or None if it was not read before or has changed since.

        Args:
            log: The log.
            keep: True if its rows are to stay when it no longer exists.
        """
        row: list[tuple[bytes, str]] = []

        def select() -> None:
            if self._database is not None:
                query = "SELECT rows, name FROM logs WHERE path = ? AND version = ?"
                row.extend(self._database.execute(query, (_hashed(log), log.version)))
                if keep and row and not row[0][1]:
                    self._database.execute("UPDATE logs SET name = ? WHERE path = ?", (_name(log), _hashed(log)))

        if log.version:
            self._try(select)
        try:
            return decode(row[0][0]) if row else None
        except DamagedRowsError:
            self.problem = self.problem or f"the cache {self.path} was damaged; damaged logs are read again"
            return None

    def put(self, log: LogFile, rows: bytes, *, keep: bool = False) -> None:
        """Keep the rows of the log.

        Args:
            log: The log.
            rows: Its rows.
            keep: As for `get`.
        """

        def insert() -> None:
            if self._database is not None:
                values = _hashed(log), log.version, _name(log) if keep else "", rows
                self._database.execute("INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?)", values)
                self._added += 1
                if self._added % COMMIT_EVERY == 0:
                    self._database.commit()

        if log.version:
            self._try(insert)

    def deleted(self) -> list[tuple[str, LogRows]]:
        """Return the paths and rows of the kept logs that no longer exist, by path."""
        found: list[tuple[str, LogRows]] = []

        def select() -> None:
            for key, name in self._missing():
                for (rows,) in self._database.execute("SELECT rows FROM logs WHERE path = ?", (key,)) if self._database else ():
                    with suppress(DamagedRowsError):
                        found.append((name, decode(rows)))

        self._try(select)
        return found

    def forget(self) -> int:
        """Forget the logs that no longer exist, and return their number."""
        forgotten: list[tuple[bytes]] = []

        def delete() -> None:
            forgotten.extend((key,) for key, _ in self._missing())
            if self._database is not None:
                self._database.executemany("DELETE FROM logs WHERE path = ?", forgotten)

        self._try(delete)
        return len(forgotten)

    def _missing(self) -> list[tuple[bytes, str]]:
        if self._database is None:
            return []
        kept = self._database.execute("SELECT path, name FROM logs WHERE name != '' ORDER BY name").fetchall()
        return [(key, name) for key, name in kept if not os.path.lexists(name)]

    def _open(self) -> None:
        create_private_folder(self.path.parent)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        self._database = sqlite3.connect(self.path, timeout=WAIT)
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version < FIRST_KEPT:
            self._database.execute("DROP TABLE IF EXISTS logs")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS logs (path BLOB PRIMARY KEY, version TEXT NOT NULL, name TEXT NOT NULL, rows BLOB NOT NULL)"
        )
        if version != FORMAT:
            self._database.execute("DELETE FROM logs WHERE name = ''")
            self._database.execute("UPDATE logs SET version = ''")
            self._database.execute(f"PRAGMA user_version = {FORMAT}")
        (count,) = self._database.execute("SELECT count(*) FROM logs").fetchone()
        if count > LOGS_MAX:
            self._database.execute("DELETE FROM logs")
        self._database.commit()

    def _commit(self) -> None:
        if self._database is not None:
            self._database.commit()

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                self._begin_anew()
            else:  # locked, full, read-only: the file may be sound
                self._close()
                self.problem = f"the cache {self.path} cannot be used: {error}; logs are read without it"

    def _begin_anew(self) -> None:
        """Delete a damaged file and go on with an empty one."""
        self._close()
        if self.problem is None:
            self.problem = f"the cache {self.path} was damaged; it is made anew, and all logs are read"
            self._try(self._delete)

    def _delete(self) -> None:
        for ending in ("", "-journal"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        self._open()


def _name(log: LogFile) -> str:
    """Return the path of a log as text; empty for an address, and for a path that is none, since neither can be looked for again."""
    try:
        return "" if is_remote(log.name) else os.fsencode(os.path.realpath(log.name)).decode()
    except UnicodeDecodeError:
        return ""


def _hashed(log: LogFile) -> bytes:
    name = log.name if is_remote(log.name) else os.path.realpath(log.name)
    return blake2b(os.fsencode(name), digest_size=16).digest()
