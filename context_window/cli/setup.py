"""`context-window setup`: writes our part into an assistant's settings, and takes it out again."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ..printable import printable
from .output import BadInputError, say
from .safe_write import replace_file

EPILOG = """\b
Examples:
  context-window setup claude-code
  context-window setup gemini --yes
  context-window setup claude-code --undo
"""
BACKUP, MISSING = ".before-context-window", b"\0missing"
"""Ends the name of the file that holds what was there before; and its content if there was nothing."""


def _with_status_line(text: str) -> str:
    return _with_fields(text, {"statusLine": {"type": "command", "command": "context-window statusline"}})


def _with_key(text: str) -> str:
    """Return Gemini CLI's settings with the kind of its key, without which it takes no address from the environment."""
    security = _object_of(_object_in(text).get("security"))
    auth = _object_of(security.get("auth"))
    return (
        text
        if auth.get("selectedType")
        else _with_fields(text, {"security": {**security, "auth": {**auth, "selectedType": "gemini-api-key"}}})
    )


SETUPS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "claude-code": (".claude/settings.json", _with_status_line),
    "gemini": (".gemini/settings.json", _with_key),
}
"""By assistant: its settings below the home folder, and what they become."""


@click.command(epilog=EPILOG)
@click.argument("assistant", type=click.Choice(list(SETUPS)))
@click.option("--yes", "is_agreed", is_flag=True, help="Write without asking.")
@click.option("--undo", "is_undone", is_flag=True, help="Restore the settings as they were before, byte for byte.")
def setup(assistant: str, *, is_agreed: bool, is_undone: bool) -> None:
    """Write our part into an assistant's settings, after showing it.

    For Claude Code the status line; for Gemini CLI the kind of its key, without which the gateway cannot reach it. Claude Code and Codex
    need no settings for the gateway.

    What was there before is kept beside the settings, for --undo.
    """
    name, change = SETUPS[assistant]
    path = Path.home() / name
    backup = path.with_name(path.name + BACKUP)
    try:
        if is_undone:
            _undo(path, backup, change)
            return
        old = path.read_bytes() if path.exists() else None
        new = change("" if old is None else old.decode()).encode()
        if new == old:
            say(printable(f"{path} has it already"))
            return
        for line in difflib.unified_diff((old or b"").decode().splitlines(), new.decode().splitlines(), str(path), str(path), lineterm=""):
            say(printable(line))
        if not is_agreed and not click.confirm("Write this?", err=True):
            say("nothing was written")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if not backup.exists():
            replace_file(backup, MISSING if old is None else old)
        replace_file(path, new)
    except OSError as error:
        raise BadInputError(f"{printable(str(error.filename or path))} cannot be used: {error.strerror or error}") from error
    except ValueError as error:
        raise BadInputError(f"{printable(str(path))} cannot be read, and was not changed: {error}") from error
    say(printable(f"wrote {path}; context-window setup {assistant} --undo restores it"))


def _undo(path: Path, backup: Path, change: Callable[[str], str]) -> None:
    """Restore the settings.

    Raises:
        BadInputError: There is nothing to restore, or the settings were changed by somebody else since.
        OSError: A file cannot be used.
        ValueError: The settings cannot be read.
    """
    if not backup.exists():
        raise BadInputError(f"{printable(str(path))} was not changed by setup")
    old = backup.read_bytes()
    expected = change("" if old == MISSING else old.decode()).encode()
    if path.exists() and path.read_bytes() != expected:
        raise BadInputError(f"{printable(str(path))} was changed since; what was there before is in {printable(str(backup))}")
    if old == MISSING:
        path.unlink(missing_ok=True)
    else:
        replace_file(path, old)
    backup.unlink()
    say(printable(f"restored {path}"))


def _with_fields(text: str, fields: Mapping[str, object]) -> str:
    """Return a JSON object with other fields, in the form in which assistants write theirs."""
    settings = _object_in(text)
    if all(settings.get(name) == value for name, value in fields.items()):
        return text
    return json.dumps({**settings, **fields}, indent=2, ensure_ascii=False) + "\n"


def _object_in(text: str) -> dict[str, Any]:
    value = json.loads(text) if text.strip() else {}
    if not isinstance(value, dict):
        raise ValueError("it holds no JSON object")  # noqa: TRY004 - the text has the wrong value
    return value


def _object_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
