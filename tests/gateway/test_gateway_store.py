"""The store of refused prompts: one contract over SQLite and a real PostgreSQL server, and what happens without it."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from context_window.cli import run
from context_window.gateway import refusal_store as module
from context_window.gateway.refusal_store import RefusalStore, refusal_store
from context_window.gateway.shared_refusals import SharedRefusals
from context_window.integrations.past_refusals import PastRefusal
from session.errors import StoreError
from session.store import SessionStore
from tests.gateway.test_gateway_http import SHORT, says, upstream_that
from tests.support.postgres import PostgresServer

START, DIGEST = b"\x00s" * 16, b"d\xff" * 16
ROUNDS = 60
LOOP = """
import sys
from context_window.gateway.refusal_store import refusal_store
from context_window.integrations.past_refusals import PastRefusal
store = refusal_store(sys.argv[1], 5.0)
for number in range(10**6):
    store.add(b"s", PastRefusal(1, number, b"d", number, None))
    print(number, flush=True)
"""


def opened(address: str) -> RefusalStore:
    return refusal_store(address, 5.0)


def refusal(messages: int = 3, number: int = 0, tokens: int | None = 900, limit: int | None = 800, digest: bytes = DIGEST) -> PastRefusal:
    return PastRefusal(messages, number, digest, tokens, limit)


def said(caplog: pytest.LogCaptureFixture) -> int:
    """Return how often the gateway has said that its store is away."""
    return sum("the gateway goes on without its store" in record.getMessage() for record in caplog.records)


# The contract


def test_what_one_worker_adds_another_knows(store_address: str) -> None:
    first, second = opened(store_address), opened(store_address)
    assert first.known(START) == second.known(START) == []
    added = [refusal(), refusal(3, 1, None, None), refusal(2), refusal(3, digest=b"other")]
    for each in added:
        first.add(START, each)
    assert sorted(second.known(START), key=str) == sorted(added, key=str)
    assert second.known(b"other") == []
    first.close()
    second.close()
    third = opened(store_address)
    assert len(third.known(START)) == 4
    third.close()


def test_the_first_refusal_of_the_same_messages_stays(store_address: str) -> None:
    """So that all workers use the same one, even if several were refused at the same time."""
    store = opened(store_address)
    store.add(START, refusal(tokens=900))
    store.add(START, refusal(tokens=5))
    assert store.known(START) == [refusal(tokens=900)]
    store.close()


def test_workers_that_open_a_new_store_at_once_share_it(store_address: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: opened(store_address), range(8)))
        list(pool.map(lambda pair: pair[1].add(START, refusal(number=pair[0])), enumerate(stores)))
    for store in stores:
        assert [each.number for each in store.known(START)] == [*range(8)]
        store.close()


def test_old_refusals_are_deleted_when_a_worker_starts(store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(store_address)
    store.add(START, refusal())
    store.close()
    later = opened(store_address)
    assert later.known(START) == [refusal()]
    later.close()
    monkeypatch.setattr(module, "KEPT_SECONDS", -10)
    much_later = opened(store_address)
    assert much_later.known(START) == []
    much_later.close()


def test_rows_that_make_no_sense_are_passed_over(store_address: str) -> None:
    """A damaged or forged row changes no view."""
    store = opened(store_address)
    good = refusal(4)
    bad = [refusal(0), refusal(-1), refusal(3, -1), refusal(3, tokens=-5), refusal(3, limit=2**60)]
    for each in (*bad, good):
        store.add(START, each)
    assert store.known(START) == [good]
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_worker_that_is_killed_while_it_writes_loses_nothing_acknowledged(store_address: str) -> None:
    opened(store_address).close()
    worker = subprocess.Popen([sys.executable, "-c", LOOP, store_address], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    acknowledged = [int(worker.stdout.readline()) for _ in range(ROUNDS)]
    worker.send_signal(signal.SIGKILL)
    acknowledged += map(int, worker.stdout.read().split())
    worker.wait()
    worker.stdout.close()
    store = opened(store_address)
    kept = {each.number for each in store.known(b"s")}
    store.add(b"s", refusal())  # no lock is left behind
    store.close()
    assert {*acknowledged[: module.MOST]} <= kept


def test_a_server_that_is_killed_loses_nothing_acknowledged_and_is_used_again(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """While it is away, that is said once."""
    shared = SharedRefusals(postgres.without_store(), wait_seconds=3.0, pause_seconds=0.0)
    while shared.known(START) != [refusal()]:  # on a busy machine, an attempt can take too long
        shared.add(START, refusal())
    caplog.clear()
    postgres.kill(signal.SIGQUIT)
    assert [shared.known(START) for _ in range(2)] == [None, None]
    shared.add(START, refusal(number=1))
    assert said(caplog) == 1
    postgres.start()
    while (known := shared.known(START)) is None:
        pass
    assert known == [refusal()]


# A file


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "refusals.db"
    store = opened(str(path))
    store.add(START, refusal())
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    store.close()


def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    text, sessions, trigger, short = (tmp_path / name for name in ("text", "sessions.db", "trigger.db", "short"))
    text.write_bytes(b"a text\n" * 1_000)
    short.write_bytes(b"a")
    SessionStore(sessions).close()
    opened(str(trigger)).close()
    connection = sqlite3.connect(trigger)
    connection.execute("CREATE TRIGGER t AFTER INSERT ON gateway_refusals BEGIN DELETE FROM gateway_refusals; END")
    connection.close()
    for path in (text, sessions, trigger, short):
        before = path.read_bytes()
        with pytest.raises(StoreError):
            opened(str(path))
        assert path.read_bytes() == before


# Without the store


def test_a_store_that_hangs_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """It accepts connections and never answers. The third call does not even ask."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        shared = SharedRefusals(f"postgresql://a@127.0.0.1:{server.getsockname()[1]}/b", wait_seconds=0.05)
        assert [shared.known(START) for _ in range(3)] == [None] * 3
        shared.add(START, refusal())
    assert [record.getMessage() for record in caplog.records] == ["the gateway goes on without its store: it did not answer within 0.05 s"]


def test_a_store_that_cannot_be_opened_is_said_without_its_password(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    shared = SharedRefusals(f"postgresql://a:verysecret@127.0.0.1:{port}/b", pause_seconds=0.0, wait_seconds=20.0)
    assert [shared.known(START) for _ in range(3)] == [None] * 3
    assert said(caplog) == 1
    assert "verysecret" not in caplog.text


# The command


CLIENT = """
import os, sys, urllib.error, urllib.request
for _ in range(2):
    urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", data=sys.argv[1].encode()).read()
"""


def test_the_command_says_once_that_its_store_is_away(tmp_path: Path) -> None:
    """And the requests go on. It says so at the end: until then the assistant has the terminal."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, "-W", "error", "-m", "context_window", "gateway", "--store", f"postgresql://a:verysecret@127.0.0.1:{port}/b"]
    with upstream_that(says(200, b"{}")) as upstream:
        options = ["--upstream", f"anthropic={upstream.url}", "--", sys.executable, "-c", CLIENT, SHORT.decode()]
        environment = {**os.environ, "NO_PROXY": "*"}
        done = subprocess.run([*command, *options], env=environment, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    error = done.stderr.decode()
    assert (done.returncode, len(upstream.bodies)) == (0, 2), error
    assert error.count("the gateway goes on without its store") == 1
    assert len(error.splitlines()) == 2
    assert "verysecret" not in error


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("mysql://a@b/c", "pass a path or postgresql://"),
        ("postgresql://a:p@ss@b/c", "percent-encoded"),
        ("{folder}", "a file"),
    ],
)
def test_an_address_that_cannot_be_used_is_one_line(address: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gateway", "--store", address.format(folder=tmp_path)]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert "p@ss" not in error
    assert "Traceback" not in error
