"""`context-window usage`: where a transcript's tokens go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from .output import BAD_INPUT, BrokenPromiseError, complain, say, say_values, show
from .progress import working
from .readable import READABLE
from .settings import Settings, window_options

if TYPE_CHECKING:
    from ..manager import ContextWindowManager
    from ..usage import UsageReport
    from .reading import Transcript

EPILOG = """\b
Examples:
  context-window usage session.jsonl
  context-window usage ~/.claude/projects/my-project/*.jsonl --max-tokens 100000
  context-window usage session.jsonl --json | jq .categories
"""


@click.command(epilog=READABLE + EPILOG)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@window_options
@click.option("--json", "as_json", is_flag=True, help="The same numbers as JSON, one object a PATH, each on a line of its own.")
def usage(paths: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Show where the tokens of transcripts go.

    A row a category, with its share of the budget; `overhead` is what a request costs beside its items. Then tools by
    tokens, and the largest items. PATH is a session log, a saved session, or - for standard input.
    """
    from session.errors import SessionError

    from ..errors import ContextWindowError
    from .reading import read

    settings = Settings(**options)
    reports: list[UsageReport] = []
    faults = 0
    for path in paths:
        try:
            transcript = read(path, settings.session_id, settings.read_files_below)
            manager, budget_from = settings.manager(transcript.session)
            with working("counting tokens"):
                report = replace(manager.usage(transcript.session, title=transcript.name), budget_from=budget_from)
                others = _others(transcript, manager)
        except (SessionError, ContextWindowError, click.ClickException) as error:
            if len(paths) == 1:
                raise
            complain(error.message if isinstance(error, click.ClickException) else str(error))  # the others are shown all the same
            faults += 1
            continue
        if as_json:
            say_values(report.to_dict() | {"path": path, "other_sessions": others})
        else:
            _show(report, others, transcript, first=not reports)
        reports.append(report)
    if not as_json and len(paths) > 1:
        _sum_up(reports)
    if faults:
        raise click.exceptions.Exit(BAD_INPUT)
    over = [report for report in reports if report.over_budget]
    if settings.strict and over:
        worst = max(over, key=lambda report: -report.available)
        raise BrokenPromiseError(
            f"{worst.title} is over its budget by {-worst.available:,} tokens; see `context-window plan` for what can go"
        )


def _others(transcript: Transcript, manager: ContextWindowManager) -> list[dict[str, Any]]:
    """The other sessions of a transcript, counted by the same counter. They are in no sum: no request holds them."""
    return [
        {
            "session_id": one.id,
            "agent_id": one.metadata.get("agent_id"),
            "total": (stats := manager.analyze_session(one))["total_tokens"],
            "items": stats["item_count"],
        }
        for one in transcript.others
    ]


def _show(report: UsageReport, others: list[dict[str, Any]], transcript: Transcript, *, first: bool) -> None:
    from ..display import usage_draw
    from ..display.glyphs import QUIET
    from ..display.lines import Span, wrapped
    from ..display.others import draw_others
    from ..display.usage import WIDEST

    if not first:
        say()
    show(usage_draw(report))
    notes = _notes(report, transcript)
    if notes:
        show(lambda width, glyphs: [[Span(line, QUIET)] for told in notes for line in wrapped(told, min(width, WIDEST), glyphs)])
    if others:
        say()
        show(lambda width, glyphs: draw_others(others, transcript.equals, width, glyphs))


def _notes(report: UsageReport, transcript: Transcript) -> list[str]:
    """What the numbers do not say of themselves."""
    notes: list[str] = []
    orphans = len(transcript.session.items) - report.items - report.compacted_items
    if orphans > 0:
        what = "1 output answers no call" if orphans == 1 else f"{orphans:,} outputs answer no call"
        notes.append(f"{what} in the log: no provider takes that, so no request holds {'it' if orphans == 1 else 'them'}")
    if transcript.without_system:
        missing = "the log holds no system prompt and no tool definitions, as tools' logs mostly do not"
        known = report.reported_tokens is not None
        notes.append(f"{missing}: {'what the provider reported for them is in the overhead' if known else 'the real requests cost more'}")
    return notes


def _sum_up(reports: list[UsageReport]) -> None:
    from ..display.glyphs import STRONG, Glyphs
    from ..display.lines import Line, Span, flow

    total = sum(report.total for report in reports)
    over = sum(report.over_budget for report in reports)

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        spans = [Span(f"{len(reports):,} sessions", STRONG), Span(f"{total:,} tokens in all"), Span(f"{over:,} over budget")]
        return [[], *flow(spans, width, glyphs)]

    show(draw)
