"""Runs the benchmark and prints its tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks.replay.sessions import recordings
from benchmarks.sessions import conversation
from session import Session

from .budget import Excess, excess
from .check import broken_promises
from .conversations import FORMATS, growing
from .cost import Cost, cost
from .crowd import Crowd, crowd
from .latency import Latency, latency
from .servers import UNLIMITED, Server, in_process, in_thread

Started = Callable[..., AbstractContextManager[Server]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of a run.

    Attributes:
        start: Starts a server.
        formats: Wire formats whose latency is measured.
        messages: Messages of their conversations.
        requests: Requests of each.
        window: Tokens of the small window.
        crowd: Conversations at once.
        crowd_messages: Messages of each.
        percents: Windows of recorded sessions, in percent of their tokens.
        recorded: Tools whose recorded sessions are replayed; none for a made-up session instead.
    """

    start: Started
    formats: Sequence[str]
    messages: int
    requests: int
    window: int
    crowd: int
    crowd_messages: int
    percents: Sequence[int]
    recorded: Sequence[str]


QUICK = Plan(in_thread, ["anthropic", "responses"], 100, 8, 20_000, 8, 30, [25], [])
FULL = Plan(in_process, list(FORMATS), 2_000, 33, 100_000, 50, 400, [25, 50], ["claude_code", "codex"])


def latencies_of(plan: Plan) -> list[Latency]:
    """Return the latencies of each wire format, with and without trims."""
    result: list[Latency] = []
    with plan.start("stub") as stub, plan.start("reference", stub.url) as reference:
        for name in plan.formats:
            bodies = growing(FORMATS[name], plan.messages, plan.requests, seed=17)
            for window in (UNLIMITED, plan.window):
                with plan.start("gateway", stub.url, window) as gateway:
                    result.append(latency(name, FORMATS[name], bodies, reference, gateway, trimmed=window == plan.window))
    return result


def crowds_of(plan: Plan) -> list[Crowd]:
    """Return the figures of many conversations at once, in a large window and in a small one."""
    wire = FORMATS["anthropic"]
    conversations = [growing(wire, plan.crowd_messages, 5, seed) for seed in range(plan.crowd)]
    result: list[Crowd] = []
    with plan.start("stub") as stub:
        for window in (UNLIMITED, plan.window):
            with plan.start("gateway", stub.url, window) as gateway:
                crowd(wire, [growing(wire, plan.crowd_messages, 2, seed=-1)], gateway, wire.prefix, window)  # loads what is loaded once
                result.append(crowd(wire, conversations, gateway, wire.prefix, window))
    return result


def costs_of(plan: Plan) -> list[Cost]:
    """Return the costs of recorded sessions, or of a made-up one."""
    if not plan.recorded:
        session = Session.from_openai(conversation(80, seed=3))
        return [cost("made up", tool, session.items, plan.window) for tool in ("claude_code", "codex")]
    return [
        cost(f"{each.tool}, {len(each.items)} items", each.tool, each.items, window)
        for each in recordings()
        if each.tool in plan.recorded
        for window in ["auto", *(each.tokens * percent // 100 for percent in plan.percents)]
    ]


def excesses_of(plan: Plan) -> list[Excess]:
    """Return how far requests of recorded sessions go above their budget."""
    replayed = (excess(each, percent / 100) for each in recordings() if each.tool in plan.recorded for percent in plan.percents)
    return [each for each in replayed if each is not None]


def print_excesses(excesses: Sequence[Excess]) -> None:
    """Print the requests above their budget as Markdown."""
    print("\n| session | budget | shortened requests | above it by more than 5 % | the largest, in parts of it |\n|---|--:|--:|--:|--:|")
    for each in excesses:
        name = each.name.split("/")[0] + (", held out" if each.held_out else "")
        print(f"| {name} | {each.budget:,} | {len(each.managed)} | {len(each.above)} | {each.largest:.2f} |")


def print_tables(latencies: Sequence[Latency], crowds: Sequence[Crowd], costs: Sequence[Cost]) -> None:
    """Print all figures as Markdown."""
    print(
        "| format | window | MB in | MB out | reference, ms | added, ms | multiple | first request, ms |\n|---|---|--:|--:|--:|--:|--:|--:|"
    )
    for each in latencies:
        window, multiple = "small" if each.trimmed else "large", 1 + each.added / each.reference
        print(f"| {each.name} | {window} | {each.size / 1e6:.2f} | {each.sent / 1e6:.2f}", end=" | ")
        print(f"{each.reference * 1e3:.1f} | {each.added * 1e3:.1f} | {multiple:.2f} | {each.cold * 1e3:,.0f} |")
    print("\n| conversations at once | requests | failed | requests a second | memory in parts of their JSON | idle |")
    print("|--:|--:|--:|--:|--:|--:|")
    for many in crowds:
        ratio = "–" if many.memory_ratio is None else f"{many.memory_ratio:.2f}"
        rate = f"{many.requests / many.seconds:.0f}"
        print(f"| {many.conversations} | {many.requests} | {many.failed} | {rate} | {ratio} | {many.idle_ratio:.2f} |")
    print(
        "\n| session | window | requests | trims | more written without a trim | cost in parts of that without |\n|---|--:|--:|--:|--:|--:|"
    )
    for each_cost in costs:
        managed, plain = each_cost.costs
        window = each_cost.max_tokens if each_cost.max_tokens == "auto" else f"{each_cost.max_tokens:,}"
        print(f"| {each_cost.name} | {window} | {len(each_cost.managed)} | {len(each_cost.breaks)}", end=" | ")
        print(f"{len(each_cost.extra_writes)} | {managed / plain:.2f} |")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark. Return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description="What the gateway costs: time, memory and the provider's cache.")
    parser.add_argument("--quick", action="store_true", help="small sizes, in one process; fails if a count or a ratio is broken")
    parser.add_argument("--only", choices=("latency", "crowd", "cost", "budget"), help="one of the parts")
    options = parser.parse_args(arguments)
    plan = QUICK if options.quick else FULL
    latencies = latencies_of(plan) if options.only in (None, "latency") else []
    crowds = crowds_of(plan) if options.only in (None, "crowd") else []
    costs = costs_of(plan) if options.only in (None, "cost") else []
    print_tables(latencies, crowds, costs)
    if options.only in (None, "budget"):
        print_excesses(excesses_of(plan))
    broken = broken_promises(latencies, crowds, costs)
    print(*broken, sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
