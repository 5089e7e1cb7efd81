"""`context-window repair`: a request that a provider refuses, mended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..printable import printable
from .newest import complete_path
from .output import BadInputError, complain, say, say_aside
from .problem_text import refused
from .read_transcript import standard_input_as_file
from .safe_write import STDOUT, Target, output_options

EPILOG = """\b
Examples:
  context-window repair request.json -o mended.json
  context-window repair seen/000041.request.json -o - | jq .messages
"""


@click.command(epilog=EPILOG)
@click.argument("path", metavar="REQUEST", shell_complete=complete_path)
@output_options
def repair(path: str, out: str, force: bool) -> None:
    """Mend a request that a provider refuses, and name what was mended.

    REQUEST is the JSON body of a request to Anthropic, OpenAI or Google, as `gateway --record` writes it, or - for standard input. It is
    never changed. What breaks a rule of its provider is mended: calls without a result, results without a call, doubled ids, roles, blank
    texts, thinking without its signature, images and documents. A session log is mended by `convert`, which writes valid messages.

    The gateway does the same by itself when the provider refuses a request.
    """
    from session.errors import SessionError

    from ..repair import provider_of, repaired

    target = Target(out, [path], force=force)
    body = _json_of(path)
    provider = provider_of(body)
    if provider is None:
        raise BadInputError(f"{printable(path)} is no request of Anthropic, OpenAI or Google; a session log is mended by convert")
    try:
        result = repaired(provider, body)
    except SessionError as error:
        raise BadInputError(f"{printable(path)} cannot be mended: {error}") from error
    target.write(json.dumps(result.body, ensure_ascii=False, indent=1).encode(errors="replace"))
    tell = say_aside if target.name == STDOUT else say
    for violation in result.mended:
        tell(printable(f"mended: {violation}"))
    if result.broken:
        complain(refused(tuple(result.broken)))
    if not result.mended and not result.broken:
        tell("nothing to mend: it breaks no rule of its provider that can be seen in it")


def _json_of(path: str) -> Any:
    """Return the value in a file of JSON; None if it holds none.

    Raises:
        BadInputError: The file cannot be read.
    """
    with standard_input_as_file(path) as name:
        try:
            if not Path(name).is_file():
                raise BadInputError(f"{printable(path)} is no file")
            return json.loads(Path(name).read_bytes())
        except OSError as error:
            raise BadInputError(f"cannot read {printable(path)}: {error.strerror or error}") from error
        except (ValueError, RecursionError):
            return None
