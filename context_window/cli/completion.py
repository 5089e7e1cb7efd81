"""`context-window completion`: the script that lets a shell complete our commands, options and paths. click writes it."""

from __future__ import annotations

import click

from .output import PROGRAM, say

VARIABLE = "_CONTEXT_WINDOW_COMPLETE"
"""The variable by which a shell asks the program for completions. click derives it from the program's name."""
EPILOG = """\b
Put the line of your shell into its start-up file:
  bash   eval "$(context-window completion bash)"             in ~/.bashrc
  zsh    eval "$(context-window completion zsh)"              in ~/.zshrc, after compinit
  fish   context-window completion fish | source              in ~/.config/fish/config.fish
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes our commands, options and paths.

    SHELL is bash (4.4 or newer), zsh or fish.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
