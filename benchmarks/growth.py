"""Whether work grows with the square of a log. Hostile patterns at four sizes, each twice the last one.

    python -m benchmarks.growth [--seconds] [pattern ...]

Each pattern is a log of n, 2n, 4n and 8n records that repeats what costs most. For each the table shows the work per record and
the exponent of growth: 1.0 is linear, 2.0 is square. The command exits with 1 when an exponent is above the bound.

Work is counted in lines of Python that run in `session` and `context_window`, so that a busy machine changes nothing. With
`--seconds` it is processor time. What C code does inside of one line (a copy of a list of references, say) is in the seconds alone.
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
from session.store import SessionStore
from session.transcripts import read_account

Json = dict[str, Any]

STEPS = (1, 2, 4, 8)
BOUND = 1.3
BUDGET = 400
"""Tokens of the views: little, so that the smallest log is long beside it. What fits a budget is what a view may cost."""
PACKAGES = tuple(str(Path(package.__file__ or "").parent) for package in (session_package, context_window))


@dataclass
class Work:
    """Work that was counted."""

    amount: float = 0.0


@contextmanager
def lines_counted(work: Work) -> Iterator[None]:
    """Count the lines that run in the two packages."""

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
        threading.settrace(before[1])  # type: ignore[arg-type]  # None is what it begins with


@contextmanager
def seconds_counted(work: Work) -> Iterator[None]:
    """Count processor time, in microseconds."""
    begin = time.process_time()
    try:
        yield
    finally:
        work.amount += 1e6 * (time.process_time() - begin)


Count = Callable[[Work], Any]
Pattern = Callable[[int, Count], Work]


# Transcripts that are read


def at(number: int) -> str:
    return f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"


def claude(n: int, *, keeps: bool = False, side: int = 0, same_parent: bool = False, queued: bool = False) -> Iterator[Json]:
    """Turns of Claude Code, each compacted."""
    parent: str | None = None
    for number in range(n // 4):
        own = [f"{4 * number + k:08x}-4000-8000-0000-{4 * number + k:012x}" for k in range(4)]
        more: Json = {"sessionId": "s", "timestamp": at(number), "isSidechain": bool(side)}
        more |= {"agentId": f"agent{number % side}"} if side else {}
        yield {"type": "user", "uuid": own[0], "parentUuid": parent, **more, "message": {"role": "user", "content": f"question {number}"}}
        said = {"id": f"m{number}", "role": "assistant", "model": "claude-x", "content": [{"type": "text", "text": "answer"}]}
        yield {"type": "assistant", "uuid": own[1], "parentUuid": own[0], **more, "message": said}
        if queued:
            yield {"type": "queue-operation", "operation": "enqueue", "content": f"later {number}", **more}
            yield {"type": "queue-operation", "operation": "remove" if number % 2 else "enqueue", "content": f"more {number}", **more}
        else:
            first = "00000000-4000-8000-0000-000000000000"
            about: Json = {"trigger": "auto", "preTokens": 5} | (
                {"preservedSegment": {"headUuid": first, "tailUuid": own[1]}} if keeps else {}
            )
            yield {"type": "system", "subtype": "compact_boundary", "uuid": own[2], "parentUuid": own[1], **more, "compactMetadata": about}
            summary = {"role": "user", "content": "summary"}
            yield {"type": "user", "isCompactSummary": True, "uuid": own[3], "parentUuid": own[2], **more, "message": summary}
        parent = "root" if same_parent else own[1 if queued else 3]


def codex(n: int, *, history: bool = False, rolled_back: bool = False, copies: bool = False) -> Iterator[Json]:
    """Turns of Codex, each compacted."""

    def line(kind: str, **payload: Any) -> Json:
        return {"timestamp": "2026-03-01T00:00:00Z", "type": kind, "payload": payload}

    def said(role: str, text: str) -> Json:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    for number in range(n // 2 if rolled_back else 0):
        yield line("response_item", **said("user", f"question {number}"))
    for number in range(n // 6 if rolled_back else n // 3):
        yield line("response_item", **said("user", "yes" if copies else f"question {number}"))
        if not rolled_back:
            yield line("response_item", **said("assistant", f"answer {number}"))
        yield line("compacted", message="summary", **({"replacement_history": [said("user", "yes")]} if history else {}))
        if rolled_back:
            yield line("event_msg", type="thread_rolled_back", num_turns=1)


def pi(n: int) -> Iterator[Json]:
    """Turns of pi, each compacted, and the last hundred entries kept."""
    yield {"type": "session", "id": "p", "cwd": "/p", "timestamp": at(0)}
    for number in range(n // 2):
        own = {"timestamp": at(number), "id": f"u{number}", "parentId": f"c{number - 1}" if number else None}
        yield {"type": "message", **own, "message": {"role": "user", "content": f"question {number}"}}
        kept = f"u{max(0, number - 50)}"
        yield {
            "type": "compaction",
            "timestamp": at(number),
            "id": f"c{number}",
            "parentId": f"u{number}",
            "summary": "s",
            "firstKeptEntryId": kept,
        }


def copilot(n: int, *, agents: bool = False) -> Iterator[Json]:
    """Turns of Copilot CLI, each compacted; or each of a sub-agent of its own."""

    def line(kind: str, own: str, **data: Any) -> Json:
        return {"type": kind, "id": own, "parentId": None, "timestamp": at(0), "data": data}

    yield line("session.start", "s", sessionId="s", copilotVersion="1")
    for number in range(n // 2):
        more = {"parentToolCallId": f"agent{number}"} if agents else {}
        yield line("user.message", f"u{number}", content=f"question {number}", transformedContent=f"question {number}", **more)
        if agents:
            yield line("assistant.message", f"a{number}", content="answer", **more)
        else:
            yield line("session.compaction_complete", f"c{number}", success=True, summaryContent="summary")


def gemini(n: int) -> Iterator[Json]:
    """Turns of Gemini CLI, each written again, and taken back."""
    yield {"sessionId": "g", "projectHash": "h"}
    for number in range(n // 3):
        yield {"type": "user", "id": f"u{number}", "timestamp": at(number), "content": f"question {number}"}
        yield {"type": "gemini", "id": "same", "timestamp": at(number), "content": "answer"}
        yield {"$rewindTo": f"u{number}"} if number % 2 else {"type": "user", "id": "same", "content": "again"}


def openhands(n: int, *, ranges: bool = False) -> Iterator[Json]:
    """Events of OpenHands, condensed again and again."""
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
    """Messages of OpenAI's chat API: one call id for all, or a list a line."""
    for number in range(n // 3):
        own = ids or f"c{number}"
        call = {"id": own, "type": "function", "function": {"name": "f", "arguments": json.dumps({"n": number})}}
        turn: list[Json] = [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": own, "content": "result"},
        ]
        if lists:
            yield {"messages": turn}
        else:
            yield from turn


def aider(n: int) -> str:
    """Sessions of aider."""
    return "".join(f"# aider chat started at 2026-03-01 00:00:00\n\n#### question {k}  \n\nanswer\n\n" for k in range(n // 6))


def reading(lines: Callable[[int], Iterator[Json] | str], name: str = "log.jsonl") -> Pattern:
    """Read a log."""

    def work(n: int, count: Count) -> Work:
        made = lines(n)
        text = made if isinstance(made, str) else "".join(json.dumps(line) + "\n" for line in made)
        done = Work()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            with count(done):
                read_account(path)
        return done

    return work


# Sessions that grow


def characters(text: str) -> int:
    """Count tokens at no cost, so that the engine is what is measured."""
    return len(text) // 4


def manager(budget: int) -> ContextWindowManager:
    return ContextWindowManager("claude-sonnet-5-5", token_counter=characters, context_window=ContextWindow(max_tokens=budget))


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
    """Outputs that come long after their calls."""
    for number in range(n):
        session.append(Message("user", f"question {number}"))
        session.append(FunctionCall("read", "{}", f"c{number}"))
    for number in range(n):
        yield FunctionCallOutput("read", OUTPUT, f"c{number}")


def same_id(session: Session, n: int) -> Iterator[Any]:
    """Calls that all have one id, then outputs that all answer it."""
    for number in range(n // 2):
        session.append(FunctionCall("read", json.dumps({"n": number}), "same"))
    for _ in range(n // 2):
        yield FunctionCallOutput("read", OUTPUT, "same")


def alike(make: Callable[[int], Any]) -> Callable[[Session, int], Iterator[Any]]:
    """A turn, then n items of one kind."""

    def items(session: Session, n: int) -> Iterator[Any]:
        session.append(Message("user", "go"))
        session.append(Message("assistant", "yes"))
        for number in range(n):
            yield make(number)

    return items


def among_turns(make: Callable[[int], Any]) -> Callable[[Session, int], Iterator[Any]]:
    """Turns of an item of one kind, a question and an answer."""

    def items(_: Session, n: int) -> Iterator[Any]:
        for number in range(n // 3):
            yield make(number)
            yield Message("user", f"question {number}")
            yield Message("assistant", "answer " * 8)

    return items


def picture(number: int) -> Message:
    return Message("user", [Text(f"look {number}"), Image(data=PNG)])


def agents(session: Session, n: int) -> Iterator[Any]:
    """Answers of two agents by turns, each a response of its own."""
    session.append(Message("user", "go"))
    for number in range(n):
        yield Message("assistant", "answer", agent_id=f"agent {number % 2}")


def reported(session: Session, n: int) -> Iterator[Any]:
    """Calls in one response, after an answer whose request was reported."""
    session.append(Message("user", "go"))
    session.append(Message("assistant", "yes", usage=Usage(input_tokens=100, output_tokens=5)))
    session.append(Message("user", "go on"))
    yield from parallel(session, n)


def thoughtful(_: Session, n: int) -> Iterator[Any]:
    """Turns with sealed thoughts, whose calls are answered late."""
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


def appending(items: Callable[[Session, int], Iterator[Any]], budget: int = BUDGET) -> Pattern:
    """Append each item and process the session."""

    def work(n: int, count: Count) -> Work:
        one, session, done = manager(budget), Session(), Work()
        waiting = items(session, n)
        first = next(waiting)
        one.process_session(session)
        with count(done):
            for item in (first, *waiting):
                session.append(item)
                one.process_session(session)
        return done

    return work


def whole(items: Callable[[Session, int], Iterator[Any]], act: Callable[[Session], object]) -> Pattern:
    """Do one thing to a whole session."""

    def work(n: int, count: Count) -> Work:
        session, done = Session(), Work()
        for item in items(session, n):
            session.append(item)
        with count(done):
            act(session)
        return done

    return work


def merged(session: Session) -> None:
    fork = session.fork()
    fork.add_message("user", "beside")
    session.add_message("user", "here")
    asyncio.run(session.merge(fork))


def stored(items: Callable[[Session, int], Iterator[Any]]) -> Pattern:
    """Save a session after every item, and load it."""

    def work(n: int, count: Count) -> Work:
        session, done = Session(id="s"), Work()
        waiting = items(session, n)
        with tempfile.TemporaryDirectory() as folder, SessionStore(Path(folder, "sessions.db")) as store, count(done):
            for item in waiting:
                session.append(item)
                store.save(session)
            store.load("s")
        return done

    return work


READS: dict[str, Pattern] = {
    "claude_code: compactions": reading(claude),
    "claude_code: compactions that preserve all": reading(partial(claude, keeps=True)),
    "claude_code: sub-agents": reading(partial(claude, side=1_000_000)),
    "claude_code: branches from one record": reading(partial(claude, same_parent=True)),
    "claude_code: prompts in the queue": reading(partial(claude, queued=True)),
    "codex: compactions": reading(codex),
    "codex: compactions with a history": reading(partial(codex, history=True, copies=True)),
    "codex: compactions rolled back": reading(partial(codex, history=True, rolled_back=True)),
    "pi: compactions": reading(pi),
    "copilot_cli: compactions": reading(copilot),
    "copilot_cli: sub-agents": reading(partial(copilot, agents=True)),
    "gemini_cli: rewinds and messages written again": reading(gemini),
    "openhands: condensations": reading(openhands),
    "openhands: condensations of ranges": reading(partial(openhands, ranges=True)),
    "opencode: compactions": reading(opencode, "log.json"),
    "message_lists: one call id": reading(chat),
    "message_lists: a list a line": reading(partial(chat, ids="", lists=True)),
    "aider: sessions": reading(aider, ".aider.chat.history.md"),
}
KINDS: dict[str, Callable[[Session, int], Iterator[Any]]] = {
    "turns": turns,
    "calls in one response": parallel,
    "late answers": late,
    "one call id": same_id,
    "users' messages": alike(lambda number: Message("user", f"question {number} " * 3)),
    "pinned messages": alike(lambda number: Message("user", f"question {number} " * 3, pinned=True)),
    "system messages": alike(lambda number: Message("system", f"rule {number} " * 3)),
    "system messages among turns": among_turns(lambda number: Message("system", f"rule {number} " * 3)),
    "pinned messages among turns": among_turns(lambda number: Message("user", f"question {number} " * 3, pinned=True)),
    "handoffs among turns": among_turns(lambda number: AgentHandoff(f"b{number}", "a")),
    "config updates among turns": among_turns(lambda number: AgentConfigUpdate(f"be {number}")),
    "images among turns": among_turns(picture),
    "pinned images among turns": among_turns(lambda number: replace(picture(number), pinned=True)),
    "calls in one response, with a report": reported,
    "late answers to thoughts": thoughtful,
    "answers of agents by turns": agents,
    "compactions": compacted,
}
ACTS: dict[str, Callable[[Session], object]] = {
    "to Anthropic": lambda session: session.to_anthropic_messages(caching=True),
    "to OpenAI chat": lambda session: session.to_openai_messages(),
    "to OpenAI Responses": lambda session: session.to_openai_responses(),
    "to Google": lambda session: asyncio.run(session.to_google_contents()),
    "plan_session": lambda session: manager(BUDGET).plan_session(session),
    "trim_session": lambda session: manager(BUDGET).trim_session(session),
    "usage": lambda session: manager(BUDGET).usage(session),
    "saved and loaded": lambda session: Session.from_dict(json.loads(json.dumps(session.to_dict()))),
    "merged with a fork": merged,
}
PATTERNS: dict[str, Pattern] = {
    **{f"read {name}": work for name, work in READS.items()},
    **{f"append and process: {name}": appending(items) for name, items in KINDS.items()},
    **{f"stored after every item: {name}": stored(items) for name, items in KINDS.items()},
    **{f"{act}: {name}": whole(items, do) for act, do in ACTS.items() for name, items in KINDS.items()},
}


def exponent(amounts: list[float]) -> float:
    """Return the exponent with which work grows: the mean over the last two doublings, where what is constant counts least."""
    return log2(amounts[-1] / amounts[-3]) / 2 if amounts[-3] else 0.0


def measured(name: str, smallest: int, count: Count) -> list[float]:
    """Return the work of a pattern at four sizes."""
    PATTERNS[name](smallest, count)  # what is imported or cached the first time is no growth
    return [PATTERNS[name](smallest * step, count).amount for step in STEPS]


def main(arguments: list[str]) -> int:
    seconds = "--seconds" in arguments
    wanted = [one for one in arguments if not one.startswith("-")]
    smallest, unit = (1_000, "µs") if seconds else (125, "lines")
    above = 0
    print(f"{unit} a record at n = {', '.join(f'{smallest * step:,}' for step in STEPS)}, and the exponent")
    for name in PATTERNS:
        if wanted and not any(one in name for one in wanted):
            continue
        amounts = measured(name, smallest, seconds_counted if seconds else lines_counted)
        grows = exponent(amounts)
        above += grows > BOUND
        figures = "".join(f"{amount / (smallest * step):>9.1f}" for amount, step in zip(amounts, STEPS, strict=True))
        print(f"{name:<60}{figures}  {grows:5.2f}{'  ABOVE' if grows > BOUND else ''}", flush=True)
    if above:
        print(f"{above} above {BOUND}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
