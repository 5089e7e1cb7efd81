"""Measure the engine's speed and memory, and if they grow with the session. Compare figures only within one run.

    python benchmarks/speed.py

- append: append one item and call `process_session`, with 1,000 and with 100,000 items in the session. Three cases: below the trigger;
  with a small budget, after many trims; the same with reported usage on each answer. The ratio of both sizes should be near 1.
- fold: replay 100,000 items from the beginning, with their token counts cached.
- memory: bytes that the manager keeps per item.
- counting: whole items compared with bare `encode_ordinary` on the same texts, and a second count compared with the first.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from context_window import ContextWindow, ContextWindowManager
from context_window.counting.item_tokens import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter
from context_window.counting.vocabulary import o200k
from session import FunctionCall, FunctionCallOutput, Message, MessageCategory, Session, Usage

SHORT, LONG = 1_000, 100_000
APPENDS = 3_000
BUDGETS = {"under the trigger": 10**9, "after many trims": 20_000}
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


def counting() -> tuple[float, float]:
    """Return the speed of counting whole items as a fraction of bare encoding, and of a second count as a multiple of the first."""
    source = "".join(f"def function_{n}(argument: int) -> int:\n    return argument * {n} + len('some text')\n\n" for n in range(400))
    texts = [source[start : start + 4_000] for start in range(0, len(source) - 4_000, 100)]
    encode = o200k().encode_ordinary
    for text in texts[:50]:
        encode(text)
    start = time.perf_counter()
    for text in texts:
        len(encode(text))
    bare = time.perf_counter() - start
    measurer = Measurer(TiktokenCounter())
    items = [Message("user", text) for text in texts]
    start = time.perf_counter()
    for item in items:
        measurer.measure(item)
    first = time.perf_counter() - start
    start = time.perf_counter()
    for item in items:
        measurer.measure(item)
    return bare / first, first / (time.perf_counter() - start)


def main() -> None:
    console = Console()
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
    fraction, multiple = counting()
    console.print(
        f"counting whole items: {fraction:.2f} of bare encode_ordinary's speed; a second count {multiple:,.0f} x as fast as the first"
    )


if __name__ == "__main__":
    main()
