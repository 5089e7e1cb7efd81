"""Opens files for their bytes: an image whose path the program passed, and files that data names in a folder that the caller allowed.

Only regular files are opened, and no call can block on another process.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path, PurePath
from types import TracebackType
from typing import IO, Self

from .errors import FormatError, short
from .images import is_image
from .opening import NO_LINK, PLAIN, open_regular

MAX_IMAGE_FILE = 32 * 1024 * 1024
"""Bytes. No provider accepts a larger image, so a larger file is not read."""


def _flags(*names: str) -> int:
    """Return those of the flags for `os.open` that this system has, plus the one for reading."""
    flags = os.O_RDONLY
    for name in names:
        flags |= getattr(os, name, 0)
    return flags


_FOLDER = _flags("O_DIRECTORY", "O_PATH", "O_NONBLOCK", "O_CLOEXEC")

_HAS_FOLDER_DESCRIPTORS = (
    os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
)


def read_image(path: str | os.PathLike[str]) -> bytes | None:
    """Return the bytes of an image file at a trusted path. Links are followed.

    None unless it is a regular file of at most `MAX_IMAGE_FILE` bytes with the header of an image.
    """
    return _image_in(lambda: open_regular(path))


class Folder:
    """A folder in which files may be opened by names that come from data. A context manager.

    On POSIX systems a file is reached from the folder's descriptor, one component at a time, and a link at any of them is refused
    (`O_NOFOLLOW`). There is no gap between a check and its use, so swapping a file or folder meanwhile leads nowhere else.

    Windows has no such descriptors. There the real path of the file must be its path in the folder both before and after the file
    is opened, and the file at that path must be the one that was opened. So links are refused, but an attacker who swaps links several
    times at the right moments during one call could get through.
    """

    def __init__(self, path: str | os.PathLike[str], argument: str = "read_files_below") -> None:
        """
        Args:
            path: The folder. The caller is trusted, so links in this path are followed.
            argument: The name of the argument that holds the path, for the error message.

        Raises:
            FormatError: The folder does not exist or cannot be opened.
        """
        name = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(name, str) or not name or not Path(name).is_dir():
            raise FormatError(argument, f"{short(name)} is not a folder; pass one that exists")
        try:
            self._paths = (Path(name).absolute(), Path(os.path.realpath(name, strict=True)))
            self._descriptor = os.open(self._paths[1], _FOLDER) if _HAS_FOLDER_DESCRIPTORS else None
        except OSError as error:
            raise FormatError(argument, f"the folder {short(name)} cannot be opened: {error.strerror}") from None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_closed = True
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def open(self, name: str | os.PathLike[str]) -> IO[bytes]:
        """Open a regular file of the folder for reading.

        Args:
            name: A path relative to the folder, or an absolute path that begins with the folder's.

        Raises:
            OSError: The path leads out of the folder or contains `..`, a link is on the way, or it is not a regular file that may be
                read.
            ValueError: No file can have this name; or the `with` block is over.
        """
        if self._is_closed:
            raise ValueError("the folder is closed")
        parts = self._parts(name)
        _check(bool(parts), "not a file in the folder")
        return self._open_by_descriptors(parts) if self._descriptor is not None else self._open_by_real_paths(parts)

    def read_image(self, name: str) -> bytes | None:
        """Return the bytes of an image in the folder.

        None if `open` raises an error, or the file has more than `MAX_IMAGE_FILE` bytes or not the header of an image.
        """
        return _image_in(lambda: self.open(name))

    def _parts(self, name: str | os.PathLike[str]) -> tuple[str, ...]:
        """Return the components of a path in the folder, none if it leads out of it. Does not access the file system."""
        path = PurePath(name)
        for folder in self._paths if path.is_absolute() else ():
            with suppress(ValueError):  # not below this name of the folder
                path = path.relative_to(folder)
                break
        has_stream = os.name == "nt" and ":" in str(path)
        return () if path.anchor or ".." in path.parts or has_stream else path.parts

    def _open_by_descriptors(self, parts: tuple[str, ...]) -> IO[bytes]:
        with ExitStack() as opened:
            folder = self._descriptor
            for part in parts[:-1]:
                folder = os.open(part, _FOLDER | NO_LINK, dir_fd=folder)
                opened.callback(os.close, folder)
            return open_regular(parts[-1], PLAIN | NO_LINK, folder)

    def _open_by_real_paths(self, parts: tuple[str, ...]) -> IO[bytes]:
        path = self._paths[1].joinpath(*parts)
        _check_real(path)
        with ExitStack() as on_error:
            file = on_error.enter_context(open_regular(path))
            _check_real(path)
            _check(os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(file.fileno())), "another file has taken its place")
            on_error.pop_all()
        return file


def _check(condition: bool, problem: str) -> None:
    """Raise OSError unless the condition holds."""
    if not condition:
        raise OSError(errno.EINVAL, problem)


def _check_real(path: Path) -> None:
    """Raise OSError if there is a link in the path."""
    _check(os.path.normcase(os.path.realpath(path, strict=True)) == os.path.normcase(path), "a link is on the way")


def _image_in(open_file: Callable[[], IO[bytes]]) -> bytes | None:
    """Return the bytes of a file, or None if it cannot be read, is too large, is not an image, or changes its length meanwhile."""
    try:
        with open_file() as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(size + 1) if size <= MAX_IMAGE_FILE else b""
    except (OSError, ValueError):  # ValueError: a NUL or a lone surrogate in the path
        return None
    return data if data and len(data) == size and is_image(data) else None
