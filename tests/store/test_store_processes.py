"""A store used by several processes, and some are killed: every save that returned is there, and conflicts raise our own errors.

The server itself is killed in `test_store_server.py`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from session import Session, StoreBusyError, StoreConflictError, StoreError
from session.store import SessionStore
from tests.support.shell import HERE, POSIX
from tests.support.stores import raw

STARTED = """
import asyncio, sys
from session import Session, StoreConflictError
from session.store import SessionStore
path, session_id = sys.argv[1:3]
def say(*said):
    sys.stdout.write(" ".join(map(str, said)) + "\\n")
    sys.stdout.flush()
"""

TALKING = """
with SessionStore(path) as store:
    session = store.open(session_id)
    number = len(session.items)
    while True:
        if number % 10 == 9:
            session.pin(session.items[number // 2].id)
        session.add_message("user", f"{number} " + "x" * (number % 7) * 1_500)
        number += 1
        say(number)
"""

HALFWAY = """
from session.store.tables import Tables
add = Tables.add
def add_and_wait(*values):
    state = add(*values)
    say("halfway")
    sys.stdin.readline()
    return state
with SessionStore(path) as store:
    session = store.open(session_id)
    for number in range(3):
        session.add_message("user", str(number))
        say(number)
    Tables.add = add_and_wait
    session.add_message("user", "never acknowledged")
"""

MANY = """
say("ready")
sys.stdin.readline()
with SessionStore(path, busy_seconds=60) as store:
    session = store.create(session_id)
    for number in range(20):
        session.add_message("user", str(number))
"""

SHARING = """
say("ready")
sys.stdin.readline()
conflicts = 0
with SessionStore(path, busy_seconds=60) as store:
    session = store.open("both")
    for number in range(12):
        try:
            session.add_message("user", f"{session_id} {number}")
        except StoreConflictError:
            conflicts += 1
            while True:
                fresh = store.open("both")
                try:
                    asyncio.run(fresh.merge(session))
                    break
                except StoreConflictError:
                    conflicts += 1
            session = fresh
say(conflicts)
"""

FORKING = """
import os
store = SessionStore(path)
session = store.create("parent")
def connection():
    fields = vars(store._database)
    return fields.get("_connection") or fields.get("_pool")
before = connection()
child = os.fork()
if not child:
    code = 1
    try:
        store.create("child").add_message("user", "of the child")
        code = int(connection() is before)
        store.close()
    finally:
        os._exit(code)
_, status = os.waitpid(child, 0)
session.add_message("user", "of the parent")
say(status, *sorted(info.id for info in store.list()))
"""


@contextmanager
def process(code: str, address: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """Run code in another Python process, which is killed at the end."""
    command = [sys.executable, "-c", STARTED + code, address, name]
    with subprocess.Popen(command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def line(of: subprocess.Popen[str]) -> str:
    assert of.stdout is not None
    return of.stdout.readline().strip()


def let_go(*children: subprocess.Popen[str]) -> None:
    """Let waiting processes begin at the same time."""
    assert [line(child) for child in children] == ["ready"] * len(children)
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()


def ended(*children: subprocess.Popen[str]) -> list[str]:
    """Return the last line of each process after all have ended without an error."""
    outputs = [child.communicate(timeout=60)[0].strip() for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    return outputs


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


def test_every_save_that_returned_survives_a_kill(address: str) -> None:
    with SessionStore(address) as store:
        store.create("s")
    had = 0
    for kill_after in (13, 14):
        with process(TALKING, address, "s") as talking:
            acknowledged = [int(line(talking)) for _ in range(kill_after)][-1]
            talking.kill()  # at any point, perhaps in the middle of the next save
            talking.wait()
        with SessionStore(address) as store:
            session = store.load("s")
            assert len(session.items) >= acknowledged == had + kill_after
            assert [text.split(" ")[0] for text in texts(session)] == [str(number) for number in range(len(session.items))]
            had = len(session.items)
    with SessionStore(address) as store:
        assert sum(item.pinned for item in store.load("s").items) >= 2
        assert len(store.revisions("s")) >= 3


def test_a_kill_in_the_middle_of_a_save_leaves_nothing_of_it(address: str) -> None:
    with SessionStore(address) as store:
        store.create("s")
    with process(HALFWAY, address, "s") as writing:
        assert [line(writing) for _ in range(4)] == ["0", "1", "2", "halfway"]
        writing.kill()
        writing.wait()
    with SessionStore(address, busy_seconds=60) as store:
        session = store.open("s")
        assert texts(session) == ["0", "1", "2"]
        session.add_message("user", "by the next writer")
        assert texts(store.load("s"))[3:] == ["by the next writer"]


def test_several_processes_can_create_and_write_one_store_at_once(new_address: str) -> None:
    names = ["a", "b", "c"]
    with process(MANY, new_address, "a") as a, process(MANY, new_address, "b") as b, process(MANY, new_address, "c") as c:
        let_go(a, b, c)
        ended(a, b, c)
    with SessionStore(new_address) as store:
        assert sorted(info.id for info in store.list()) == names
        assert [texts(store.load(name)) for name in names] == [[str(number) for number in range(20)]] * 3


def test_two_processes_on_one_session_lose_nothing(address: str) -> None:
    with SessionStore(address) as store:
        store.create("both")
    with process(SHARING, address, "a") as a, process(SHARING, address, "b") as b:
        let_go(a, b)
        ended(a, b)
    with SessionStore(address) as store:
        merged = texts(store.load("both"))
    assert sorted(merged) == sorted(f"{name} {number}" for name in "ab" for number in range(12))
    for name in "ab":
        assert [text for text in merged if text.startswith(name)] == [f"{name} {number}" for number in range(12)]


@POSIX
def test_a_forked_process_opens_its_own_connection(address: str) -> None:
    with process(FORKING, address, "s") as forking:
        assert ended(forking) == ["0 child parent"]
    with SessionStore(address) as store:
        assert [texts(store.load(name)) for name in ("child", "parent")] == [["of the child"], ["of the parent"]]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a write lock on the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_lock_timeout_raises_store_busy_error_and_loses_nothing(address: str) -> None:
    with SessionStore(address, busy_seconds=0.05) as store, SessionStore(address) as other:
        session = store.create("s")
        with other._database.write("s"):
            with pytest.raises(StoreBusyError, match=r"more than 0\.05 seconds.*save again") as caught:
                session.add_message("user", "one")
            assert (caught.value.seconds, caught.value.path) == (0.05, store.path)
            with pytest.raises(StoreBusyError):
                store.delete("s")
            assert texts(store.load("s")) == []  # readers need no lock
        assert texts(session) == ["one"]
        session.add_message("user", "two")
        assert texts(store.load("s")) == ["one", "two"]


def test_creating_a_store_waits_for_a_lock_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch()
    with locked(path), pytest.raises(StoreBusyError):
        SessionStore(path, busy_seconds=0.05)
    SessionStore(path, busy_seconds=0).close()


def test_a_save_continues_when_the_lock_is_released(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with (
        SessionStore(path, busy_seconds=30) as store,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        session = store.create("s")
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        timer.start()
        session.add_message("user", "one")
        timer.join()
        assert texts(store.load("s")) == ["one"]


def test_threads_can_share_a_store(address: str) -> None:
    with SessionStore(address) as store:
        faults: list[BaseException] = []

        def talk(name: str) -> None:
            try:
                session = store.create(name)
                for number in range(10):
                    session.add_message("user", str(number))
            except BaseException as error:  # noqa: BLE001 - a thread's errors would be lost
                faults.append(error)

        threads = [threading.Thread(target=talk, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert [len(store.load(name).items) for name in "abc"] == [10, 10, 10]


def test_a_save_can_run_in_a_thread_of_an_event_loop(address: str) -> None:
    with SessionStore(address) as store:
        session = Session(id="s")
        session.add_message("user", "one")
        assert asyncio.run(asyncio.to_thread(store.save, session)) == 1
        assert texts(store.load("s")) == ["one"]


@contextmanager
def full(store: SessionStore) -> Iterator[None]:
    """Let the file grow no further, as on a full disk."""
    connection = raw(store)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    yield
    connection.execute("PRAGMA max_page_count = 1000000000")


def test_a_full_disk_raises_store_error_and_loses_nothing(tmp_path: Path) -> None:
    with SessionStore(tmp_path / "s.db") as store:
        session = store.create("s")
        with full(store), pytest.raises(StoreError, match=r"disk is full.*free some space"):
            session.add_message("user", "x" * 100_000)
        session.add_message("user", "y")
        assert [text[0] for text in texts(store.load("s"))] == ["x", "y"]


def test_an_item_too_large_for_a_row_raises_store_error(tmp_path: Path) -> None:
    with SessionStore(tmp_path / "s.db") as store:
        session = store.create("s")
        raw(store).setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
        with pytest.raises(StoreError, match="too large for one row"):
            session.add_message("user", "x" * 20_000)
        assert texts(store.load("s")) == []


# Costs


def work(store: SessionStore, session: Session) -> tuple[int, int, int]:
    """Return the cost of one more item: statements, bytes written, and function calls."""
    connection = raw(store)
    log = Path(f"{store.path}-wal")
    statements: list[str] = []
    calls = 0

    def called(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = log.stat().st_size
    connection.set_trace_callback(statements.append)
    sys.setprofile(called)
    try:
        session.add_message("user", "one more")
    finally:
        sys.setprofile(None)
        connection.set_trace_callback(None)
    return len(statements), log.stat().st_size - before, calls


def test_one_more_item_costs_the_same_in_a_long_session(tmp_path: Path) -> None:
    with SessionStore(tmp_path / "s.db") as store:
        raw(store).execute("PRAGMA wal_autocheckpoint = 0")
        costs = []
        for name, length in (("short", 10), ("long", 3_000)):
            session = store.create(name)
            with session.together():
                for number in range(length):
                    session.add_message("user", f"{number} " + "x" * 200)
            session.add_message("user", "the first after many")
            costs.append(work(store, session))
    (statements, short_bytes, calls), (statements_long, long_bytes, calls_long) = costs
    assert statements_long == statements <= 8
    assert calls_long <= calls + 5
    assert long_bytes <= short_bytes + 4 * 4_200  # the paths of two trees are a page or two longer


def test_a_pin_in_a_long_session_writes_only_the_item(tmp_path: Path) -> None:
    with SessionStore(tmp_path / "s.db") as store:
        session = store.create("s")
        with session.together():
            for number in range(2_000):
                session.add_message("user", f"{number} " + "x" * 500)
        raw(store).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        session.pin(session.items[1_000].id)
        assert 0 < Path(f"{store.path}-wal").stat().st_size < 10 * 4_200
        rows = raw(store).execute("SELECT kind, body FROM journal ORDER BY place DESC LIMIT 2").fetchall()
    assert rows[0] == (b"edit", b'{"of":[2000,1],"runs":[[0,1000],[2000,2001],[1001,2000]]}')
    assert json.loads(rows[1][1])["pinned"] is True


def test_two_stores_in_one_process_conflict_too(address: str) -> None:
    with SessionStore(address) as first, SessionStore(address) as second:
        mine = first.create("s")
        theirs = second.open("s")
        mine.add_message("user", "mine")
        with pytest.raises(StoreConflictError):
            theirs.add_message("user", "theirs")
