"""Compares `spend --what-if`, which knows only the sizes of prompts, with a replay of the sessions: `python -m benchmarks.what_if FOLDER`.

A replay (`timeline --why`) decides on the texts as the gateway would. Sessions that no window changes are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from context_window.cli.options import CommandOptions
from context_window.spend import cost_of, find_logs, read_ledger
from context_window.spend.what_if import Window, what_if
from context_window.timeline import log_reports
from session.errors import SessionError
from session.transcripts import read_account


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each window."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.what_if", description=__doc__)
    parser.add_argument("folder")
    logs = find_logs([parser.parse_args(arguments).folder])
    windows: tuple[Window, ...] = ("auto", 60_000, 120_000)
    print("window   sessions  cost  replayed  estimated")
    for window in windows:
        rows = [row for log in logs if (row := compared(log, window)) is not None]
        print(f"{window!s:7}{len(rows):10}", *(f"{sum(column):9.2f}" for column in zip(*rows, strict=True)))


def compared(log: Path, window: Window) -> tuple[Decimal, Decimal, Decimal] | None:
    """Return what the session of a log cost, and would have cost by the replay and by the estimate; None if a window changes nothing."""
    with suppress(SessionError):
        account = read_account(log)
        session = account.sessions[0]
        manager, _ = CommandOptions(max_tokens=window, strategy="extract").manager(session)
        why = manager.why(session, log_reports(log, account, session))
        requests = read_ledger([log]).requests
        estimated = sum((cost_of(each) or Decimal(0) for each in what_if(requests, window).requests), Decimal(0))
        if why.savings.trims and why.savings.cost is not None and why.savings.managed_cost is not None:
            return why.savings.cost, why.savings.managed_cost, estimated
    return None


if __name__ == "__main__":
    main()
