"""`context-window statusline`: the line that Claude Code shows below its prompt."""

from __future__ import annotations

import click

EPILOG = """\b
Example:
  context-window statusline < status.json

\b
In ~/.claude/settings.json:
  "statusLine": {"type": "command", "command": "context-window statusline"}
"""


@click.command(epilog=EPILOG)
@click.option("--pause", "is_hook", is_flag=True, help="Answer a hook before each prompt instead: what the pause before it has cost.")
def statusline(*, is_hook: bool) -> int:
    """Print a line about the session for Claude Code to show.

    Claude Code describes the session in JSON on standard input. The line shows the model, how full its window is, how much of
    the last request came from the cache, for how many more requests there is room, and what the session has cost.
    """
    from ..statusline import main, pause_main

    return pause_main() if is_hook else main()
