"""Reads the requests of many logs. A request that several logs repeat counts once; a log that cannot be read becomes a row of faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from session.plan_limits import PlanLimits
from session.transcripts.reported_requests import Request

from .cache import SpendCache
from .lineage import makers_of
from .log_files import LogFile, log_files
from .rows import Explain, LogRows, Wanted, decode, everything, read_rows
from .schedulers import Advance, Scheduler, read_here

Progress = Callable[[int], AbstractContextManager[Advance]]
"""Shows progress: takes the bytes to read, and returns a context whose value is called with bytes read."""


@dataclass(frozen=True, slots=True)
class LogFault:
    """A log that could not be read in full.

    Attributes:
        path: The log.
        problem: The reason, in words.
    """

    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The requests of many logs.

    Attributes:
        requests: Each request once, by the order of the logs' names. Their ids are hashed.
        repeated: Reports left out since another log reports the same request: forks and resumed sessions copy their past.
        logs: Number of logs read.
        faults: The logs that could not be read in full.
        limits: The limits of plans, as each tool's logs state them last.
        deleted: Number of logs that no longer exist, whose requests were read in earlier runs.
        origins: For each request, the log that it was taken from.
    """

    requests: tuple[Request, ...]
    repeated: int
    logs: int
    faults: tuple[LogFault, ...]
    limits: tuple[PlanLimits, ...] = ()
    deleted: int = 0
    origins: tuple[str, ...] = ()

    @property
    def logs_of(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """By tool and session, the logs that report its requests, by name."""
        logs: dict[tuple[str, str], dict[str, None]] = {}
        for request, log in zip(self.requests, self.origins, strict=True):
            logs.setdefault((request.tool, request.session), {})[log] = None
        return {session: tuple(names) for session, names in logs.items()}


def read_ledger(
    paths: Iterable[str | os.PathLike[str]],
    progress: Progress | None = None,
    *,
    scheduler: Scheduler = read_here,
    cache: SpendCache | None = None,
    explain: Explain | None = None,
    wanted: Wanted = everything,
    keep: bool = False,
) -> Ledger:
    """Return the requests of these logs. Neither their order nor the scheduler nor the cache changes the result.

    Args:
        paths: The logs.
        progress: Shows how much has been read. Logs in the cache are not read.
        scheduler: `read_here` reads in this process, `read_on_all_cores` in several.
        cache: Results of earlier runs. Default: every log is read.
        explain: Adds their makeup to the requests of a log; results of earlier runs without it do not count. Default: nobody asked.
        wanted: Tells which requests are to be explained: only logs that have some are.
        keep: True if these are all logs of the tools, so that those that no longer exist count by what earlier runs have read. Of such a
            log only requests with ids count, since it may have been moved.
    """
    reader = read_rows if explain is None else partial(read_rows, explain=explain, wanted=wanted)
    entries = _Entries()
    unread: list[LogFile] = []
    deleted = dict(cache.deleted()) if cache and keep else {}
    for log in log_files([*paths, *deleted]):
        if log.name in deleted:
            entries.add(log, _of_deleted(deleted[log.name]))
            continue
        entry = cache.get(log, keep=keep) if cache else None
        if entry is None or (explain and not entry.is_explained and any(map(wanted, entry.requests))):
            unread.append(log)
        else:
            entries.add(log, entry)
    with progress(sum(log.size for log in unread)) if progress and unread else nullcontext(lambda _: None) as advance:
        for log, data in scheduler(unread, advance, reader):
            rows = decode(data)
            entries.add(log, rows)
            if cache and rows.problem is None:
                cache.put(log, data, keep=keep)
    return replace(entries.ledger(), deleted=len(deleted))


def _of_deleted(rows: LogRows) -> LogRows:
    """Return what counts of a log that no longer exists: it may have been moved, so only what can be told from copies."""
    return LogRows(tuple(request for request in rows.requests if request.id), lineage=rows.lineage)


class _Entries:
    """Collects the rows of logs in any order."""

    def __init__(self) -> None:
        self._best: dict[str, tuple[int, bool, int, int, Request]] = {}
        self._without_id: list[tuple[int, int, Request]] = []
        self._with_lineage: list[tuple[LogFile, LogRows]] = []
        self._reports = self._logs = 0
        self._faults: list[tuple[int, LogFault]] = []
        self._limits: dict[str, PlanLimits] = {}
        self._names: dict[int, str] = {}

    def add(self, log: LogFile, rows: LogRows) -> None:
        """Add a log."""
        self._names[log.index] = log.name
        self._reports += len(rows.requests)
        self._logs += rows.problem is None
        self._names[log.index] = log.name
        if rows.limits is not None and rows.limits > self._limits.get(rows.limits.tool, rows.limits[:1]):
            self._limits[rows.limits.tool] = rows.limits
        if rows.lineage.thread:
            self._with_lineage.append((log, rows))
        else:
            self._add_requests(log, rows, {})
        problems = [rows.problem] if rows.problem is not None else []
        if rows.damaged_lines:
            lines = "1 line is damaged and was" if rows.damaged_lines == 1 else f"{rows.damaged_lines:,} lines are damaged and were"
            problems.append(f"{lines} left out")
        if rows.note:
            problems.append(rows.note)
        if problems:
            self._faults.append((log.index, LogFault(log.name, "; ".join(problems))))

    def _add_requests(self, log: LogFile, rows: LogRows, makers: Mapping[str, str]) -> None:
        """Add a log's requests. Of two reports of one, the one with more output tokens stays, else that of the thread that made it,
        else that of the log whose name is first.
        """
        for index, request in enumerate(rows.requests):
            if not request.id:
                self._without_id.append((log.index, index, request))
                continue
            maker = makers.get(request.id, "")
            entry = -request.output_tokens, maker != rows.lineage.thread, log.index, index, request
            best = self._best.setdefault(f"{maker}:{request.id}", entry)
            if entry[:4] < best[:4]:
                self._best[f"{maker}:{request.id}"] = entry

    def ledger(self) -> Ledger:
        """Return the requests and the faults by the order of the logs."""
        makers = makers_of(rows for _, rows in self._with_lineage)
        for log, rows in self._with_lineage:
            self._add_requests(log, rows, makers[rows.lineage.thread])
        best = (entry[2:] for entry in self._best.values())
        entries = sorted(chain(best, self._without_id), key=lambda entry: entry[:2])
        faults = (fault for _, fault in sorted(self._faults, key=lambda fault: fault[0]))
        requests, limits = tuple(entry[2] for entry in entries), tuple(self._limits[tool] for tool in sorted(self._limits))
        origins = tuple(self._names[entry[0]] for entry in entries)
        return Ledger(requests, self._reports - len(entries), self._logs, tuple(faults), limits, origins=origins)
