"""`context-window spend`: the tokens and the money of all sessions."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..printable import printable
from .days import PERIODS as NAMED_PERIODS
from .days import Day, day_named, today_in, zone_named
from .newest import complete_path
from .options import Command, TokenBudget
from .output import BAD_INPUT, BadInputError, complain, say, say_values, show
from .safe_write import STDOUT, Target, force_option
from .spend_reading import read_logs
from .spend_within import Within, dicts, within_window

if TYPE_CHECKING:
    from session.transcripts.reported_requests import Request

    from ..spend import Ledger, SpendRow

EPILOG = """\b
Examples:
  context-window spend week
  context-window spend --by model --since yesterday
  context-window spend ~/.codex/sessions --by session --sort cost --top 10
  context-window spend month --what-if auto
  context-window spend --by month --csv > months.csv
  context-window spend s3://bucket/logs --scheduler tls://10.0.0.1:8786 --parquet requests.parquet
"""

GROUPINGS = ("day", "week", "month", "block", "project", "branch", "model", "tool", "session", "agent")
PERIODS = GROUPINGS[:4]
"""Groupings by time, whose rows are in the order of time unless told otherwise."""
SORTS: dict[str, Callable[[SpendRow], Any]] = {
    "cost": lambda row: -row.cost,
    "total": lambda row: -row.total,
    "requests": lambda row: -row.requests,
    "name": lambda row: row.name,
}
FAULTS_SHOWN = 5
"""Logs with faults that are named one by one; `--json` has all."""


FILTERS = (
    click.option("--since", callback=day_named, metavar="DAY", help="First day: 2026-03-25, yesterday, monday, or 7d for seven days ago."),
    click.option("--until", callback=day_named, metavar="DAY", help="Last day."),
    click.option("--project", default="*", help="Only this folder: its last part, or a pattern with *."),
    click.option("--model", default="*", help="Only this model, or a pattern with *."),
    click.option("--tool", default="*", help="Only this assistant, such as claude_code, or a pattern with *."),
    click.option("--timezone", "zone", callback=zone_named, metavar="NAME", help="Time zone of days, such as UTC. Default: the machine's."),
    click.option("--scheduler", metavar="ADDRESS", help="Read on a Dask cluster: the address of its scheduler."),
    click.option("--trust-scheduler", "is_trusted", is_flag=True, help="Reach a scheduler on another machine without TLS."),
    click.option("--no-cache", is_flag=True, help="Read every log again, and keep nothing for the next run."),
)


def chosen(requests: Iterable[Request], zone: tzinfo | None, *, since: Day | None, until: Day | None, **patterns: str) -> list[Request]:
    """Return the requests that pass the filters of the command line.

    Args:
        requests: The requests.
        zone: The time zone of days. Default: the machine's.
        since: The first day.
        until: The last day.
        patterns: Patterns of the project, the model and the tool.
    """
    from ..spend import choose

    today = today_in(zone)
    first, last = (None if day is None else day(today) for day in (since, until))
    return choose(requests, since=first, until=last, zone=zone, **patterns)


def filter_options(command: Command) -> Command:
    """Add the options that choose requests and say how logs are read."""
    for option in reversed(FILTERS):
        command = option(command)
    return command


@click.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PERIOD] [PATH]...", shell_complete=complete_path)
@click.option("--by", "grouping", type=click.Choice(GROUPINGS), help="What a row sums up. [default: day; project for one day]")
@filter_options
@click.option("--sort", type=click.Choice(list(SORTS)), default=None, help="Order of the rows. [default: name for times, else cost]")
@click.option(
    "--what-if", "window", type=TokenBudget(min=1), metavar="N|auto", help="Also estimate what it would have cost within a window."
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N rows, and one for the others.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: rows, total, faults.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV, without the total.")
@click.option("--parquet", metavar="FILE", help="Write the requests as Parquet, one row each, for DuckDB and others.")
@force_option
def spend(
    paths: tuple[str, ...],
    grouping: str | None,
    sort: str | None,
    window: int | Literal["auto"] | None,
    top: int | None,
    zone: tzinfo | None,
    as_json: bool,
    as_csv: bool,
    parquet: str | None,
    force: bool,
    scheduler: str | None,
    is_trusted: bool,
    no_cache: bool,
    **filters: Any,
) -> None:
    """Show the tokens and the money that sessions have cost.

    Counts each request for which a log reports usage, and prices it by the price list of its day. PATH is a log, a folder of logs, a
    pattern, an address such as s3://bucket/logs, or - for a log on standard input. Without PATH, the logs of Claude Code, Codex,
    Copilot CLI, Gemini CLI, Qwen Code, Kimi, Amp, Goose, crush, Hermes, opencode, pi, Cline, Roo Code and Kilo Code are found where
    these tools write them, and aider's history of this folder. PERIOD is today, yesterday, week or month.
    """
    from ..spend import SpendRow, leading, parquet_of, spend_by
    from ..spend.limits import stated_limits
    from ..spend.tables import price_notes

    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other.")
    target = None if parquet is None else _target(parquet, paths, force=force)
    if paths and paths[0] in NAMED_PERIODS and not Path(paths[0]).exists():
        if filters["since"] or filters["until"]:
            raise click.UsageError(f"{paths[0]} says which days; leave out --since and --until.")
        filters["since"], filters["until"] = NAMED_PERIODS[paths[0]]
        grouping = grouping or ("project" if paths[0].endswith("day") else None)
        paths = paths[1:]
    grouping = grouping or "day"
    ledger = read_logs(paths, no_cache=no_cache, address=scheduler, is_trusted=is_trusted)
    requests = chosen(ledger.requests, zone, **filters)
    if target is not None:
        target.write(parquet_of(requests, zone=zone))
    rows = sorted(spend_by(grouping, requests, zone=zone), key=SORTS[sort or ("name" if grouping in PERIODS else "cost")])
    total = reduce(SpendRow.plus, rows, SpendRow("total"))
    rows = leading(rows, top)
    within = None if window is None else within_window(window, grouping, requests, rows, zone)
    if as_json:
        faults = [{"path": fault.path, "problem": fault.problem} for fault in ledger.faults]
        limits = [each.to_dict() for each in stated_limits(ledger.limits)]
        values = {"by": grouping, "rows": dicts(rows, within), "total": dicts([total], within)[0]}
        say_values(values | {"logs": ledger.logs, "repeated_requests": ledger.repeated, "faults": faults, "limits": limits})
    elif as_csv:
        say(_csv(dicts(rows, within)))
    elif ledger.logs:
        _show(grouping, rows, total, ledger, [*(() if within is None else [within.note]), *price_notes(requests)], within)
    if ledger.faults and not as_json:
        complain_of_faults(ledger)
    if paths and not ledger.logs:
        raise click.exceptions.Exit(BAD_INPUT)


def _target(name: str, paths: Sequence[str], *, force: bool) -> Target:
    """Return the file to write the requests to."""
    if name == STDOUT:
        raise BadInputError("--parquet needs the name of a file; for a file of that name, pass ./-")
    return Target(name, paths, force=force)


def _show(grouping: str, rows: Sequence[SpendRow], total: SpendRow, ledger: Ledger, notes: Sequence[str], within: Within | None) -> None:
    from ..display.spend import spend_lines

    footnotes = []
    if ledger.requests and not total.requests:
        count = f"{len(ledger.requests):,} requests were"
        footnotes.append(f"{'1 request was' if len(ledger.requests) == 1 else count} read; none passes the filters.")
    footnotes += notes
    if ledger.repeated:
        repeated = (
            "1 request is in several logs and was" if ledger.repeated == 1 else f"{ledger.repeated:,} reports repeat other logs and were"
        )
        footnotes.append(f"{repeated} {'counted once' if ledger.repeated == 1 else 'left out'}.")
    more = None if within is None else (within.head, [within.costs[row.name] for row in (*rows, total)])
    show(lambda width, glyphs: spend_lines(grouping, rows, total, footnotes, width, glyphs, more))


def _csv(values: Sequence[dict[str, Any]]) -> str:
    """Return the rows as CSV. A text that a spreadsheet would run as a formula gets an apostrophe."""
    from ..spend import SpendRow

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(values[0] if values else SpendRow("").to_dict())
    for row in values:
        name = printable(row["name"])  # one line, and nothing that a terminal would execute
        row["name"] = f"'{name}" if name.lstrip().startswith(("=", "+", "-", "@")) else name
        writer.writerow(row.values())
    return file.getvalue().rstrip("\n")


def complain_of_faults(ledger: Ledger, whole_list: str = "--json") -> None:
    """Name the first damaged logs on standard error, and the option that lists all of them."""
    for fault in ledger.faults[:FAULTS_SHOWN]:
        complain(f"{fault.path}: {fault.problem}")
    if len(ledger.faults) > FAULTS_SHOWN:
        complain(f"{len(ledger.faults) - FAULTS_SHOWN:,} more logs have faults; {whole_list} lists all")
