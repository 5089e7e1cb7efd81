"""`context-window report`: tokens and money of all sessions, or one session over time, as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..printable import printable
from .options import CommandOptions, max_tokens_option, session_option
from .output import BadInputError, say, say_aside
from .packages import needs
from .safe_write import STDOUT, Target, output_options
from .spend import chosen, complain_of_faults, filter_options
from .spend_reading import read_logs
from .timeline import read_timeline

if TYPE_CHECKING:
    from ..pages import HtmlPage

EPILOG = """\b
Examples:
  context-window report -o report.html
  context-window report ~/.codex/sessions --since 2026-03-01 -o march.html
  context-window report session.jsonl -o session.html
"""
OF_ONE = ("max_tokens", "session_id")
"""Options for one log."""
OF_ALL = ("since", "until", "project", "model", "tool", "zone", "scheduler", "is_trusted", "no_cache")
"""Options for all logs."""


@click.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@output_options
@filter_options
@max_tokens_option
@session_option
@click.pass_context
def report(context: click.Context, /, paths: tuple[str, ...], out: str, force: bool, **options: Any) -> None:
    """Write a report as an HTML page that needs no network.

    With one log, the page shows that session over time: the window at each request, its cost, and where the cache broke. With
    several logs, a folder, or no PATH, it shows what all sessions have cost; the options that choose requests are those of spend.

    OUT is readable only by its owner. An existing file is replaced only with --force.
    """
    needs("pages", "a report", "jinja2")
    is_session = len(paths) == 1 and (paths[0] == "-" or Path(paths[0]).expanduser().is_file())
    _refuse(context, OF_ALL if is_session else OF_ONE, "are for several logs" if is_session else "are for one log")
    target = Target(out, paths, force=force)
    given = {name: options[name] for name in (OF_ONE if is_session else OF_ALL)}
    page = _session_report(paths[0], given) if is_session else _spend_report(paths, **given)
    target.write(page.html.encode(errors="replace"))
    (say_aside if target.name == STDOUT else say)(printable(f"wrote {target.label}"))


def _refuse(context: click.Context, names: Sequence[str], reason: str) -> None:
    """Refuse options that the page has no use for.

    Raises:
        UsageError: One of them was given.
    """
    named_options = {name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if named_options:
        flags = [option.opts[0] for option in context.command.params if option.name in named_options]
        raise click.UsageError(f"{', '.join(flags)}: such options {reason}.")


def _session_report(path: str, options: dict[str, Any]) -> HtmlPage:
    from ..reports import session_page

    result = read_timeline(path, CommandOptions(**options))
    return session_page(result.timeline, title=result.name)


def _spend_report(
    paths: Sequence[str], *, zone: tzinfo | None, scheduler: str | None, is_trusted: bool, no_cache: bool, **filters: Any
) -> HtmlPage:
    from ..reports import spend_page

    ledger = read_logs(paths, no_cache=no_cache, address=scheduler, is_trusted=is_trusted)
    if ledger.faults:
        complain_of_faults(ledger, "the report")
    if not ledger.logs:
        raise BadInputError("none of the logs could be read, so no report was written")
    requests = chosen(ledger.requests, zone, **filters)
    return spend_page(requests, zone=zone, repeated=ledger.repeated, faults=ledger.faults)
