"""Tools delete their logs after a time; what was read of them counts until someone forgets it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from context_window.spend import SpendCache, cache_file, read_ledger, spend_by
from context_window.spend import rows as rows_module
from context_window.spend.ledger import Ledger
from context_window.spend.rows import FORMAT, LogRows, encode
from session.transcripts.reported_requests import Request
from tests.spend.logs import answer, write, write_folder
from tests.support.shell import Shell


def read(paths: list[Path], *, keep: bool = True) -> Ledger:
    with SpendCache(cache_file()) as cache:
        return read_ledger([path for path in paths if path.exists()], cache=cache, keep=keep)


def test_a_deleted_log_counts_as_before(tmp_path: Path) -> None:
    """The rows of logs that were found where the tools write them stay, and count as long as nobody forgets them."""
    paths = write_folder(tmp_path, 12)
    before = read(paths)
    for path in paths[:6]:
        path.unlink()
    after = read(paths)
    assert {request.id: request for request in after.requests} == {request.id: request for request in before.requests}
    assert (before.deleted, after.deleted) == (0, 6)
    assert spend_by("day", after.requests) == spend_by("day", before.requests)
    with SpendCache(cache_file()) as cache:
        assert cache.forget() == 6
        assert cache.forget() == 0
    assert (read(paths).deleted, read(paths).requests) == (0, read_ledger(paths[6:]).requests)


def test_only_what_was_found_in_its_place_stays(tmp_path: Path) -> None:
    """A log that was named as PATH is not kept; a kept one does not count in a run with a PATH."""
    named, found = write(tmp_path / "named.jsonl", answer("m1", 1)), write(tmp_path / "found.jsonl", answer("m2", 1))
    read([named], keep=False)
    read([found])
    named.unlink()
    found.unlink()
    assert len(read([]).requests) == 1
    assert len(read([], keep=False).requests) == 0


def test_a_log_that_was_first_named_and_then_found_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", answer("m1", 1))
    read([path], keep=False)
    read([path])
    path.unlink()
    assert read([]).deleted == 1


def test_a_moved_log_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", answer("m1", 1), answer("m2", 1))
    before = read([path])
    moved = path.rename(tmp_path / "archive.jsonl")
    assert read([moved]).requests == before.requests


def test_a_later_format_reads_what_still_exists_and_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of every format from 9 on stay readable: each names its fields."""
    paths = write_folder(tmp_path, 4)
    before = read(paths)
    paths[0].unlink()
    monkeypatch.setattr("context_window.spend.cache.FORMAT", FORMAT + 1)
    after = read(paths)
    assert {request.id for request in after.requests} == {request.id for request in before.requests}
    assert after.deleted == 1


def test_rows_with_fewer_fields_are_read() -> None:
    request = Request("r", 5.0, "t", "m", "p", "s", input_tokens=7)
    values = json.loads(encode(LogRows((request,))))
    index = values["fields"].index("searches")
    for row in (values["fields"], *values["requests"]):
        del row[index]
    (read_back,) = rows_module.decode(json.dumps(values).encode()).requests
    assert (read_back.input_tokens, read_back.time, read_back.searches) == (7, 5.0, 0)


def test_damaged_rows_of_one_log_cost_no_other(tmp_path: Path) -> None:
    paths = write_folder(tmp_path, 4)
    before = read(paths)
    paths[0].unlink()
    database = sqlite3.connect(cache_file())
    with database:
        database.execute("UPDATE logs SET rows = 'x' WHERE name LIKE '%001.jsonl'")
    database.close()
    assert {request.id for request in read(paths).requests} == {request.id for request in before.requests}


def test_the_command_says_it_and_forgets(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    shell = Shell(capsys, monkeypatch)
    folder = tmp_path / "projects" / "p"
    old, _ = write(folder / "a.jsonl", answer("m1", 1)), write(folder / "b.jsonl", answer("m2", 1))
    code, out, _ = shell("spend")
    assert code == 0
    assert "no longer" not in out
    old.unlink()
    assert "1 log no longer exists and counts by what earlier runs have read; --forget forgets that." in " ".join(shell("spend")[1].split())
    assert json.loads(shell("spend", "--json")[1])["deleted_logs"] == 1
    assert json.loads(shell("spend", "--json", "--no-cache")[1])["total"]["requests"] == 1
    _, out, err = shell("spend", "--forget")
    assert "forgotten: 1 logs that no longer exist" in err
    assert "no longer" not in out
