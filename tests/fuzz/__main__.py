"""The command: `python -m tests.fuzz --mutants 10000000 --processes 2`. Its exit status is 1 if a mutant broke the promise."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import tests.fuzz

from .checks import REFUSED
from .running import NAMED_MUTANTS_MAX, SECONDS_MAX, Tally, check, mutant, run_processes
from .targets import CHECKS, CORPUS, inputs

REPORT_EVERY = 10.0
"""Seconds between two lines of progress."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    options = _parser().parse_args(arguments)
    if options.reproduce:
        return _reproduce(options.reproduce, keep=options.keep)
    total, started = Tally(), time.monotonic()
    last_shown = started
    named: set[str] = set()

    def show() -> None:
        nonlocal last_shown
        for kind in total.faults.keys() - named:
            print(f"FAULT {kind}: {total.faults[kind][0]}", file=sys.stderr, flush=True)
            named.add(kind)
        if time.monotonic() - last_shown >= REPORT_EVERY:
            last_shown = time.monotonic()
            print(_figures(total, last_shown - started), file=sys.stderr, flush=True)

    print(f"{len(inputs())} inputs, seed {options.seed}", flush=True)
    seconds = options.minutes * 60 if options.minutes else float("inf")
    try:
        run_processes(total, options.seed, options.mutants, options.processes, seconds=seconds, target=options.target, on_progress=show)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    _report(total, time.monotonic() - started)
    return 1 if total.faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=tests.fuzz.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--mutants", type=int, default=100_000, help="how many to check (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="how many at a time (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=0, help="stop after this time (default: no limit)")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other mutants (default: %(default)s)")
    parser.add_argument("--target", choices=CHECKS, help="check only mutants for this reader of foreign data (default: all)")
    parser.add_argument("--reproduce", metavar="SEED.NUMBER", help="check this mutant alone, with the traceback of its fault")
    parser.add_argument("--keep", action="store_true", help="with --reproduce: make the mutant an input of every run")
    return parser


def _reproduce(name: str, *, keep: bool) -> int:
    seed, number = map(int, name.split("."))
    chosen, mutated = mutant(seed, number)
    print(f"{name}: from {chosen.name}, for the target {chosen.target}, read by {chosen.reader}")
    print(repr(mutated) if isinstance(mutated, bytes) else f"a value of type {type(mutated).__name__}")
    if keep and isinstance(mutated, bytes):
        CORPUS.mkdir(exist_ok=True)
        (CORPUS / f"{chosen.target}.{chosen.name}.{name}.mutant").write_bytes(mutated)
    print("no fault:", check(seed, number))
    return 0


def _figures(total: Tally, seconds: float) -> str:
    refused, faults = total.outcomes[REFUSED], total.outcomes["fault"]
    accepted = total.mutants - refused - faults
    rate = f"{total.mutants:,} mutants in {seconds:,.0f} s, {total.mutants / seconds if seconds else 0:,.0f} a second"
    return f"{rate}: {accepted:,} accepted, {refused:,} refused, {faults:,} faults"


def _report(total: Tally, seconds: float) -> None:
    print(_figures(total, seconds))
    for outcome, count in sorted(total.outcomes.items()):
        print(f"{count:>12,}  {outcome}")
    slowest, name = total.slowest
    print(f"slowest: {slowest:.3f} s ({name}); the limit is {SECONDS_MAX:g} s")
    for kind, names in sorted(total.faults.items(), key=lambda fault: -len(fault[1])):
        print(f"FAULT {len(names):,} × {kind}")
        for example in names[:NAMED_MUTANTS_MAX]:
            print(f"      python -m tests.fuzz --reproduce {example}")


if __name__ == "__main__":
    sys.exit(main())
