"""A Dask cluster, addresses of S3, and Parquet: the same figures as on one machine."""

from __future__ import annotations

import gc
import json
import os
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from context_window.spend import FleetError, SpendCache, cache_file, find_remote_logs, parquet_of, read_ledger, read_on_dask, spend_by
from context_window.spend.rows import decode, read_rows
from session.extras import install_line
from session.transcripts.reported_requests import Request
from tests.spend.logs import answer, write, write_folder
from tests.spend.test_spend import REQUESTS
from tests.support.shared import ROOT
from tests.support.shell import Shell

needs_parquet = pytest.mark.skipif(not (find_spec("pyarrow") and find_spec("duckdb")), reason="pyarrow or duckdb is not installed")
needs_dask = pytest.mark.skipif(not find_spec("distributed"), reason="distributed is not installed")
needs_s3 = pytest.mark.skipif(
    not (find_spec("s3fs") and find_spec("moto") and find_spec("flask_cors")), reason="s3fs or moto is not installed"
)
needs_fsspec = pytest.mark.skipif(not find_spec("fsspec"), reason="fsspec is not installed")


class TestParquet:
    pytestmark = needs_parquet

    def test_sums_are_those_of_json(self, shell: Shell, tmp_path: Path) -> None:
        """Results as Parquet (one row per request) with summed figures equal to `--json`."""
        import duckdb

        write_folder(tmp_path, 9)
        write(tmp_path / "x.jsonl", answer("z", 3, costUSD=0.1234567891))
        file = tmp_path / "out.parquet"
        code, out, _ = shell("spend", tmp_path, "--json", "--parquet", file)
        assert code == 0
        total = json.loads(out)["total"]
        names = [name for name in total if name.endswith("_tokens") and name != "total_tokens"]
        sums = ", ".join(f"sum({name})" for name in names)
        with duckdb.connect() as database:
            (row,) = database.execute(f"SELECT count(*), {sums}, sum(cost_usd) FROM '{file}'").fetchall()
            rows = database.execute(f"SELECT DISTINCT tool, project, model FROM '{file}'").fetchall()
        assert list(row) == [total["requests"], *(total[name] for name in names), Decimal(total["cost_usd"])]
        assert rows == [("claude_code", "/home/me/shop", "claude-opus-4-6")]

    def test_a_file_is_not_overwritten(self, shell: Shell, tmp_path: Path) -> None:
        write_folder(tmp_path, 2)
        file = tmp_path / "out.parquet"
        file.write_text("mine")
        code, _, err = shell("spend", tmp_path, "--parquet", file)
        assert (code, file.read_text()) == (2, "mine")
        assert "already exists; --force replaces it" in err
        assert shell("spend", tmp_path, "--parquet", "-")[0] == 2
        assert shell("spend", tmp_path, "--parquet", file, "--force")[0] == 0
        assert file.read_bytes().startswith(b"PAR1")

    @given(REQUESTS)
    def test_every_request_is_a_row(self, requests: list[Request]) -> None:
        import io

        import pyarrow.parquet as pq

        rows = pq.read_table(io.BytesIO(parquet_of(requests, zone=UTC))).to_pylist()
        assert [row["model"] for row in rows] == [request.model for request in requests]
        by_day = {row.name: row.total for row in spend_by("day", requests, zone=UTC)}
        result: dict[str, int] = {}
        for row in rows:
            name = "(unknown)" if row["day"] is None else row["day"].isoformat()
            result[name] = result.get(name, 0) + sum(
                row[column] for column in row if column.endswith("_tokens") and column != "reasoning_tokens"
            )
        assert result == by_day

    def test_half_a_character_and_absurd_amounts(self, tmp_path: Path) -> None:
        """A request of more than `MAX_COUNT` tokens is damage, and counts as a damaged line."""
        log = write(tmp_path / "a.jsonl", answer("m1", 2**63), answer("m2", 5, cwd="/x/\ud800"))
        rows = decode(read_rows(str(log)))
        assert (len(rows.requests), rows.damaged_lines) == (1, 1)
        assert parquet_of(rows.requests).startswith(b"PAR1")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a Dask scheduler with two worker processes."""
    command = [sys.executable, "-m", "tests.spend.cluster_program"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()
        process.wait(60)


@needs_dask
@pytest.mark.long
class TestCluster:
    def test_the_ledger_is_that_of_one_process(self, cluster: str, tmp_path: Path) -> None:
        """Neither their order nor the scheduler nor the cache changes the result."""
        paths = write_folder(tmp_path, 12)
        expected = read_ledger(paths)
        assert read_ledger(paths, scheduler=read_on_dask(cluster)) == expected
        with SpendCache(cache_file()) as cache:
            read_ledger(paths[:5], cache=cache)
            assert read_ledger(paths, scheduler=read_on_dask(cluster), cache=cache) == expected

    def test_a_log_that_ends_its_worker_is_a_fault(self, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A batch that fails is read again log by log, so that a log that cannot be read is a row of faults."""
        from context_window.spend import cluster as module
        from tests.spend.dying import fail_at_the_second

        paths = write_folder(tmp_path, 4)
        with monkeypatch.context() as patch:
            patch.setattr(module, "read_batch", fail_at_the_second)
            ledger = read_ledger(paths, scheduler=read_on_dask(cluster))
        assert [(fault.path, fault.problem) for fault in ledger.faults if "line" not in fault.problem] == [(str(paths[1]), module.FAILED)]
        assert ledger.requests == read_ledger([paths[0], *paths[2:]]).requests

    def test_the_command(self, cluster: str, shell: Shell, tmp_path: Path) -> None:
        write_folder(tmp_path, 5)
        here = shell("spend", tmp_path, "--json", "--no-cache")
        assert shell("spend", tmp_path, "--json", "--no-cache", "--scheduler", cluster) == here


@needs_dask
def test_a_cluster_that_does_not_answer_is_named(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_window.spend.cluster.PATIENCE", 0.2)
    write_folder(tmp_path, 1)
    for address in ("tcp://127.0.0.1:1", "nonsense://x", "tls://127.0.0.1:1"):
        code, _, err = shell("spend", tmp_path, "--scheduler", address, "--trust-scheduler")
        assert code == 2
        assert f"{address} is not the address of a Dask scheduler that answers" in err


@needs_dask
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("tcp://10.0.0.1:8786", "whoever answers there can run programs here"),
        ("10.0.0.1:8786", "--trust-scheduler"),
        ("tcp://localhost.example:1", "tls://"),
        ("", "pass one such as"),
        ("tcp://[::1", "pass one such as"),
        ("tcp://127.0.0.1\n:1", "pass one such as"),
    ],
)
def test_a_scheduler_that_could_be_anyone_is_refused(address: str, problem: str, shell: Shell, tmp_path: Path) -> None:
    """Off the loopback without TLS or an explicit flag: Dask's messages are pickles. Nothing is connected to."""
    write_folder(tmp_path, 1)
    code, _, err = shell("spend", tmp_path, "--scheduler", address)
    assert code == 2
    assert problem in err


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a server that is S3 as far as its clients can tell."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(f"http://127.0.0.1:{port}/moto-api/", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    import time

    while process.poll() is None:
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server did not start")


PROGRAM = """
import json, os, sys
from pathlib import Path
import fsspec
files = fsspec.filesystem("s3")
files.mkdir("logs")
for path in Path(sys.argv[1]).iterdir():
    files.put(str(path), f"logs/team/{path.name}")
"""


@needs_s3
@pytest.mark.long
def test_logs_in_s3_have_the_figures_of_logs_here(s3: str, tmp_path: Path) -> None:
    """Paths may be `s3://` and others through fsspec. The second run has its figures from the cache."""
    write_folder(tmp_path / "logs", 6)
    keys = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": s3}
    environment = os.environ | keys

    def run(*args: str) -> Any:
        command = [sys.executable, "-m", "context_window", "spend", "--json", *args]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        report = json.loads(done.stdout)
        return report | {"faults": [(fault["path"].rsplit("/")[-1], fault["problem"]) for fault in report["faults"]]}

    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "logs")], env=environment, check=True)
    expected = run(str(tmp_path / "logs"))
    assert expected["logs"] == 6
    assert run("s3://logs/team") == expected
    assert run("s3://logs/team/*.jsonl") == expected
    with closing(sqlite3.connect(cache_file())) as cache:
        assert cache.execute("SELECT count(*) FROM logs").fetchone() == (12,)


@needs_fsspec
class TestAddresses:
    def test_a_folder_stands_for_the_logs_below_it(self, tmp_path: Path) -> None:
        import fsspec

        files = fsspec.filesystem("memory")
        for path in write_folder(tmp_path, 3):
            files.pipe(f"/team/a/{path.name}", path.read_bytes())
        files.pipe("/team/notes.txt", b"")
        logs = find_remote_logs(["memory://team", "memory://team/a/001.jsonl", "memory://team/a/*"])
        assert [log.rsplit("/", 1)[1] for log in logs] == ["000.jsonl", "001.jsonl", "002.jsonl"]
        assert read_ledger(logs).requests == read_ledger(sorted(tmp_path.iterdir())).requests

    def test_what_cannot_be_read_is_a_fault(self) -> None:
        (fault,) = read_ledger(["memory://nowhere/a.jsonl"]).faults
        assert fault.problem.startswith("cannot be read: FileNotFoundError")

    def test_an_unknown_protocol_is_an_error(self, shell: Shell) -> None:
        code, _, err = shell("spend", "gopher://x/a.jsonl")
        assert code == 2
        assert "gopher://x/a.jsonl cannot be used" in err


@pytest.mark.parametrize(
    ("package", "args"),
    [("fsspec", ["s3://bucket/a.jsonl"]), ("distributed", ["--scheduler", "tcp://127.0.0.1:1"]), ("pyarrow", ["--parquet", "out.parquet"])],
)
def test_a_missing_package_is_named_with_its_extra(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, args: list[str]
) -> None:
    gc.collect()  # clients that other tests have left close themselves, for which they import modules of the package
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "a.jsonl", answer("m", 1))
    code, out, err = shell("spend", *([] if package == "fsspec" else [path]), *args)
    assert (code, out) == (2, "")
    assert f"{package} is not installed: {install_line('fleet')}" in err


def test_an_error_can_be_copied() -> None:
    import pickle

    error = FleetError("x", "is missing")
    assert str(pickle.loads(pickle.dumps(error))) == "x is missing"
