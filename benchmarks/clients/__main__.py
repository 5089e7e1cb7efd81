"""Runs the benchmark and prints its table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from .figures import Figures
from .live import compare
from .runs import CLAUDE_ROWS, CODEX_ROWS, QWEN_ROWS, run_claude_code, run_codex, run_qwen_code

CLIENTS = {"claude": (CLAUDE_ROWS, run_claude_code), "codex": (CODEX_ROWS, run_codex), "qwen": (QWEN_ROWS, run_qwen_code)}
HEAD = (
    "| {name}, {requests} requests | refused | $ | peak | cache lost | file being worked on whole | second reads blind "
    "| without task or rule | requests to find a line | edits given up |"
)
RULE = "|---|" + "--:|" * 9


def line(name: str, row: Figures) -> str:
    """Return a row of the table."""
    whole, blind = f"{row.whole} / {row.working}", f"{row.blind} / {row.notices}"
    cells = [name, row.refused, f"{row.dollars:.3f}", f"{row.peak:,}", row.lost, whole, blind, row.lacking, row.recovered, row.given_up]
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="What a window costs with a real assistant.")
    parser.add_argument("--clients", type=Path, help="the folder where npm installed the assistants")
    parser.add_argument("--client", choices=CLIENTS, default="claude")
    parser.add_argument("--requests", type=int, default=41, help="requests of the main conversation")
    parser.add_argument("--rows", default="direct,own-120,own-80,auto,120,80", help="ways to run it, of those in runs.py")
    parser.add_argument("--live", type=Path, metavar="FOLDER", help="compare what a real model does with and without recorded views")
    parser.add_argument("--dollars", type=Decimal, default=Decimal(1), help="what --live may spend (default 1)")
    parser.add_argument("--upstream", action="append", default=[], metavar="NAME=URL", help="another address of a provider, for --live")
    options = parser.parse_args(arguments)
    if options.live is not None:
        print(compare(options.live, options.dollars, dict(each.split("=", 1) for each in options.upstream)).text())
        return 0
    if options.clients is None:
        parser.error("name the folder where npm installed the assistants: --clients FOLDER")
    rows, run = CLIENTS[options.client]
    print(HEAD.format(name=options.client, requests=options.requests), RULE, sep="\n")
    for name in options.rows.split(","):
        print(line(rows[name].name, run(options.clients / "node_modules" / ".bin", rows[name], options.requests)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
