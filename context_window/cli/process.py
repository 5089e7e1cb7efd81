"""`context-window process`: the trimmed view, written to a file."""

from __future__ import annotations

from typing import Any

import click

from ..printable import printable
from .export import export, to_option
from .newest import complete_path
from .options import READABLE_FORMATS, CommandOptions, window_options
from .output import BrokenPromiseError, complain, say, say_aside, say_values
from .problem_text import over_budget, refused
from .progress import count_with_bar, progress_bar
from .safe_write import STDOUT, Target, output_options

EPILOG = """\b
Examples:
  context-window process session.jsonl --max-tokens 80000 -o trimmed.json
  context-window process session.jsonl --model claude-sonnet-5-5 --to anthropic -o payload.json
"""


@click.command(epilog=READABLE_FORMATS + EPILOG)
@click.argument("path", shell_complete=complete_path)
@output_options
@to_option
@window_options
@click.option("--one-shot", is_flag=True, help="Trim the whole log once to the budget, instead of at each turn that exceeded it.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary of the trim as JSON.")
def process(path: str, out: str, to: str, one_shot: bool, force: bool, as_json: bool, **options: Any) -> None:
    """Trim a transcript and write what the model would see.

    PATH is a session log, a saved session, or - for standard input. It is never changed. If the result does not fit the budget, or
    the provider would refuse it (for example, because it ends with the model's answer), a warning is printed and OUT is written
    anyway. With --strict nothing is written then. If the parts that are always kept fill more than nine tenths of the budget, the
    smallest sensible budget is printed.

    OUT is readable only by its owner. An existing file is replaced only with --force.
    """
    from ..decision.plan_text import headline, tight_budget
    from .read_transcript import read_one

    settings = CommandOptions(**options)
    target = Target(out, [path], force=force)
    transcript = read_one(path, settings.session_id, settings.read_files_below)
    manager, budget_from = settings.manager(transcript.session)
    count_with_bar(manager, transcript.session)
    with progress_bar("trimming"):
        view = manager.trim_session(transcript.session) if one_shot else manager.process_session(transcript.session)
        plan = manager.plan_session(transcript.session, one_shot=one_shot)
    if plan.over_budget:
        problem = over_budget(plan)
        if settings.strict:
            raise BrokenPromiseError(f"{problem}. Nothing was written; to write it anyway, leave out --strict")
        complain(problem)
    elif plan.is_tight:
        complain(tight_budget(plan))
    payload = export(view, to)
    if payload.violations and settings.strict:
        raise BrokenPromiseError(f"{refused(payload.violations)}. Nothing was written; to write it anyway, leave out --strict")
    target.write(payload.content)
    if payload.violations:
        complain(refused(payload.violations))
    source = {"path": path, "output": target.name, "to": to, "session_id": view.id, "budget_from": budget_from}
    figures = {name: value for name, value in plan.to_dict().items() if name != "decisions"}
    figures["violations"] = [violation._asdict() for violation in payload.violations]
    line = f"{headline(plan)}; wrote {target.label}"
    if target.name == STDOUT:
        say_aside(source | figures if as_json else line)
    elif as_json:
        say_values(source | figures)
    else:
        say(printable(line))
