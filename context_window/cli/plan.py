"""`context-window plan`: what a trim would change, and why. Writes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from session.items import parts_of_item
from session.parts import Text
from session.session import Session

from ..decision.plan import Action, Plan
from .newest import complete_path
from .options import READABLE_FORMATS, CommandOptions, window_options
from .output import BrokenPromiseError, say_values, show
from .problem_text import over_budget
from .progress import count_with_bar, progress_bar

EPILOG = """\b
Examples:
  context-window plan session.jsonl --max-tokens 80000
  context-window plan session.jsonl --one-shot --all
  context-window plan session.jsonl --max-tokens 80000 --strategy extract
  context-window plan session.jsonl --json | jq '.decisions[] | select(.action != "keep")'
"""


@click.command(epilog=READABLE_FORMATS + EPILOG)
@click.argument("path", shell_complete=complete_path)
@window_options
@click.option(
    "--one-shot", is_flag=True, help="Plan one trim of the whole log to the budget, instead of one at each turn that exceeded it."
)
@click.option("--all", "list_all", is_flag=True, help="List all changes, not just the first 15 groups.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON, with the decision on every item.")
def plan(path: str, one_shot: bool, list_all: bool, as_json: bool, **options: Any) -> None:
    """Explain what a trim would change, and why. Writes nothing.

    PATH is a session log, a saved session, or - for standard input.
    """
    from ..display.plan import RUNS_LISTED, PlanDisplay, plan_draw
    from ..display.usage import footnotes
    from .read_transcript import read_one

    settings = CommandOptions(**options)
    transcript = read_one(path, settings.session_id, settings.read_files_below)
    manager, budget_from = settings.manager(transcript.session)
    count_with_bar(manager, transcript.session)
    with progress_bar("planning"):
        trim_plan = manager.plan_session(transcript.session, one_shot=one_shot)
    if as_json:
        source = {"path": path, "session_id": transcript.session.id, "budget_from": budget_from}
        say_values(source | trim_plan.to_dict())
    else:
        report = replace(manager.usage(transcript.session), budget_from=budget_from)
        view = manager.trim_session(transcript.session) if one_shot else manager.process_session(transcript.session)
        most = None if list_all else RUNS_LISTED
        show(plan_draw(PlanDisplay(trim_plan, transcript.name, footnotes(report), most=most, example=_largest_extract(trim_plan, view))))
    if settings.strict and trim_plan.over_budget:
        raise BrokenPromiseError(over_budget(trim_plan))


def _largest_extract(plan: Plan, view: Session) -> str:
    """Return the digest of the item that lost most, as the model sees it; empty if there is no digest."""
    extracts = [decision for decision in plan if decision.action is Action.EXTRACT]
    if not extracts:
        return ""
    largest = max(extracts, key=lambda decision: decision.before - decision.after)
    of_digest = [decision for decision in extracts if decision.digest_before == largest.digest_before]
    digest = view.get_by_id(of_digest[0].item_id)
    parts = parts_of_item(digest) if digest is not None else ()
    return "".join(part.text for part in parts[of_digest.index(largest) + 1 :][:1] if isinstance(part, Text))
