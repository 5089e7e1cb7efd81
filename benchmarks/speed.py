"""How long the engine takes, and whether that grows with the session. Figures of one run, to be compared within it.

    python benchmarks/speed.py

- append: one item appended and `process_session` called, at 1,000 and at 100,000 items: under the trigger, and at a fixed
  budget after many trims; there also with what the provider reported on each answer. The ratio of the two is what matters; it should
  be near 1.
- fold: 100,000 items from cold, counts known.
- memory: what the manager keeps of an item.
- counting: whole items against bare `encode_ordinary` on the same texts; a second count against the first.
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
from context_window.counting.measure import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter
from context_window.counting.vocabulary import o200k
from session import FunctionCall, FunctionCallOutput, Message, MessageCategory, Session, Usage

SHORT, LONG = 1_000, 100_000
APPENDS = 3_000
BUDGETS = {"under the trigger": 10**9, "after many trims": 20_000}
REPORTED = "after many trims, with reports"


def characters(text: str) -> int:
    """A counter that costs nothing, so that the engine is what is timed."""
    return len(text) // 4


def grown(session: Session, length: int, usage: Callable[[], Usage | None] = lambda: None) -> Session:
    """The session, longer: turns of a question, three calls with outputs, an answer with its usage."""
    while len(session.items) < length:
        at = len(session.items)
        match at % 8:
            case 0:
                session.append(Message("user", f"question {at} " * 3))
            case 7:
                session.append(Message("assistant", "answer " * 8, usage=usage()))
            case 1 | 3 | 5:
                session.append(FunctionCall("read", '{"path": "a.py"}', f"c{at}"))
            case _:
                session.append(FunctionCallOutput("read", "line of text\n" * 20, f"c{at - 1}"))
    return session


def manager(budget: int) -> ContextWindowManager:
    return ContextWindowManager(token_counter=characters, context_window=ContextWindow(max_tokens=budget))


def append_times(length: int, budget: int, *, reported: bool = False) -> list[float]:
    """Seconds of each append with its call."""
    one = manager(budget)
    session = grown(Session(), length)
    one.process_session(session)

    def usage() -> Usage | None:
        if not reported:
            return None
        counted = one.get_token_usage()
        return Usage(input_tokens=300 + sum(counted[category.value] for category in MessageCategory), output_tokens=20)

    times = []
    for _ in range(APPENDS):
        start = time.perf_counter()
        grown(session, len(session.items) + 1, usage)
        one.process_session(session)
        times.append(time.perf_counter() - start)
    return times


def fold_time(budget: int) -> float:
    session = grown(Session(), LONG)
    manager(budget).process_session(session)  # counts them
    best = []
    for _ in range(5):
        one = manager(budget)
        gc.collect()
        start = time.perf_counter()
        one.process_session(session)
        best.append(time.perf_counter() - start)
    return statistics.median(best)


def bytes_an_item(budget: int) -> float:
    session = grown(Session(), LONG)
    manager(budget).process_session(session)
    one = manager(budget)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    one.process_session(session)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / LONG


def counting() -> tuple[float, float]:
    """Speed of counting whole items as a part of bare encoding, and of the second count as a multiple of the first."""
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
        measurer.measured(item)
    first = time.perf_counter() - start
    start = time.perf_counter()
    for item in items:
        measurer.measured(item)
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
    table = Table("", *BUDGETS, title=f"{LONG:,} items, counts known")
    table.add_row("fold from cold, seconds", *(f"{fold_time(budget):.2f}" for budget in BUDGETS.values()))
    table.add_row("kept by the manager, bytes an item", *(f"{bytes_an_item(budget):.0f}" for budget in BUDGETS.values()))
    console.print(table)
    part, multiple = counting()
    console.print(
        f"counting whole items: {part:.2f} of bare encode_ordinary's speed; a second count {multiple:,.0f} x as fast as the first"
    )


if __name__ == "__main__":
    main()
