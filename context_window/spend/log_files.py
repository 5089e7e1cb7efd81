"""The logs to read, with their sizes, and in batches that are worth the trip to another process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from session.transcripts.storage_readers import files_of, is_storage

from .remote import is_remote, remote_version

BATCH_BYTES = 16_000_000
"""Bytes of logs that make a batch: about a tenth of a second."""
BATCH_LOGS = 256


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log before it is read.

    Attributes:
        index: The log's index in the order of names.
        name: The log's path or address.
        size: Bytes; 0 if the file cannot be looked at.
        version: Changes when the file does; empty if the file cannot be looked at.
    """

    index: int
    name: str
    size: int
    version: str


def log_files(paths: Iterable[str | os.PathLike[str]]) -> list[LogFile]:
    """Return the files of these paths and addresses, each once, in the order of their names."""
    return [_log_file(index, name) for index, name in enumerate(sorted({os.fspath(path) for path in paths}))]


def _log_file(index: int, name: str) -> LogFile:
    if is_remote(name):
        return LogFile(index, name, *remote_version(name))
    files: Sequence[str | Path] = [name]
    if not name.endswith(".jsonl") and is_storage(Path(name)):
        files = files_of(Path(name))
    states = [state for file in files if (state := _state_of(file)) is not None]
    version = ",".join(f"{state.st_size}:{state.st_mtime_ns}" for state in states)
    return LogFile(index, name, sum(state.st_size for state in states), version)


def _state_of(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL byte in the path. Reading the log names the fault
        return None


def batches(logs: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Yield the logs in batches, in order. A log of more than `BATCH_BYTES` has one of its own."""
    batch: list[LogFile] = []
    size = 0
    for log in logs:
        if batch and (size + log.size > BATCH_BYTES or len(batch) == BATCH_LOGS):
            yield batch
            batch, size = [], 0
        batch.append(log)
        size += log.size
    if batch:
        yield batch
