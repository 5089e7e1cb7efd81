"""`context-window usage`: where a transcript's tokens go."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .newest import chosen_paths, complete_path, last_option
from .options import READABLE_FORMATS, CommandOptions, window_options
from .output import BAD_INPUT, BadInputError, BrokenPromiseError, clear_screen, complain, say, say_values, show
from .progress import count_with_bar, progress_bar
from .watch import LiveSession, watch, watch_option

if TYPE_CHECKING:
    from ..manager import ContextWindowManager
    from ..usage.report import UsageReport
    from .read_transcript import Transcript

EPILOG = """\b
Examples:
  context-window usage
  context-window usage session.jsonl --watch
  context-window usage ~/.claude/projects/my-project/*.jsonl --max-tokens 100000
  context-window usage ~/.codex/sessions
  context-window usage session.jsonl --json | jq .categories
"""


@click.command(epilog=READABLE_FORMATS + EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_path)
@window_options
@last_option
@watch_option
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON, one line per PATH.")
def usage(paths: tuple[str, ...], last: bool, is_watched: bool, as_json: bool, **options: Any) -> None:
    """Show where the tokens of a transcript go.

    Prints one row per category with its share of the budget, then the tools and the items that use the most tokens. The row
    `overhead` is what a request costs besides its items, such as tool definitions. PATH is a session log, a saved session, or - for
    standard input. Without PATH, the newest session of this folder is read. Several PATHs, or a folder of logs, give a table with a row for
    each session.
    """
    settings = CommandOptions(**options)
    paths = _logs_in(chosen_paths(paths, last=last))
    if is_watched:
        _watch(paths, settings, as_json=as_json)
        return
    reports, failures = _show_all(paths, settings, as_json=as_json)
    if failures:
        raise click.exceptions.Exit(BAD_INPUT)
    over = [report for report in reports if report.over_budget]
    if settings.strict and over:
        worst = max(over, key=lambda report: -report.available)
        raise BrokenPromiseError(
            f"{worst.title} is over its budget by {-worst.available:,} tokens; `context-window plan` shows what can be removed"
        )


def _logs_in(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths, with the logs of a folder in its place.

    Raises:
        BadInputError: A folder has no logs.
    """
    logs: list[str] = []
    for path in paths:
        folder = Path(path).expanduser()
        if not path or not folder.is_dir():
            logs.append(path)
            continue
        from ..spend import find_logs

        found = [str(log) for log in find_logs([str(folder)])]
        if not found:
            raise BadInputError(f"no logs found in {path}; pass the path of a log or of a folder of logs")
        logs += found
    return tuple(logs)


def _show_all(paths: Sequence[str], settings: CommandOptions, *, as_json: bool) -> tuple[list[UsageReport], int]:
    """Print the report, or a table of several, and return them and the number of paths that could not be read.

    A single path's error is raised.
    """
    from session.errors import SessionError

    from ..display.usage_table import usage_table
    from ..errors import ContextWindowError

    reports: list[UsageReport] = []
    result: ReadReport | None = None
    failures = 0
    with progress_bar("reading sessions", len(paths)) if len(paths) > 1 else nullcontext(lambda _: None) as advance:
        for path in paths:
            try:
                result = _read(path, LiveSession(settings), settings)
            except (SessionError, ContextWindowError, click.ClickException) as error:
                if len(paths) == 1:
                    raise
                complain(error.message if isinstance(error, click.ClickException) else str(error))  # and go on with the other paths
                failures += 1
                continue
            finally:
                advance(1)
            if as_json:
                say_values(result.values(path))
            reports.append(result.report)
    if as_json or result is None:
        return reports, failures
    if len(reports) == 1:
        _show_report(result)
    else:
        show(lambda width, glyphs: usage_table(reports, width, glyphs))
    return reports, failures


@dataclass(frozen=True, slots=True)
class ReadReport:
    """A transcript and its report.

    Attributes:
        report: The report.
        other_sizes: The sizes of the transcript's other sessions.
        transcript: The transcript.
    """

    report: UsageReport
    other_sizes: list[dict[str, Any]]
    transcript: Transcript

    def values(self, path: str) -> dict[str, Any]:
        """Return the report as JSON values."""
        return self.report.to_dict() | {"path": path, "other_sessions": self.other_sizes}


def _read(path: str, live: LiveSession, settings: CommandOptions) -> ReadReport:
    from .read_transcript import read

    transcript = read(path, settings.session_id, settings.read_files_below)
    session, manager, budget_from = live.grown(transcript.session)
    count_with_bar(manager, session)
    with progress_bar("adding up"):
        report = replace(manager.usage(session, title=transcript.name), budget_from=budget_from)
        return ReadReport(report, _count_others(transcript, manager), transcript)


def _watch(paths: Sequence[str], settings: CommandOptions, *, as_json: bool) -> None:
    """Show the report of a log whenever it has grown."""
    if len(paths) > 1:
        raise click.UsageError("--watch takes a single PATH.")
    live = LiveSession(settings)
    first: list[int] = []

    def look() -> None:
        result = _read(paths[0], live, settings)
        first.append(result.report.total)
        if as_json:
            say_values(result.values(paths[0]))
            return
        clear_screen()
        _show_report(result)
        say(f"{result.report.total - first[0]:+,} tokens since this began; Ctrl-C ends")

    watch(paths[0], look, as_json=as_json)


def _count_others(transcript: Transcript, manager: ContextWindowManager) -> list[dict[str, Any]]:
    """Return the sizes of the transcript's other sessions. They are in no total, since no request contains them."""
    return [
        {
            "session_id": session.id,
            "agent_id": session.metadata.get("agent_id"),
            "total": (stats := manager.analyze_session(session))["total_tokens"],
            "items": stats["item_count"],
        }
        for session in transcript.other_sessions
    ]


def _show_report(result: ReadReport) -> None:
    from ..display.lines import paragraphs
    from ..display.usage import WIDEST, other_session_lines, usage_draw

    report, other_sizes, transcript = result.report, result.other_sizes, result.transcript
    show(usage_draw(report))
    if footnotes := _footnotes(report, transcript):
        show(lambda width, glyphs: paragraphs(footnotes, min(width, WIDEST), glyphs))
    if other_sizes:
        say()
        show(lambda width, glyphs: other_session_lines(other_sizes, transcript.main_count, width, glyphs))


def _footnotes(report: UsageReport, transcript: Transcript) -> list[str]:
    """Return warnings about parts of requests that the numbers do not include."""
    footnotes: list[str] = []
    orphans = len(transcript.session.items) - report.items - report.compacted_items
    if orphans > 0:
        orphan_text = "1 tool output has no call" if orphans == 1 else f"{orphans:,} tool outputs have no call"
        footnotes.append(f"{orphan_text} in the log; providers refuse such outputs, so {'it is' if orphans == 1 else 'they are'} left out")
    if transcript.lacks_system_prompt:
        missing = "the log has no system prompt and no tool definitions, like most tools' logs"
        is_reported = report.reported_tokens is not None
        footnotes.append(
            f"{missing}; {'their tokens, as reported by the provider, are in the overhead' if is_reported else 'real requests cost more'}"
        )
    return footnotes
