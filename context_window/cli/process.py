"""`context-window process`: the trimmed view, written to a file."""

from __future__ import annotations

from typing import Any

import click

from ..printable import printable
from .output import BrokenPromiseError, complain, say, say_aside, say_values
from .payloads import SESSION, payload_of, to_option
from .progress import working
from .readable import READABLE
from .saving import STDOUT, Target, force_option
from .settings import Settings, window_options
from .telling import over_budget, refused

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
@force_option
@click.option("--json", "as_json", is_flag=True, help="What was done as JSON.")
def process(path: str, out: str, to: str, one_shot: bool, force: bool, as_json: bool, **options: Any) -> None:
    """Write the trimmed transcript: what a model would be shown.

    PATH is a session log, a saved session, or - for standard input. It is never changed. A view that ends in the model's answer is
    no request; that is said, and written all the same. With --strict nothing is written where it does not fit, or where the provider
    would refuse it.

    OUT is created for its owner alone. An existing file is replaced only if it is empty, an earlier view of the same session or a save
    of it that loses nothing, or with --force.
    """
    from ..trimming.summary import headline
    from .reading import read_one

    settings = Settings(**options)
    target = Target(out, [path], session=to == SESSION, force=force)
    transcript = read_one(path, settings.session_id, settings.read_files_below)
    target.permit(transcript.session)
    manager, budget_from = settings.manager(transcript.session)
    with working("counting tokens"):
        view = manager.trim_session(transcript.session) if one_shot else manager.process_session(transcript.session)
        planned = manager.plan_session(transcript.session, one_shot=one_shot)
    if planned.over_budget:
        fault = over_budget(planned)
        if settings.strict:
            raise BrokenPromiseError(f"{fault}. Nothing was written; without --strict it is")
        complain(fault)
    target.permit(view, transcript.session)
    payload = payload_of(view, to)
    if payload.violations and settings.strict:
        raise BrokenPromiseError(f"{refused(payload.violations)}. Nothing was written; without --strict it is")
    target.write(payload.content)
    if payload.violations:
        complain(refused(payload.violations))
    told = {"path": path, "output": target.name, "to": to, "session_id": view.id, "budget_from": budget_from}
    figures = {name: value for name, value in planned.to_dict().items() if name != "decisions"}
    figures["violations"] = [one._asdict() for one in payload.violations]
    line = f"{headline(planned)}; wrote {target.label}"
    if target.name == STDOUT:
        say_aside(told | figures if as_json else line)
    elif as_json:
        say_values(told | figures)
    else:
        say(printable(line))
