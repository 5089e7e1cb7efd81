"""The two databases that a store can be in. A test that takes `address` runs on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from session.store import SessionStore
from tests.support.postgres import PostgresServer, server_programs

DATABASES = ("SQLite", "PostgreSQL")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer(server_programs())
    yield server
    server.remove()


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of an empty store: creating one takes longer than most tests."""
    path = tmp_path_factory.mktemp("empty") / "s.db"
    SessionStore(path).close()
    return path.read_bytes()


@pytest.fixture(params=DATABASES)
def new_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet."""
    if request.param == "SQLite":
        return str(tmp_path / "sessions.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.without_store()


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store without sessions."""
    if request.param == "SQLite":
        path = tmp_path / "sessions.db"
        path.write_bytes(request.getfixturevalue("empty_file"))
        return str(path)
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.with_empty_store()
