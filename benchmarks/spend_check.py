"""Compares what `context-window spend` counts with a count over the raw JSON, figure by figure, and with ccusage and codeburn.

    python -m benchmarks.spend_check FOLDER                          # any folder of logs, such as ~/.claude/projects
    python -m benchmarks.spend_check FOLDER --ccusage PATH           # the program, after `npm install ccusage`
    python -m benchmarks.spend_check FOLDER --codeburn PATH          # the same, after `npm install codeburn`; it needs Node 22

The exit status is 1 if a figure of the raw count differs. That count shares no code with the library. It finds the files, knows each
tool's field names, and keeps, of several reports of a request, the one with the most output tokens. The others have other rules; their
differences are printed, and `benchmarks/README.md` explains them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from context_window.spend import SpendRow, find_logs, read_ledger, spend_by

FIGURES = ("input", "cache read", "cache write", "output")
Sums = tuple[int, ...]
"""Tokens in the order of `FIGURES`. None is in two of them."""

# The count over raw JSON


def values(path: Path) -> list[Any]:
    """The JSON values of a file: one document, or one a line. Broken lines are left out."""
    text = path.read_text("utf-8", "replace")
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def within(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value, outer ones first."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from within(inner)


Report = tuple[str, Any, Sums]
"""A tool, the request's id (None if no other report can be of it), and the tokens."""


def line_reports(log: list[dict[str, Any]]) -> Iterator[Report]:
    """The reports of a log that has one event a line."""
    for line in log:
        kind, data = line.get("type"), line.get("data", {})
        message: Any = line.get("message")
        if kind == "progress" and isinstance(data, dict) and "message" in data:  # a sub-agent without a log of its own
            message, line = data["message"].get("message"), data["message"]  # noqa: PLW2901
        usage = message.get("usage") if isinstance(message, dict) else None
        if usage and "cacheRead" in usage:
            yield "pi", line.get("id"), (usage["input"], usage["cacheRead"], usage["cacheWrite"], usage["output"])
        elif usage:
            read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
            yield "claude_code", (message["id"], line.get("requestId")), (usage["input_tokens"], read, written, usage["output_tokens"])
        elif kind == "session.shutdown":
            for model in data["modelMetrics"].values():
                usage = model["usage"]
                read, written = usage["cacheReadTokens"], usage["cacheWriteTokens"]
                yield "copilot_cli", None, (usage["inputTokens"] - read - written, read, written, usage["outputTokens"])
    kinds = [line.get("type") for line in log]
    after = len(kinds) - kinds[::-1].index("session.shutdown") if "session.shutdown" in kinds else 0
    for line in log[after:] if "session.start" in kinds else ():  # of answers that no sums contain only the output is known
        if line["type"] == "assistant.message":
            yield "copilot_cli", None, (0, 0, 0, line["data"].get("outputTokens", 0))
    infos = [line["payload"]["info"] for line in log if isinstance(line.get("payload"), dict) and line["payload"].get("info")]
    states = [line["value"]["usage_to_metrics"] for line in log if line.get("key") == "stats"]
    for metrics in states[-1].values() if states else ():  # running totals
        usage = metrics["accumulated_token_usage"]
        read, written = usage["cache_read_tokens"], usage["cache_write_tokens"]
        yield "openhands", None, (usage["prompt_tokens"] - read - written, read, written, usage["completion_tokens"])
    if infos:  # running totals
        last = infos[-1]["total_token_usage"]
        yield "codex", None, (last["input_tokens"] - last["cached_input_tokens"], last["cached_input_tokens"], 0, last["output_tokens"])


def nested_reports(log: list[Any]) -> Iterator[Report]:
    """The reports of a log whose messages are somewhere within a document."""
    for value in within(log):
        tokens, metrics, response = value.get("tokens"), value.get("metrics"), value.get("model_response")
        if isinstance(value.get("extra"), dict):
            response = value["extra"].get("response")
        if isinstance(tokens, dict) and "tool" in tokens:
            yield "gemini_cli", value["id"], (tokens["input"] - tokens["cached"], tokens["cached"], 0, tokens["total"] - tokens["input"])
        elif isinstance(tokens, dict) and value.get("role") == "assistant":
            cache = tokens["cache"]
            yield "opencode", (value["id"], value["time"]["created"]), (tokens["input"], cache["read"], cache["write"], tokens["output"])
        elif isinstance(metrics, dict) and "cacheReadTokens" in metrics:
            read, written = metrics["cacheReadTokens"], metrics["cacheWriteTokens"]
            yield "cline", value["id"], (metrics["inputTokens"] - read - written, read, written, metrics["outputTokens"])
        elif isinstance(response, dict) and "prompt_tokens" in response.get("usage", ()):
            usage = response["usage"]
            read = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or usage.get("cache_read_input_tokens") or 0
            written = usage.get("cache_creation_input_tokens") or 0
            tool = "openhands" if "model_response" in value else "mini_swe_agent"
            yield tool, response["id"], (usage["prompt_tokens"] - read - written, read, written, usage["completion_tokens"])


def reports(path: Path) -> list[Report]:
    """The reports in a file."""
    log = values(path)
    lines = [value for value in log if isinstance(value, dict)]
    return list(line_reports(lines)) or list(nested_reports(log))


def raw_count(folder: Path) -> dict[str, Sums]:
    """The sums of each tool over all files below a folder."""
    known: dict[tuple[str, Any], Sums] = {}
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".json", ".jsonl"}):
        for place, (tool, key, sums) in enumerate(reports(path)):
            name = tool, (path, place) if key is None else key
            if name not in known or sums[-1] > known[name][-1]:
                known[name] = sums
    tools = sorted({tool for tool, _ in known})
    return {tool: tuple(map(sum, zip(*(sums for (of, _), sums in known.items() if of == tool), strict=True))) for tool in tools}


# The counts beside it


def rows_of(folder: Path) -> list[SpendRow]:
    """The rows of `context-window spend FOLDER --by tool`."""
    return spend_by("tool", read_ledger(find_logs([str(folder)])).requests)


def our_count(folder: Path) -> dict[str, Sums]:
    """The same of `context-window spend`."""
    return {
        row.name: (row.input_tokens, row.cache_read, row.cache_write + row.cache_write_1h, row.output_tokens) for row in rows_of(folder)
    }


Counts = dict[str, tuple[Sums, float]]
"""By tool, its tokens and US dollars."""


def homes_in(home: Path, folder: Path) -> dict[str, Path]:
    """The logs of Claude Code and Codex below a folder, where these tools keep them in a home: by session, or by day."""
    homes = {"claude_code": home / ".claude" / "projects", "codex": home / ".codex" / "sessions"}
    for place in homes.values():
        place.mkdir(parents=True)
    for path in folder.rglob("*.jsonl"):
        parts, tools = path.relative_to(folder).parts, {tool for tool, _, _ in reports(path)}
        end = parts.index("subagents") - 1 if "subagents" in parts else len(parts) - 1
        targets = {
            "claude_code": Path("-".join(parts[:end]) or "-", *parts[end:]),
            "codex": Path("2026", "01", "01", f"rollout-{path.name}"),
        }
        for tool in tools & homes.keys():
            target = homes[tool] / targets[tool]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return homes


def output_of(program: str, arguments: list[str], home: Path, homes: dict[str, Path]) -> Any:
    """The JSON that a program prints in a home."""
    own = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(homes["claude_code"].parent), "CODEX_HOME": str(homes["codex"].parent)}
    done = subprocess.run([program, *arguments], env=os.environ | own, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def ccusage_count(folder: Path, program: str) -> Counts:
    """What ccusage counts in the logs of Claude Code and Codex below a folder."""
    counts: Counts = {}
    with tempfile.TemporaryDirectory() as home:
        homes = homes_in(Path(home), folder)
        for tool, command in {"claude_code": "claude", "codex": "codex"}.items():
            arguments = [command, "daily", "--json", "--offline", "--timezone", "UTC"]
            total = output_of(program, arguments, Path(home), homes)["totals"]
            sums = total["inputTokens"], total["cacheReadTokens"], total["cacheCreationTokens"], total["outputTokens"]
            counts[tool] = sums, total.get("totalCost", total.get("costUSD"))
    return counts


def codeburn_count(folder: Path, program: str) -> Counts:
    """What codeburn counts in them."""
    counts: Counts = {}
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
    with tempfile.TemporaryDirectory() as home:
        arguments = ["models", "--from", "2024-01-01", "--to", "2027-12-31", "--min-cost", "0", "--format", "json"]
        models = output_of(program, arguments, Path(home), homes_in(Path(home), folder))
    for tool, provider in {"claude_code": "claude", "codex": "codex"}.items():
        rows = [model for model in models if model["provider"] == provider]
        counts[tool] = tuple(sum(model[name] for model in rows) for name in names), sum(model["costUSD"] for model in rows)
    return counts


def our_money(folder: Path) -> dict[str, str]:
    """US dollars by tool, with a `+` if the price of some requests is unknown."""
    return {row.name: f"{row.cost:.2f}{'+' if row.unpriced else ''}" for row in rows_of(folder)}


OTHERS = {"ccusage": ccusage_count, "codeburn": codeburn_count}
"""Other programs, and what counts with them."""


def row(name: str, count: str, sums: Sums) -> str:
    """A row of the table."""
    return f"| {name} | {count} | " + " | ".join(f"{figure:,}" for figure in sums) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of logs")
    for name in OTHERS:
        parser.add_argument(f"--{name}", metavar="PATH", help=f"the program {name}, to compare with it too")
    options = parser.parse_args()
    folder = options.folder.expanduser()
    raw, ours = raw_count(folder), our_count(folder)
    print("| tool | count | " + " | ".join(FIGURES) + " |\n|---|---|--:|--:|--:|--:|")
    differences = 0
    for tool in sorted(raw.keys() | ours.keys()):
        none = (0,) * len(FIGURES)
        mine, theirs = ours.get(tool, none), raw.get(tool, none)
        is_same = mine == theirs
        print(row(tool, "both" if is_same else "spend", mine))
        if not is_same:
            differences += 1
            print(row(tool, "raw JSON", theirs))
    for name, count in OTHERS.items():
        if (program := getattr(options, name)) is None:
            continue
        money = our_money(folder)
        print("\n| tool | count | " + " | ".join(FIGURES) + " | US dollars |\n|---|---|--:|--:|--:|--:|--:|")
        for tool, (sums, dollars) in count(folder, program).items():
            print(row(tool, name, sums) + f" {dollars:.2f} |")
            mine = ours.get(tool, (0,) * len(FIGURES))
            print(row(tool, "spend", mine) + f" {money.get(tool, '0.00')} |")
            print(row(tool, f"spend - {name}", tuple(a - b for a, b in zip(mine, sums, strict=True))) + " |")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
