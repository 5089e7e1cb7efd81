"""The cache: only new and changed logs are read, and a cache that cannot be used costs time and no figures."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from context_window.spend import SpendCache, cache_file, read_ledger, rows
from context_window.spend.ledger import Ledger
from session.transcripts.reported_requests import ReadLog, read_requests
from tests.spend.logs import answer, write, write_folder
from tests.support.shell import POSIX, Shell


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the logs that were read, in order."""
    names: list[str] = []

    def note(path: str, on_read: Callable[[int], object] | None = None) -> ReadLog:
        names.append(Path(path).stem)
        return read_requests(path, on_read)

    monkeypatch.setattr(rows, "read_requests", note)
    return names


def read(paths: list[Path]) -> tuple[Ledger, str | None]:
    with SpendCache(cache_file()) as cache:
        return read_ledger(paths, cache=cache), cache.problem


def test_only_new_and_changed_logs_are_read(tmp_path: Path, opened: list[str]) -> None:
    """Only new and changed logs are read. A log that could not be read is tried again."""
    paths = write_folder(tmp_path, 8)
    first, _ = read(paths)
    assert opened == ["000", "001", "002", "003", "004", "005", "006", "007"]
    opened.clear()
    assert read(paths) == (first, None)
    assert opened == ["006"]
    opened.clear()
    write(tmp_path / "new.jsonl", answer("n", 1))
    with paths[1].open("a") as log:
        log.write(json.dumps(answer("m", 1)) + "\n")
    os.utime(paths[2], ns=(1, 1))
    again, _ = read([*paths, tmp_path / "new.jsonl"])
    assert opened == ["001", "002", "006", "new"]
    assert len(again.requests) == len(first.requests) + 2


def test_a_log_that_grows_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that grows meanwhile is read again in the next run."""
    log = write(tmp_path / "a.jsonl", answer("m1", 1))
    line = json.dumps(answer("m2", 1)) + "\n"

    def grow(path: str, on_read: Callable[[int], object] | None = None) -> ReadLog:
        with log.open("a") as file:
            file.write(line[:50])
        read_log = read_requests(path, on_read)
        with log.open("a") as file:
            file.write(line[50:])
        return read_log

    with monkeypatch.context() as patch:
        patch.setattr(rows, "read_requests", grow)
        during, _ = read([log])
    assert (len(during.requests), during.faults) == (1, ())
    assert len(read([log])[0].requests) == 2


def test_a_changed_format_is_read_anew(tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of another format are read again from the logs."""
    from context_window.spend import cache

    paths = write_folder(tmp_path, 3)
    first, _ = read(paths)
    monkeypatch.setattr(cache, "FORMAT", 999)
    opened.clear()
    assert read(paths) == (first, None)
    assert opened == ["000", "001", "002"]


@pytest.mark.parametrize("damage", ["text", "cut", "rows", "schema", "empty"])
def test_a_damaged_cache_is_thrown_away_and_said(tmp_path: Path, damage: str) -> None:
    paths = write_folder(tmp_path, 3)
    first, _ = read(paths)
    file = cache_file()
    if damage == "text":
        file.write_text("not a database, and longer than its header of a hundred bytes" * 9)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        statement = "UPDATE logs SET rows = substr(rows, 3)" if damage == "rows" else "ALTER TABLE logs RENAME COLUMN rows TO x"
        database = sqlite3.connect(file)
        with database:
            database.execute(statement)
        database.close()
    again, problem = read(paths)
    assert again == first
    assert (problem is None) == (damage == "empty")
    assert read(paths) == (first, None)


@POSIX
def test_the_cache_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the user's cache folder, for the user alone."""
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "new" / "home"))
    before = os.umask(0)
    try:
        read(write_folder(tmp_path / "logs", 2))
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "new", tmp_path / "new" / "home", cache_file())]
    assert modes == [0o700, 0o700, 0o600]
    assert list((tmp_path / "new" / "home").iterdir()) == [cache_file()]


def test_a_cache_that_cannot_be_used_costs_no_figures(tmp_path: Path, home: Path) -> None:
    paths = write_folder(tmp_path, 3)
    cache_file().mkdir()
    result, problem = read(paths)
    assert result == read_ledger(paths)
    assert problem is not None
    assert "cannot be used" in problem


def test_an_error_without_a_number_keeps_the_file(tmp_path: Path) -> None:
    """Python's own errors of sqlite3 have no number of SQLite's. They say nothing about the file."""

    def fail() -> None:
        raise sqlite3.ProgrammingError("of Python's own")

    paths = write_folder(tmp_path, 2)
    read(paths)
    before = cache_file().read_bytes()
    with SpendCache(cache_file()) as cache:
        cache._try(fail)
        assert cache.problem is not None
        assert "cannot be used" in cache.problem
        assert len(read_ledger(paths, cache=cache).requests) > 0
    assert cache_file().read_bytes() == before


def test_too_many_logs_begin_a_cache_anew(tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from context_window.spend import cache

    monkeypatch.setattr(cache, "LOGS_MAX", 2)
    paths = write_folder(tmp_path, 3)
    read(paths)
    opened.clear()
    read(paths)
    assert len(opened) == 3


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({}, "home/.cache/context-window/spend.sqlite3"),
        ({"XDG_CACHE_HOME": "relative"}, "home/.cache/context-window/spend.sqlite3"),
        ({"XDG_CACHE_HOME": "/var/c"}, "/var/c/context-window/spend.sqlite3"),
        ({"CONTEXT_WINDOW_HOME": "/var/own"}, "/var/own/spend.sqlite3"),
    ],
)
def test_the_cache_is_in_the_folder_for_caches(environment: dict[str, str], path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_file(environment, Path("home")) == Path(path)


class TestCommand:
    def test_a_second_run_opens_no_log(self, shell: Shell, tmp_path: Path, opened: list[str]) -> None:
        write_folder(tmp_path, 5)
        first = shell("spend", tmp_path, "--json")
        assert len(opened) == 5
        assert shell("spend", tmp_path, "--json") == first
        assert len(opened) == 5
        assert shell("spend", tmp_path, "--json", "--no-cache") == first
        assert len(opened) == 10

    def test_no_cache_writes_nothing(self, shell: Shell, tmp_path: Path, home: Path) -> None:
        write_folder(tmp_path, 2)
        assert shell("spend", tmp_path, "--no-cache")[0] == 0
        assert list(home.iterdir()) == []

    def test_a_damaged_cache_is_said(self, shell: Shell, tmp_path: Path) -> None:
        write_folder(tmp_path, 2)
        cache_file().write_text("x" * 1000)
        code, _, err = shell("spend", tmp_path)
        assert code == 0
        assert "was damaged; it is made anew" in err

    def test_without_a_home_nothing_is_kept(self, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown() -> Path:
            raise RuntimeError("Could not determine home directory.")

        write_folder(tmp_path, 2)
        monkeypatch.delenv("CONTEXT_WINDOW_HOME")
        monkeypatch.setattr(Path, "home", unknown)
        code, out, err = shell("spend", tmp_path, "--json")
        assert (code, json.loads(out)["logs"]) == (0, 2)
        assert "set CONTEXT_WINDOW_HOME" in err
