"""A damaged file gives an error of ours and never a wrong session; what can be read of it is given."""

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

from session import FormatError, Image, Message, Session, StoreBusyError, StoreDamagedError, StoreError, UnknownSessionError, Usage
from session.store import Salvage, SessionStore, salvage
from session.store.journal import Row, checksum
from session.store.pages import Pages, _local, varint
from session.store.replay import Replay, edit_of
from session.store.schema import APPLICATION, SCHEMA, VERSION
from tests.support.strategies import sessions
from tests.test_serial import same
from tests.test_store import hurried

PAGE = 4096


def told(session: Session) -> str:
    return json.dumps(session.to_dict())


class Files:
    """A store of three sessions: as one file, and as it is while it is open, with its log beside it.

    Attributes:
        whole: The closed file.
        open: The file of the open store, and its log.
        states: By session, all it ever was after a save.
    """

    def __init__(self, folder: Path) -> None:
        self.states: dict[str, list[str]] = {"small": [], "large": [], "edited": []}
        path = folder / "s.db"
        with SessionStore(path, clock=lambda: 1.5) as store:
            made = {name: store.create(name, metadata={"of": name}) for name in self.states}

            def note(name: str) -> None:
                self.states[name].append(told(store.load(name)))

            for name in made:
                note(name)
            for number in range(6):
                for name, session in made.items():
                    size = {"small": 30, "large": 6_000, "edited": 300}[name]
                    session.append(Message("user", f"{number} " + "x" * size, id=f"{name}{number}", created_at=number))
                    note(name)
                if number % 3 == 2:
                    made["edited"].pin(f"edited{number - 1}")
                    note("edited")
            made["edited"].truncate(max_items=5)
            note("edited")
            made["large"].append(Message("user", [Image(data=bytes(6_000), width=1, height=1)], id="image", created_at=9))
            note("large")
            self.open = path.read_bytes(), Path(f"{path}-wal").read_bytes()
        self.whole = path.read_bytes()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("sound"))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def asked(path: Path) -> dict[str, str | StoreError]:
    """What a store says of the three sessions: what they are, or an error of ours. Any other is a fault."""
    try:
        store = SessionStore(path)
    except StoreError as error:
        return dict.fromkeys(("small", "large", "edited"), error)
    with hurried(store):
        found: dict[str, str | StoreError] = {}
        for name in ("small", "large", "edited"):
            try:
                found[name] = told(store.load(name))
            except StoreError as error:
                found[name] = error
        complaints = []
        for ask in (store.list, store.latest, lambda: store.revisions("edited"), lambda: store.open("small").add_message("user", "more")):
            try:
                ask()
            except StoreError as error:
                complaints.append(error)
        assert [error for error in (*complaints, *found.values()) if isinstance(error, StoreBusyError)] == []
        return found


def checked(found: Salvage, states: dict[str, list[str]]) -> None:
    """Whatever is given was written so: each item, and where nothing is lost the session."""
    written = {name: {json.dumps(item) for state in all_of for item in json.loads(state)["items"]} for name, all_of in states.items()}
    for one in found.sessions:
        name = one.session.id
        if one.lost or one.problems:
            assert one.problems
            items = json.loads(told(one.session))["items"]
            assert any({json.dumps(item) for item in items} <= of_one for of_one in written.values())
        else:
            assert told(one.session) in states[name]


DAMAGE = st.lists(
    st.tuples(st.sampled_from(("flip", "flip", "flip", "zero", "noise", "cut", "swap")), st.integers(0, 2**30), st.integers(0, 2**30)),
    min_size=1,
    max_size=4,
)
"""What is done, where, and how far or to what."""


def damaged(data: bytes, damage: list[tuple[str, int, int]]) -> bytes:
    found = bytearray(data)
    for kind, where, much in damage:
        if not found:
            break
        at = where % len(found)
        page = at // PAGE * PAGE
        if kind == "flip":
            found[at] ^= 1 + much % 255
        elif kind == "zero":
            found[page : page + PAGE] = bytes(len(found[page : page + PAGE]))
        elif kind == "noise":
            length = min(1 + much % 500, len(found) - at)
            found[at : at + length] = (much.to_bytes(5, "big") * length)[:length]
        elif kind == "cut":
            del found[at:]
        else:
            other = much % len(found) // PAGE * PAGE
            found[page : page + PAGE], found[other : other + PAGE] = found[other : other + PAGE], found[page : page + PAGE]
    return bytes(found)


def put(folder: Path, data: bytes, log: bytes = b"") -> Path:
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
def test_a_damaged_file_gives_what_was_last_saved_or_an_error(files: Files, folder: Path, damage: list[tuple[str, int, int]]) -> None:
    path = put(folder, damaged(files.whole, damage))
    checked(salvage(path), files.states)
    empty = not path.stat().st_size
    for name, said in asked(path).items():
        if empty:
            assert isinstance(said, UnknownSessionError)  # no different from a new one
        else:
            assert isinstance(said, StoreError) or said == files.states[name][-1]


def test_damage_that_is_no_text_is_told(files: Files, folder: Path) -> None:
    """SQLite's own message quotes it: a counter-example of the test above, in some hundreds of thousands."""
    at = files.whole.index(b"CREATE UNIQUE INDEX journal_of_session ON ") + len("CREATE UNIQUE INDEX journal_of_session ON")
    with pytest.raises(StoreDamagedError):
        SessionStore(put(folder, files.whole[:at] + b"\xd5" + files.whole[at + 1 :]))


@given(damage=DAMAGE)
@example(damage=[("cut", 0, 0)])
@example(damage=[("zero", 0, 0)])
def test_a_damaged_log_gives_a_state_that_was_saved_or_an_error(files: Files, folder: Path, damage: list[tuple[str, int, int]]) -> None:
    data, log = files.open
    path = put(folder, data, damaged(log, damage))
    checked(salvage(path), files.states)
    for name, said in asked(path).items():
        assert isinstance(said, StoreError) or said in files.states[name]


def test_salvage_gives_a_sound_store_whole_and_leaves_it_as_it_is(files: Files, folder: Path) -> None:
    for data, log in ((files.whole, b""), files.open):
        path = put(folder, data, log)
        found = salvage(path)
        assert found.problems == ()
        assert [one.session.id for one in found.sessions] == ["large", "edited", "small"]
        assert {one.session.id: told(one.session) for one in found.sessions} == {name: all_of[-1] for name, all_of in files.states.items()}
        assert [(one.lost, one.problems) for one in found.sessions] == [(0, ())] * 3
        assert path.read_bytes() == data
        assert not log or Path(f"{path}-wal").read_bytes() == log


def test_salvage_needs_neither_the_first_pages_nor_the_list(files: Files, folder: Path) -> None:
    path = put(folder, bytes(5 * PAGE) + files.whole[5 * PAGE :])
    with pytest.raises(StoreDamagedError, match="salvage"):
        SessionStore(path)
    found = {one.session.id: one for one in salvage(path).sessions}
    assert sum(len(one.session.items) for one in found.values()) >= 8


def test_what_was_salvaged_can_be_saved(files: Files, folder: Path, tmp_path: Path) -> None:
    found = salvage(put(folder, files.whole[: len(files.whole) * 2 // 3])).sessions
    assert any(one.lost for one in found)
    with SessionStore(tmp_path / "new.db") as store:
        for one in found:
            store.save(one.session)
            same(store.load(one.session.id), one.session)


def test_every_row_that_is_lost_is_counted_and_the_others_are_there(files: Files, folder: Path) -> None:
    path = put(folder, files.whole)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM journal WHERE session = 1 AND number IN (2, 5)")
    (small,) = (one for one in salvage(path).sessions if one.session.id == "small")
    assert (small.lost, small.problems) == (2, ("2 of its 7 rows are lost",))
    assert [item.id for item in small.session.items] == ["small0", "small2", "small3", "small5"]
    assert small.session.metadata == {"of": "small"}
    with SessionStore(path) as store, pytest.raises(StoreDamagedError, match="row 2 of 7") as caught:
        store.load("small")
    assert caught.value.session_id == "small"


@given(drawn=sessions(max_steps=4), data=st.data())
def test_of_any_session_with_edits_salvage_loses_no_item_that_it_finds(drawn: Session, data: st.DataObject) -> None:
    """With any rows gone, what is in the rows that are left is given, but for what an edit took out."""
    from session.store.journal import change
    from session.store.salvaging import _Found, _salvaged
    from session.store.tables import Head, SessionInfo

    drawn.id = "s"
    rows: list[Row] = []
    known = None
    for step in range(3):
        new = change(drawn, known)
        rows, known = rows + new.rows, new.now
        if drawn.items:
            drawn.pin(data.draw(st.sampled_from(drawn.items)).id)
            drawn.truncate(max_items=data.draw(st.integers(0, len(drawn.items))))
        drawn.append(Message("user", "x", id=f"new{step}"))
    rows += change(drawn, known).rows
    left = {number: row for number, row in enumerate(rows) if data.draw(st.integers(0, 9))}
    head = Head(1, SessionInfo("s", "", 0, 0.0, 0.0), len(rows), 1)
    found = _salvaged(1, _Found(head, left, 1))
    assert found.lost == len(rows) - len(left)
    given_ids = {item.id for item in found.session.items}
    if not found.lost:
        same(found.session, drawn)
    here = {json.loads(row.body)["id"] for row in left.values() if row.kind in {"item", "new"}}
    assert given_ids <= here
    assert given_ids >= here & {item.id for item in drawn.items}


# What is no store


@pytest.mark.parametrize(
    "data", [b"x", b"Dear diary, " * 1_000, b"SQLite format 3\0", b"SQLite format 3\0" + bytes(5_000), bytes(range(256)) * 40]
)
def test_what_is_no_database_is_told_and_left_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "diary.txt"
    path.write_bytes(data)
    with pytest.raises(StoreDamagedError) as caught:
        SessionStore(path)
    assert caught.value.path == str(path)
    assert path.read_bytes() == data
    assert salvage(path) == Salvage((), ("nothing of a store was found in the file",))


def database(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


STORE = (*SCHEMA.values(), f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
FOREIGN: list[tuple[tuple[str, ...], str]] = [
    (("CREATE TABLE passwords (of TEXT)",), "not one of sessions"),
    (("PRAGMA application_id = 5",), "not one of sessions"),
    ((f"PRAGMA user_version = {VERSION}",), "not one of sessions"),
    ((f"PRAGMA application_id = {APPLICATION}",), "tables are not those"),
    ((SCHEMA["sessions"], *STORE[-2:]), "tables are not those"),
    ((*STORE, "CREATE TRIGGER t AFTER INSERT ON journal BEGIN DELETE FROM journal; END"), "tables are not those"),
    ((*STORE, "CREATE VIEW v AS SELECT 1"), "tables are not those"),
]


@pytest.mark.parametrize(("statements", "problem"), FOREIGN)
def test_a_database_of_something_else_is_told_and_left_as_it_is(tmp_path: Path, statements: tuple[str, ...], problem: str) -> None:
    path = tmp_path / "places.sqlite"
    database(path, *statements)
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError, match=problem):
        SessionStore(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["places.sqlite"]


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
def test_a_file_that_carries_code_is_refused(tmp_path: Path, kind: str, name: str, table: str, sql: str | None) -> None:
    """A file may come from anywhere: nothing in it runs, whatever it is called."""
    path = tmp_path / "s.db"
    with SessionStore(path) as store:
        store.create("victim").add_message("user", "precious")
    in_schema(path, ADDED, kind, name, table, sql)
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError):
        SessionStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["journal", "sessions_by_last", "sqlite_sequence", "sqlite_autoindex_sessions_1"])
def test_a_file_whose_tables_stand_in_it_twice_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "s.db"
    SessionStore(path).close()
    in_schema(path, "INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = ?", name)
    with pytest.raises(StoreDamagedError):
        SessionStore(path)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 cannot turn triggers off before Python 3.12")
def test_triggers_and_views_are_turned_off(tmp_path: Path) -> None:
    with SessionStore(tmp_path / "s.db") as store:
        connection: Any = store._file._connection
        assert not connection.getconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER)  # type: ignore[attr-defined, unused-ignore]
        assert not connection.getconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW)  # type: ignore[attr-defined, unused-ignore]


def test_what_the_database_keeps_about_its_tables_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with SessionStore(path) as store:
        store.create("s")
    database(path, "ANALYZE", "PRAGMA journal_mode = DELETE")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    with SessionStore(path) as store:
        store.open("s").add_message("user", "x")
        assert store._file._connection.execute("PRAGMA journal_mode").fetchone()[0] == b"wal"


def test_a_newer_version_is_told_and_left_as_it_is(files: Files, folder: Path) -> None:
    path = put(folder, files.whole)
    database(path, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match=rf"newer release \(version {VERSION + 1}; this one reads {VERSION}\); update") as caught:
        SessionStore(path)
    assert not isinstance(caught.value, StoreDamagedError)


def test_a_log_without_its_file_is_not_thrown_away(files: Files, folder: Path) -> None:
    _, log = files.open
    path = put(folder, b"", log)
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match="put the two together again"):
            SessionStore(path)
        assert Path(f"{path}-wal").read_bytes() == log
        path.unlink(missing_ok=True)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SessionStore(tmp_path)
    with pytest.raises(StoreError, match="cannot be read"):
        salvage(tmp_path)


def test_a_file_stands_where_the_folder_should(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError):
        SessionStore(tmp_path / "file" / "s.db")


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="NUL"):
        SessionStore(f"{tmp_path}/a\0b")
    with pytest.raises(StoreError):
        salvage(f"{tmp_path}/a\0b")


@pytest.mark.parametrize("wrong", [None, 5, b"s.db", []])
def test_what_is_no_path_is_refused(wrong: Any) -> None:
    with pytest.raises(FormatError, match=r"^SessionStore\.path: "):
        SessionStore(wrong)
    with pytest.raises(FormatError, match=r"^salvage\.path: "):
        salvage(wrong)


def test_salvage_of_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        salvage(tmp_path / "nothing.db")


# Rows that are sound to SQLite and to the checksum, and yet no session


def forged(path: Path, *rows: tuple[str, bytes | str]) -> None:
    """A store with one session `s` of these rows, checksums and all."""
    from session.store.tables import Head, SessionInfo

    with SessionStore(path) as store:
        store.create("s")
        head = Head(1, SessionInfo("s", "", 0, 1.0, 1.0), len(rows), len(rows))
        connection = store._file._connection
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
def test_rows_that_make_no_session_are_damage(tmp_path: Path, rows: tuple[tuple[str, bytes | str], ...]) -> None:
    path = tmp_path / "s.db"
    forged(path, *rows)
    with SessionStore(path) as store, pytest.raises(StoreDamagedError, match="session 's' is damaged: ") as caught:
        store.load("s")
    assert len(str(caught.value)) < 600
    (one,) = salvage(path).sessions
    assert one.problems
    assert all(len(problem) < 300 for problem in one.problems)


def test_what_follows_the_edit_that_is_not_to_be_carried_out_is_there(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    twin = HELLO[1].replace('"content"', '"pinned":true,"content"')
    other = HELLO[1].replace('"a"', '"b"')
    forged(path, FIRST, HELLO, ("new", twin), ("edit", '{"of":[9,1],"runs":[[9,10]]}'), ("item", other))
    (one,) = salvage(path).sessions
    assert [(item.id, item.pinned) for item in one.session.items] == [("a", True), ("b", False)]
    assert len(one.problems) == 2


def test_rows_missing_at_the_end_are_noticed(files: Files, folder: Path) -> None:
    path = put(folder, files.whole)
    database(path, "DELETE FROM journal WHERE session = 1 AND number = 6")
    with SessionStore(path) as store, pytest.raises(StoreDamagedError, match="1 of its 7 rows are missing"):
        store.load("small")
    (small,) = (one for one in salvage(path).sessions if one.session.id == "small")
    assert (small.lost, len(small.session.items)) == (1, 5)


@pytest.mark.parametrize("edited", [False, True])
def test_of_a_log_that_rows_are_lost_of_no_report_counts(tmp_path: Path, edited: bool) -> None:
    """Each is of a prompt that had in it what is lost."""
    path = tmp_path / "s.db"
    with SessionStore(path) as store:
        session = store.create("s")
        for number in range(6):
            session.append(Message("assistant", f"{number}", id=f"{number}", created_at=number, usage=Usage(9)))
        if edited:
            session.truncate(max_items=5)
            session.restore_seams(frozenset("5"), session.settled)
    database(path, "DELETE FROM journal WHERE number = 4")
    (one,) = salvage(path).sessions
    assert one.lost == 1
    assert one.session.settled == len(one.session.items) > 3
    assert one.session.response_breaks == (frozenset("5") if edited else frozenset())


def test_where_no_prompt_was_reported_salvage_takes_nothing_for_decided(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    twin = HELLO[1].replace('"a"', '"b"')
    forged(path, FIRST, HELLO, ("item", twin), ("seams", '{"settled":2}'), ("metadata", "5"))
    (one,) = salvage(path).sessions
    assert (len(one.session.items), one.session.settled) == (2, 0)


def test_what_waits_for_an_edit_that_is_lost_is_there(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    twin = HELLO[1].replace('"content"', '"pinned":true,"content"')
    other = HELLO[1].replace('"a"', '"b"')
    forged(path, FIRST, HELLO, ("new", twin), ("new", other), ("item", other.replace('"b"', '"c"')))
    with SessionStore(path) as store, pytest.raises(StoreDamagedError, match="row 4: item"):
        store.load("s")
    (one,) = salvage(path).sessions
    assert [(item.id, item.pinned) for item in one.session.items] == [("a", True), ("b", False), ("c", False)]


def test_an_edit_makes_no_log_larger_than_what_it_is_made_of() -> None:
    with pytest.raises(FormatError, match="in two runs"):
        edit_of({"of": [2, 0], "runs": [[0, 2]] * 2}, 2, 0)
    assert edit_of({"of": [2, 1], "runs": [[2, 3], [0, 2]]}, 2, 1) == [(2, 3), (0, 2)]


def test_a_session_that_another_key_has_is_no_one_elses(files: Files, folder: Path) -> None:
    """Rows moved to another session, or to another number, are found out by their checksums."""
    path = put(folder, files.whole)
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
def test_a_damaged_list_is_told(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "s.db"
    with SessionStore(path) as store:
        store.create("s").add_message("user", "x")
    database(path, statement)
    with SessionStore(path) as store:
        for ask in (store.list, store.latest, lambda: store.load("s")):
            with pytest.raises(StoreDamagedError, match="list of them is damaged"):
                ask()
    (one,) = salvage(path).sessions
    assert ([item.id for item in one.session.items] != [], one.session.id) == (True, "s")


# Pages


def slow_varint(data: bytes) -> int:
    bits = ""
    for byte in data[:8]:
        bits += f"{byte & 0x7F:07b}"
        if byte < 0x80:
            return int(bits, 2)
    return int(bits + f"{data[8]:08b}", 2)


@given(st.binary(min_size=9, max_size=9))
def test_a_number_of_variable_length_is_read_as_its_page_says(data: bytes) -> None:
    value, offset = varint(b"??" + data, 2)
    assert value == slow_varint(data)
    assert offset == 2 + next((place + 1 for place, byte in enumerate(data[:8]) if byte < 0x80), 9)


@pytest.mark.parametrize("size", [512, 1024, 8192, 65536])
def test_salvage_reads_pages_of_any_size(tmp_path: Path, files: Files, size: int) -> None:
    path = put(tmp_path, files.whole)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA page_size = {size}")
        connection.execute("VACUUM")
    assert {one.session.id: told(one.session) for one in salvage(path).sessions} == {
        name: all_of[-1] for name, all_of in files.states.items()
    }


def maze(leaves: int, links: int) -> bytes:
    """A file of records by the ten thousand, each of which goes on through all of the same pages, and is none in the end."""
    length = 4 + 10 + 20 + (links - 1) * (PAGE - 4)
    body = length - 10 - 1 - 1 - 4 - 8 - 4
    kinds = b"\x00\x01\x01\x15\x07\x04" + as_varint(12 + 2 * body)
    payload = bytes([1 + len(kinds)]) + kinds + b"\x01\x02item" + bytes(12)
    rowid = b"\x05"
    kept = _local(length, PAGE)
    cell = as_varint(length) + rowid + payload.ljust(kept, b"x") + (leaves + 1).to_bytes(4, "big")
    leaf = bytearray(PAGE)
    at = PAGE - len(cell)
    places = (at - 8) // 2
    leaf[0], leaf[3:5] = 0x0D, places.to_bytes(2, "big")
    leaf[8 : 8 + 2 * places] = at.to_bytes(2, "big") * places
    leaf[at:] = cell
    chain = [(leaves + 2 + link).to_bytes(4, "big") + bytes(PAGE - 4) for link in range(links)]
    return bytes(leaf) * leaves + b"".join(chain)


def as_varint(value: int) -> bytes:
    pieces = [value & 0x7F]
    while value := value >> 7:
        pieces.append(value & 0x7F | 0x80)
    return bytes(reversed(pieces))


def test_chains_that_lead_nowhere_come_to_an_end(tmp_path: Path) -> None:
    """Read one by one they would be some millions of pages."""
    path = tmp_path / "s.db"
    path.write_bytes(maze(8, 400))
    pages = Pages(path)
    try:
        cells = list(pages.cells())
        assert len(cells) > 10_000
        assert [len(whole) for whole in pages.payloads(cells[0])] == [cells[0].length]
        read = 0
        for cell in cells:
            for _ in pages.payloads(cell):
                read += 1
                pages.vain(cell)
        assert 1 < read < 20
    finally:
        pages.close()
    assert salvage(path) == Salvage((), ("1 rows are damaged", "nothing of a store was found in the file"))


def test_a_crc_says_the_same_everywhere() -> None:
    assert checksum(1, 2, Row("item", b"{}"), 1.5) == crc32(b"{}", crc32(b"1/2/item/1.5"))


def test_a_copy_that_is_made_of_all_its_files_is_whole(tmp_path: Path) -> None:
    with SessionStore(tmp_path / "s.db") as store:
        store.create("s").add_message("user", "x")
        for one in list(tmp_path.iterdir()):
            if not one.name.endswith("-shm"):
                shutil.copy(one, tmp_path / f"copy{one.name}")
    with SessionStore(tmp_path / "copys.db") as copied:
        assert len(copied.load("s").items) == 1


def replayed(rows: list[tuple[str, Any]]) -> Session:
    replay = Replay()
    for number, (kind, value) in enumerate(rows):
        replay.take(number, Row(kind, json.dumps(value).encode()))
    return replay.session()


READ: Callable[[str], Any] = json.loads


def test_a_journal_reads_as_its_page_says() -> None:
    """The example of `journal.py`, row by row."""
    one, two = READ(HELLO[1]), READ(HELLO[1].replace('"a"', '"b"'))
    session = replayed(
        [
            ("session", {"id": "s", "metadata": {"m": 1}}),
            ("item", one),
            ("item", two),
            ("new", {**one, "pinned": True}),
            ("edit", {"of": [2, 1], "runs": [[2, 3], [1, 2]]}),
            ("seams", {"breaks": ["b"], "settled": 1}),
            ("metadata", {"m": 2}),
        ]
    )
    assert [(item.id, item.pinned) for item in session.items] == [("a", True), ("b", False)]
    assert (session.response_breaks, session.settled, session.metadata) == (frozenset("b"), 1, {"m": 2})
