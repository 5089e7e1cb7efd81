"""The log that a command reads if it is given no path: the newest session of this folder, or with `--last` the newest of all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import BadInputError, complain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

last_option = click.option("--last", is_flag=True, help="Read the session that was written last, of all folders and tools.")

_ID = re.compile(r"[0-9a-f][0-9a-f-]{5,63}")
"""What may be an id of a session: logs have it in their names."""


def complete_path(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return what lets a shell complete the names of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def chosen_paths(paths: tuple[str, ...], *, last: bool) -> tuple[str, ...]:
    """Return the paths, or the newest session's if there are none. Its name is printed on standard error.

    Args:
        paths: The paths that the user gave.
        last: True for the newest session of all folders.

    Raises:
        BadInputError: There is no such session.
        click.UsageError: Both were given.
    """
    if paths:
        if last:
            raise click.UsageError("--last and PATH exclude each other.")
        return tuple(map(log_of_session, paths))
    from ..spend.newest import newest_log  # imports all of `spend`, a tenth of a second

    path = newest_log(None if last else Path.cwd())
    if path is None:
        where = "of the known tools" if last else "of this folder"
        advice = "" if last else ", or --last for the newest session of all folders"
        raise BadInputError(f"no session {where} found; pass the path of a log{advice}")
    complain(f"reading {path}")
    return (str(path),)


def log_of_session(path: str) -> str:
    """Return the log of a session whose id, or the beginning of it, was given in place of a path; else the path.

    Raises:
        BadInputError: Several logs have it in their names.
    """
    if not _ID.fullmatch(path) or Path(path).exists():
        return path
    from ..spend.discovery import find_logs

    found = find_logs()
    logs = [log for log in found if path in log.name] or [log for log in found if path in log.parent.name]  # Copilot's have one name
    if len(logs) > 1:
        raise BadInputError(f"{len(logs):,} logs have {path} in their names, such as {logs[0]} and {logs[1]}; pass more of the id")
    for log in logs:
        complain(f"reading {log}")
        return str(log)
    return path
