"""`context-window convert`: a transcript as a saved session, or as a provider's messages."""

from __future__ import annotations

import click

from ..printable import printable
from .export import export, to_option
from .newest import complete_path
from .options import READABLE_FORMATS, read_files_option, session_option
from .output import BrokenPromiseError, complain, say, say_aside, say_values
from .problem_text import refused
from .safe_write import STDOUT, Target, output_options

EPILOG = """\b
Examples:
  context-window convert ~/.codex/sessions/rollout.jsonl -o session.json
  context-window convert session.jsonl --to openai -o messages.json
  context-window convert request.json --to anthropic -o - | jq .messages
"""


@click.command(epilog=READABLE_FORMATS + EPILOG)
@click.argument("path", metavar="IN", shell_complete=complete_path)
@output_options
@to_option
@session_option
@read_files_option
@click.option("--strict", is_flag=True, help="Write nothing and exit with 1 if the provider would refuse the result as a request.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary of the conversion as JSON.")
def convert(
    path: str, out: str, to: str, session_id: str | None, read_files_below: str | None, strict: bool, force: bool, as_json: bool
) -> None:
    """Convert a transcript to another format, without trimming it.

    IN is a session log, a saved session, a provider's messages, or - for standard input. It is never changed. If the provider would
    refuse the result as a request (for example, because the log ends with the model's answer), a warning is printed and OUT is
    written anyway.

    OUT is readable only by its owner. An existing file is replaced only with --force.
    """
    from .read_transcript import read_one

    target = Target(out, [path], force=force)
    transcript = read_one(path, session_id, read_files_below)
    payload = export(transcript.session, to)
    if payload.violations and strict:
        raise BrokenPromiseError(f"{refused(payload.violations)}. Nothing was written; to write it anyway, leave out --strict")
    target.write(payload.content)
    if payload.violations:
        complain(refused(payload.violations))
    items = _counted(len(transcript.session.items), "items")
    line = f"{items} -> {_counted(payload.length, payload.unit)}; wrote {target.label}"
    figures = {
        "path": path,
        "output": target.name,
        "to": to,
        "session_id": transcript.session.id,
        "items": len(transcript.session.items),
        "length": payload.length,
        "violations": [violation._asdict() for violation in payload.violations],
    }
    if target.name == STDOUT:
        say_aside(figures if as_json else line)
    elif as_json:
        say_values(figures)
    else:
        say(printable(line))


def _counted(number: int, unit: str) -> str:
    """Return the number with its unit, which is passed in the plural."""
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"
