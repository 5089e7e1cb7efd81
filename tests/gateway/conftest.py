"""A real PostgreSQL server, and the two kinds of stores that gateways can share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer, server_programs


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer(server_programs())
    yield server
    server.remove()


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet."""
    if request.param == "SQLite":
        return str(tmp_path / "shared" / "refusals.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.without_store()
