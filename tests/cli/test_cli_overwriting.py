"""`-o` and `/save` replace an existing file only with `--force`, and write files that only the owner can read."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from context_window.cli.output import BadInputError
from context_window.cli.safe_write import Target
from session.store import SessionStore
from tests.support.screens import long_session
from tests.support.shell import POSIX, Shell

COMMANDS = [("convert",), ("process", "--max-tokens", 3_000), ("convert", "--to", "openai"), ("report",)]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_existing_file_is_replaced_only_with_force(shell: Shell, path: str, tmp_path: Path, command: tuple[str, ...]) -> None:
    out = tmp_path / "out.json"
    out.write_text("precious")
    assert shell(*command, path, "-o", out) == (2, "", f"context-window: {out} already exists; --force replaces it\n")
    assert out.read_text() == "precious"
    code, summary, err = shell(*command, path, "-o", out, "--force")
    assert (code, err, "wrote" in summary) == (0, "", True)
    assert len(out.read_bytes()) > 1_000
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json", "session.json"]


def test_the_source_is_not_overwritten_even_with_force(shell: Shell, path: str, tmp_path: Path) -> None:
    before = Path(path).read_bytes()
    aliases: list[Path | str] = [path]
    if os.name == "posix":
        (tmp_path / "link").symlink_to(path)
        (tmp_path / "hard link").hardlink_to(path)
        aliases += [tmp_path / "link", tmp_path / "hard link"]
    for alias in aliases:
        for command in COMMANDS:
            code, summary, err = shell(*command, path, "-o", alias, "--force")
            assert (code, summary) == (2, "")
            assert "never overwritten" in err
            assert "--force" not in err
    assert Path(path).read_bytes() == before


def test_a_file_is_refused_before_any_work(shell: Shell, tmp_path: Path) -> None:
    """The transcript is not even opened."""
    out = tmp_path / "out.json"
    out.write_text("precious")
    for name, problem in ((out, "already exists"), (tmp_path, "is a folder"), (tmp_path / "none" / "out", "is in no folder")):
        code, _, err = shell("process", tmp_path / "nowhere", "-o", name)
        assert code == 2
        assert problem in err


def test_a_file_that_appears_meanwhile_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    target, forced = Target(str(out)), Target(str(out), force=True)
    out.write_text("precious")
    with pytest.raises(BadInputError, match="already exists"):
        target.write(b"ours")
    assert out.read_text() == "precious"
    forced.write(b"ours")
    assert out.read_bytes() == b"ours"


def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path: Path) -> None:
    """255 bytes, and few characters: the temporary file has a name of its own."""
    out = tmp_path / ("日" * 85)
    try:
        out.touch()
    except OSError:
        pytest.skip("no such name there")
    Target(str(out), force=True).write(b"ours")
    assert out.read_bytes() == b"ours"
    with pytest.raises(BadInputError, match="cannot be written"):
        Target(str(tmp_path / ("日" * 86)))


# Devices and pipes


@POSIX
def test_devices_and_pipes_are_written_to(shell: Shell, path: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    for to in ("session", "openai"):
        reader = Thread(target=lambda: received.append(pipe.read_bytes()))
        reader.start()
        assert shell("convert", path, "--to", to, "-o", pipe)[0] == 0
        reader.join(10)
        assert shell("convert", path, "--to", to, "-o", "/dev/null")[0] == 0
    assert json.loads(received[0])["id"] == "long"
    assert "messages" in json.loads(received[1])
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_by_its_path_is_standard_output(shell: Shell, path: str, name: str) -> None:
    """Nothing but the document goes there, and a file that output is appended to loses nothing."""
    code, out, err = shell("convert", path, "-o", name)
    assert code == 0
    assert json.loads(out) == long_session().to_dict() | {"items": json.loads(out)["items"]}
    assert "wrote standard output" in err


# Permissions


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


MASKS = pytest.mark.parametrize("mask", [0, 0o022], ids=["umask 000", "umask 022"])


@POSIX
@MASKS
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_written_is_for_its_owner_alone(shell: Shell, path: str, tmp_path: Path, mask: int, command: tuple[str, ...]) -> None:
    out = tmp_path / "out.json"
    with umask(mask):
        assert shell(*command, path, "-o", out)[0] == 0
    assert mode(out) == 0o600


@POSIX
@MASKS
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o666, 0o260])
def test_a_file_that_is_replaced_keeps_its_permissions_and_no_temporary_file_is_wider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int, permissions: int
) -> None:
    out = tmp_path / "out.json"
    out.touch()
    out.chmod(permissions)
    modes_seen: list[int] = []
    sync = os.fsync

    def look(descriptor: int) -> None:  # all is written, and nothing is in its place yet
        modes_seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    with umask(mask):
        Target(str(out), force=True).write(b"ours")
    assert mode(out) == permissions
    assert modes_seen == [0o600]


@POSIX
@MASKS
def test_what_the_chat_keeps_is_for_its_owner_alone(
    shell: Shell, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    """The store and SQLite's own files, the input history, saved files, and every folder created for them."""
    home = tmp_path / "made" / "for" / "the chat"
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    modes: dict[str, int] = {}

    def lines() -> Iterator[str]:
        yield f"/load {path}\n"
        yield f"/save {tmp_path / 'kept.json'}\n"
        modes.update((file.name, mode(file)) for file in (*home.iterdir(), *tmp_path.iterdir(), home.parent, home))
        yield "/quit\n"

    monkeypatch.setattr(sys, "stdin", _Typed(lines()))
    with umask(mask):
        assert shell("chat")[0] == 0
    assert modes.pop("session.json")
    assert modes == {
        "made": 0o700,
        "for": 0o700,
        "the chat": 0o700,
        "sessions.db": 0o600,
        "sessions.db-wal": 0o600,
        "sessions.db-shm": 0o600,
        "history": 0o600,
        "kept.json": 0o600,
    }


class _Typed(io.StringIO):
    """Standard input that is asked line by line."""

    def __init__(self, lines: Iterator[str]) -> None:
        super().__init__()
        self._lines = lines

    def readline(self, _: object = -1) -> str:  # type: ignore[override]
        return next(self._lines, "")


@POSIX
@MASKS
def test_a_new_store_is_for_its_owner_alone(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "made" / "for it"
    with umask(mask), SessionStore(folder / "sessions.db") as store:
        session = store.create("kept")
        session.add_message("user", "x")
        modes = {file.name: mode(file) for file in (*folder.iterdir(), folder, folder.parent)}
    assert modes == {"made": 0o700, "for it": 0o700, **dict.fromkeys(("sessions.db", "sessions.db-wal", "sessions.db-shm"), 0o600)}
    assert [file.name for file in folder.iterdir()] == ["sessions.db"]


@POSIX
@MASKS
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644])
def test_what_sqlite_puts_beside_a_store_is_no_wider_than_the_store(tmp_path: Path, mask: int, permissions: int) -> None:
    path = tmp_path / "sessions.db"
    SessionStore(path).close()
    path.chmod(permissions)
    with umask(mask), SessionStore(path) as store:
        store.create("kept").add_message("user", "x")
        assert {mode(file) for file in tmp_path.iterdir()} == {permissions}


@POSIX
@MASKS
def test_a_store_without_a_log_has_a_private_journal(tmp_path: Path, mask: int) -> None:
    """On a disk without shared memory, SQLite keeps a journal instead of a log."""
    with umask(mask), SessionStore(tmp_path / "sessions.db") as store:
        store.create("kept")
        with store._database.read() as connection:
            pass
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == (b"delete",)
        with store._database.write("kept") as connection:
            connection.execute("UPDATE sessions SET updated = updated + 1")
            modes = {file.name: mode(file) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("sessions.db", "sessions.db-journal"), 0o600)
