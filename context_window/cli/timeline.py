"""`context-window timeline`: the window of one session at each of its requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .newest import chosen_paths, complete_path, last_option
from .options import READABLE_FORMATS, CommandOptions, max_tokens_option, model_option, read_files_option, session_option, strategy_option
from .output import clear_screen, say, say_values, show
from .progress import count_with_bar, progress_bar
from .watch import LiveSession, watch, watch_option

if TYPE_CHECKING:
    from ..manager import ContextWindowManager
    from ..spend import SpendRow
    from ..timeline.matches import LogReports
    from ..timeline.points import Timeline
    from ..timeline.why import Why
    from .read_transcript import Transcript

EPILOG = """\b
Examples:
  context-window timeline
  context-window timeline session.jsonl --watch
  context-window timeline session.jsonl --why --max-tokens auto
  context-window timeline session.jsonl --json | jq '.points[] | [.number, .total, .cost_usd]'
"""


@click.command(epilog=READABLE_FORMATS + EPILOG)
@click.argument("path", required=False, shell_complete=complete_path)
@max_tokens_option
@strategy_option("extract")
@model_option
@session_option
@read_files_option
@click.option(
    "--why",
    "wants_why",
    is_flag=True,
    help="Explain the money: by category, tool and item, and what a window (--max-tokens N or auto) would have saved.",
)
@last_option
@watch_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the points, their markers, the sums.")
def timeline(path: str | None, wants_why: bool, last: bool, is_watched: bool, as_json: bool, **options: Any) -> None:
    """Show the window of a session at each of its requests.

    Draws the prompt of each request by category, with compactions (C), trims (T) and cache breaks (!), and lists the largest jumps. PATH
    is a session log, a saved session, or - for standard input. Without PATH, the newest session of this folder is read.
    """
    settings = CommandOptions(**options)
    (chosen,) = chosen_paths(() if path is None else (path,), last=last)
    live = LiveSession(settings)
    if not is_watched:
        _show(chosen, read_timeline(chosen, settings, live, wants_why=wants_why), as_json=as_json)
        return
    first: list[SpendRow] = []

    def look() -> None:
        result = read_timeline(chosen, settings, live, wants_why=wants_why)
        spent = result.timeline.spent
        first.append(spent)
        if not as_json:
            clear_screen()
        _show(chosen, result, as_json=as_json)
        if not as_json:
            tokens, cost = spent.total - first[0].total, spent.cost - first[0].cost
            say(f"{tokens:+,} tokens and {cost:+,.4f} US dollars since this began; Ctrl-C ends")

    watch(chosen, look, as_json=as_json)


def _show(path: str, result: ReadTimeline, *, as_json: bool) -> None:
    from ..display.timeline import timeline_draw
    from ..display.why import why_draw

    if as_json:
        why = {} if result.why is None else {"why": result.why.to_dict()}
        say_values({"path": path, **result.timeline.to_dict(), **why})
    elif result.why is not None:
        show(why_draw(result.why, result.name))
    else:
        show(timeline_draw(result.timeline, result.name, _footnotes(result.timeline)))


@dataclass(frozen=True, slots=True)
class ReadTimeline:
    """A log and the timeline of one of its sessions.

    Attributes:
        name: The log's name for messages.
        transcript: The log.
        manager: The manager that counted it.
        timeline: The timeline.
        reports: The requests that the log reports.
        why: The reasons for its cost; None if nobody asked.
    """

    name: str
    transcript: Transcript
    manager: ContextWindowManager
    timeline: Timeline
    reports: LogReports
    why: Why | None = None


def read_timeline(path: str, settings: CommandOptions, live: LiveSession | None = None, *, wants_why: bool = False) -> ReadTimeline:
    """Read a log and make the timeline of one of its sessions.

    Args:
        path: The log, or `-` for standard input.
        settings: The values of the command's options.
        live: Keeps the log's counts for a later call. Default: nothing is kept.
        wants_why: True to work out the reasons for the cost.

    Raises:
        TranscriptError: The file cannot be read, or is not a transcript.
        BadInputError: It is not clear which session to use.
    """
    from ..timeline import log_reports
    from .read_transcript import STDIN, read_one, standard_input_as_file

    with standard_input_as_file(path) as file:
        transcript = read_one(file, settings.session_id, settings.read_files_below)
        session, manager, _ = (live or LiveSession(settings)).grown(transcript.session)
        count_with_bar(manager, session)
        with progress_bar("adding up"):
            reports = log_reports(file, transcript.account, transcript.session)
            why = manager.why(session, reports) if wants_why else None
            points = manager.timeline(session, reports) if why is None else why.timeline
        return ReadTimeline("standard input" if path == STDIN else transcript.name, transcript, manager, points, reports, why)


def _footnotes(timeline: Timeline) -> list[str]:
    """Return sentences about what the figures are."""
    from ..spend.tables import price_notes

    footnotes: list[str] = []
    if not timeline.is_reported:
        footnotes.append(f"The log reports no prompt tokens: all prompts are counted with {timeline.counter}.")
    elif timeline.points[-1].overhead:
        footnotes.append("Overhead is what the provider reported and the log does not hold: the system prompt, tool definitions, framing.")
    elsewhere = timeline.spent_elsewhere
    if elsewhere.requests:
        requests = "1 report" if elsewhere.requests == 1 else f"{elsewhere.requests:,} reports"
        footnotes.append(
            f"The log has {requests} more of {elsewhere.total:,} tokens: of sub-agents or other sessions, or sums in place of requests."
        )
    unanswered = sum(not point.is_in_log for point in timeline.points)
    if unanswered:
        requests = "1 request has" if unanswered == 1 else f"{unanswered:,} requests have"
        footnotes.append(f"{requests} no answer in the log, for example because it broke off.")
    return [*footnotes, *price_notes(timeline.requests)]
