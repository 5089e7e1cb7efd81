"""Finds the reports that a fork repeats from the logs it came from. Lineage is a graph over all logs that were read.

1. Logs with the same thread id are copies of one thread; its reports are told apart by their ids.
2. A thread's *ancestors* are its parents, and theirs. Several children of a parent that was not read share what at least two of them
   begin with: that stands for the parent.
3. A thread repeats its longest beginning of reports that an ancestor has from before the thread began, and each thread between them.
   What an ancestor reported later is another request, even if its figures are equal. A sub-agent that began with nothing and whose first
   figures are all equal to its parent's cannot be told from one that repeats them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise, takewhile

from session.transcripts.reported_requests import Lineage, Request

from .rows import LogRows

ALWAYS, NEVER = float("-inf"), float("inf")
SLACK = 1.0
"""Seconds by which the clock of a fork may be behind its parent's log."""


@dataclass(slots=True)
class _Thread:
    """A thread: its lineage, and its reports with the earliest time of each, in order."""

    lineage: Lineage
    times: dict[str, float] = field(default_factory=dict)

    def add(self, requests: Iterable[Request]) -> None:
        for request in requests:
            time = ALWAYS if request.time is None else request.time
            self.times[request.id] = min(time, self.times.get(request.id, time))


Makers = Mapping[str, Mapping[str, str]]
"""By thread and id of a report, the name of the thread that made the request."""


def makers_of(logs: Iterable[LogRows]) -> Makers:
    """Return the thread that made each request of some logs with a lineage."""
    threads: dict[str, _Thread] = {}
    for log in logs:
        thread = threads.setdefault(log.lineage.thread, _Thread(log.lineage))
        thread.lineage = thread.lineage.after(*log.lineage.parents)
        thread.add(request for request in log.requests if request.id)
    threads |= _absent(threads)
    ancestors = {name: _ancestors(name, threads) for name in threads}
    repeated = {
        name: _repeated(thread, [(threads[other], limit) for other, limit in ancestors[name].items()]) for name, thread in threads.items()
    }

    def maker(name: str, id_: str) -> str:
        seen = [name]
        while id_ in repeated[seen[-1]]:
            earlier = next((other for other in ancestors[seen[-1]] if id_ in threads[other].times and other not in seen), None)
            if earlier is None:  # a circle, which only damage makes
                return min(seen)
            seen.append(earlier)
        return seen[-1]

    return {name: {id_: maker(name, id_) for id_ in thread.times} for name, thread in threads.items()}


def _repeated(thread: _Thread, ancestors: Sequence[tuple[_Thread, float]]) -> set[str]:
    """Return the ids of the reports at the thread's beginning that are its ancestors' from before a time."""

    def is_copy(id_: str, time: float, other: _Thread, limit: float) -> bool:
        original = other.times.get(id_)
        return original is not None and (original == time or original <= limit)

    own = dropwhile(lambda report: any(is_copy(*report, *ancestor) for ancestor in ancestors), thread.times.items())
    return set(thread.times) - {id_ for id_, _ in own}


def _limit(lineage: Lineage, ancestor: Lineage) -> float:
    """Return the time until which a thread can have copied an ancestor's reports. A thread older than its ancestor has no true times."""
    if lineage.start is None or ancestor.start is None or lineage.start <= ancestor.start:
        return NEVER
    return lineage.start + SLACK


def _absent(threads: Mapping[str, _Thread]) -> dict[str, _Thread]:
    """Return a thread for each ancestor that was not read: what at least two of the threads that name it begin with."""
    children: dict[str, list[_Thread]] = {}
    for name in sorted(threads):
        for parent in threads[name].lineage.parents:
            if parent not in threads:
                children.setdefault(parent, []).append(threads[name])
    return {parent: _shared(parent, named) for parent, named in children.items()}


def _shared(parent: str, children: Sequence[_Thread]) -> _Thread:
    shared: list[str] = []
    for first, second in pairwise(sorted(list(child.times) for child in children)):
        common = [a for a, b in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))]
        shared = max(shared, common, key=len)
    further = (name for child in children for name in child.lineage.parents[child.lineage.parents.index(parent) + 1 :])
    return _Thread(Lineage(parent).after(*further), dict.fromkeys(shared, ALWAYS))


def _ancestors(name: str, threads: Mapping[str, _Thread]) -> dict[str, float]:
    """Return the known ancestors of a thread, the nearest first, each with the time until which the thread can have copied from it."""
    limits, todo = {name: NEVER}, [name]
    for current in todo:
        for parent in threads[current].lineage.parents:
            if parent in threads:
                limit = min(limits[current], _limit(threads[current].lineage, threads[parent].lineage))
                if limit < limits.get(parent, NEVER) or parent not in limits:
                    limits[parent] = limit
                    todo.append(parent)
    del limits[name]
    return limits
