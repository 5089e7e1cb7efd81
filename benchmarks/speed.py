"""Measure the engine's speed and memory, and if they grow with the session. Compare figures only within one run.

    python -m benchmarks.speed [--stored]         # --stored: only the table of a stored session

- append: append one item and call `process_session`, with 1,000 and with 100,000 items in the session. Three cases: below the trigger;
  with a small budget, after many trims; the same with reported usage on each answer. The ratio of both sizes should be near 1.
- fold: replay 100,000 items from the beginning, with their token counts cached.
- memory: bytes that the manager keeps per item.
- a stored session: `SessionStore.open` of 100,000 items, in multiples of reading the rows and parsing their JSON.
- a session never seen: `process_session` on made-up sessions that look like recorded ones (`sessions.py`), and the conversion of its view,
  in multiples of bare `encode_ordinary` over the same texts. By processor time, the smallest of several runs. With gigatoken too, if it is
  installed.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.sessions import conversation
from context_window import ContextWindow, ContextWindowManager, GigatokenCounter, TiktokenCounter
from context_window.counting.gigatoken_counter import has_gigatoken
from context_window.counting.vocabulary import o200k
from session import FunctionCall, FunctionCallOutput, Message, MessageCategory, Session, Usage
from session.store import SessionStore

SHORT, LONG = 1_000, 100_000
APPENDS = 3_000
BUDGETS = {"under the trigger": 10**9, "after many trims": 20_000}
COLD_SESSIONS, COLD_MESSAGES, COLD_RUNS, COLD_MODEL = 3, 1_000, 5, "gpt-5"
REPORTED = "after many trims, with reports"


def characters(text: str) -> int:
    """Count tokens at no cost, so that only the engine is timed."""
    return len(text) // 4


def grow(session: Session, length: int, usage: Callable[[], Usage | None] = lambda: None) -> Session:
    """Append to the session up to this length: turns of a question, three calls with outputs, and an answer with its usage."""
    while len(session.items) < length:
        place = len(session.items)
        match place % 8:
            case 0:
                session.append(Message("user", f"question {place} " * 3))
            case 7:
                session.append(Message("assistant", "answer " * 8, usage=usage()))
            case 1 | 3 | 5:
                session.append(FunctionCall("read", '{"path": "a.py"}', f"c{place}"))
            case _:
                session.append(FunctionCallOutput("read", "line of text\n" * 20, f"c{place - 1}"))
    return session


def manager(budget: int) -> ContextWindowManager:
    return ContextWindowManager(token_counter=characters, context_window=ContextWindow(max_tokens=budget))


def append_times(length: int, budget: int, *, reported: bool = False) -> list[float]:
    """Return the seconds of each append with its `process_session`."""
    window_manager = manager(budget)
    session = grow(Session(), length)
    window_manager.process_session(session)

    def usage() -> Usage | None:
        if not reported:
            return None
        usage_by_category = window_manager.get_token_usage()
        return Usage(input_tokens=300 + sum(usage_by_category[category.value] for category in MessageCategory), output_tokens=20)

    times = []
    for _ in range(APPENDS):
        start = time.perf_counter()
        grow(session, len(session.items) + 1, usage)
        window_manager.process_session(session)
        times.append(time.perf_counter() - start)
    return times


def fold_time(budget: int) -> float:
    session = grow(Session(), LONG)
    manager(budget).process_session(session)  # fills the cache of token counts
    times = []
    for _ in range(5):
        window_manager = manager(budget)
        gc.collect()
        start = time.perf_counter()
        window_manager.process_session(session)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def bytes_per_item(budget: int) -> float:
    session = grow(Session(), LONG)
    manager(budget).process_session(session)
    window_manager = manager(budget)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    window_manager.process_session(session)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / LONG


def stored() -> Table:
    """Return the table of opening a stored session."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sessions.db")
        with SessionStore(path) as store:
            store.save(grow(Session(id="s"), LONG))
        opened, parsed = [], []
        for _ in range(COLD_RUNS):
            gc.collect()
            start = time.process_time()
            with closing(sqlite3.connect(path)) as connection:
                values = [json.loads(body) for (body,) in connection.execute("SELECT body FROM journal ORDER BY number")]
            parsed.append(time.process_time() - start)
            del values
            gc.collect()
            with SessionStore(path) as store:
                start = time.process_time()
                store.open("s")
                opened.append(time.process_time() - start)
    table = Table("", "of reading rows and JSON", title=f"a stored session of {LONG:,} items")
    table.add_row("select and json.loads", f"1.00 ({min(parsed):.2f} s)")
    table.add_row("SessionStore.open", f"{min(opened) / min(parsed):.2f}")
    return table


def processor_time(work: Callable[[Session], object], sessions: Callable[[], list[Session]]) -> float:
    """Return the smallest processor time, in seconds, of some work on all of these sessions, made anew for each run."""
    times = []
    for _ in range(COLD_RUNS):
        fresh = sessions()
        gc.collect()
        start = time.process_time()
        for session in fresh:
            work(session)
        times.append(time.process_time() - start)
    return min(times)


def texts_of(session: Session) -> Iterator[str]:
    """Yield the texts whose tokens a session costs."""
    for item in session.items:
        if isinstance(item, FunctionCall):
            yield from (item.name, item.arguments)
        elif isinstance(item, FunctionCallOutput):
            yield from (item.name, item.text)
        elif isinstance(item, Message):
            yield item.text


def never_seen() -> Table:
    """Return the table of the work on sessions that no counter has seen."""

    def sessions() -> list[Session]:
        return [Session.from_openai(conversation(COLD_MESSAGES, seed)) for seed in range(COLD_SESSIONS)]

    def processed(counter: TiktokenCounter | None, budget: int) -> Callable[[Session], Session]:
        window = ContextWindow(max_tokens=budget)
        return lambda session: ContextWindowManager(COLD_MODEL, counter, context_window=window).process_session(session)

    encode, whole = o200k().encode_ordinary, 10**8
    half = ContextWindowManager(COLD_MODEL).get_token_usage(sessions()[0])["total"] // 2
    bare = processor_time(lambda session: [len(encode(text)) for text in texts_of(session)], sessions)
    works: dict[str, Callable[[Session], object]] = {}
    counters: dict[str, TiktokenCounter | None] = {"": None}
    if has_gigatoken():
        counters[" with gigatoken"] = GigatokenCounter.for_model(COLD_MODEL)
    for name, counter in counters.items():
        works[f"process_session{name}, the whole session in view"] = processed(counter, whole)
        works[f"process_session{name}, half of it in view"] = processed(counter, half)
    works["to_openai_messages"] = Session.to_openai_messages
    works["to_anthropic_messages"] = Session.to_anthropic_messages
    table = Table("", "of bare encoding", title=f"{COLD_SESSIONS} sessions of {COLD_MESSAGES:,} messages, never seen")
    table.add_row("bare encode_ordinary", f"1.00 ({bare * 1e3:.0f} ms)")
    for name, work in works.items():
        table.add_row(name, f"{processor_time(work, sessions) / bare:.2f}")
    return table


def main(arguments: list[str]) -> None:
    console = Console()
    if "--stored" in arguments:
        console.print(stored())
        return
    table = Table("append and process", f"{SHORT:,} items", f"{LONG:,} items", "ratio", title="microseconds, median (mean)")
    for name, budget in (BUDGETS | {REPORTED: 20_000}).items():
        reported = name == REPORTED
        short, long = append_times(SHORT, budget, reported=reported), append_times(LONG, budget, reported=reported)
        cells = [f"{statistics.median(times) * 1e6:.1f} ({statistics.mean(times) * 1e6:.1f})" for times in (short, long)]
        ratios = statistics.median(long) / statistics.median(short), statistics.mean(long) / statistics.mean(short)
        table.add_row(name, *cells, f"{ratios[0]:.2f} ({ratios[1]:.2f})")
    console.print(table)
    table = Table("", *BUDGETS, title=f"{LONG:,} items, token counts cached")
    table.add_row("replay from the beginning, seconds", *(f"{fold_time(budget):.2f}" for budget in BUDGETS.values()))
    table.add_row("kept by the manager, bytes per item", *(f"{bytes_per_item(budget):.0f}" for budget in BUDGETS.values()))
    console.print(table)
    console.print(stored())
    console.print(never_seen())


if __name__ == "__main__":
    main(sys.argv[1:])
