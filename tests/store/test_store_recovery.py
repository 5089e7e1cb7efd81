"""After `sqlite3 FILE .recover | sqlite3 NEW`, NEW gives every undamaged session and names every damaged one."""

import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from session import Image, Message, StoreDamagedError, UnknownSessionError
from session.store import SessionInfo, SessionStore
from session.store.schema import APPLICATION
from tests.store.test_store_damage import NAMES, PAGE, Files, as_json, database, put
from tests.support.stores import raw


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("undamaged"))


@pytest.fixture(scope="module")
def entries(files: Files, tmp_path_factory: pytest.TempPathFactory) -> dict[str, SessionInfo]:
    """The list of sessions of the undamaged store."""
    path = put(tmp_path_factory.mktemp("listed"), files.closed)
    with SessionStore(path) as store:
        return {entry.id: entry for entry in store.list()}


def load_error(store: SessionStore, name: str) -> StoreDamagedError | None:
    try:
        store.load(name)
    except StoreDamagedError as error:
        return error
    return None


def check_recovered(path: Path, files: Files, entries: dict[str, SessionInfo]) -> list[str]:
    """Check that each session is listed and either undamaged or named in an error. Return the ids of the undamaged ones."""
    undamaged = []
    with SessionStore(path) as store:
        listed = {entry.id: entry for entry in store.list()}
        assert listed.keys() == entries.keys()
        for name in NAMES:
            error = load_error(store, name)
            if error is not None:
                assert error.session_id == name
                assert "row" in error.problem
            else:
                assert as_json(store.load(name)) == files.states[name][-1]
                # A rebuilt entry takes its title from the log as it is now, without the truncated items.
                assert replace(listed[name], title=entries[name].title) == entries[name]
                assert listed[name].title[1:] == entries[name].title[1:]
                undamaged.append(name)
                store.open(name).append(Message("user", "more", id="more"))
    with SessionStore(path) as store:
        for name in undamaged:
            assert store.load(name).items[-1].id == "more"
    return undamaged


# With the command line program


def recover(program: str, source: Path, target: Path) -> str:
    """Run `sqlite3 source .recover | sqlite3 target` and return the text on standard error."""
    statements = subprocess.run([program, source, ".recover"], capture_output=True, check=False)
    result = subprocess.run([program, target], input=statements.stdout, capture_output=True, check=False)
    return (statements.stderr + result.stderr).decode(errors="replace")


@pytest.fixture(scope="module")
def program(files: Files, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a `sqlite3` whose `.recover` works."""
    path = shutil.which("sqlite3")
    if path is None:
        pytest.skip("the sqlite3 program is not installed")
    folder = tmp_path_factory.mktemp("program")
    output = recover(path, put(folder, files.closed), folder / "new.db")
    with closing(sqlite3.connect(folder / "new.db")) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'journal'").fetchone()[0]
    if not tables:
        pytest.skip(f"this sqlite3 cannot `.recover`: {' '.join(output.split())[:80]}")
    return path


def test_a_store_with_any_damaged_page_can_be_recovered(
    program: str, files: Files, entries: dict[str, SessionInfo], tmp_path: Path
) -> None:
    """Whatever page is overwritten with zeros, every session is listed, and damage is confined to sessions with a row on that page."""
    undamaged: list[int] = []
    pages = len(files.closed) // PAGE
    for page in range(pages):
        folder = tmp_path / str(page)
        folder.mkdir()
        data = bytearray(files.closed)
        data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
        source = put(folder, bytes(data))
        recover(program, source, folder / "new.db")
        assert source.read_bytes() == data
        undamaged.append(len(check_recovered(folder / "new.db", files, entries)))
    assert sum(undamaged) > 3 * pages / 2  # most pages hold rows of two sessions or one
    assert undamaged[0] == len(NAMES)  # the first page holds only the schema


def test_a_store_with_damaged_bytes_in_a_row_can_be_recovered(
    program: str, files: Files, entries: dict[str, SessionInfo], tmp_path: Path
) -> None:
    source = put(tmp_path, files.closed.replace(b"3 " + b"x" * 30 + b'"', b"3 " + b"y" * 30 + b'"'))
    recover(program, source, tmp_path / "new.db")
    assert check_recovered(tmp_path / "new.db", files, entries) == ["large", "edited"]
    with SessionStore(tmp_path / "new.db") as store, pytest.raises(StoreDamagedError, match="row 4 of 7 is damaged"):
        store.load("small")


# The same files as `.recover` writes them, made with Python's SQLite


LOST_AND_FOUND = (
    "CREATE TABLE lost_and_found(rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER, c0, c1, c2, c3, c4, c5, c6, c7, c8)"
)
SHORT_LOST_AND_FOUND = "CREATE TABLE lost_and_found(rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER, c0)"
LOSE_JOURNAL = (
    LOST_AND_FOUND,
    "INSERT INTO lost_and_found SELECT 3, 5, 7, place, NULL, session, number, kind, at, crc, body, NULL, NULL FROM journal",
    "DELETE FROM journal",
)
LOSE_SESSIONS = (
    "INSERT INTO lost_and_found SELECT 4, 6, 9, key, NULL, id, created, updated, title, items, rows, last, crc FROM sessions",
    "DELETE FROM sessions",
)
LOSE_FIRST_PAGE = (
    "DROP TABLE journal",
    "DROP TABLE sessions",
    "PRAGMA application_id = 0",
    "PRAGMA user_version = 0",
    "PRAGMA writable_schema = ON",
    "DELETE FROM sqlite_master WHERE name = 'sqlite_sequence'",
)


def recovered_file(folder: Path, files: Files, *statements: str) -> Path:
    path = put(folder, files.closed)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.mark.parametrize(
    "statements",
    [
        (),
        LOSE_JOURNAL,
        (*LOSE_JOURNAL, *LOSE_SESSIONS),
        (*LOSE_JOURNAL, "DELETE FROM sessions"),
        (*LOSE_JOURNAL, "DELETE FROM sessions", *LOSE_FIRST_PAGE),
        (*LOSE_JOURNAL, *LOSE_SESSIONS, *LOSE_FIRST_PAGE),
        (*LOSE_JOURNAL, "INSERT INTO lost_and_found SELECT 1, 2, 7, 1, NULL, 1, 1, 'item', 1.5, 5, x'00', NULL, NULL"),
        (*LOSE_JOURNAL, "INSERT INTO lost_and_found SELECT 1, 2, 9, 1, NULL, 'small', 1.5, 1.5, '', 0, 1, 1, 5"),
        (*LOSE_JOURNAL, "UPDATE lost_and_found SET c4 = 1", "UPDATE lost_and_found SET c4 = 1.5"),
        ("DELETE FROM sessions",),
        ("UPDATE sessions SET title = 'other', crc = 0",),
        ("DELETE FROM sessions WHERE key = 2",),
        (SHORT_LOST_AND_FOUND,),
        (SHORT_LOST_AND_FOUND, "INSERT INTO lost_and_found VALUES (1, 2, 7, 1, NULL), (1, 2, 9, 1, NULL)"),
    ],
)
def test_rows_that_survived_anywhere_are_read(
    statements: tuple[str, ...], files: Files, entries: dict[str, SessionInfo], tmp_path: Path
) -> None:
    assert check_recovered(recovered_file(tmp_path, files, *statements), files, entries) == list(NAMES)


def test_a_session_without_its_entry_is_listed_even_if_it_is_damaged(files: Files, tmp_path: Path) -> None:
    path = recovered_file(
        tmp_path,
        files,
        "DELETE FROM sessions",
        "DELETE FROM journal WHERE session = 1 AND number = 3",
        "DELETE FROM journal WHERE session = 2 AND number = 0",
        "UPDATE journal SET body = x'00' WHERE session = 3",
    )
    with SessionStore(path) as store:
        assert {entry.id for entry in store.list()} == {"small", "recovered-2"}
        with pytest.raises(StoreDamagedError, match="row 3 of 7 is damaged or missing"):
            store.load("small")
        with pytest.raises(StoreDamagedError, match="row 0 of 8 is damaged or missing"):
            store.load("recovered-2")
        with pytest.raises(UnknownSessionError):
            store.load("edited")


def test_the_lost_end_of_a_session_is_noticed_by_its_entry(files: Files, tmp_path: Path) -> None:
    path = recovered_file(tmp_path, files, *LOSE_JOURNAL, "DELETE FROM lost_and_found WHERE c1 = 1 AND c2 = 6", *LOSE_SESSIONS)
    with SessionStore(path) as store, pytest.raises(StoreDamagedError, match="1 of its 7 rows are missing"):
        store.load("small")


def test_a_recovered_file_is_an_ordinary_store_afterwards(files: Files, tmp_path: Path) -> None:
    path = recovered_file(tmp_path, files, *LOSE_JOURNAL, *LOSE_SESSIONS)
    with SessionStore(path) as store:
        store.create("new").append(Message("user", [Image(data=b"x", width=1, height=1)]))
        connection = raw(store)
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == b"wal"
        assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'lost_and_found'").fetchone()[0] == 0
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == b"ok"
        assert len(store.load("new").items) == 1


@pytest.mark.parametrize(
    "statements",
    [
        (LOST_AND_FOUND,),
        (LOST_AND_FOUND, "INSERT INTO lost_and_found VALUES (1, 2, 7, 1, NULL, 1, 1, 'item', 1.5, 5, x'00', NULL, NULL)"),
        (LOST_AND_FOUND, "INSERT INTO lost_and_found VALUES (1, 2, 7, 'x', NULL, 1, 1, NULL, 1.5, 5, x'00', NULL, NULL)"),
        ("CREATE TABLE lost_and_found(nfield INTEGER, secrets TEXT)",),
        ("CREATE VIEW lost_and_found AS SELECT 1",),
    ],
)
def test_a_recovered_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, statements: tuple[str, ...]) -> None:
    path = tmp_path / "other.db"
    database(path, *statements)
    data = path.read_bytes()
    with pytest.raises(StoreDamagedError, match="something else"):
        SessionStore(path)
    assert path.read_bytes() == data
