"""Logs that are not on this machine: every address that fsspec knows, such as `s3://bucket/logs`.

A log is copied to a temporary file to be read, and the copy is deleted afterwards.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from session.errors import TranscriptError
from session.printable import printable
from session.redaction import redacted

from .discovery import SUFFIXES
from .errors import FleetError, missing

SIGN = "://"


def is_remote(name: str) -> bool:
    """Return True if this is an address and not a path."""
    return SIGN in name


def find_remote_logs(addresses: Iterable[str]) -> list[str]:
    """Return the addresses of logs, each once, in order. Folders and patterns are searched as by `find_logs`.

    Raises:
        FleetError: fsspec is missing, or the file system cannot be reached.
    """
    return sorted({log for address in addresses for log in _logs_of(address)})


def _logs_of(address: str) -> list[str]:
    files, path = _file_system(address)
    try:
        if "*" in path:
            names = [name for name in files.glob(path) if name.endswith(SUFFIXES)]
        elif files.isdir(path):
            names = [name for name in files.find(path) if name.endswith(SUFFIXES)]
        else:
            names = [path]
    except Exception as error:  # noqa: BLE001 - every file system has errors of its own
        raise FleetError(address, f"cannot be listed: {_reason(error)}") from None
    return [files.unstrip_protocol(name) for name in names]


def remote_version(address: str) -> tuple[int, str]:
    """Return the size of a log in bytes and a text that changes when the log does. 0 and an empty text if that is unknown."""
    files, path = _file_system(address)
    try:
        facts = files.info(path)
    except Exception:  # noqa: BLE001 - as above; reading the log names the fault
        return 0, ""
    marks = [str(facts[name]) for name in ("ETag", "LastModified", "mtime", "last_modified", "etag") if facts.get(name)]
    size = facts.get("size") or 0
    return size, f"{size}:{'|'.join(marks)}" if marks else ""


@contextmanager
def local_copy(address: str) -> Iterator[str]:
    """Copy a log to a temporary file that only the user can read, and give its path. The name keeps its ending.

    Raises:
        TranscriptError: It cannot be copied.
    """
    with TemporaryDirectory() as folder:
        path = f"{folder}/log{PurePosixPath(address).suffix}"
        try:
            files, name = _file_system(address)
            with files.open(name, "rb") as source, open(path, "wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
        except Exception as error:  # noqa: BLE001 - as above
            raise TranscriptError(address, f"cannot be read: {_reason(error)}") from None
        yield path


def _file_system(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError:
        raise missing("fsspec") from None
    try:
        files, path = url_to_fs(address)
    except (ImportError, ValueError, OSError) as error:  # a protocol that is unknown, or whose package is missing
        raise FleetError(address, f"cannot be used: {_reason(error)}") from None
    return files, path


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return redacted(printable(text if isinstance(error, FleetError) else f"{type(error).__name__}: {text}"))[:300]
