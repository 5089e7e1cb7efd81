"""`context-window repair`: a request that a provider refuses, or a log of which it refuses a part, mended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from session.json_strings import json_value
from session.opening import read_regular

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
  context-window repair ~/.claude/projects/-home-me-project/0f8fad5b.jsonl -o mended.jsonl
"""


@click.command(epilog=EPILOG)
@click.argument("path", metavar="REQUEST|LOG", shell_complete=complete_path)
@output_options
def repair(path: str, out: str, force: bool) -> None:
    """Mend a request that a provider refuses, and say what was mended.

    REQUEST is the JSON body of a request to Anthropic, OpenAI or Google, as `gateway --record` writes it, or - for standard input. It is
    never changed. What breaks a rule of its provider is mended: calls without a result, results without a call, doubled ids, roles, blank
    texts, thinking without its signature, images and documents.

    LOG is a log of JSON lines, as Claude Code keeps it. Images and documents that cannot be read become texts, and blank texts leave; all
    other lines stay as they are, byte for byte, so that the assistant can go on with OUT in its place.

    The gateway does the same by itself when the provider refuses a request.
    """
    from session.errors import SessionError

    from ..repair import provider_of, repaired

    target = Target(out, [path], force=force)
    content = _content_of(path)
    body = _json_in(content)
    provider = provider_of(body)
    if provider is None and not isinstance(body, list):
        _repair_log(path, content, target)
        return
    if provider is None:
        raise BadInputError(f"{printable(path)} is no request of Anthropic, OpenAI or Google, and no log of JSON lines")
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


def _repair_log(path: str, content: bytes, target: Target) -> None:
    """Mend a log, and name what was mended.

    Raises:
        BadInputError: It is no log of JSON lines.
    """
    from ..repair_log import repaired_log

    try:
        lines = list(repaired_log(content.splitlines(keepends=True)))
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{printable(path)} is no request of Anthropic, OpenAI or Google, and no log of JSON lines") from error
    target.write(b"".join(line.content for line in lines))
    tell = say_aside if target.name == STDOUT else say
    for number, line in enumerate(lines, 1):
        for fault in line.faults:
            tell(printable(f"mended: line {number}: {fault}"))
    if not any(line.faults for line in lines):
        tell("nothing to mend: each image, document and text can be sent")


def _content_of(path: str) -> bytes:
    """Return the bytes of a file.

    Raises:
        BadInputError: The file cannot be read.
    """
    with standard_input_as_file(path) as name:
        try:
            if not Path(name).is_file():
                raise BadInputError(f"{printable(path)} is no file")
            return read_regular(name)
        except OSError as error:
            raise BadInputError(f"cannot read {printable(path)}: {error.strerror or error}") from error


def _json_in(content: bytes) -> Any:
    """Return the JSON value in a file's content; None if it holds none."""
    try:
        return json_value(content)
    except (ValueError, RecursionError):
        return None
