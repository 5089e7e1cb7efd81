"""A real PostgreSQL server for tests: in a temporary directory, reached through a socket there, and killed without regret."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from session.store import SessionStore

PASSWORD = "p@ss/w%rd:"
"""The password of the user `guarded`, with every character that a URL gives a meaning to."""
SECONDS = 60
"""Seconds that the server may take to start or to end on a busy machine."""
SETTINGS = (
    "listen_addresses=",
    "fsync=off",  # the tests kill the server, never the machine
    "synchronous_commit=off",  # what a store has to overrule: commits would wait for the next setting, and a kill would lose them
    "wal_writer_delay=10s",
    "max_connections=40",
)


class PostgresServer:
    """A server that can be killed and started again.

    Attributes:
        folder: The directory of its socket.
    """

    def __init__(self, programs: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        self._programs = programs
        self._data = self.folder / "data"
        self._user = _unprivileged_user()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        options = ("--no-sync", "--no-locale", "--encoding=UTF8", "--username=owner", "--auth=trust")
        initdb = [str(programs / "initdb"), "-D", str(self._data), *options]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, user=self._user, extra_groups=self._groups, cwd=self.folder)
        # The owner needs no password: checking one takes longer than most tests.
        (self._data / "pg_hba.conf").write_text("local all guarded scram-sha-256\nlocal all all trust\n")
        self.start()
        self.run(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")

    def url(self, *, user: str = "owner", password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{quote(password, safe='')}@/postgres?host={self.folder}"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(), autocommit=True)

    def run(self, *statements: str) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def without_store(self) -> str:
        """Remove the store, if there is one, and return the URL."""
        self.run("DROP SCHEMA IF EXISTS context_window CASCADE")
        return self.url()

    def with_empty_store(self) -> str:
        """Remove all sessions, and return the URL."""
        SessionStore(self.url()).close()
        self.run("DELETE FROM context_window.journal; DELETE FROM context_window.sessions")
        return self.url()

    def start(self) -> None:
        until = time.monotonic() + SECONDS
        while not self._is_started():  # it refuses while processes of a killed one are alive
            assert time.monotonic() < until, (self.folder / "log").read_text()

    def kill(self, how: int = signal.SIGKILL) -> None:
        """End the server at once: with SIGKILL only its first process, with SIGQUIT all of them, as `pg_ctl stop -m immediate` does."""
        self._process.send_signal(how)
        self._process.wait(SECONDS)

    def remove(self) -> None:
        self.kill(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    # Inside

    @property
    def _groups(self) -> list[int] | None:
        return None if self._user is None else []

    def _is_started(self) -> bool:
        """Start the server and wait until it answers. False if it ended instead."""
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        with (self.folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-k", self.folder, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user,
                extra_groups=self._groups,
                cwd=self.folder,
            )
        while self._process.poll() is None:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return True
        return False


def server_programs() -> Path:
    """Return the folder of PostgreSQL's programs, or skip the test."""
    if os.name != "posix":
        pytest.skip("signals and sockets as POSIX has them")
    on_path = shutil.which("initdb")
    folders = [] if on_path is None else [Path(on_path).resolve().parent]
    for folder in (*folders, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.skip("PostgreSQL's server is not installed")


def _unprivileged_user() -> str | None:
    """Return a user for the server if the tests run as root, whom it refuses."""
    if os.geteuid() != 0:
        return None
    import pwd

    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
