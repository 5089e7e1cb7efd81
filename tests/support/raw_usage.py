"""Counts reported usage from raw JSON, as simply as possible: the slow twin of `session/transcripts/request_readers.py`.

Each function returns input, cache reads, cache writes and output of one tool's logs; no token is in two of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Sums = tuple[int, int, int, int]


def lines(paths: Iterable[Path]) -> Iterator[Any]:
    for path in paths:
        for line in path.read_text("utf-8", "replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def added(reports: Iterable[Sums]) -> Sums:
    a, b, c, d = (sum(column) for column in zip(*reports, strict=True))
    return a, b, c, d


def claude_code(paths: Iterable[Path]) -> Sums:
    last: dict[tuple[str, str], Any] = {}
    for line in lines(paths):
        if line.get("type") == "progress" and line["data"].get("type") == "agent_progress":  # a sub-agent without a log of its own
            line = line["data"]["message"]  # noqa: PLW2901
        if line.get("type") == "assistant" and "usage" in line["message"]:
            last[line["message"].get("id"), line.get("requestId")] = line["message"]["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return added(tuple(usage.get(name) or 0 for name in names) for usage in last.values())  # type: ignore[misc]


def codex(paths: Iterable[Path]) -> Sums:
    """The log's own total: that of its last report."""
    reports = []
    for path in paths:
        infos = [line["payload"].get("info") for line in lines([path]) if line["payload"].get("type") == "token_count"]
        total = [info for info in infos if info][-1]["total_token_usage"]
        cached = total["cached_input_tokens"]
        reports.append((total["input_tokens"] - cached, cached, 0, total["output_tokens"]))
    return added(reports)


def gemini_cli(paths: Iterable[Path]) -> Sums:
    """The log's own totals of messages, less prompt, are the output."""
    tokens = [m["tokens"] for path in paths for m in json.loads(path.read_text())["messages"] if "tokens" in m]
    return added((t["input"] - t["cached"], t["cached"], 0, t["total"] - t["input"]) for t in tokens)


def pi(paths: Iterable[Path]) -> Sums:
    usages = [line["message"]["usage"] for line in lines(paths) if line.get("type") == "message" and "usage" in line["message"]]
    return added((u["input"], u["cacheRead"], u["cacheWrite"], u["output"]) for u in usages)


def cline(paths: Iterable[Path]) -> Sums:
    messages = {m["id"]: m["metrics"] for p in paths for m in json.loads(p.read_text()).get("messages", ()) if "metrics" in m}
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
    figures = [[metrics[name] for name in names] for metrics in messages.values()]
    return added((total - read - written, read, written, output) for total, read, written, output in figures)


def opencode(paths: Iterable[Path]) -> Sums:
    """By messages, where ours reads steps."""
    tokens = [m["info"]["tokens"] for p in paths for m in json.loads(p.read_text())["messages"] if "tokens" in m["info"]]
    return added((t["input"], t["cache"]["read"], t["cache"]["write"], t["output"]) for t in tokens)


def documents(paths: Iterable[Path]) -> Iterator[Any]:
    for path in paths:
        yield from [json.loads(path.read_text())] if path.suffix == ".json" else lines([path])


def mini_swe_agent(paths: Iterable[Path]) -> Sums:
    runs = [run for run in documents(paths) if isinstance(run, dict)]
    usages = [m["extra"]["response"]["usage"] for run in runs for m in run["messages"] if "response" in m.get("extra", {})]
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    return added((u["prompt_tokens"] - read, read, 0, u["completion_tokens"]) for u, read in zip(usages, cached, strict=True))


def openhands(paths: Iterable[Path]) -> Sums:
    """By response: each one is in several events."""
    usages = {}
    for document in documents(paths):
        entries = document["history"] if isinstance(document, dict) else document
        for event in [event for entry in entries for event in (entry if isinstance(entry, list) else [entry])]:
            response = event.get("tool_call_metadata", {}).get("model_response")
            if response:
                usages[response["id"]] = response["usage"]
    reports = []
    for usage in usages.values():
        read = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or usage.get("cache_read_input_tokens") or 0
        written = usage.get("cache_creation_input_tokens") or 0
        reports.append((usage["prompt_tokens"] - read - written, read, written, usage["completion_tokens"]))
    return added(reports)
