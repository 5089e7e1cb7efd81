"""A damaged file raises StoreDamagedError and never gives a wrong session. Recovery is tested in `test_store_recovery.py`."""

import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session import FormatError, Image, Message, Session, StoreBusyError, StoreDamagedError, StoreError, UnknownSessionError
from session.store import SessionStore
from session.store.journal import Row, checksum
from session.store.replay import JournalReplay, edit_runs
from session.store.schema import APPLICATION, SCHEMA, VERSION
from tests.support.stores import hurried, raw

PAGE = 4096


def as_json(session: Session) -> str:
    return json.dumps(session.to_dict())


NAMES = ("small", "large", "edited")


class Files:
    """A store with three sessions, as a closed file and as an open file with its write-ahead log.

    Attributes:
        closed: Bytes of the closed file.
        open: Bytes of the file while the store was open, and of its log.
        states: By session, its state after each save, as JSON.
    """

    def __init__(self, folder: Path) -> None:
        self.states: dict[str, list[str]] = {name: [] for name in NAMES}
        path = folder / "s.db"
        with SessionStore(path, clock=lambda: 1.5) as store:
            stored = {name: store.create(name, metadata={"of": name}) for name in NAMES}

            def record(name: str) -> None:
                self.states[name].append(as_json(store.load(name)))

            for name in NAMES:
                record(name)
            for number in range(6):
                for name, session in stored.items():
                    size = {"small": 30, "large": 6_000, "edited": 300}[name]
                    session.append(Message("user", f"{number} " + "x" * size, id=f"{name}{number}", created_at=number))
                    record(name)
                if number % 3 == 2:
                    stored["edited"].pin(f"edited{number - 1}")
                    record("edited")
            stored["edited"].truncate(max_items=5)
            record("edited")
            stored["large"].append(Message("user", [Image(data=bytes(6_000), width=1, height=1)], id="image", created_at=9))
            record("large")
            self.open = path.read_bytes(), Path(f"{path}-wal").read_bytes()
        self.closed = path.read_bytes()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("undamaged"))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def load_all(path: Path) -> dict[str, str | StoreError]:
    """Use a store in every way. Return each session as JSON, or the StoreError it raises; any other exception is a bug."""
    try:
        store = SessionStore(path)
    except StoreError as error:
        return dict.fromkeys(NAMES, error)
    with hurried(store):
        results: dict[str, str | StoreError] = {}
        for name in NAMES:
            try:
                results[name] = as_json(store.load(name))
            except StoreError as error:
                results[name] = error
        errors = []
        for use in (store.list, store.latest, lambda: store.revisions("edited"), lambda: store.open("small").add_message("user", "more")):
            try:
                use()
            except StoreError as error:
                errors.append(error)
        assert not any(isinstance(result, StoreBusyError) for result in (*errors, *results.values()))
        return results


DAMAGE = st.lists(
    st.tuples(st.sampled_from(("flip", "flip", "flip", "zero", "noise", "cut", "swap")), st.integers(0, 2**30), st.integers(0, 2**30)),
    min_size=1,
    max_size=4,
)
"""Kind of damage, position, and an amount or a second position."""


def damaged(data: bytes, damage: list[tuple[str, int, int]]) -> bytes:
    result = bytearray(data)
    for kind, position, amount in damage:
        if not result:
            break
        at = position % len(result)
        page = at // PAGE * PAGE
        if kind == "flip":
            result[at] ^= 1 + amount % 255
        elif kind == "zero":
            result[page : page + PAGE] = bytes(len(result[page : page + PAGE]))
        elif kind == "noise":
            length = min(1 + amount % 500, len(result) - at)
            result[at : at + length] = (amount.to_bytes(5, "big") * length)[:length]
        elif kind == "cut":
            del result[at:]
        else:
            other = amount % len(result) // PAGE * PAGE
            result[page : page + PAGE], result[other : other + PAGE] = result[other : other + PAGE], result[page : page + PAGE]
    return bytes(result)


def put(folder: Path, data: bytes, log: bytes = b"") -> Path:
    """Write a store, and its log if it has one."""
    path = folder / "damaged.db"
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(data)
    if log:
        Path(f"{path}-wal").write_bytes(log)
    return path


@given(damage=DAMAGE)
@example(damage=[("flip", 18, 0)])
@example(damage=[("zero", 0, 0)])
@example(damage=[("cut", 0, 0)])
@example(damage=[("cut", PAGE, 0)])
@example(damage=[("cut", PAGE + 100, 0)])
def test_a_damaged_file_gives_the_last_saved_state_or_an_error(files: Files, folder: Path, damage: list[tuple[str, int, int]]) -> None:
    path = put(folder, damaged(files.closed, damage))
    is_empty = not path.stat().st_size
    for name, result in load_all(path).items():
        if is_empty:
            assert isinstance(result, UnknownSessionError)  # no different from a new store
        else:
            assert isinstance(result, StoreError) or result == files.states[name][-1]


def test_damaged_text_in_a_message_of_sqlite_raises_store_damaged_error(files: Files, folder: Path) -> None:
    """SQLite quotes text that is not UTF-8. The test above finds this once in some hundreds of thousands of examples."""
    at = files.closed.index(b"CREATE UNIQUE INDEX journal_of_session ON ") + len("CREATE UNIQUE INDEX journal_of_session ON")
    with pytest.raises(StoreDamagedError):
        SessionStore(put(folder, files.closed[:at] + b"\xd5" + files.closed[at + 1 :]))


@given(damage=DAMAGE)
@example(damage=[("cut", 0, 0)])
@example(damage=[("zero", 0, 0)])
def test_a_damaged_log_gives_a_saved_state_or_an_error(files: Files, folder: Path, damage: list[tuple[str, int, int]]) -> None:
    data, log = files.open
    path = put(folder, data, damaged(log, damage))
    for name, result in load_all(path).items():
        assert isinstance(result, StoreError) or result in files.states[name]


def test_a_damaged_row_leaves_the_other_sessions_and_the_earlier_revisions(files: Files, folder: Path) -> None:
    path = put(folder, files.closed)
    database(path, "UPDATE journal SET body = x'7b7d' WHERE session = 3 AND number = 9")
    with SessionStore(path) as store:
        assert [as_json(store.load(name)) for name in ("small", "large")] == [files.states[name][-1] for name in ("small", "large")]
        for use in (store.load, store.open, store.revisions):
            with pytest.raises(StoreDamagedError, match=r"session 'edited' is damaged: row 9 of 12 .* \.recover") as caught:
                use("edited")
            assert caught.value.session_id == "edited"
        assert [item.id for item in store.load("edited", revision=0).items] == ["edited0", "edited1", "edited2"]
        with pytest.raises(StoreDamagedError):
            store.load("edited", revision=1)


# Files that are not a store


@pytest.mark.parametrize(
    "data", [b"x", b"Dear diary, " * 1_000, b"SQLite format 3\0", b"SQLite format 3\0" + bytes(5_000), bytes(range(256)) * 40]
)
def test_a_file_that_is_not_a_database_is_refused_and_unchanged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "diary.txt"
    path.write_bytes(data)
    with pytest.raises(StoreDamagedError) as caught:
        SessionStore(path)
    assert caught.value.path == str(path)
    assert path.read_bytes() == data


def database(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


STORE = (*SCHEMA.values(), f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
FOREIGN: list[tuple[tuple[str, ...], str]] = [
    (("CREATE TABLE passwords (of TEXT)",), "database of something else"),
    (("PRAGMA application_id = 5",), "database of something else"),
    ((f"PRAGMA user_version = {VERSION}",), "database of something else"),
    ((f"PRAGMA application_id = {APPLICATION}",), "tables are not those"),
    ((SCHEMA["sessions"], *STORE[-2:]), "tables are not those"),
    ((*STORE, "CREATE TRIGGER t AFTER INSERT ON journal BEGIN DELETE FROM journal; END"), "tables are not those"),
    ((*STORE, "CREATE VIEW v AS SELECT 1"), "tables are not those"),
]


@pytest.mark.parametrize(("statements", "problem"), FOREIGN)
def test_a_foreign_database_is_refused_and_unchanged(tmp_path: Path, statements: tuple[str, ...], problem: str) -> None:
    path = tmp_path / "places.sqlite"
    database(path, *statements)
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError, match=problem):
        SessionStore(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["places.sqlite"]


def in_schema(path: Path, statement: str, *values: str | None) -> None:
    """Run a statement on the file's own table of tables."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement, values)


TRIGGER = "CREATE TRIGGER {} AFTER INSERT ON journal BEGIN DELETE FROM journal; END"
ADDED = "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, 0, ?)"


@pytest.mark.parametrize(
    ("kind", "name", "table", "sql"),
    [
        *[("trigger", name, "journal", TRIGGER.format(name)) for name in ("sqlite_stat1", "sqlite_stat4", "sqlite_sequence", "journal")],
        ("table", "sqlite_stat1", "sqlite_stat1", TRIGGER.format("sqlite_stat1")),
        ("trigger", "sqlite_stat1", "journal", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
        ("view", "sqlite_stat4", "sqlite_stat4", "CREATE VIEW sqlite_stat4 AS SELECT 1"),
        ("index", "more", "journal", "CREATE INDEX more ON journal (at)"),
        ("trigger", "sqlite_autoindex_journal_9", "journal", None),
    ],
)
def test_a_file_with_triggers_or_views_is_refused(tmp_path: Path, kind: str, name: str, table: str, sql: str | None) -> None:
    """A file may come from anywhere, so no code in it may run, whatever its name."""
    path = tmp_path / "s.db"
    with SessionStore(path) as store:
        store.create("victim").add_message("user", "precious")
    in_schema(path, ADDED, kind, name, table, sql)
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError):
        SessionStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["journal", "sessions_by_last", "sqlite_sequence", "sqlite_autoindex_sessions_1"])
def test_a_file_with_duplicate_tables_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "s.db"
    SessionStore(path).close()
    in_schema(path, "INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = ?", name)
    with pytest.raises(StoreDamagedError):
        SessionStore(path)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 cannot turn triggers off before Python 3.12")
def test_triggers_and_views_are_turned_off(tmp_path: Path) -> None:
    with SessionStore(tmp_path / "s.db") as store:
        connection: Any = raw(store)
        assert not connection.getconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER)  # type: ignore[attr-defined, unused-ignore]
        assert not connection.getconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW)  # type: ignore[attr-defined, unused-ignore]


def test_a_file_with_statistics_tables_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with SessionStore(path) as store:
        store.create("s")
    database(path, "ANALYZE", "PRAGMA journal_mode = DELETE")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    with SessionStore(path) as store:
        store.open("s").add_message("user", "x")
        assert raw(store).execute("PRAGMA journal_mode").fetchone()[0] == b"wal"


def test_a_file_of_a_newer_version_is_refused_and_unchanged(files: Files, folder: Path) -> None:
    path = put(folder, files.closed)
    database(path, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match=rf"newer release \(version {VERSION + 1}; this one reads {VERSION}\); update") as caught:
        SessionStore(path)
    assert not isinstance(caught.value, StoreDamagedError)


def test_a_write_ahead_log_without_its_file_is_kept(files: Files, folder: Path) -> None:
    _, log = files.open
    path = put(folder, b"", log)
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match="put the two together again"):
            SessionStore(path)
        assert Path(f"{path}-wal").read_bytes() == log
        path.unlink(missing_ok=True)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SessionStore(tmp_path)


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError):
        SessionStore(tmp_path / "file" / "s.db")


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="NUL"):
        SessionStore(f"{tmp_path}/a\0b")


@pytest.mark.parametrize("wrong", [None, 5, b"s.db", []])
def test_a_value_that_is_not_a_path_is_refused(wrong: Any) -> None:
    with pytest.raises(FormatError, match=r"^SessionStore\.path: "):
        SessionStore(wrong)


# Rows with a valid checksum that do not describe a session


def forged(path: Path, *rows: tuple[str, bytes | str]) -> None:
    """Write a store with one session `s` of these rows, with valid checksums."""
    from session.store.tables import Head, SessionInfo

    with SessionStore(path) as store:
        store.create("s")
        head = Head(1, SessionInfo("s", "", 0, 1.0, 1.0), len(rows), len(rows))
        connection = raw(store)
        connection.execute("DELETE FROM journal")
        for number, (kind, body) in enumerate(rows):
            data = body.encode() if isinstance(body, str) else body
            crc = checksum(1, number, Row(kind, data), 1.0)
            connection.execute("INSERT INTO journal VALUES (NULL, 1, ?, ?, 1.0, ?, ?)", (number, kind, crc, data))
        connection.execute("DELETE FROM sessions")
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", head.values())


FIRST = ("session", '{"id":"s","metadata":{}}')
HELLO = ("item", '{"type":"message","id":"a","created_at":1,"role":"user","content":[]}')
FORGED: list[tuple[tuple[str, bytes | str], ...]] = [
    (HELLO,),
    (FIRST, FIRST),
    (FIRST, HELLO, HELLO),
    (("session", '{"id":"t","metadata":{}}'), HELLO),
    (("session", '{"id":5,"metadata":{}}'),),
    (("session", "[]"),),
    (("session", '{"id":"s","metadata":[]}'),),
    (FIRST, ("item", "[" * 100_000)),
    (FIRST, ("item", "9" * 5_000)),
    (FIRST, ("item", "NaN")),
    (FIRST, ("item", b"\xff\xfe")),
    (FIRST, ("item", "")),
    (FIRST, ("item", "{}")),
    (FIRST, ("seams", "5")),
    (FIRST, ("seams", '{"breaks":["nobody"]}')),
    (FIRST, ("seams", '{"settled":5}')),
    (FIRST, ("seams", '{"colour":5}')),
    (FIRST, ("metadata", "5")),
    (FIRST, HELLO, ("edit", "[]")),
    (FIRST, HELLO, ("edit", '{"of":[2,0],"runs":[]}')),
    (FIRST, HELLO, ("edit", '{"of":[1,0],"runs":5}')),
    (FIRST, HELLO, ("edit", '{"of":[1,0],"runs":[[0]]}')),
    (FIRST, HELLO, ("edit", '{"of":[1,0],"runs":[[0,2]]}')),
    (FIRST, HELLO, ("edit", '{"of":[1,0],"runs":[[-1,1]]}')),
    (FIRST, HELLO, ("edit", '{"of":[1,0],"runs":[["0",1]]}')),
    (FIRST, HELLO, ("edit", '{"of":[1,0],"runs":[[0,1],[0,1]]}')),
]


@pytest.mark.parametrize("rows", FORGED, ids=range(len(FORGED)))
def test_undamaged_rows_that_do_not_describe_a_session_are_refused(tmp_path: Path, rows: tuple[tuple[str, bytes | str], ...]) -> None:
    path = tmp_path / "s.db"
    forged(path, *rows)
    with SessionStore(path) as store, pytest.raises(StoreDamagedError, match="session 's' is damaged: ") as caught:
        store.load("s")
    assert len(str(caught.value)) < 600


def test_rows_missing_at_the_end_are_noticed(files: Files, folder: Path) -> None:
    path = put(folder, files.closed)
    database(path, "DELETE FROM journal WHERE session = 1 AND number = 6")
    with SessionStore(path) as store, pytest.raises(StoreDamagedError, match="1 of its 7 rows are missing"):
        store.load("small")


def test_an_edit_cannot_make_a_log_larger_than_its_parts() -> None:
    with pytest.raises(FormatError, match="in two runs"):
        edit_runs({"of": [2, 0], "runs": [[0, 2]] * 2}, 2, 0)
    assert edit_runs({"of": [2, 1], "runs": [[2, 3], [0, 2]]}, 2, 1) == [(2, 3), (0, 2)]


def test_rows_moved_to_another_session_are_noticed(files: Files, folder: Path) -> None:
    """The checksum covers the session and the row number."""
    path = put(folder, files.closed)
    database(
        path,
        "DELETE FROM journal WHERE session = 1 AND number = 6",
        "UPDATE journal SET session = 1, number = 6 WHERE session = 2 AND number = 5",
    )
    with SessionStore(path) as store, pytest.raises(StoreDamagedError, match="row 6 of 7"):
        store.load("small")


@pytest.mark.parametrize(
    ("column", "value"), [("at", "x"), ("crc", None), ("kind", b"\xff"), ("kind", "other"), ("body", 5), ("body", "text"), ("number", 2.5)]
)
def test_a_value_of_another_type_is_damage(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "s.db"
    with SessionStore(path) as store:
        store.create("s").add_message("user", "x")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        if value is None:
            connection.execute("UPDATE journal SET crc = 0 WHERE number = 1")
        else:
            connection.execute(f"UPDATE journal SET {column} = ? WHERE number = 1", (value,))
    with SessionStore(path) as store, pytest.raises(StoreDamagedError):
        store.load("s")


@pytest.mark.parametrize(
    "statement", ["UPDATE sessions SET title = 'other'", "UPDATE sessions SET rows = 1", "UPDATE sessions SET title = x'ff'"]
)
def test_a_damaged_list_of_sessions_raises_store_damaged_error(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "s.db"
    with SessionStore(path) as store:
        store.create("s").add_message("user", "x")
    database(path, statement)
    with SessionStore(path) as store:
        for ask in (store.list, store.latest, lambda: store.load("s")):
            with pytest.raises(StoreDamagedError, match="row 1 in the list of sessions is damaged"):
                ask()


def test_the_checksum_does_not_depend_on_the_platform() -> None:
    assert checksum(1, 2, Row("item", b"{}"), 1.5) == crc32(b"{}", crc32(b"1/2/item/1.5"))


def test_a_copy_of_the_file_and_its_log_is_complete(tmp_path: Path) -> None:
    with SessionStore(tmp_path / "s.db") as store:
        store.create("s").add_message("user", "x")
        for file in list(tmp_path.iterdir()):
            if not file.name.endswith("-shm"):
                shutil.copy(file, tmp_path / f"copy{file.name}")
    with SessionStore(tmp_path / "copys.db") as copied:
        assert len(copied.load("s").items) == 1


def replayed(rows: list[tuple[str, Any]]) -> Session:
    replay = JournalReplay()
    for number, (kind, value) in enumerate(rows):
        replay.add(number, Row(kind, json.dumps(value).encode()))
    return replay.session()


READ: Callable[[str], Any] = json.loads


def test_the_documented_journal_example_is_read_as_documented() -> None:
    """The example of `journal.py`, row by row."""
    first, second = READ(HELLO[1]), READ(HELLO[1].replace('"a"', '"b"'))
    session = replayed(
        [
            ("session", {"id": "s", "metadata": {"m": 1}}),
            ("item", first),
            ("item", second),
            ("new", {**first, "pinned": True}),
            ("edit", {"of": [2, 1], "runs": [[2, 3], [1, 2]]}),
            ("seams", {"breaks": ["b"], "settled": 1}),
            ("metadata", {"m": 2}),
        ]
    )
    assert [(item.id, item.pinned) for item in session.items] == [("a", True), ("b", False)]
    assert (session.response_breaks, session.settled, session.metadata) == (frozenset("b"), 1, {"m": 2})
