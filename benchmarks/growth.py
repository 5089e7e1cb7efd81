"""Check that work does not grow with the square of a log's length: hostile patterns at four sizes, each twice the one before.

    python -m benchmarks.growth [--seconds] [pattern ...]

Each pattern is a log of n, 2n, 4n and 8n records that repeats something expensive. The table shows the work per record and the exponent
of growth: 1.0 is linear, 2.0 is quadratic. The command exits with 1 if an exponent exceeds the bound.

Work is measured in executed lines of Python in `session` and `context_window`, so that the load of the machine does not matter. With
`--seconds` it is processor time. Only that includes work of C code inside one line, such as copying a list of references.

The patterns' contents are in `growth_logs.py` and `growth_sessions.py`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import log2
from pathlib import Path
from types import FrameType
from typing import Any

import context_window
import session as session_package
from benchmarks.growth_logs import Json, aider, chat, claude, codex, copilot, gemini, opencode, openhands, pi
from benchmarks.growth_sessions import KINDS, turns
from context_window import ContextWindow, ContextWindowManager
from session import Compaction, Session
from session.providers.google import to_google
from session.store import SessionStore
from session.transcripts import read_account

STEPS = (1, 2, 4, 8)
BOUND = 1.3
ANEW = ("usage after", "fork after", "pin after", "plan after", "manage after", "append and process")
"""Patterns whose calls may each look at the whole session: a report, a plan, the first view of an edited log or a fork, and a decision that
is made anew since what must stay exceeds the budget. A call is linear, so all of them together grow with the square."""
BUDGET = 400
"""Token budget of the views. It is small, so that even the smallest log is much longer than a view."""
PACKAGES = tuple(str(Path(package.__file__ or "").parent) for package in (session_package, context_window))


@dataclass
class Work:
    """An amount of work: lines, or microseconds."""

    amount: float = 0.0


@contextmanager
def count_lines(work: Work) -> Iterator[None]:
    """Count the executed lines of the two packages."""

    def trace(frame: FrameType, kind: str, _: object) -> Any:
        if kind == "call":
            return trace if frame.f_code.co_filename.startswith(PACKAGES) else None
        work.amount += kind == "line"
        return trace

    before = sys.gettrace(), threading.gettrace()
    sys.settrace(trace)
    threading.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before[0])
        threading.settrace(before[1])  # type: ignore[arg-type]  # initially None


@contextmanager
def count_seconds(work: Work) -> Iterator[None]:
    """Count processor time, in microseconds."""
    begin = time.process_time()
    try:
        yield
    finally:
        work.amount += 1e6 * (time.process_time() - begin)


Count = Callable[[Work], Any]
Pattern = Callable[[int, Count], Work]


# Transcripts


def read_log(lines: Callable[[int], Iterator[Json] | str], name: str = "log.jsonl") -> Pattern:
    """Return the pattern that reads a log."""

    def work(n: int, count: Count) -> Work:
        log = lines(n)
        text = log if isinstance(log, str) else "".join(json.dumps(line) + "\n" for line in log)
        total = Work()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            with count(total):
                read_account(path)
        return total

    return work


# Sessions


def characters(text: str) -> int:
    """Count tokens at no cost, so that only the engine is measured."""
    return len(text) // 4


def manager(window: int | ContextWindow) -> ContextWindowManager:
    """Return a manager with this window, or one of so many tokens."""
    window = ContextWindow(max_tokens=window) if isinstance(window, int) else window
    return ContextWindowManager("claude-sonnet-5-5", token_counter=characters, context_window=window)


def append_each(items: Callable[[Session, int], Iterator[Any]], budget: int = BUDGET) -> Pattern:
    """Return the pattern that appends each item and processes the session."""

    def work(n: int, count: Count) -> Work:
        window_manager, session, total = manager(budget), Session(), Work()
        remaining = items(session, n)
        first = next(remaining)
        window_manager.process_session(session)
        with count(total):
            for item in (first, *remaining):
                session.append(item)
                window_manager.process_session(session)
        return total

    return work


def ask_each(
    items: Callable[[Session, int], Iterator[Any]], ask: Callable[[ContextWindowManager, Session], object], budget: int = 10**9
) -> Pattern:
    """Return the pattern that processes the session after every item, and then asks the manager for one more thing, which is counted."""

    def work(n: int, count: Count) -> Work:
        window_manager, session, total = manager(budget), Session(), Work()
        for item in items(session, n):
            session.append(item)
            window_manager.process_session(session)
            with count(total):
                ask(window_manager, session)
        return total

    return work


def usage(window_manager: ContextWindowManager, _: Session) -> object:
    """Report on the view."""
    return window_manager.usage()


def plan(window_manager: ContextWindowManager, session: Session) -> object:
    """Plan the session."""
    return window_manager.plan_session(session)


def process_fork(window_manager: ContextWindowManager, session: Session) -> object:
    """Process a fork of the session."""
    return window_manager.process_session(session.fork())


def process_pinned(window_manager: ContextWindowManager, session: Session) -> object:
    """Pin an item or unpin it, and process the session."""
    twin = session.items[(len(session.items) - 1) // 3]
    (session.unpin if twin.pinned else session.pin)(twin.id)
    return window_manager.process_session(session)


def act_once(items: Callable[[Session, int], Iterator[Any]], act: Callable[[Session], object]) -> Pattern:
    """Return the pattern that does one thing to a complete session."""

    def work(n: int, count: Count) -> Work:
        session, total = Session(), Work()
        for item in items(session, n):
            session.append(item)
        with count(total):
            act(session)
        return total

    return work


async def summarise(_: str) -> str:
    """Answer at once, so that only the engine is measured."""
    return "Earlier: questions and answers."


def manage_each(items: Callable[[Session, int], Iterator[Any]], budget: int = 4 * BUDGET) -> Pattern:
    """Return the pattern that manages the session after every item. Whenever it has outgrown the budget, a summary replaces older items."""

    def work(n: int, count: Count) -> Work:
        window = ContextWindow(max_tokens=budget, summary_llm=summarise)
        window_manager, session, total = manager(window), Session(), Work()

        async def run() -> None:
            for item in items(session, n):
                session.append(item)
                await window_manager.manage(session)

        with count(total):
            asyncio.run(run())
        return total

    return work


def compact_once(items: Callable[[Session, int], Iterator[Any]]) -> Pattern:
    """Return the pattern of one compacting turn: a summary replaces all but the newest items of a session that was managed before."""

    def work(n: int, count: Count) -> Work:
        session, total = Session(), Work()
        for item in items(session, n):
            session.append(item)
        window_manager = manager(ContextWindow(max_tokens=10**9, max_context_items=len(session.items), summary_llm=summarise))
        asyncio.run(window_manager.manage(session))
        session.add_message("user", "go on")
        with count(total):
            asyncio.run(window_manager.manage(session))
        assert isinstance(session.items[-1], Compaction)
        return total

    return work


def merge_fork(session: Session) -> None:
    fork = session.fork()
    fork.add_message("user", "beside")
    session.add_message("user", "here")
    asyncio.run(session.merge(fork))


def store_each(items: Callable[[Session, int], Iterator[Any]]) -> Pattern:
    """Return the pattern that saves a session after every item, then loads it."""

    def work(n: int, count: Count) -> Work:
        session, total = Session(id="s"), Work()
        remaining = items(session, n)
        with tempfile.TemporaryDirectory() as folder, SessionStore(Path(folder, "sessions.db")) as store, count(total):
            for item in remaining:
                session.append(item)
                store.save(session)
            store.load("s")
        return total

    return work


READS: dict[str, Pattern] = {
    "claude_code: compactions": read_log(claude),
    "claude_code: compactions that preserve all": read_log(partial(claude, keeps=True)),
    "claude_code: sub-agents": read_log(partial(claude, side=1_000_000)),
    "claude_code: branches from one record": read_log(partial(claude, same_parent=True)),
    "claude_code: prompts in the queue": read_log(partial(claude, queued=True)),
    "codex: compactions": read_log(codex),
    "codex: compactions with a history": read_log(partial(codex, history=True, copies=True)),
    "codex: compactions rolled back": read_log(partial(codex, history=True, rolled_back=True)),
    "pi: compactions": read_log(pi),
    "copilot_cli: compactions": read_log(copilot),
    "copilot_cli: sub-agents": read_log(partial(copilot, agents=True)),
    "gemini_cli: rewinds and messages written again": read_log(gemini),
    "openhands: condensations": read_log(openhands),
    "openhands: condensations of ranges": read_log(partial(openhands, ranges=True)),
    "opencode: compactions": read_log(opencode, "log.json"),
    "message_lists: one call id": read_log(chat),
    "message_lists: a list a line": read_log(partial(chat, ids="", lists=True)),
    "aider: sessions": read_log(aider, ".aider.chat.history.md"),
}
CONVERSIONS: dict[str, Callable[[Session], object]] = {
    "to Anthropic": lambda session: session.to_anthropic_messages(caching=True),
    "to OpenAI chat": lambda session: session.to_openai_messages(),
    "to OpenAI Responses": lambda session: session.to_openai_responses(),
    "to Google": to_google,
}
INCREMENTAL = ("turns", "handoffs among turns", "compactions")
"""Kinds of logs of which the usage is asked after every item."""
COMPACTED = ("turns", "images among turns", "pinned messages among turns")
"""Kinds of logs of which a summary can replace nearly all, or every second item."""
ACTS: dict[str, Callable[[Session], object]] = {
    **CONVERSIONS,
    "plan_session": lambda session: manager(BUDGET).plan_session(session),
    "trim_session": lambda session: manager(BUDGET).trim_session(session),
    "usage": lambda session: manager(BUDGET).usage(session),
    "saved and loaded": lambda session: Session.from_dict(json.loads(json.dumps(session.to_dict()))),
    "merged with a fork": merge_fork,
}
PATTERNS: dict[str, Pattern] = {
    **{f"read {name}": work for name, work in READS.items()},
    **{f"append and process: {name}": append_each(items) for name, items in KINDS.items()},
    **{f"stored after every item: {name}": store_each(items) for name, items in KINDS.items()},
    **{f"usage after every item: {name}": ask_each(KINDS[name], usage) for name in INCREMENTAL},
    "fork after every item: turns": ask_each(turns, process_fork, BUDGET),
    "fork after every item, without trims: turns": ask_each(turns, process_fork),
    "pin after every item: turns": ask_each(turns, process_pinned),
    "plan after every item: turns": ask_each(turns, plan),
    "plan after every item: pinned messages among turns": ask_each(KINDS["pinned messages among turns"], plan, BUDGET),
    "plan after every item: compactions": ask_each(KINDS["compactions"], plan, BUDGET),
    **{f"compacting turn: {name}": compact_once(KINDS[name]) for name in COMPACTED},
    "manage after every item: turns": manage_each(turns),
    **{f"{act}: {name}": act_once(items, do) for act, do in ACTS.items() for name, items in KINDS.items()},
}


def exponent(amounts: list[float]) -> float:
    """Return the exponent of growth: the mean over the last two doublings, where constant work matters least."""
    return log2(amounts[-1] / amounts[-3]) / 2 if amounts[-3] else 0.0


def bound_of(name: str) -> float:
    """Return the largest exponent that a pattern may have."""
    return BOUND + name.startswith(ANEW)


def measure(name: str, smallest: int, count: Count) -> list[float]:
    """Return the work of a pattern at four sizes."""
    PATTERNS[name](smallest, count)  # imports and caches of the first run are not growth
    return [PATTERNS[name](smallest * step, count).amount for step in STEPS]


def main(arguments: list[str]) -> int:
    seconds = "--seconds" in arguments
    filters = [argument for argument in arguments if not argument.startswith("-")]
    smallest, unit = (1_000, "µs") if seconds else (125, "lines")
    above = 0
    print(f"{unit} per record at n = {', '.join(f'{smallest * step:,}' for step in STEPS)}, and the exponent")
    for name in PATTERNS:
        if filters and not any(text in name for text in filters):
            continue
        amounts = measure(name, smallest, count_seconds if seconds else count_lines)
        growth = exponent(amounts)
        above += growth > bound_of(name)
        figures = "".join(f"{amount / (smallest * step):>9.1f}" for amount, step in zip(amounts, STEPS, strict=True))
        print(f"{name:<60}{figures}  {growth:5.2f}{'  ABOVE' if growth > bound_of(name) else ''}", flush=True)
    if above:
        print(f"{above} above their bounds")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
