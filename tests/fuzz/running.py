"""Runs thousands of mutants, in one process or in several. The parent process survives if they die."""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import count as counting
from itertools import islice
from multiprocessing import get_context
from random import Random
from types import FrameType
from typing import Any

from .mutations import Mutator
from .seeds import Seed
from .targets import CHECKS, inputs

SECONDS_MAX = 5.0
"""Processor seconds allowed for one mutant, so that a busy machine causes no faults. A typical one takes two milliseconds."""
MEMORY_MAX = 2 << 30
"""Bytes of address space for a process, including the interpreter, the seeds and the libraries."""
HANGING = 600.0
"""Seconds after which a process that no signal reaches is ended: longer than a chunk takes on a busy machine."""
CHUNK = 250
"""Mutants handed to a process at once."""
NAMED_MUTANTS_MAX = 3
"""Mutants to name for each kind of fault."""


class TooSlowError(BaseException):
    """A mutant took longer than `SECONDS_MAX`. Not an Exception, so that no reader catches it."""


@dataclass(slots=True)
class Tally:
    """Counts of the outcomes of mutants.

    Attributes:
        outcomes: Number of mutants read as each format, or under "refused" and "fault".
        faults: Names of the mutants, by the kind of fault.
        slowest: The longest processor time of a mutant, in seconds, and its name.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(default_factory=dict)
    slowest: tuple[float, str] = (0.0, "")

    @property
    def mutants(self) -> int:
        """Number of mutants."""
        return self.outcomes.total()

    def fault(self, kind: str, name: str) -> None:
        """Count a mutant that broke the promise."""
        self.outcomes["fault"] += 1
        self.faults.setdefault(kind, []).append(name)

    def add(self, other: Tally) -> None:
        """Add the counts of another run."""
        self.outcomes += other.outcomes
        for kind, names in other.faults.items():
            self.faults.setdefault(kind, []).extend(names)
        self.slowest = max(self.slowest, other.slowest)


def mutant(seed: int, number: int, *, recorded: bool = True) -> tuple[Seed, Any]:
    """Return a mutant's seed and the mutant."""
    chance = Random(f"{seed}.{number}")
    choices = inputs(recorded=recorded)
    chosen = choices[number % len(choices)]
    return chosen, Mutator(chance, recorded=recorded).mutant(chosen)


def check(seed: int, number: int, *, recorded: bool = True) -> str:
    """Make a mutant, check the promise for it, and return the format it was read as, or "refused"."""
    chosen, mutated = mutant(seed, number, recorded=recorded)
    return CHECKS[chosen.target](chosen, mutated, number // 7)


def run(seed: int, numbers: Iterable[int], on_mutant: Callable[[int], object] = bool, *, recorded: bool = True) -> Tally:
    """Check these mutants. A fault is counted, never raised.

    Args:
        seed: Of the run.
        numbers: Of the mutants.
        on_mutant: Is called with each number before it is checked.
        recorded: As for `seeds`.
    """
    tally = Tally()
    before = signal.signal(signal.SIGPROF, _interrupt)
    try:
        for number in numbers:
            on_mutant(number)
            started = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
            try:
                tally.outcomes[check(seed, number, recorded=recorded)] += 1
            except (Exception, BaseExceptionGroup, TooSlowError) as error:  # noqa: BLE001 - every error is a finding
                tally.fault(kind_of(error), f"{seed}.{number}")
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            tally.slowest = max(tally.slowest, (time.process_time() - started, f"{seed}.{number}"))
    finally:
        signal.signal(signal.SIGPROF, before)
    return tally


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise TooSlowError


def kind_of(error: BaseException) -> str:
    """Return the type of an error and the innermost line of a reader or converter that it passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/" not in frame.filename]
    readers = [frame for frame in frames if "/session/transcripts/" in frame.filename or "/session/providers/" in frame.filename]
    frame = (readers or frames or traceback.extract_tb(error.__traceback__))[-1]
    where = frame.filename.rpartition("/session/")[2]
    return f"{type(error).__name__} at {where}:{frame.lineno} ({frame.name}): {str(error)[:80]}"


def numbers_of(target: str | None, count: int) -> Iterator[int]:
    """Yield the first numbers whose mutants are made of a target's inputs; of all targets' if `target` is None."""
    choices = inputs()
    return islice((number for number in counting() if target in (None, choices[number % len(choices)].target)), count)


def run_processes(
    total: Tally,
    seed: int,
    count: int,
    processes: int,
    *,
    seconds: float,
    target: str | None = None,
    on_progress: Callable[[], object] = bool,
) -> None:
    """Check mutants in several processes, until the count or the time limit is reached.

    If a process dies, its current chunks are lost, and the mutants that may have killed it count as a fault.

    Args:
        total: Gets the counts, beginning with the first chunk.
        seed: Seed of the run.
        count: Number of mutants to check.
        processes: Number of processes.
        seconds: Time limit.
        target: As for `numbers_of`.
        on_progress: Called whenever the total changes.
    """
    until = time.monotonic() + seconds
    numbers = numbers_of(target, count)
    chunks = iter(lambda: list(islice(numbers, CHUNK)), [])
    context = get_context("spawn")
    is_done = False
    while not is_done:
        current, slots = context.Array("q", [-1] * processes), context.Value("i", 0)
        with ProcessPoolExecutor(processes, context, _prepare, (current, slots)) as pool:
            pending: set[Future[Tally]] = set()
            try:
                while chunk := next(chunks, None) if time.monotonic() < until else None:
                    pending.add(pool.submit(_run_chunk, seed, chunk))
                    while len(pending) >= 2 * processes:
                        pending = _collect(pending, total)
                        on_progress()
                while pending:
                    pending = _collect(pending, total)
                is_done = True
            except BrokenProcessPool:
                for number in filter(lambda number: number >= 0, current[:]):
                    total.fault("a process died; one of these", f"{seed}.{number}")


def _collect(pending: set[Future[Tally]], total: Tally) -> set[Future[Tally]]:
    done, pending = wait(pending, return_when=FIRST_COMPLETED)
    for future in done:
        total.add(future.result())
    return pending


_current: Any = None
_slot = 0


def _prepare(current: Any, slots: Any) -> None:
    """Set up a process: its index and its memory limit. What the readers complain of is not shown."""
    global _current, _slot  # noqa: PLW0603 - a pool's initializer has nowhere else to leave what tasks need
    _current = current
    with slots.get_lock():
        _slot, slots.value = slots.value, slots.value + 1
    logging.disable(logging.WARNING)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process lives
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    inputs()
    gc.freeze()
    gc.set_threshold(50_000)  # mutants leave few cycles, and the default spends a tenth of the time looking for them


def _run_chunk(seed: int, chunk: list[int]) -> Tally:
    faulthandler.dump_traceback_later(HANGING, exit=True, file=sys.__stderr__ or sys.stderr)

    def begin(number: int) -> None:
        _current[_slot] = number

    try:
        return run(seed, chunk, begin)
    finally:
        faulthandler.cancel_dump_traceback_later()
        _current[_slot] = -1
