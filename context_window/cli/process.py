"""`context-window process`: the trimmed view, written to a file."""

from __future__ import annotations

import json
from typing import Any

import click

from ..printable import printable
from .output import BrokenPromiseError, complain, say, say_values
from .payloads import payload_of, to_option
from .progress import working
from .readable import READABLE
from .saving import STDOUT, check_target, save
from .settings import Settings, window_options

EPILOG = """\b
Examples:
  context-window process session.jsonl --max-tokens 32000 -o trimmed.json
  context-window process session.jsonl --model claude-sonnet-5-5 --to anthropic -o payload.json
"""


@click.command(epilog=READABLE + EPILOG)
@click.argument("path")
@click.option("-o", "--output", "out", required=True, metavar="OUT", help="The file to write; - for standard output.")
@to_option
@window_options
@click.option("--one-shot", is_flag=True, help="Trim the whole once, exactly to the budget, instead of once at each turn.")
@click.option("--json", "as_json", is_flag=True, help="What was done as JSON.")
def process(path: str, out: str, to: str, one_shot: bool, as_json: bool, **options: Any) -> None:
    """Write what a model would be shown: the transcript, trimmed to the budget.

    PATH is a session log, a saved session, or - for standard input. It is never changed.
    """
    from ..trimming.summary import headline
    from .reading import read_one

    settings = Settings(**options)
    check_target(out, path)
    transcript = read_one(path, settings.session_id)
    manager, budget_from = settings.manager(transcript.session)
    with working("counting tokens"):
        view = manager.trim_session(transcript.session) if one_shot else manager.process_session(transcript.session)
        planned = manager.plan_session(transcript.session, one_shot=one_shot)
    if planned.over_budget:
        largest = ", ".join(f"{one.what} ({one.after:,} tokens: {one.reason.value})" for one in planned.culprits[:3])
        fault = f"over budget by {planned.after - planned.budget:,} tokens although all that could go is gone; largest: {largest or 'none'}"
        if settings.strict:
            raise BrokenPromiseError(f"{fault}. Nothing was written: allow more tokens, or leave out --strict")
        complain(fault)
    save(payload_of(view, to).content, out)
    told = {"path": path, "output": out, "to": to, "session_id": view.id, "budget_from": budget_from}
    figures = {name: value for name, value in planned.to_dict().items() if name != "decisions"}
    line = f"{headline(planned)}; wrote {'standard output' if out == STDOUT else out}"
    if out == STDOUT:
        complain(json.dumps(told | figures) if as_json else line)
    elif as_json:
        say_values(told | figures)
    else:
        say(printable(line))
