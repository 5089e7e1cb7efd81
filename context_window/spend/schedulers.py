"""Where logs are read: in this process or in several. Every way yields the rows of every log, in any order.

A scheduler is a function of the logs, of a callback for the bytes read, and of the reader of one log. `ledger.py` puts the rows in order,
so the figures are the same for all schedulers.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from threading import Thread

from .log_files import LogFile, batches
from .rows import LogRows, Reader, encode

Advance = Callable[[int], object]
"""Called with the number of bytes read since the last call."""
Scheduler = Callable[[Sequence[LogFile], Advance, Reader], Iterator[tuple[LogFile, bytes]]]

WORTH_PROCESSES = 32_000_000
"""Bytes of logs from which on several processes are faster than one, since each takes a quarter of a second to start."""
DIED = "the process that read it ended unexpectedly, perhaps for lack of memory"


def read_here(logs: Sequence[LogFile], advance: Advance, read: Reader) -> Iterator[tuple[LogFile, bytes]]:
    """Read the logs one after the other in this process."""
    for log in logs:
        yield log, read(log.name, advance)


def read_on_all_cores(logs: Sequence[LogFile], advance: Advance, read: Reader) -> Iterator[tuple[LogFile, bytes]]:
    """Read the logs with as many processes as this one may use cores, or here if there is little to read.

    The processes import the main module, so a program that calls this needs `if __name__ == "__main__":`.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = list(batches(logs))
    processes = min(cores, len(parts))
    if processes < 2 or sum(log.size for log in logs) < WORTH_PROCESSES:
        yield from read_here(logs, advance, read)
    else:
        yield from read_in_processes(parts, advance, read, processes)


def prepare_processes() -> None:
    """Start the process that looks after what other processes share. It needs the real standard error, which a full screen takes away."""
    if os.name == "posix":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()


def read_in_processes(
    parts: Sequence[Sequence[LogFile]], advance: Advance, read: Reader, processes: int
) -> Iterator[tuple[LogFile, bytes]]:
    """Read the batches with this many processes. If one dies, the logs that were not read are read again, each in a process of its own.

    Args:
        parts: The batches.
        advance: Called with the bytes of each batch.
        read: Reads one log.
        processes: Number of processes.
    """
    unread = {log.index: log for part in parts for log in part}
    try:
        for part, rows in _results(parts, read, processes):
            for log, data in zip(part, rows, strict=True):
                del unread[log.index]
                yield log, data
            advance(sum(log.size for log in part))
    except BrokenProcessPool:
        for log in list(unread.values()):
            yield log, _read_apart(log, read)
            advance(log.size)


def _results(parts: Sequence[Sequence[LogFile]], read: Reader, processes: int) -> Iterator[tuple[Sequence[LogFile], list[bytes]]]:
    """Yield the batches as they are read."""
    pool, others = _pool(processes), multiprocessing.active_children()
    try:
        running: dict[Future[list[bytes]], Sequence[LogFile]] = {}
        remaining = iter(sorted(parts, key=lambda part: -sum(log.size for log in part)))  # the longest first, so that all end together
        while True:
            for part in remaining:
                with _interrupts_blocked():  # the first one starts the processes
                    running[pool.submit(read_batch, [log.name for log in part], read)] = part
                if len(running) >= 2 * processes:
                    break
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result()
    except (KeyboardInterrupt, GeneratorExit):
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.kill()  # nobody waits for what it reads
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _read_apart(log: LogFile, read: Reader) -> bytes:
    with _pool(1) as pool:
        try:
            with _interrupts_blocked():
                reading = pool.submit(read, log.name, None)
            return reading.result()
        except BrokenProcessPool:
            return encode(LogRows((), problem=DIED))


def _pool(processes: int) -> ProcessPoolExecutor:
    """Return a pool. Its processes are spawned, since a process with threads must not be forked."""
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=_end_with_the_parent)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let Ctrl-C wait. Processes that are started meanwhile never see one: the parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_the_parent() -> None:
    """Have a worker end when its parent does, however that ends. Otherwise it would wait for work for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def read_batch(names: Sequence[str], read: Reader) -> list[bytes]:
    """Return the rows of these logs. Runs in a worker."""
    return [read(name, None) for name in names]
