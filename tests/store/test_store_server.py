"""A store on a PostgreSQL server: what a server can do that no file does. What both promise is tested in `test_store.py`."""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from session import FormatError, Message, StoreBusyError, StoreDamagedError, StoreError
from session.extras import install_line
from session.store import SessionStore
from session.store.dialect import POSTGRES
from session.store.schema import APPLICATION
from session.store.server import CONNECTIONS
from tests.store.test_store_processes import line, process, texts
from tests.support.postgres import PASSWORD, PostgresServer


@pytest.fixture
def store(postgres: PostgresServer) -> Iterator[SessionStore]:
    with SessionStore(postgres.with_empty_store()) as new_store:
        yield new_store


# Kills

SAVING = """
from session.errors import StoreError
from session.store.tables import Tables
add = Tables.add
def add_and_wait(*values):
    state = add(*values)
    say("halfway")
    sys.stdin.readline()
    return state
with SessionStore(path) as store:
    session = store.open(session_id)
    for number in range(20):
        session.add_message("user", str(number))
        say(number)
    Tables.add = add_and_wait
    try:
        session.add_message("user", "20")
    except StoreError as error:
        say(error)
    Tables.add = add
    say(session.save())
"""


@pytest.mark.parametrize("how", ["SIGKILL", "SIGQUIT"])
def test_what_was_acknowledged_survives_a_kill_of_the_server(postgres: PostgresServer, how: str) -> None:
    """The server's own settings would lose all of it: see SETTINGS. A writer goes on when the server is back."""
    with SessionStore(postgres.with_empty_store()) as store:
        store.create("s")
    with process(SAVING, postgres.url(), "s") as saving:
        assert [line(saving) for _ in range(21)] == [*map(str, range(20)), "halfway"]
        postgres.kill(getattr(signal, how))
        postgres.start()
        with SessionStore(postgres.url()) as store:
            assert texts(store.load("s")) == [str(number) for number in range(20)]
        rest, _ = saving.communicate("\n", timeout=60)
        assert "the connection to the server was lost" in rest
        assert rest.splitlines()[-1] == "1"
    with SessionStore(postgres.url()) as store:
        assert texts(store.load("s")) == [str(number) for number in range(21)]


def test_a_store_goes_on_after_its_idle_connections_were_closed(postgres: PostgresServer, store: SessionStore) -> None:
    session = store.create("s")
    end_connections(postgres)
    session.add_message("user", "one")
    end_connections(postgres)
    assert texts(store.load("s")) == ["one"]


def end_connections(postgres: PostgresServer) -> None:
    """End all connections of stores, as a restart of the server does."""
    postgres.run(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'context-window'",
    )


def test_a_connection_lost_in_a_save_raises_store_error_and_the_next_save_writes_the_rest(
    postgres: PostgresServer, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.create("s")
    add = store._tables.add

    def add_and_lose(*values: Any) -> Any:
        add(*values)
        end_connections(postgres)
        return add(*values)

    with monkeypatch.context() as patched:
        patched.setattr(store._tables, "add", add_and_lose)
        with pytest.raises(StoreError, match=r"connection to the server was lost; .* save again"):
            session.add_message("user", "one")
    assert texts(store.load("s")) == []
    session.add_message("user", "two")
    assert texts(store.load("s")) == ["one", "two"]


# Writers beside each other


def test_writers_of_other_sessions_do_not_wait(postgres: PostgresServer, store: SessionStore) -> None:
    with SessionStore(postgres.url(), busy_seconds=0.05) as other, store._database.write("s"):
        other.create("t").add_message("user", "one")
        with pytest.raises(StoreBusyError):
            other.create("s")
    assert [info.id for info in store.list()] == ["t"]


def test_a_call_waits_for_a_free_connection(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with SessionStore(postgres.with_empty_store()) as store:
        with ExitStack() as held:
            for number in range(CONNECTIONS):
                held.enter_context(store._database.write(str(number)))
            with monkeypatch.context() as patch:
                patch.setattr(store._database, "_patience", 0.1)
                with pytest.raises(StoreBusyError, match=r"more than 0\.1 seconds"):
                    store.list()
        assert store.list() == ()


def test_closing_a_store_ends_its_connections_and_its_threads(postgres: PostgresServer) -> None:
    before = set(threading.enumerate())
    with SessionStore(postgres.with_empty_store()) as store:
        store.create("s")
        assert connections(postgres)
    assert set(threading.enumerate()) == before
    until = time.monotonic() + 60  # the server notices a moment later
    while connections(postgres):
        assert time.monotonic() < until
        time.sleep(0.01)


def connections(postgres: PostgresServer) -> list[tuple[object, ...]]:
    """Return the connections of stores."""
    with postgres.connect() as connection:
        return connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'context-window'").fetchall()


# Errors


def test_a_wrong_password_is_named_and_not_shown(postgres: PostgresServer) -> None:
    with pytest.raises(StoreError, match=r"password authentication failed for user .*; check that it runs, and the URL") as caught:
        SessionStore(postgres.url(user="guarded", password="secret-1"))
    assert_hidden(caught.value, "secret-1")
    assert caught.value.path.startswith("postgresql://guarded@%2Ftmp")


def test_a_right_password_is_not_shown(postgres: PostgresServer) -> None:
    postgres.without_store()
    with pytest.raises(StoreError, match="the user may not create, read or write") as caught:
        SessionStore(postgres.url(user="guarded"))
    assert_hidden(caught.value, PASSWORD)
    postgres.with_empty_store()
    with pytest.raises(StoreError, match="the user may not create, read or write"):
        SessionStore(postgres.url(user="guarded"))
    postgres.run("GRANT USAGE ON SCHEMA context_window TO guarded", "GRANT SELECT ON ALL TABLES IN SCHEMA context_window TO guarded")
    with SessionStore(postgres.url(user="guarded")) as store:
        assert store.list() == ()
        assert PASSWORD not in f"{store!r} {store.path}"
        with pytest.raises(StoreError, match="the user may not create, read or write"):
            store.create("s")


def assert_hidden(error: BaseException, secret: str) -> None:
    """Check that neither the error nor one that it came from shows the secret."""
    assert secret not in f"{error} {error!r} {vars(error)}"
    for earlier in (error.__cause__, error.__context__):
        if earlier is not None:
            assert_hidden(earlier, secret)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:begin@secret@host/database",
        "postgresql://user:begin/secret@host/database",
        "postgresql://user:12/secret@host/database",
        "postgresql://user:begin%secret@host/database",
        "postgresql://user:secret",
        "postgresql://user:secret/database",
        "postgresql://host/database?pasword=secret",
        "postgresql+psycopg://user:secret@host/database",
        "mysql://user:secret@host/database",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_and_not_shown(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(FormatError, match=r"^SessionStore\.path: .*postgresql://user@host") as caught:
        SessionStore(url)
    assert_hidden(caught.value, "secret")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://u:secret@[::1]:1/d", "postgresql://u@[::1]:1/d"),
        ("postgresql://u@/d?host=127.0.0.1,localhost&port=1&password=secret", "postgresql://u@127.0.0.1:1,localhost:1/d"),
        ("postgresql://a%40b:s%65cret@127.0.0.1:1/d%2F?sslpassword=secret&connect_timeout=1", "postgresql://a%40b@127.0.0.1:1/d%2F"),
    ],
)
def test_a_server_that_does_not_answer_is_named_without_the_password(url: str, shown: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="the server cannot be used") as caught:
        SessionStore(url)
    assert caught.value.path == shown
    assert_hidden(caught.value, "secret")


def test_a_server_that_has_gone_is_named_and_the_session_stays(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session.store.server.SHORTEST_WAIT", 0.1)
    with SessionStore(postgres.with_empty_store(), busy_seconds=0.1) as store:
        session = store.create("s")
        postgres.kill(signal.SIGQUIT)
        try:
            with pytest.raises(StoreError, match=r"the server cannot be used .*No such file|Connection refused"):
                session.add_message("user", "one")
        finally:
            postgres.start()
        session.add_message("user", "two")
        assert texts(store.load("s")) == ["one", "two"]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "session.store.server", raising=False)
    with pytest.raises(StoreError, match=re.escape(install_line("postgres"))) as caught:
        SessionStore("postgresql://user:secret@host/database")
    assert_hidden(caught.value, "secret")


# Tables


def test_tables_of_a_newer_version_are_refused_and_unchanged(postgres: PostgresServer) -> None:
    url = postgres.with_empty_store()
    postgres.run("UPDATE context_window.store SET version = 2")
    try:
        with pytest.raises(StoreError, match=r"newer release \(version 2; this one reads 1\); update") as caught:
            SessionStore(url)
        assert not isinstance(caught.value, StoreDamagedError)
    finally:
        postgres.without_store()


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE context_window.store (something TEXT)",),
        ("CREATE TABLE context_window.store (version BIGINT)",),
        ("CREATE TABLE context_window.sessions (id TEXT)",),
    ],
)
def test_foreign_tables_are_refused_and_unchanged(postgres: PostgresServer, statements: tuple[str, ...]) -> None:
    url = postgres.without_store()
    postgres.run("CREATE SCHEMA context_window", *statements)
    tables = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'context_window'"
    try:
        with postgres.connect() as connection:
            before = connection.execute(tables).fetchall()
            with pytest.raises(StoreDamagedError, match=r"not those of a store.*restore the schema `context_window` from a backup"):
                SessionStore(url)
            assert connection.execute(tables).fetchall() == before
    finally:
        postgres.without_store()


def test_a_schema_made_beforehand_is_enough_for_a_user_without_further_rights(postgres: PostgresServer) -> None:
    postgres.without_store()
    postgres.run("CREATE SCHEMA context_window AUTHORIZATION guarded")
    try:
        with SessionStore(postgres.url(user="guarded")) as store:
            store.create("s").add_message("user", "one")
            assert texts(store.load("s")) == ["one"]
    finally:
        postgres.without_store()


def test_a_store_that_another_process_creates_meanwhile_is_opened(postgres: PostgresServer) -> None:
    url = postgres.without_store()
    results: list[object] = []

    def open_store() -> None:
        try:
            with SessionStore(url, busy_seconds=60) as store:
                results.append(store.list())
        except StoreError as error:
            results.append(error)

    opening = threading.Thread(target=open_store)
    with postgres.connect() as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(%s)", (APPLICATION,))
        opening.start()
        until = time.monotonic() + 60
        while not other.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchone():
            assert time.monotonic() < until
            time.sleep(0.01)
        for statement in ("CREATE SCHEMA context_window", "SET LOCAL search_path = context_window", *POSTGRES.schema().values()):
            other.execute(statement.encode())
        other.execute("CREATE TABLE store AS SELECT 1::bigint AS version")
    opening.join()
    assert results == [()]


def test_tables_of_the_same_names_elsewhere_are_not_touched(postgres: PostgresServer, store: SessionStore) -> None:
    postgres.run("CREATE TABLE public.sessions (id TEXT)", "CREATE TABLE public.journal (id TEXT)")
    try:
        store.create("s").add_message("user", "one")
        assert texts(store.load("s")) == ["one"]
    finally:
        postgres.run("DROP TABLE public.sessions, public.journal")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE context_window.journal SET body = '[]' WHERE session = {} AND number = 1",
        "UPDATE context_window.journal SET number = 7 WHERE session = {} AND number = 1",
        "DELETE FROM context_window.journal WHERE session = {} AND number = 2",
        "UPDATE context_window.sessions SET rows = 2 WHERE key = {}",
    ],
)
def test_a_damaged_row_raises_store_damaged_error(postgres: PostgresServer, store: SessionStore, statement: str) -> None:
    session = store.create("s")
    session.add_message("user", "one")
    session.add_message("user", "two")
    store.create("other").add_message("user", "undamaged")
    postgres.run(statement.format(key(store)))
    with pytest.raises(StoreDamagedError, match="restore the schema"):
        store.load("s")
    assert texts(store.load("other")) == ["undamaged"]


def key(store: SessionStore) -> int:
    with store._database.read() as connection:
        return int(connection.execute("SELECT min(key) FROM sessions").fetchone()[0])


def test_a_store_can_be_read_with_plain_sql(postgres: PostgresServer, store: SessionStore) -> None:
    """The data stays accessible without this library."""
    store.create("s").append(Message("user", "hello"))
    with postgres.connect() as connection:
        query = "SELECT convert_from(body, 'UTF8')::json -> 'content' -> 0 ->> 'text' FROM context_window.journal WHERE number = 1"
        assert connection.execute(query).fetchall() == [("hello",)]


def test_an_id_too_large_for_the_index_raises_store_error(store: SessionStore) -> None:
    with pytest.raises(StoreError, match="too large and nothing was written"):
        store.create(os.urandom(10_000).hex())
    assert store.list() == ()
