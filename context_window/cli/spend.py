"""`context-window spend`: the tokens and the money of all sessions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import date, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..alike import did_you_mean
from ..printable import printable
from .days import EXAMPLES, PERIODS, Day, day_named, period_named, today_in, zone_named
from .newest import complete_path
from .options import Command, TokenBudget
from .output import BAD_INPUT, BadInputError, complain, say, say_values, show
from .safe_write import STDOUT, Target, force_option
from .spend_reading import read_logs
from .spend_reasons import show_reasons
from .spend_tables import about, about_filter, csv_of, pace_notes, repeats, session_titles
from .spend_within import Within, dicts, within_window

if TYPE_CHECKING:
    from session.transcripts.reported_requests import Request

    from ..spend import Ledger, SpendRow
    from ..spend.tables import Filter

EPILOG = """\b
Examples:
  context-window spend week
  context-window spend month --by cause
  context-window spend --by model --since yesterday
  context-window spend ~/.codex/sessions --by session --sort cost --top 10
  context-window spend month --what-if auto
  context-window spend --by month --csv > months.csv
  context-window spend s3://bucket/logs --scheduler tls://10.0.0.1:8786 --parquet requests.parquet
"""

GROUPINGS = ("day", "week", "month", "block", "project", "branch", "commit", "pr", "model", "tool", "session", "agent")
REASONS = ("cause", "call", "server", "command", "skill")
"""Groupings of money alone: one request pays for several of them."""
EXPLAINED = ("commit", "pr", *REASONS)
"""Groupings for which the content of sessions is read."""
BY_TIME = GROUPINGS[:4]
"""Groupings by time, whose rows are in the order of time unless told otherwise."""
SORTS: dict[str, Callable[[SpendRow], Any]] = {
    "cost": lambda row: -row.cost,
    "total": lambda row: -row.total,
    "requests": lambda row: -row.requests,
    "name": lambda row: row.name,
}
BY = (
    f"What a row sums up: {', '.join(GROUPINGS)}. Or divide the money of each request among what it paid for, by {', '.join(REASONS)}. "
    "[default: day; project for one day]"
)
FAULTS_SHOWN = 5
"""Faults that are named, each with the first log that has it; `--json` has all."""


FILTERS = (
    click.option("--since", callback=day_named, metavar="DAY", help="First day: 2026-03-25, yesterday, monday, 2026-03, last week, or 7d."),
    click.option("--until", callback=day_named, metavar="DAY", help="Last day, or the period that it ends."),
    click.option("--project", default="*", help="Only this folder: its last part, or a pattern with *."),
    click.option("--model", default="*", help="Only this model, or a pattern with *."),
    click.option("--tool", default="*", help="Only this assistant, such as claude_code, or a pattern with *."),
    click.option("--timezone", "zone", callback=zone_named, metavar="NAME", help="Time zone of days, such as UTC. Default: the machine's."),
    click.option("--scheduler", metavar="ADDRESS", help="Read on a Dask cluster: the address of its scheduler."),
    click.option("--trust-scheduler", "is_trusted", is_flag=True, help="Reach a scheduler on another machine without TLS."),
    click.option("--no-cache", is_flag=True, help="Read every log again, and keep nothing for the next run."),
)


def filter_of(zone: tzinfo | None, *, since: Day | None, until: Day | None, **patterns: str) -> Filter:
    """Return the filter of the command line.

    Args:
        zone: The time zone of days. Default: the machine's.
        since: The first day.
        until: The last day.
        patterns: Patterns of the project, the model and the tool.
    """
    from ..spend.tables import Filter

    today = today_in(zone)
    first, last = (None if day is None else day(today) for day in (since, until))
    return Filter(first, last, zone=zone, **patterns)


def filter_options(command: Command) -> Command:
    """Add the options that choose requests and say how logs are read."""
    for option in reversed(FILTERS):
        command = option(command)
    return command


@click.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PERIOD] [PATH]...", shell_complete=complete_path)
@click.option("--by", "grouping", type=click.Choice((*GROUPINGS, *REASONS)), metavar="WHAT", help=BY)
@filter_options
@click.option("--sort", type=click.Choice(list(SORTS)), default=None, help="Order of the rows. [default: name for times, else cost]")
@click.option(
    "--what-if", "window", type=TokenBudget(min=1), metavar="N|auto", help="Also estimate what it would have cost within a window."
)
@click.option("--forget", is_flag=True, help="Forget what earlier runs have read of logs that no longer exist. Without it, they count.")
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
    forget: bool,
    **filters: Any,
) -> None:
    """Show the tokens and the money that sessions have cost.

    Counts each request for which a log reports usage, and prices it by the price list of its day. PATH is a log, a folder of logs, a
    pattern, an address such as s3://bucket/logs, or - for a log on standard input. Without PATH, the logs of Claude Code, Codex,
    Copilot CLI, Gemini CLI, Qwen Code, Kimi, Amp, Goose, crush, Hermes, opencode, pi, Cline, Roo Code and Kilo Code are found where
    these tools write them, and so are `context-window chat` and aider's history of this folder. PERIOD is today, yesterday, week, month,
    last month, a day of the week, a month such as april or 2026-04, or 7d for seven days.
    """
    from ..spend import parquet_of

    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other.")
    target = None if parquet is None else _target(parquet, paths, force=force)
    period, paths = _split(paths, today_in(zone))
    if period is not None:
        if filters["since"] or filters["until"]:
            raise click.UsageError("PERIOD says which days; leave out --since and --until.")
        filters["since"], filters["until"] = (lambda _, day=day: day for day in period)
    grouping = grouping or ("project" if period is not None and period[0] == period[1] else "day")
    if grouping in REASONS and (window is not None or sort == "total"):
        raise click.UsageError(
            f"--by {grouping} sums up money, not tokens; leave out {'--what-if' if window is not None else '--sort total'}."
        )
    passes = filter_of(zone, **filters)
    explained_if = passes if grouping in EXPLAINED else None
    ledger = read_logs(paths, no_cache=no_cache, address=scheduler, is_trusted=is_trusted, explained_if=explained_if, forget=forget)
    requests = list(filter(passes, ledger.requests))
    notes = list(about_filter(ledger, passes, len(requests)))
    if not requests and (as_json or as_csv):
        complain(" ".join(notes))
    if target is not None:
        target.write(parquet_of(requests, zone=zone))
    if grouping in REASONS:
        show_reasons(grouping, requests, ledger, passes, notes, sort=sort, top=top, as_json=as_json, as_csv=as_csv)
    else:
        _show_sums(grouping, requests, ledger, passes, notes, sort=sort, top=top, window=window, as_json=as_json, as_csv=as_csv)
    if ledger.faults and not as_json:
        complain_of_faults(ledger)
    if paths and not ledger.logs:
        raise click.exceptions.Exit(BAD_INPUT)


def _show_sums(
    grouping: str,
    requests: Sequence[Request],
    ledger: Ledger,
    passes: Filter,
    notes: Sequence[str],
    *,
    sort: str | None,
    top: int | None,
    window: int | Literal["auto"] | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show the sums of tokens and money."""
    from ..spend import SpendRow, leading, spend_by
    from ..spend.limits import stated_limits
    from ..spend.pace import block_paces
    from ..spend.tables import BLOCK, added, price_notes

    zone = passes.zone
    rows = sorted(spend_by(grouping, requests, zone=zone), key=SORTS[sort or ("name" if grouping in BY_TIME else "cost")])
    total = added("total", rows)
    rows = leading(rows, top)
    within = None if window is None else within_window(window, grouping, requests, rows, zone)
    paces = list(block_paces(requests, time.time())) if grouping == BLOCK else []
    if as_json:
        limits = [each.to_dict() for each in stated_limits(ledger.limits)]
        values = {"by": grouping, "rows": dicts(rows, within), "total": dicts([total], within)[0]}
        going_on = {"going_on": [pace.to_dict() for pace in paces]} if grouping == BLOCK else {}
        say_values(values | about(ledger, passes) | {"limits": limits} | going_on)
    elif as_csv:
        say(csv_of(dicts(rows, within), SpendRow("").to_dict()))
    elif ledger.logs:
        notes = [*notes, *pace_notes(paces, zone), *(() if within is None else [within.note]), *price_notes(requests), *repeats(ledger)]
        titles = session_titles(rows, ledger, zone) if grouping == "session" else {}
        _show(grouping, rows, total, notes, within, titles)


def _split(paths: tuple[str, ...], today: date) -> tuple[tuple[date, date] | None, tuple[str, ...]]:
    """Return the period that stands before the paths, in up to three words, and the paths.

    Raises:
        BadInputError: The first one is a single word or a date that is no file: a period, misspelt or unknown.
    """
    if not paths or Path(paths[0]).exists():
        return None, paths
    for count in (3, 2, 1):
        if (period := period_named(" ".join(paths[:count]), today)) is not None:
            return period, paths[count:]
    if paths[0].replace("-", "").isalnum():
        words = " ".join(word for word in paths[:2] if word.isalpha())
        hint = did_you_mean(words, PERIODS, f"periods are {EXAMPLES}")
        raise BadInputError(f"{printable(paths[0])} is neither a file nor a period; {hint}")
    return None, paths


def _target(name: str, paths: Sequence[str], *, force: bool) -> Target:
    """Return the file to write the requests to."""
    if name == STDOUT:
        raise BadInputError("--parquet needs the name of a file; for a file of that name, pass ./-")
    return Target(name, paths, force=force)


def _show(
    grouping: str, rows: Sequence[SpendRow], total: SpendRow, notes: Sequence[str], within: Within | None, titles: dict[str, str]
) -> None:
    from ..display.spend import spend_lines

    more = None if within is None else (within.head, [within.costs[row.name] for row in (*rows, total)])
    show(lambda width, glyphs: spend_lines(grouping, rows, total, notes, width, glyphs, more, titles))


def complain_of_faults(ledger: Ledger, whole_list: str = "--json") -> None:
    """Name the first log with each fault on standard error, how many others have it, and the option that lists all of them."""
    logs: dict[str, list[str]] = {}
    for fault in ledger.faults:
        logs.setdefault(fault.problem, []).append(fault.path)
    shown = list(logs.items())[:FAULTS_SHOWN]
    for problem, paths in shown:
        others = f" ({len(paths) - 1:,} other{'s' * (len(paths) > 2)} too; {whole_list} lists all)" if len(paths) > 1 else ""
        complain(f"{paths[0]}: {problem}{others}")
    if rest := len(ledger.faults) - sum(len(paths) for _, paths in shown):
        complain(f"{rest:,} more logs have faults; {whole_list} lists all")
