"""Measure the bounds of managed sessions against a provider whose tokenizer is independent of the library's counter.

    python benchmarks/managed_accuracy.py [--budget-part 3] [PATH ...]

Recorded sessions are replayed through a manager whose budget is a part of the log, so that views are trimmed. A simulated provider
counts each view with a tokenizer of its own, adds a system prompt that the library does not see, and reports the total. The report goes
to `record_usage`, or onto the response. No recorded report is used.

The tokenizer shares nothing with a BPE vocabulary: it cuts words into syllables of at most five letters, numbers into single digits,
and gives every sign, every line break and every indentation a token. So its count is no multiple of the library's: the ratio of the
two differs between prose, code and numbers.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accuracy import is_held_out
from session_steps import log_files

from context_window import ContextWindow, ContextWindowManager
from context_window.counting.documents import text_of
from context_window.counting.item_tokens import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter
from session import Session
from session.errors import SessionError
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, parts_of_item
from session.parts import Document, Text
from session.transcripts import read_transcripts
from session.units import grouping
from session.usage import Usage

UNSEEN = 6_000
"""Tokens of the simulated provider's requests that the library does not see."""
FRAME = 5
"""Tokens that it adds to every item."""
SEALED = 4
"""Characters of a signature for each token of reasoning that it hides."""
PIECES = re.compile(r"[A-Za-z]{1,5}|[^\W\d_]|\d|\n[ \t]*|[^\w\s]|_")
REQUESTS = 150
"""Requests of a session that are replayed."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a managed session. Amounts are tokens.

    Attributes:
        tool: The tool that wrote the log.
        held_out: True if no constant may be fitted on its session.
        bound: The manager's total.
        cost: The simulated provider's count.
        is_trimmed: True if the view has lost something since the request before.
    """

    tool: str
    held_out: bool
    bound: int
    cost: int
    is_trimmed: bool


def tokens_of(item: Item) -> int:
    """Return the simulated provider's count of an item."""
    match item:
        case FunctionCall():
            texts = [item.name, item.arguments]
        case Reasoning():
            texts = [item.text or "_" * (len(item.signature or "") // SEALED)]
        case Compaction():
            texts = [item.summary]
        case Message() | FunctionCallOutput():
            parts = parts_of_item(item)
            texts = [part.text for part in parts if isinstance(part, Text)] + [
                text_of(part) or "" for part in parts if isinstance(part, Document)
            ]
        case _:
            return 0
    return FRAME + sum(sum(1 for _ in PIECES.finditer(text)) for text in texts)


def replayed(session: Session, tool: str, held_out: bool, budget: int, *, on_items: bool) -> Iterator[Request]:
    """Yield the requests of a session under a budget, after the first, which has no report to start from.

    Args:
        session: The recorded session. Its reported usage is not used.
        tool: Goes into the requests.
        held_out: Goes into the requests.
        budget: Tokens of the budget.
        on_items: True to put reports onto the responses, False to pass them to `record_usage`.
    """
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=budget))
    starts = grouping(session).response_starts[:REQUESTS]
    log = Session()
    costs: dict[int, int] = {}  # by identity of an item in the log: a view shows the same objects, save those that it changes
    last_ids: set[str] = set()
    for number, (start, end) in enumerate(zip(starts, [*starts, len(session.items)][1:], strict=True)):
        if number == 0:
            for item in session.items[:start]:
                log.append(replace(item, usage=None))
        costs |= {id(item): tokens_of(item) for item in log.items if id(item) not in costs}
        view = manager.process_session(log)
        cost = UNSEEN + sum(costs[id(item)] if id(item) in costs else tokens_of(item) for item in view.items)
        ids = {item.id for item in view.items}
        if number:
            yield Request(tool, held_out, manager.get_token_usage()["total"], cost, not last_ids <= ids)
        last_ids = ids
        if not on_items:
            manager.record_usage(Usage(cost), log)
        usage = Usage(cost) if on_items else None
        notes = manager.answer_notes(log) if on_items else {}
        for item in session.items[start:end]:
            log.append(replace(item, usage=usage, extra={**item.extra, **notes}) if usage is not None else replace(item, usage=None))
            usage = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(description="Bounds of managed sessions against a provider with a tokenizer of its own.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="logs: files, or folders of them")
    parser.add_argument("--budget-part", type=int, default=2, metavar="N", help="the budget is the Nth part of the log (default 2)")
    options = parser.parse_args(arguments)
    measurer = Measurer(TiktokenCounter())
    lines = ["| reports | sessions | log | requests | covered | slack | over |", "|---|---|---|--:|--:|--:|--:|"]
    for on_items, way in ((False, "`record_usage`"), (True, "on items")):
        requests: list[Request] = []
        for path in log_files(options.paths):
            try:
                sessions = read_transcripts(path)
            except SessionError:
                continue
            for session in sessions:
                local = sum(measurer.measure(item).tokens for item in session.items)
                if len(grouping(session).response_starts) < 4 or any(isinstance(item, Compaction) for item in session.items):
                    continue
                source = session.metadata.get("source")
                tool = str(source.get("format")) if isinstance(source, dict) else path.parent.name
                held_out = is_held_out(f"{path.name}/{session.id}")
                budget = UNSEEN + local // options.budget_part
                requests += replayed(session, tool, held_out, budget, on_items=on_items)
        for is_held, name in ((True, "held out"), (False, "others")):
            side = [request for request in requests if request.held_out == is_held]
            groups = [("all", side), ("after a trim", [request for request in side if request.is_trimmed])]
            groups += [(tool, [request for request in side if request.tool == tool]) for tool in sorted({request.tool for request in side})]
            for label, group in groups:
                if group:
                    covered = sum(request.bound >= request.cost for request in group) / len(group)
                    slack = statistics.fmean(100 * max(0, request.bound - request.cost) / request.cost for request in group)
                    over = sum(5 * request.bound > 6 * request.cost for request in group) / len(group)
                    lines.append(f"| {way} | {name} | {label} | {len(group):,} | {covered:.1%} | {slack:.2f} % | {over:.1%} |")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
