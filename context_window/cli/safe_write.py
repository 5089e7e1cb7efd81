"""Writes files completely or not at all, readable only by their owner, and never over somebody else's file.

1. A `Target` looks at the file before any work is done. It may be created, or replaced if it is empty or holds the same session and
   nothing of it would be lost: a view whose items are all in the log, or a save whose items are all in the new one, and no metadata
   that the new one does not have. Anything else needs `--force`. The transcripts that are read are never replaced.
2. The content is written to a temporary file next to the target. Nobody but the owner can read it.
3. A new file gets its name by a hard link, which fails if the name has been taken. An old one is replaced only if it is still the file
   that was looked at in step 1. The system cannot compare and replace in one call: a few microseconds lie between the two.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from .output import BadInputError, say_content, terminal_safe

if TYPE_CHECKING:
    from session.session import Session

STDOUT = "-"
STDOUT_PATHS = frozenset({"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
PRIVATE = 0o600
"""Permissions of a new file: sessions hold source code, and now and then a password."""
LARGEST_CHECKED = 32 * 1024 * 1024
"""Bytes of an existing file that are read to judge whether it may be replaced. A larger one needs `--force`."""

force_option = click.option("--force", is_flag=True, help="Replace OUT whatever it contains. The transcript itself is never replaced.")


class Target:
    """A file to write, checked before any work is done.

    Attributes:
        name: Its path, or `-` for standard output.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[str],
        *,
        session: bool,
        force: bool = False,
        rename_advice: str = "pass -o with",
        force_advice: str = "add --force to replace it",
    ) -> None:
        """
        Args:
            name: The path as the user gave it, or `-` for standard output.
            sources: Paths of the transcripts, which are never overwritten.
            session: True if a session will be written; False for a provider's payload, whose origin cannot be checked.
            force: True to replace whatever is there.
            rename_advice: Beginning of the advice to choose another name.
            force_advice: Advice on how to replace the file anyway.

        Raises:
            BadInputError: The target is a source, a folder, in a folder that does not exist, or a file that must not be replaced.
        """
        self.name = STDOUT if name in STDOUT_PATHS else name
        self._force = force
        self._rename_advice = rename_advice
        self._force_advice = force_advice
        self._state: os.stat_result | None = None
        self._existing: Session | None = None
        if self.name == STDOUT:
            return
        if not name:
            raise BadInputError(f"the name of the file to write is empty; {rename_advice} a name")
        if name.startswith("-"):
            raise BadInputError(f"{name} looks like an option, not a file name; for a file of that name, write ./{name}")
        with self._wrap_os_errors():
            self._check_place(sources)
            self._path = Path(os.path.realpath(name))
            self._state = _state_of(name)
            if self._state is not None and not self._may_be_written(self._state):
                self._existing = self._read_existing(session, self._state.st_size)

    @property
    def label(self) -> str:
        """The target in words, for the line that says where the output went."""
        return "standard output" if self.name == STDOUT else self.name

    def permit(self, session: Session, log: Session | None = None) -> None:
        """Check that the file may be replaced by this session. A file that needs no permission passes.

        Args:
            session: The session to be written.
            log: The log that it is a view of; None if it is a log.

        Raises:
            BadInputError: The file holds another session, or items or metadata that would be lost.
        """
        from session.removed import KEY

        existing = self._existing
        if existing is None:
            return
        if existing.id != session.id:
            raise self._refusal(f"already exists and holds another session ({existing.id})")
        missing = _missing_items(existing, session, log or session)
        if missing:
            raise self._refusal(f"already exists and holds {missing:,} of {len(existing.items):,} items that would be lost")
        # A different value under the same key is a newer one. That items are missing does not matter where none of them is lost.
        if not existing.metadata.keys() - {KEY} <= session.metadata.keys():
            raise self._refusal("already exists and holds metadata that would be lost")

    def write(self, content: bytes) -> None:
        """Write the content completely or not at all.

        A file that is replaced keeps its permissions and, if it is a link, its place. Devices and pipes are written to directly.

        Raises:
            BadInputError: The file cannot be written, or another file has appeared in its place.
        """
        if self.name == STDOUT:
            say_content(content)
            return
        with self._wrap_os_errors():
            state = _state_of(self.name)
            if state is not None and not stat.S_ISREG(state.st_mode):
                self._write_to_device(content)
            else:
                self._write_to_file(content, state)

    # The check

    def _check_place(self, sources: Sequence[str]) -> None:
        target = Path(self.name)
        if target.is_dir():
            raise BadInputError(f"{self.name} is a folder; {self._rename_advice} a file name in it")
        if not target.parent.is_dir():
            raise BadInputError(f"there is no folder {target.parent}; create it first, or {self._rename_advice} another name")
        if any(_is_same_file(target, Path(source)) for source in sources):
            raise BadInputError(f"{self.name} is the transcript itself, which is never overwritten; {self._rename_advice} another name")

    def _may_be_written(self, state: os.stat_result) -> bool:
        return self._force or not stat.S_ISREG(state.st_mode) or not state.st_size

    def _read_existing(self, session: bool, size: int) -> Session:
        """Return the session that the file holds.

        Raises:
            BadInputError: The file holds no session, or no session will be written.
        """
        if not session:
            raise self._refusal("already exists")
        if size > LARGEST_CHECKED:
            raise self._refusal(f"already exists and is too large ({size:,} bytes) to check what it holds")
        with open(os.open(self.name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            existing = saved_session(file)
        if existing is None:
            raise self._refusal("already exists and is not a saved session")
        return existing

    # The writing

    def _write_to_device(self, content: bytes) -> None:
        with open(os.open(self.name, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb") as device:
            if stat.S_ISREG(os.fstat(device.fileno()).st_mode):
                raise self._changed_error()
            device.write(terminal_safe(content) if device.isatty() else content)

    def _write_to_file(self, content: bytes, state: os.stat_result | None) -> None:
        if not self._force and _identity(state) != _identity(self._state):
            raise self._changed_error()
        if state is not None and not os.access(self._path, os.W_OK):  # a rename over it would ignore that
            raise PermissionError(None, "it is read-only")
        permissions = PRIVATE if state is None else stat.S_IMODE(state.st_mode)
        descriptor, name = tempfile.mkstemp(".tmp", ".context-window-", self._path.parent)
        temporary = Path(name)
        try:
            with open(descriptor, "wb") as file:
                temporary.chmod(PRIVATE & permissions)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(permissions)
            self._put_in_place(temporary, content)
        finally:  # Ctrl-C too must leave nothing behind
            temporary.unlink(missing_ok=True)

    def _put_in_place(self, temporary: Path, content: bytes) -> None:
        if self._force:
            temporary.replace(self._path)
        elif self._state is None:
            self._create(temporary, content)
        elif _identity(_state_of(self._path)) == _identity(self._state):
            temporary.replace(self._path)
        else:
            raise self._changed_error()

    def _create(self, temporary: Path, content: bytes) -> None:
        """Give the temporary file the target's name; on a disk without hard links, write a file of that name that must be new.

        Raises:
            BadInputError: Another program has created a file of that name in the meantime.
        """
        try:
            try:
                os.link(temporary, self._path)
            except FileExistsError:
                raise
            except OSError:
                _write_new(self._path, content)
        except FileExistsError:
            raise self._changed_error() from None

    # The errors

    def _refusal(self, why: str) -> BadInputError:
        return BadInputError(f"{self.name} {why}; {self._force_advice}, or {self._rename_advice} another name")

    def _changed_error(self) -> BadInputError:
        return self._refusal("was created or changed by another program in the meantime, so it was not replaced")

    @contextlib.contextmanager
    def _wrap_os_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BadInputError(f"{self.name} cannot be written: {error.strerror or error}; {self._rename_advice} another name") from None


def saved_session(file: BinaryIO) -> Session | None:
    """Return the saved session that the file holds, or None if it holds anything else or is too large to be read."""
    from session.errors import SessionError
    from session.session import Session

    content = file.read(LARGEST_CHECKED + 1)
    if len(content) > LARGEST_CHECKED or not content.lstrip().startswith(b"{"):
        return None
    try:
        return Session.from_dict(json.loads(content))
    except (ValueError, RecursionError, SessionError):  # ValueError: no JSON, no UTF-8, or a number with too many digits
        return None


def _missing_items(existing: Session, session: Session, log: Session) -> int:
    """Return how many items of a saved session would be lost: those missing from the new session, or of a view from its log."""
    from session.identity import is_same

    is_view = existing.settled == len(existing.items) > 0
    missing = 0
    for item in existing.items:
        other = log.get_by_id(item.id) if is_view else session.get_by_id(item.id)
        missing += other is None or not (is_same(item, other) if is_view else item == other)
    return missing


def _is_same_file(target: Path, source: Path) -> bool:
    try:
        return target.samefile(source.expanduser())  # as the readers do
    except (OSError, RuntimeError):  # one of them cannot be accessed: its reader or writer will report why
        return False


def _state_of(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _identity(state: os.stat_result | None) -> tuple[int, ...] | None:
    """Figures that change if the file is replaced or written to."""
    return None if state is None else (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
