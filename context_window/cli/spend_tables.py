"""What every table of `context-window spend` says of the logs it is about, and tables as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..alike import did_you_mean
from ..printable import printable

if TYPE_CHECKING:
    from datetime import tzinfo

    from ..spend import Ledger, SpendRow
    from ..spend.pace import BlockPace
    from ..spend.tables import Filter

NAMED = 4
"""Values of a filter that are named if it has another one."""
TITLED = 40
"""Sessions whose titles are looked up, a hundredth of a second each."""
SHORT_IDS = (8, 13)
"""Characters of a session's id that are shown if no other session shown begins so."""
FORMULAS = ("=", "+", "-", "@")


def csv_of(values: Sequence[dict[str, Any]], columns: Iterable[str]) -> str:
    """Return rows as CSV, with their keys as the head. A text that a spreadsheet would run as a formula gets an apostrophe.

    Args:
        values: The rows.
        columns: The head if there are no rows.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(values[0] if values else columns)
    for row in values:
        name = printable(row["name"])  # one line, and nothing that a terminal would execute
        writer.writerow((row | {"name": f"'{name}" if name.lstrip().startswith(FORMULAS) else name}).values())
    return file.getvalue().rstrip("\n")


def about(ledger: Ledger, passes: Filter) -> dict[str, Any]:
    """Return what is known of the logs and the prices, and the days that were asked for, as JSON values."""
    from ..spend.tables import list_dates

    days = {"since": passes.since and passes.since.isoformat(), "until": passes.until and passes.until.isoformat()}
    counts = {"logs": ledger.logs, "deleted_logs": ledger.deleted, "repeated_requests": ledger.repeated}
    faults = [{"path": fault.path, "problem": fault.problem} for fault in ledger.faults]
    return {**days, **counts, "price_lists": list_dates(), "faults": faults}


def about_filter(ledger: Ledger, passes: Filter, passed: int) -> Iterator[str]:
    """Yield sentences on what is left out: how many requests, and if all are, which values of a filter there are.

    Args:
        ledger: All that was read.
        passes: The filter.
        passed: Number of requests that passed it.
    """
    from ..spend.names import last_part
    from ..spend.tables import PATTERNS, local_day

    count = len(ledger.requests)
    if passed:
        patterns = [f"{name} {getattr(passes, name)}" for name in PATTERNS if getattr(passes, name) != "*"]
        days = f"{passes.since or 'the first day'} to {passes.until or 'today'}" if passes.since or passes.until else ""
        if days or patterns:
            yield f"{', '.join(filter(None, [days, *patterns]))}: {passed:,} of {count:,} request{'' if count == 1 else 's'}."
    elif count:
        yield f"{'1 request was' if count == 1 else f'{count:,} requests were'} read; none passes the filters."
        for name in PATTERNS:
            pattern, values = getattr(passes, name), Counter(getattr(request, name) for request in ledger.requests)
            if not any(passes.fits(name, value) for value in values):
                known = dict.fromkeys(last_part(value) if name == "project" else value for value, _ in values.most_common() if value)
                yield f"None is of the {name} {pattern}; {did_you_mean(pattern.strip('*'), known, f'there are {_list(known)}')}"
        newest = max(filter(None, (local_day(request, zone=passes.zone) for request in ledger.requests)), default=None)
        if newest is not None:
            yield f"The newest is of {newest}."


def _list(names: Iterable[str]) -> str:
    first, rest = [*names][:NAMED], [*names][NAMED:]
    return f"{', '.join(first)}{f' and {len(rest):,} more' if rest else ''}."


def session_titles(rows: Sequence[SpendRow], ledger: Ledger, zone: tzinfo | None) -> dict[str, str]:
    """Return what sessions are called by their ids: the beginning of the id, which commands take, the day, the folder and the title.

    Only the first sessions have a title, for each is looked up in a log.

    Args:
        rows: The rows by session.
        ledger: All that was read.
        zone: The time zone of days. Default: the machine's.
    """
    from ..spend.names import last_part, local_time
    from ..top.titles import title_of

    ids = {row.name for row in rows}
    firsts: dict[str, tuple[float, str, str]] = {}
    for request, log in zip(ledger.requests, ledger.origins, strict=True):
        if request.session in ids:
            first = request.time or math.inf, request.project, log
            firsts[request.session] = min(first, firsts.get(request.session, first))
    beginnings = Counter(
        beginning for id_ in {request.session for request in ledger.requests} for beginning in {id_[:size] for size in SHORT_IDS}
    )
    names: dict[str, str] = {}
    for id_ in (row.name for row in rows if row.name in firsts):
        time, project, log = firsts[id_]
        day = local_time(time, zone)
        title = title_of(log, id_) if len(names) < TITLED else ""
        short = next((id_[:size] for size in SHORT_IDS if beginnings[id_[:size]] == 1), id_)
        words = [short, f"{day:%Y-%m-%d}" if day else "", last_part(project) if project else ""]
        names[id_] = " ".join(filter(None, words)) + (f": {title}" if title else "")
    return names


def pace_notes(paces: Iterable[BlockPace], zone: tzinfo | None) -> Iterator[str]:
    """Yield a sentence for each block that is going on: its pace, and what it comes to.

    Args:
        paces: The blocks.
        zone: The time zone of its end. Default: the machine's.
    """
    from ..spend.names import local_time

    for pace in paces:
        begun, end = (f"{time:%H:%M}" if (time := local_time(seconds, zone)) else "?" for seconds in (pace.begins, pace.ends))
        rate, dollars = (f" and ${amount:,.2f}" if amount is not None else "" for amount in (pace.cost_per_hour, pace.cost_at_end))
        yield (
            f"{pace.row.name} since {begun}: {pace.tokens_per_hour:,} tokens{rate} an hour; "
            f"at this pace {pace.tokens_at_end:,} tokens{dollars} when the block ends at {end}."
        )


def repeats(ledger: Ledger) -> Iterator[str]:
    """Yield sentences on the logs that no longer exist, and on the reports that were left out."""
    if ledger.deleted:
        logs = "1 log no longer exists and counts" if ledger.deleted == 1 else f"{ledger.deleted:,} logs no longer exist and count"
        yield f"{logs} by what earlier runs have read; --forget forgets that."
    if ledger.repeated == 1:
        yield "1 request is in several logs and was counted once."
    elif ledger.repeated:
        yield f"{ledger.repeated:,} reports repeat other logs and were left out."
