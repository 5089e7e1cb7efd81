"""`context-window top`: a browser of all sessions, on the whole screen."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from .newest import complete_path
from .output import DONE, BadInputError
from .packages import needs

EPILOG = """\b
Keys: arrows or the mouse move, Enter opens, Esc goes back, / filters, s sorts, q quits.

\b
Examples:
  context-window top
  context-window top ~/.claude/projects/my-project
"""


@click.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_path)
def top(paths: tuple[str, ...]) -> None:
    """Browse all sessions down to the items of a window.

    From projects to their sessions, requests, and the items in the window at each. Shows what each cost, with file names and commands, and
    the window of the row under the cursor; live while assistants write. PATH is a log, a folder of logs, or a pattern. Default: the logs of
    all tools.
    """
    needs("top", "the browser", "textual", "rich")
    import multiprocessing

    from ..display.glyphs import glyphs_for
    from ..spend.cache import cache_file
    from ..spend.discovery import find_logs
    from ..spend.schedulers import prepare_processes
    from .options import CommandOptions
    from .watch import LiveSession

    for path in paths:
        if path in {"", "-"} or "://" in path:
            raise BadInputError("top looks at files again and again; pass paths of logs or folders on this machine")
    logs = find_logs(paths)
    missing = [log for log in logs if not log.exists()] if paths else []
    if missing:
        raise BadInputError(f"{missing[0]} does not exist; pass the path of a log or of a folder of logs")
    if not logs:
        where = "below the given paths" if paths else "where the known tools write them"
        raise BadInputError(f"no logs found {where}; pass the path of a log or of a folder of logs")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise BadInputError("top needs a terminal; `context-window spend` prints the same figures, `timeline` those of one session")
    from ..top.app import Top
    from ..top.library import Library

    try:
        cache = cache_file()
    except RuntimeError as error:  # the user's home is unknown
        raise BadInputError(f"{error}; set CONTEXT_WINDOW_HOME to a writable folder") from None
    library = Library([str(Path(path)) for path in paths], cache, lambda: LiveSession(CommandOptions()).grown)
    prepare_processes()
    screen = Top(library, glyphs_for(sys.stdout.encoding))
    problem = screen.run()
    if screen.fault is not None:
        raise screen.fault
    if problem:
        raise BadInputError(problem)
    if multiprocessing.active_children():  # they still read, and end with this process; Python would wait for them
        sys.stdout.flush()
        os._exit(DONE)
