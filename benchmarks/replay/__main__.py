"""The command: see the package's docstring, and `--help`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from .check import broken_ratios
from .peers import peer_policies, peer_versions
from .plot import plot
from .policies import Named, chosen_policies, known_policies
from .replay import Outcome, replay
from .sessions import Recording, recordings
from .table import sentence, tables

WINDOWS, QUICK_WINDOWS = "10,25,50", "25,50"
QUICK_TOKENS = 33_000
"""Tokens of the largest session of a quick run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code: 1 if a ratio is broken, 2 if there is nothing to replay."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description="What views of recorded sessions are worth.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="FOLDER", help="logs of any format, or folders of logs")
    parser.add_argument("--windows", help=f"in percent of each session's tokens (default: {WINDOWS}; if quick: {QUICK_WINDOWS})")
    parser.add_argument("--policies", default="", help="names, separated by commas; or module:name (default: all)")
    parser.add_argument(
        "--peers", metavar="PYTHON", help="also other packages: the interpreter of the environment by benchmarks/peers/env.sh"
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write a plot of what was at hand, and of the bill")
    parser.add_argument("--quick", action="store_true", help=f"sessions of up to {QUICK_TOKENS:,} tokens; fail if a ratio is broken")
    split = parser.add_mutually_exclusive_group()
    split.add_argument("--held-out", action="store_true", help="the third of the sessions that nothing may be tuned on")
    split.add_argument("--all", action="store_true", help="all sessions (default: the two thirds for tuning)")
    options = parser.parse_args(arguments)
    if find_spec("scipy") is None:
        return _failure("the limit is a linear programme, which needs scipy; install it with: pip install '.[bench]'")
    if missing := [path for path in options.paths if not path.exists()]:
        return _failure(f"there is no {missing[0]}; name a log or a folder of logs")
    try:
        percents = [int(percent) for percent in (options.windows or (QUICK_WINDOWS if options.quick else WINDOWS)).split(",")]
        named = policies_of([name for name in options.policies.split(",") if name], options.peers)
    except (ValueError, LookupError) as error:
        return _failure(str(error))
    chosen = [
        recording for recording in recordings(options.paths) if options.all or options.quick or recording.held_out is options.held_out
    ]
    if options.quick:
        chosen = [recording for recording in chosen if recording.tokens <= QUICK_TOKENS]
    outcomes = replay_all(chosen, percents, list(named), options.peers)
    if not outcomes:
        return _failure("there is no session here that is long enough; name a log or a folder of logs")
    print(heading(options.peers))
    print(tables(outcomes, {name: policy.label for name, policy in named.items()}))
    if (told := sentence(outcomes, "extract", "drop-oldest", 25)) is not None:
        print(told)
    if options.svg is not None:
        options.svg.write_text(plot(outcomes, {name: policy.label for name, policy in named.items()}), encoding="utf-8")
    broken = broken_ratios(outcomes) if options.quick else []
    for ratio in broken:
        print(f"broken: {ratio}", file=sys.stderr)
    return 1 if broken else 0


def heading(peers: str | None) -> str:
    """Return a line with the date and the versions that were measured."""
    versions = {name: version(name) for name in ("context-window", "tiktoken", "scipy")} | (peer_versions(peers) if peers else {})
    today = datetime.now(UTC).date().isoformat()
    return f"{today}, Python {platform.python_version()}, {', '.join(f'{name} {number}' for name, number in versions.items())}\n"


def policies_of(names: Sequence[str], peers: str | None) -> dict[str, Named]:
    """Return the policies of these names, or all; those of other packages are known if there is an interpreter that has them."""
    return chosen_policies(names, {**known_policies(), **(peer_policies(peers) if peers else {})})


def replay_all(chosen: Sequence[Recording], percents: Sequence[int], names: Sequence[str], peers: str | None = None) -> list[Outcome]:
    """Replay the sessions, on every core, and return their outcomes.

    Args:
        chosen: The sessions.
        percents: The windows, in percent of each session's tokens.
        names: The names of the policies.
        peers: The interpreter of the environment of other packages; None to leave them out.
    """
    one = partial(_replay_one, percents=percents, names=names, peers=peers)
    if len(chosen) < 2:
        return [outcome for recording in chosen for outcome in one(recording)]
    largest_first = sorted(chosen, key=lambda recording: -len(recording.items))
    with ProcessPoolExecutor(min(len(chosen), os.cpu_count() or 1)) as pool:
        return [outcome for outcomes in pool.map(one, largest_first) for outcome in outcomes]


def _replay_one(recording: Recording, percents: Sequence[int], names: Sequence[str], peers: str | None) -> list[Outcome]:
    return replay(recording, percents, {name: named.policy for name, named in policies_of(names, peers).items()})


def _failure(text: str) -> int:
    print(text, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
