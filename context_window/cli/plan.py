"""`context-window plan`: what a trim would do, and why. Writes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from .output import BrokenPromiseError, say_values, show
from .progress import working
from .readable import READABLE
from .settings import Settings, window_options
from .telling import over_budget

EPILOG = """\b
Examples:
  context-window plan session.jsonl --max-tokens 32000
  context-window plan session.jsonl --one-shot --all
  context-window plan session.jsonl --json | jq '.decisions[] | select(.action != "keep")'
"""


@click.command(epilog=READABLE + EPILOG)
@click.argument("path")
@window_options
@click.option("--one-shot", is_flag=True, help="Plan one trim of the whole, exactly to the budget, instead of one at each turn.")
@click.option("--all", "everything", is_flag=True, help="List every run of changes, however many there are.")
@click.option("--json", "as_json", is_flag=True, help="The same numbers as JSON, with every decision.")
def plan(path: str, one_shot: bool, everything: bool, as_json: bool, **options: Any) -> None:
    """Explain what would be trimmed, and why, without writing anything.

    PATH is a session log, a saved session, or - for standard input.
    """
    from ..display import PlanTold, plan_draw
    from ..display.plan import MOST
    from ..display.usage import notes
    from .reading import read_one

    settings = Settings(**options)
    transcript = read_one(path, settings.session_id, settings.read_files_below)
    manager, budget_from = settings.manager(transcript.session)
    with working("counting tokens"):
        planned = manager.plan_session(transcript.session, one_shot=one_shot)
    if as_json:
        said = {"path": path, "session_id": transcript.session.id, "budget_from": budget_from}
        say_values(said | planned.to_dict())
    else:
        report = replace(manager.usage(transcript.session), budget_from=budget_from)
        show(plan_draw(PlanTold(planned, transcript.name, notes(report), most=None if everything else MOST)))
    if settings.strict and planned.over_budget:
        raise BrokenPromiseError(over_budget(planned))
