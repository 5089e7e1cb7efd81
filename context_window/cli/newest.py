"""The log that a command reads if it is given no path: the newest session of this folder, or with `--last` the newest of all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import BadInputError, complain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

last_option = click.option("--last", is_flag=True, help="Read the session that was written last, of all folders and tools.")


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
        return paths
    from ..spend.newest import newest_log  # imports all of `spend`, a tenth of a second

    path = newest_log(None if last else Path.cwd())
    if path is None:
        where = "of the known tools" if last else "of this folder"
        advice = "" if last else ", or --last for the newest session of all folders"
        raise BadInputError(f"no session {where} found; pass the path of a log{advice}")
    complain(f"reading {path}")
    return (str(path),)
