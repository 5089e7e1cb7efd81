"""Check that work does not grow with the square of a log's length: hostile patterns at four sizes, each twice the one before.

    python -m benchmarks.growth [--seconds] [pattern ...]

Each pattern is a log of n, 2n, 4n and 8n records that repeats something expensive. The table shows the work per record and the exponent
of growth: 1.0 is linear, 2.0 is quadratic. The command exits with 1 if an exponent exceeds the bound.

Work is measured in executed lines of Python in `session` and `context_window`, so that the load of the machine does not matter. With
`--seconds` it is processor time. Only that includes work of C code inside one line, such as copying a list of references.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import log2
from pathlib import Path
from types import FrameType
from typing import Any

import context_window
import session as session_package
from context_window import ContextWindow, ContextWindowManager
from session import Compaction, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session, Text, Usage
from session.items import AgentConfigUpdate, AgentHandoff
from session.providers.google import to_google
from session.store import SessionStore
from session.transcripts import read_account

Json = dict[str, Any]

STEPS = (1, 2, 4, 8)
BOUND = 1.3
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


def time_at(number: int) -> str:
    return f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"


def claude(n: int, *, keeps: bool = False, side: int = 0, same_parent: bool = False, queued: bool = False) -> Iterator[Json]:
    """Turns of Claude Code, each compacted."""
    parent: str | None = None
    for number in range(n // 4):
        ids = [f"{4 * number + k:08x}-4000-8000-0000-{4 * number + k:012x}" for k in range(4)]
        fields: Json = {"sessionId": "s", "timestamp": time_at(number), "isSidechain": bool(side)}
        fields |= {"agentId": f"agent{number % side}"} if side else {}
        yield {"type": "user", "uuid": ids[0], "parentUuid": parent, **fields, "message": {"role": "user", "content": f"question {number}"}}
        message = {"id": f"m{number}", "role": "assistant", "model": "claude-x", "content": [{"type": "text", "text": "answer"}]}
        yield {"type": "assistant", "uuid": ids[1], "parentUuid": ids[0], **fields, "message": message}
        if queued:
            yield {"type": "queue-operation", "operation": "enqueue", "content": f"later {number}", **fields}
            yield {"type": "queue-operation", "operation": "remove" if number % 2 else "enqueue", "content": f"more {number}", **fields}
        else:
            first = "00000000-4000-8000-0000-000000000000"
            about: Json = {"trigger": "auto", "preTokens": 5} | (
                {"preservedSegment": {"headUuid": first, "tailUuid": ids[1]}} if keeps else {}
            )
            yield {
                "type": "system",
                "subtype": "compact_boundary",
                "uuid": ids[2],
                "parentUuid": ids[1],
                **fields,
                "compactMetadata": about,
            }
            summary = {"role": "user", "content": "summary"}
            yield {"type": "user", "isCompactSummary": True, "uuid": ids[3], "parentUuid": ids[2], **fields, "message": summary}
        parent = "root" if same_parent else ids[1 if queued else 3]


def codex(n: int, *, history: bool = False, rolled_back: bool = False, copies: bool = False) -> Iterator[Json]:
    """Turns of Codex, each compacted."""

    def line(kind: str, **payload: Any) -> Json:
        return {"timestamp": "2026-03-01T00:00:00Z", "type": kind, "payload": payload}

    def message(role: str, text: str) -> Json:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    for number in range(n // 2 if rolled_back else 0):
        yield line("response_item", **message("user", f"question {number}"))
    for number in range(n // 6 if rolled_back else n // 3):
        yield line("response_item", **message("user", "yes" if copies else f"question {number}"))
        if not rolled_back:
            yield line("response_item", **message("assistant", f"answer {number}"))
        yield line("compacted", message="summary", **({"replacement_history": [message("user", "yes")]} if history else {}))
        if rolled_back:
            yield line("event_msg", type="thread_rolled_back", num_turns=1)


def pi(n: int) -> Iterator[Json]:
    """Turns of pi, each compacted, and the last hundred entries kept."""
    yield {"type": "session", "id": "p", "cwd": "/p", "timestamp": time_at(0)}
    for number in range(n // 2):
        fields = {"timestamp": time_at(number), "id": f"u{number}", "parentId": f"c{number - 1}" if number else None}
        yield {"type": "message", **fields, "message": {"role": "user", "content": f"question {number}"}}
        first_kept = f"u{max(0, number - 50)}"
        yield {
            "type": "compaction",
            "timestamp": time_at(number),
            "id": f"c{number}",
            "parentId": f"u{number}",
            "summary": "s",
            "firstKeptEntryId": first_kept,
        }


def copilot(n: int, *, agents: bool = False) -> Iterator[Json]:
    """Turns of Copilot CLI, each compacted, or each by a different sub-agent."""

    def line(kind: str, record_id: str, **data: Any) -> Json:
        return {"type": kind, "id": record_id, "parentId": None, "timestamp": time_at(0), "data": data}

    yield line("session.start", "s", sessionId="s", copilotVersion="1")
    for number in range(n // 2):
        fields = {"parentToolCallId": f"agent{number}"} if agents else {}
        yield line("user.message", f"u{number}", content=f"question {number}", transformedContent=f"question {number}", **fields)
        if agents:
            yield line("assistant.message", f"a{number}", content="answer", **fields)
        else:
            yield line("session.compaction_complete", f"c{number}", success=True, summaryContent="summary")


def gemini(n: int) -> Iterator[Json]:
    """Turns of Gemini CLI, each rewritten or rewound."""
    yield {"sessionId": "g", "projectHash": "h"}
    for number in range(n // 3):
        yield {"type": "user", "id": f"u{number}", "timestamp": time_at(number), "content": f"question {number}"}
        yield {"type": "gemini", "id": "same", "timestamp": time_at(number), "content": "answer"}
        yield {"$rewindTo": f"u{number}"} if number % 2 else {"type": "user", "id": "same", "content": "again"}


def openhands(n: int, *, ranges: bool = False) -> Iterator[Json]:
    """Events of OpenHands, condensed after every message."""
    events: list[Json] = []
    for number in range(n // 2):
        args: Json = {"content": f"question {number}"}
        events.append({"id": 2 * number, "timestamp": "2026-03-01T00:00:00", "source": "user", "action": "message", "args": args})
        forgotten = {"forgotten_events_start_id": 0, "forgotten_events_end_id": 2 * number} if ranges else {"forgotten_event_ids": [0] * 3}
        events.append({"id": 2 * number + 1, "source": "agent", "action": "condensation", "args": {**forgotten, "summary": "s"}})
    yield {"instance_id": "i", "history": events, "metrics": {}}


def opencode(n: int) -> Iterator[Json]:
    """Turns of opencode, each compacted."""
    messages: list[Json] = []
    for number in range(n // 2):
        for role in ("user", "assistant"):
            info: Json = {
                "id": f"{role}{number}",
                "role": role,
                "time": {"created": number},
                **({"summary": True} if role == "assistant" else {}),
            }
            messages.append({"info": info, "parts": [{"id": f"p{role}{number}", "type": "text", "text": f"words {number}"}]})
    yield {
        "info": {"id": "ses_1", "version": "1", "time": {"created": 1}, "projectID": "p", "directory": "/p", "title": "t"},
        "messages": messages,
    }


def chat(n: int, *, ids: str = "same", lists: bool = False) -> Iterator[Json]:
    """Messages of OpenAI's chat API: the same call id everywhere, or one list per line."""
    for number in range(n // 3):
        call_id = ids or f"c{number}"
        call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": json.dumps({"n": number})}}
        turn: list[Json] = [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": "result"},
        ]
        if lists:
            yield {"messages": turn}
        else:
            yield from turn


def aider(n: int) -> str:
    """Sessions of aider."""
    return "".join(f"# aider chat started at 2026-03-01 00:00:00\n\n#### question {k}  \n\nanswer\n\n" for k in range(n // 6))


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


OUTPUT = "line of text\n" * 20
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")


def turns(_: Session, n: int) -> Iterator[Any]:
    """Ordinary turns."""
    for number in range(n // 4):
        yield Message("user", f"question {number}")
        yield FunctionCall("read", "{}", f"c{number}")
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")
        yield Message("assistant", "answer " * 8)


def parallel(session: Session, n: int) -> Iterator[Any]:
    """One response with n calls, then their outputs."""
    session.append(Message("user", "go"))
    for number in range(n):
        session.append(FunctionCall("read", "{}", f"c{number}"))
    for number in range(n):
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")


def late(session: Session, n: int) -> Iterator[Any]:
    """Outputs long after their calls."""
    for number in range(n):
        session.append(Message("user", f"question {number}"))
        session.append(FunctionCall("read", "{}", f"c{number}"))
    for number in range(n):
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")


def same_id(session: Session, n: int) -> Iterator[Any]:
    """Calls that all have the same id, then outputs that all answer it."""
    for number in range(n // 2):
        session.append(FunctionCall("read", json.dumps({"n": number}), "same"))
    for _ in range(n // 2):
        yield FunctionCallOutput("read", OUTPUT, "same")


def repeated(make: Callable[[int], Any]) -> Callable[[Session, int], Iterator[Any]]:
    """One turn, then n items of the same kind."""

    def items(session: Session, n: int) -> Iterator[Any]:
        session.append(Message("user", "go"))
        session.append(Message("assistant", "yes"))
        for number in range(n):
            yield make(number)

    return items


def among_turns(make: Callable[[int], Any]) -> Callable[[Session, int], Iterator[Any]]:
    """Turns that each consist of an item of the given kind, a question and an answer."""

    def items(_: Session, n: int) -> Iterator[Any]:
        for number in range(n // 3):
            yield make(number)
            yield Message("user", f"question {number}")
            yield Message("assistant", "answer " * 8)

    return items


def picture(number: int) -> Message:
    return Message("user", [Text(f"look {number}"), Image(data=PNG)])


def agents(session: Session, n: int) -> Iterator[Any]:
    """Alternating answers of two agents, each a separate response."""
    session.append(Message("user", "go"))
    for number in range(n):
        yield Message("assistant", "answer", agent_id=f"agent {number % 2}")


def with_report(session: Session, n: int) -> Iterator[Any]:
    """Calls in one response, after an answer with reported usage."""
    session.append(Message("user", "go"))
    session.append(Message("assistant", "yes", usage=Usage(input_tokens=100, output_tokens=5)))
    session.append(Message("user", "go on"))
    yield from parallel(session, n)


def thoughtful(_: Session, n: int) -> Iterator[Any]:
    """Turns with signed reasoning, whose calls are answered late."""
    for number in range(n // 4):
        yield Message("user", f"question {number}")
        yield Reasoning("so " * 20, "sealed")
        yield FunctionCall("read", "{}", f"c{number}")
    for number in range(n // 4):
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")


def compacted(_: Session, n: int) -> Iterator[Any]:
    """Turns, each compacted."""
    last: list[str] = []
    for number in range(n // 3):
        items = [Message("user", f"question {number}"), Message("assistant", "answer")]
        yield from items
        summary = Compaction("summary", [*last, *(item.id for item in items)])
        last = [summary.id]
        yield summary


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


def act_each(items: Callable[[Session, int], Iterator[Any]], act: Callable[[Session], object]) -> Pattern:
    """Return the pattern that does one thing after every item."""

    def work(n: int, count: Count) -> Work:
        session, total = Session(), Work()
        for item in items(session, n):
            session.append(item)
            with count(total):
                act(session)
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
KINDS: dict[str, Callable[[Session, int], Iterator[Any]]] = {
    "turns": turns,
    "calls in one response": parallel,
    "late answers": late,
    "one call id": same_id,
    "users' messages": repeated(lambda number: Message("user", f"question {number} " * 3)),
    "pinned messages": repeated(lambda number: Message("user", f"question {number} " * 3, pinned=True)),
    "system messages": repeated(lambda number: Message("system", f"rule {number} " * 3)),
    "system messages among turns": among_turns(lambda number: Message("system", f"rule {number} " * 3)),
    "pinned messages among turns": among_turns(lambda number: Message("user", f"question {number} " * 3, pinned=True)),
    "handoffs among turns": among_turns(lambda number: AgentHandoff(f"b{number}", "a")),
    "config updates among turns": among_turns(lambda number: AgentConfigUpdate(f"be {number}")),
    "images among turns": among_turns(picture),
    "pinned images among turns": among_turns(lambda number: replace(picture(number), pinned=True)),
    "calls in one response, with a report": with_report,
    "late answers to thoughts": thoughtful,
    "answers of agents by turns": agents,
    "compactions": compacted,
}
CONVERSIONS: dict[str, Callable[[Session], object]] = {
    "to Anthropic": lambda session: session.to_anthropic_messages(caching=True),
    "to OpenAI chat": lambda session: session.to_openai_messages(),
    "to OpenAI Responses": lambda session: session.to_openai_responses(),
    "to Google": to_google,
}
INCREMENTAL = ("turns", "handoffs among turns", "compactions")
"""Kinds of logs in which each item costs a conversion no more than itself. A late output, for example, is written with all that follow."""
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
    **{f"{act} after every item: {name}": act_each(KINDS[name], do) for act, do in CONVERSIONS.items() for name in INCREMENTAL},
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
        above += growth > BOUND
        figures = "".join(f"{amount / (smallest * step):>9.1f}" for amount, step in zip(amounts, STEPS, strict=True))
        print(f"{name:<60}{figures}  {growth:5.2f}{'  ABOVE' if growth > BOUND else ''}", flush=True)
    if above:
        print(f"{above} above {BOUND}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
