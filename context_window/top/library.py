"""Keeps what was read of the logs, and tells what has changed since. Its methods take as long as reading takes: call them in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..spend.cache import SpendCache
from ..spend.discovery import find_logs
from ..spend.ledger import LogFault, read_ledger
from ..spend.log_files import LogFile, log_files
from ..spend.rows import LogRows, decode
from ..spend.schedulers import Advance, read_on_all_cores
from .conversations import Grown, Opened, opened
from .entries import Entries, Entry, EntryKey
from .titles import title_of


class KeptRows(SpendCache):
    """The cache of `spend`, which also keeps rows in memory: only changed logs are read or decoded again."""

    def __init__(self, path: Path, rows: dict[str, tuple[str, LogRows]]) -> None:
        """
        Args:
            path: The cache's file.
            rows: The rows in memory, by the logs' names, with the version that they are of.
        """
        super().__init__(path)
        self._rows = rows

    def get(self, log: LogFile, *, keep: bool = False) -> LogRows | None:
        """Return the rows of a log, as `SpendCache.get` does."""
        version, rows = self._rows.get(log.name, ("", None))
        if rows is not None and version == log.version:
            return rows
        if (found := super().get(log, keep=keep)) is not None:
            self._rows[log.name] = log.version, found
        return found

    def put(self, log: LogFile, rows: bytes, *, keep: bool = False) -> None:
        """Keep the rows of a log."""
        super().put(log, rows, keep=keep)
        if log.version:
            self._rows[log.name] = log.version, decode(rows)


class Library:
    """All sessions, and one of them that is open.

    Attributes:
        entries: The sessions, the one that was used last first.
        titles: Words for sessions, as far as they were looked for; empty for those without any.
        faults: The logs that could not be read in full.
        progress: Bytes that have been read of those to be read, while logs are read.
    """

    def __init__(self, paths: Sequence[str], cache: Path, grown: Callable[[], Grown]) -> None:
        """
        Args:
            paths: As for `find_logs`.
            cache: The file of the spend cache.
            grown: Returns what keeps the counts of one conversation.
        """
        self.entries: tuple[Entry, ...] = ()
        self.titles: dict[EntryKey, str] = {}
        self.faults: tuple[LogFault, ...] = ()
        self.progress = (0, 0)
        self._paths, self._cache, self._new_grown = tuple(paths), cache, grown
        self._versions: dict[str, str] = {}
        self._rows: dict[str, tuple[str, LogRows]] = {}
        self._sums = Entries()
        self._untitled: dict[EntryKey, float | None] = {}
        self._open: tuple[tuple[EntryKey, tuple[str, ...]], Opened] | None = None
        self._grown: dict[str, Grown] = {}

    def look(self) -> bool:
        """Read the logs that are new or have changed. Return False if there are none."""
        logs = find_logs(self._paths)
        versions = {log.name: log.version for log in log_files(logs)}
        if versions == self._versions:
            return False
        with KeptRows(self._cache, self._rows) as cache:
            ledger = read_ledger(logs, self._reading, scheduler=read_on_all_cores, cache=cache, keep=not self._paths)
        self._versions, self.faults = versions, ledger.faults
        self.entries = self._sums.of(ledger)
        return True

    @contextmanager
    def _reading(self, total: int) -> Iterator[Advance]:
        def advance(read: int) -> None:
            self.progress = self.progress[0] + read, total

        self.progress = 0, total
        try:
            yield advance
        finally:
            self.progress = 0, 0

    def name(self, entries: Iterable[Entry]) -> bool:
        """Look for words for these sessions. Return False if none were found that were not known before."""
        found = False
        for entry in self.unnamed(entries):
            title = next(filter(None, (title_of(log, entry.key.session) for log in entry.logs)), "")
            self._untitled[entry.key] = entry.time
            self.titles[entry.key] = title
            found = found or bool(title)
        return found

    def unnamed(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return those of the sessions that words have not been looked for since their last request."""
        return [entry for entry in entries if not self.titles.get(entry.key) and self._untitled.get(entry.key, -1.0) != entry.time]

    def open(self, entry: Entry) -> Opened:
        """Read a session. If it is open and its logs are the same as then, the result is the same object."""
        state = entry.key, tuple(log.version for log in log_files(entry.logs))
        if self._open is None or self._open[0] != state:
            if self._open is None or self._open[0][0] != entry.key:
                self._grown = {}
            self._open = state, opened(entry, self._grown_of)
        return self._open[1]

    def _grown_of(self, name: str) -> Grown:
        return self._grown.setdefault(name, self._new_grown())
