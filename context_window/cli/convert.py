"""`context-window convert`: a transcript of any tool as a session, or as the messages of any provider."""

from __future__ import annotations

import click

from ..printable import printable
from .output import BrokenPromiseError, complain, say, say_aside, say_values
from .payloads import SESSION, payload_of, to_option
from .readable import READABLE
from .saving import STDOUT, Target, force_option
from .settings import read_files_option
from .telling import refused

EPILOG = """\b
Examples:
  context-window convert ~/.codex/sessions/rollout.jsonl -o session.json
  context-window convert session.jsonl --to openai -o messages.json
  context-window convert request.json --to anthropic -o - | jq .messages
"""


@click.command(epilog=READABLE + EPILOG)
@click.argument("path", metavar="IN")
@click.option("-o", "--output", "out", required=True, metavar="OUT", help="The file to write; - for standard output.")
@to_option
@click.option("--session", "session_id", metavar="ID", help="The session to take, where there are several; its first letters do.")
@read_files_option
@click.option("--strict", is_flag=True, help="Write nothing and exit 1 where a provider would refuse it as a request.")
@force_option
@click.option("--json", "as_json", is_flag=True, help="What was done as JSON.")
def convert(
    path: str, out: str, to: str, session_id: str | None, read_files_below: str | None, strict: bool, force: bool, as_json: bool
) -> None:
    """Write a transcript in another form, whole: nothing is trimmed.

    IN is a session log, a saved session, a provider's messages, or - for standard input. It is never changed. A log that
    ends in the model's answer is no request; that is said, and written all the same.

    OUT is created for its owner alone. An existing file is replaced only if it is empty or an earlier save of the same session,
    or with --force.
    """
    from .reading import read_one

    target = Target(out, [path], session=to == SESSION, force=force)
    transcript = read_one(path, session_id, read_files_below)
    target.permit(transcript.session)
    payload = payload_of(transcript.session, to)
    if payload.violations and strict:
        raise BrokenPromiseError(f"{refused(payload.violations)}. Nothing was written")
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
        "violations": [one._asdict() for one in payload.violations],
    }
    if target.name == STDOUT:
        say_aside(figures if as_json else line)
    elif as_json:
        say_values(figures)
    else:
        say(printable(line))


def _counted(number: int, unit: str) -> str:
    """The number with its unit, which is in the plural."""
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"
