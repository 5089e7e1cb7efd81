"""The same figures whatever the scheduler, the order of the logs, or the logs read before."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_window.spend import SpendCache, cache_file, read_here, read_ledger, read_on_all_cores, schedulers
from context_window.spend.log_files import BATCH_BYTES, LogFile, batches
from context_window.spend.rows import LogRows, Reader, decode, encode, read_rows
from context_window.spend.schedulers import Advance, Scheduler, read_in_processes
from session.transcripts.reported_requests import each_once, read_requests
from tests.spend.dying import die_of_a_batch, die_of_the_second
from tests.spend.logs import answer, write, write_folder
from tests.spend.test_spend import REQUESTS


def in_processes(processes: int, size: int, own: Reader | None = None) -> Scheduler:
    """A scheduler with this many processes, this many logs in a batch, and perhaps a reader of its own."""

    def read(logs: Sequence[LogFile], advance: Advance, reader: Reader) -> Iterator[tuple[LogFile, bytes]]:
        parts = [logs[start : start + size] for start in range(0, len(logs), size)]
        return read_in_processes(parts, advance, own or reader, processes)

    return read


def in_another_order(seed: int) -> Scheduler:
    """A scheduler that yields the logs in another order."""

    def read(logs: Sequence[LogFile], advance: Advance, reader: Reader) -> Iterator[tuple[LogFile, bytes]]:
        results = list(read_here(logs, advance, reader))
        random.Random(seed).shuffle(results)
        yield from results

    return read


def test_the_ledger_is_the_same_with_one_process_two_processes_and_a_warm_cache(tmp_path: Path) -> None:
    """Neither their order nor the scheduler nor the cache changes the result."""
    paths = write_folder(tmp_path, 20)
    expected = read_ledger(paths)
    assert (expected.logs, expected.repeated, len(expected.faults)) == (18, 48, 6)
    assert read_ledger(paths[::-1], scheduler=in_processes(1, 20)) == expected
    assert read_ledger(paths, scheduler=in_processes(2, 3)) == expected
    with SpendCache(cache_file()) as cache:
        assert read_ledger(paths[::2], cache=cache) == read_ledger(paths[::2])
        assert read_ledger(paths, cache=cache) == expected
        assert read_ledger(paths, cache=cache, scheduler=read_on_all_cores) == expected
        assert cache.problem is None


@given(st.integers(0, 2**32), st.integers(1, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_logs_and_results_changes_nothing(tmp_path: Path, seed: int, logs: int) -> None:
    """Neither their order nor the scheduler nor the cache changes the result."""
    paths = write_folder(tmp_path / str(logs), logs)
    expected = read_ledger(paths)
    random.Random(seed).shuffle(paths)
    assert read_ledger(paths, scheduler=in_another_order(seed)) == expected


def test_a_ledger_has_the_requests_of_its_logs_once(tmp_path: Path) -> None:
    """A request that several logs repeat counts once."""
    paths = write_folder(tmp_path, 9)
    reports = [request for path in paths if path.stem != "006" for request in read_requests(path).requests]
    figures = sorted((request.session, request.output_tokens) for request in each_once(reports))
    assert sorted((request.session, request.output_tokens) for request in read_ledger(paths).requests) == figures


@given(REQUESTS)
def test_rows_keep_every_figure(requests: list[Any]) -> None:
    assert decode(encode(LogRows(tuple(requests), 3, "x"))) == LogRows(tuple(requests), 3, "x")


def test_rows_hold_no_text_of_a_conversation(tmp_path: Path) -> None:
    """They hold no text of a conversation. Ids are hashed."""
    line = answer("msg_secret", 4)
    line["message"]["content"] = [{"type": "text", "text": "a private thought"}]
    rows = read_rows(str(write(tmp_path / "a.jsonl", line)))
    assert b"/home/me/shop" in rows
    assert b"private" not in rows
    assert b"msg_secret" not in rows


def test_a_log_that_kills_its_process_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one dies, the logs that were not read are read again, each in a process of its own."""
    paths = write_folder(tmp_path, 3)
    with monkeypatch.context() as patch:
        patch.setattr(schedulers, "read_batch", die_of_a_batch)
        ledger = read_ledger(paths, scheduler=in_processes(1, 3, die_of_the_second))
    assert [(fault.path, fault.problem) for fault in ledger.faults if "line" not in fault.problem] == [(str(paths[1]), schedulers.DIED)]
    others = read_ledger([paths[0], *paths[2:]])
    assert (ledger.requests, ledger.logs) == (others.requests, 2)


def test_little_is_read_here_and_much_on_all_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    def note(parts: Sequence[Sequence[LogFile]], _advance: Advance, reader: Reader, processes: int) -> Iterator[tuple[LogFile, bytes]]:
        used.append(processes)
        return read_here([log for part in parts for log in part], _advance, reader)

    monkeypatch.setattr(schedulers, "read_in_processes", note)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    paths = write_folder(tmp_path, 4)
    read_ledger(paths, scheduler=read_on_all_cores)
    assert used == []
    logs = [LogFile(index, str(path), BATCH_BYTES, "") for index, path in enumerate(paths)]
    assert len(list(read_on_all_cores(logs, lambda _: None, read_rows))) == 4
    assert used == [3]


@given(st.lists(st.integers(0, 2 * BATCH_BYTES) | st.just(0), max_size=600))
def test_batches_hold_every_log_once_in_order(sizes: list[int]) -> None:
    logs = [LogFile(index, "", size, "") for index, size in enumerate(sizes)]
    parts = list(batches(logs))
    assert [log for part in parts for log in part] == logs
    assert all(len(part) == 1 or sum(log.size for log in part) <= BATCH_BYTES for part in parts)


@pytest.mark.parametrize("scheduler", [read_here, in_processes(2, 3)], ids=["here", "processes"])
def test_progress_adds_up_to_the_bytes_of_the_logs(tmp_path: Path, scheduler: Scheduler) -> None:
    paths = write_folder(tmp_path, 6)
    size = sum(path.stat().st_size for path in paths)
    totals: list[int] = []
    read: list[int] = []

    @contextmanager
    def progress(total: int) -> Iterator[Advance]:
        totals.append(total)
        yield read.append

    read_ledger(paths, progress, scheduler=scheduler)
    assert totals == [size]
    assert sum(read) == size
