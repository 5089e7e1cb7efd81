"""`RecordedFiles`: writes files into one folder, in a thread of its own.

1. The folder is opened once. Files are created in that folder, even if its name comes to mean another folder.
2. A file is created, never replaced, so no link is followed. Only its owner can read it.
3. Writes happen in the order of the calls. The caller does not wait for the disk. If more than `MOST_PENDING` bytes wait, what comes is
   dropped.
4. A fault ends the recording that it belongs to. The first one is logged, and none is raised.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import BinaryIO, TypeAlias

from session.opening import create_private_folder

MOST_PENDING = 65 * 1024 * 1024
"""Bytes that may wait to be written."""
CALL_BYTES = 500
"""What a call that waits takes besides its content."""
_HAS_FOLDER_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_LOGGER = logging.getLogger(__name__)
Clean: TypeAlias = Callable[[bytes], bytes]
"""Takes keys out of bytes. Called in the thread that writes, in the order of the calls."""


class RecordedFiles:
    """Creates files in a folder. A recording is a group of files whose names begin alike. Thread-safe.

    Attributes:
        folder: The folder.
        complete: Recordings that were written completely.
        incomplete: Recordings that were not.
        problem: The first fault, in the system's words; empty if there was none.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """
        Args:
            folder: Where to write. It is created, for its owner only, if it is missing.

        Raises:
            OSError: It cannot be created, or is a link or no folder.
        """
        self.folder = Path(folder)
        self.complete = self.incomplete = 0
        self.problem = ""
        if self.folder.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, "it is a link; name the folder itself", str(self.folder))
        create_private_folder(self.folder)
        flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor = os.open(self.folder, flags) if _HAS_FOLDER_DESCRIPTORS else None
        self._thread = ThreadPoolExecutor(1, "recording")
        self._lock = Lock()
        self._pending = 0
        self._open: dict[str, BinaryIO] = {}
        self._failed: set[str] = set()

    def close(self) -> None:
        """Wait until everything is written. What comes afterwards is dropped."""
        self._thread.shutdown()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def write(self, recording: str, suffix: str, content: bytes, clean: Clean) -> None:
        """Create a file with this content.

        Args:
            recording: The beginning of its name.
            suffix: The rest of its name. A recording has no two files of one suffix.
            content: All of its bytes.
            clean: Returns what is written of them.
        """
        self._submit(recording, len(content), partial(self._append, recording, suffix, content, clean, is_whole=True))

    def append(self, recording: str, suffix: str, content: bytes, clean: Clean) -> None:
        """Append to a file. The first call creates it, `end` closes it.

        Args:
            recording: The beginning of its name.
            suffix: The rest of its name.
            content: More bytes.
            clean: As for `write`.
        """
        self._submit(recording, len(content), partial(self._append, recording, suffix, content, clean, is_whole=False))

    def end(self, recording: str) -> None:
        """Close the files of a recording. It is counted."""
        self._submit(recording, 0, partial(self._end, recording))

    # Inside

    def _submit(self, recording: str, size: int, work: Callable[[], None]) -> None:
        size += CALL_BYTES if size else 0
        with self._lock:
            is_late = size > 0 and self._pending + size > MOST_PENDING
            self._pending += 0 if is_late else size
        if is_late:
            work, size = partial(self._fail, recording, "the disk is slower than the answers"), 0
        try:
            self._thread.submit(self._run, work, size)
        except RuntimeError:  # it was closed, or the program is ending
            self._fail(recording, "the gateway ended first")

    def _run(self, work: Callable[[], None], size: int) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._pending -= size

    def _append(self, recording: str, suffix: str, content: bytes, clean: Clean, *, is_whole: bool) -> None:
        if recording in self._failed:
            return
        name = f"{recording}.{suffix}"
        try:
            file = self._open.get(name)
            if file is None:
                file = self._open[name] = self._created(name)
            file.write(clean(content))
            file.flush()
            if is_whole:
                self._open.pop(name).close()
        except Exception as error:  # noqa: BLE001 - whatever it is, the recording is not complete
            self._fail(recording, getattr(error, "strerror", None) or type(error).__name__)

    def _created(self, name: str) -> BinaryIO:
        if self._descriptor is not None:
            return open(os.open(name, _NEW, 0o600, dir_fd=self._descriptor), "wb")
        return open(os.open(self.folder / name, _NEW, 0o600), "wb")

    def _end(self, recording: str) -> None:
        for name in [name for name in self._open if name.startswith(f"{recording}.")]:
            try:
                self._open.pop(name).close()
            except OSError as error:
                self._fail(recording, error.strerror or type(error).__name__)
        self.complete += recording not in self._failed
        self._failed.discard(recording)

    def _fail(self, recording: str, problem: str) -> None:
        if recording not in self._failed:
            self._failed.add(recording)
            self.incomplete += 1
        if not self.problem:
            self.problem = problem
            _LOGGER.warning("a request was not recorded completely: %s; answers are not affected", problem)
