"""Reads the requests of many logs. A request that several logs repeat counts once; a log that cannot be read becomes a row of faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from session.errors import TranscriptError
from session.transcripts.reported_requests import Request, each_once, read_requests


@dataclass(frozen=True, slots=True)
class LogFault:
    """A log of which something could not be read.

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
        requests: Each request once, by the order of the logs.
        repeated: Reports left out since another log reports the same request: forks and resumed sessions copy their past.
        logs: Number of logs read.
        faults: The logs of which something could not be read.
    """

    requests: tuple[Request, ...]
    repeated: int
    logs: int
    faults: tuple[LogFault, ...]


def read_ledger(paths: Iterable[Path], on_log: Callable[[int], object] | None = None) -> Ledger:
    """Return the requests of these logs.

    Args:
        paths: The logs.
        on_log: Called with 1 after each log.
    """
    reports: list[Request] = []
    faults: list[LogFault] = []
    logs = 0
    for path in paths:
        try:
            log = read_requests(path)
        except TranscriptError as error:
            faults.append(LogFault(str(path), error.problem))
        else:
            logs += 1
            reports += log.requests
            if log.damaged_lines:
                lines = "1 line is damaged and was" if log.damaged_lines == 1 else f"{log.damaged_lines:,} lines are damaged and were"
                faults.append(LogFault(str(path), f"{lines} left out"))
        if on_log is not None:
            on_log(1)
    requests = each_once(reports)
    return Ledger(tuple(requests), len(reports) - len(requests), logs, tuple(faults))
