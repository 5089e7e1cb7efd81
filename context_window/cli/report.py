"""`context-window report`: tokens and money, or one session over time, as a page of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..printable import printable
from .options import Settings, max_tokens_option, model_option, session_option
from .output import complain, say, say_aside
from .safe_write import STDOUT, Target, force_option
from .spend import day_options, read_spend
from .timeline import read_timeline

if TYPE_CHECKING:
    from ..pages import Document

EPILOG = """\b
Examples:
  context-window report -o report.html
  context-window report ~/.codex/sessions --since 2026-03-01 -o march.html
  context-window report session.jsonl -o session.html
"""


@click.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("-o", "--output", "out", required=True, metavar="OUT", help="File to write, or - for standard output.")
@day_options
@max_tokens_option
@model_option
@session_option
@force_option
def report(paths: tuple[str, ...], out: str, force: bool, **options: Any) -> None:
    """Write tokens and money as an HTML page that needs no network.

    With one log, the page shows that session over time: the window at each request, what it cost, and where the cache broke. With
    several, with a folder or without PATH, it shows what all sessions have cost.

    OUT is readable only by its owner. An earlier report is replaced; any other file only with --force.
    """
    target = Target(out, paths, session=False, force=force or _is_report(out))
    page = _session_report(paths[0], options) if len(paths) == 1 and not Path(paths[0]).is_dir() else _spend_report(paths, options)
    target.write(page.html.encode())
    (say_aside if target.name == STDOUT else say)(printable(f"wrote {target.label}"))
