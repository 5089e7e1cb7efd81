"""Runs the cases, and prints a line for each."""

from __future__ import annotations

import argparse
import ast
import csv
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from . import bills, windows, wires
from .case import Case, verdict_on

CASES = {**bills.CASES, **windows.CASES, **wires.CASES}
TESTED = {
    "B061": "tests/gateway/test_decoding.py",
    "B063": "tests/gateway/test_gateway_recall.py",
    "B098a": "tests/properties/test_bound_thinking.py",
    "B133": "tests/integrations/test_integrations_langchain.py",
    "B138": "tests/integrations/test_integrations_pydantic_ai.py",
    "B139": "tests/integrations/test_integrations_openai_agents.py",
}
"""Cases that a test runs with far more than a few lines."""


def asked(path: str, word: str) -> Iterator[tuple[str, str, Case | None]]:
    """Yield id, expectation and case of each row of a list; variants of ours follow the case that they vary."""
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if word not in row["kind"]:
                continue
            own = [name for name in CASES if name.rstrip("+") == row["id"]]
            for name in own:
                yield name, row["expected"], with_stated(CASES[name], row["expected"])
            if not own:
                yield row["id"], row["expected"], bills.priced(row["expected"]) or windows.windowed(row["expected"])


def with_stated(case: Case, expected: str) -> Case:
    """Return the case with what the list says is right, if that is a value of the same type rather than words."""
    try:
        value = ast.literal_eval(expected)
    except (ValueError, SyntaxError):
        return case
    return case._replace(expected=value) if type(value) is type(case.expected) else case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.public_cases", description=__doc__)
    parser.add_argument("csv", nargs="?", help="list of cases; default: all of ours")
    parser.add_argument("--only", default="", metavar="WORD", help="only kinds of the list that have this word")
    parser.add_argument("--write", metavar="FOLDER", type=Path, help="keep the logs of each case in a folder of its own here")
    options = parser.parse_args()
    cases = asked(options.csv, options.only) if options.csv else ((name, str(case.expected), case) for name, case in CASES.items())
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as home:
        os.environ |= {"CONTEXT_WINDOW_HOME": home, "COLUMNS": "120"}
        for name, expected, case in cases:
            if case is None:
                verdict = "tested" if name in TESTED else "cannot be run"
                reason = TESTED.get(name, "no recipe makes it from what is told")
            else:
                kept = None if options.write is None else options.write / name
                if kept is not None:
                    kept.mkdir(parents=True)
                verdict, found = verdict_on(case, kept)
                reason = f"{found}{f' ({case.note})' if case.note else ''}"
            counts[verdict] += 1
            print(f"{name:7} {verdict:13} expected: {expected:.70} | found: {reason:.160}")
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return int(bool(counts["wrong"] + counts["rough"]))


if __name__ == "__main__":
    sys.exit(main())
