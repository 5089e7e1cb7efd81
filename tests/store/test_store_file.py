"""The file of a store: its name, its permissions, its settings, and what other programs can read in it."""

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from session import FormatError
from session.store import SessionStore
from tests.support.shell import POSIX
from tests.support.stores import hurried, raw


@pytest.fixture
def path(tmp_path: Path, empty_file: bytes) -> Path:
    path = tmp_path / "sessions.db"
    path.write_bytes(empty_file)
    return path


@pytest.fixture
def store(path: Path) -> Iterator[SessionStore]:
    with SessionStore(path) as new_store:
        yield hurried(new_store)


def test_delete_erases_a_session_from_the_file(store: SessionStore, path: Path) -> None:
    other, deleted = store.create("kept"), store.create("gone")
    deleted.add_message("user", "the secret " * 2_000)
    other.add_message("user", "hello")
    store.delete("gone")
    assert [info.id for info in store.list()] == ["kept"]
    file_bytes = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"the secret" not in file_bytes
    assert b"hello" in file_bytes


@POSIX
def test_the_file_is_private_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "made" / "for it" / "sessions.db"
    before = os.umask(0)
    try:
        with SessionStore(path) as store:
            store.create().add_message("user", "x")
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        assert path.parent.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("sessions.db", "sessions.db-wal", "sessions.db-shm"), 0o600)


@pytest.mark.parametrize("name", ["a b%20c?mode=memory#x.db", "é日本👍.db", "'; DROP TABLE journal; --"])
def test_any_file_name_can_be_used(tmp_path: Path, name: str) -> None:
    if os.name == "nt" and set(name) & set('?*<>"|:'):
        pytest.skip("no such name there")
    with SessionStore(tmp_path / name) as store:
        store.create("s")
    assert (tmp_path / name).is_file()
    with SessionStore(str(tmp_path / name)) as store:
        assert [info.id for info in store.list()] == ["s"]


def test_writes_are_flushed_and_do_not_block_readers(path: Path) -> None:
    with SessionStore(path) as store:
        connection = raw(store)
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == b"wal"


def test_a_store_can_be_read_with_plain_sqlite_and_json(store: SessionStore, path: Path) -> None:
    """The data stays accessible without this library."""
    store.create("s").add_message("user", "hello")
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT kind, body FROM journal ORDER BY session, number").fetchall()
    finally:
        connection.close()
    assert [kind for kind, _ in rows] == ["session", "item"]
    assert json.loads(rows[1][1])["content"] == [{"type": "text", "text": "hello"}]


@pytest.mark.parametrize("wrong", [-1, True, "5", None, float("nan"), 10**400])
def test_an_invalid_waiting_time_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(FormatError, match=r"^SessionStore\.busy_seconds: "):
        SessionStore(tmp_path / "s.db", busy_seconds=wrong)
    assert not (tmp_path / "s.db").exists()


@pytest.mark.parametrize("wrong", [None, "now", float("nan"), True])
def test_an_invalid_clock_writes_nothing(path: Path, wrong: Any) -> None:
    with SessionStore(path, clock=lambda: wrong) as store:
        with pytest.raises(FormatError, match=r"^SessionStore\.clock: "):
            store.create("s")
        assert store.list() == ()
