"""The command line: `main`, which turns every error into one line and an exit code. Each command has a file of its own.

To add a command, write its file and add it to `COMMANDS`. Nothing slow is imported before a command runs: `--help` must be fast.
"""

from __future__ import annotations

import logging
import re
import sys
from collections import UserDict
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import NoReturn

import click

from .. import __version__
from ..printable import printable
from .output import (
    BAD_INPUT,
    BROKEN_PROMISE,
    DONE,
    INTERRUPTED,
    PROGRAM,
    complain,
    error_text,
    guard_terminal,
    prepare_streams,
    say_note,
    tolerate_closed_pipe,
)

SECTIONS = {
    "What sessions cost": {
        "spend": "Show the tokens and the money that sessions have cost.",
        "top": "Browse all sessions down to the items of a window.",
        "timeline": "Show the window of a session at each of its requests.",
        "usage": "Show where the tokens of a transcript go.",
        "report": "Write a report as an HTML page that needs no network.",
        "statusline": "Print a line about the session for Claude Code to show.",
    },
    "Spend less": {
        "gateway": "Keep any assistant's requests within a window.",
        "setup": "Write our part into an assistant's settings, after showing it.",
        "mcp": "Serve an assistant tools over its own log.",
        "chat": "Talk to a model; see what fills its window and what that costs.",
    },
    "Work on one transcript": {
        "demo": "Trim a sample session and explain each step.",
        "plan": "Explain what a trim would change, and why.",
        "process": "Trim a transcript and write what the model would see.",
        "convert": "Convert a transcript to another format, without trimming it.",
        "repair": "Mend a request that a provider refuses, and say what was mended.",
    },
    "Other commands": {
        "models": "List the known models: windows, prices, tokenizers, images.",
        "completion": "Print a script that completes our commands, options and paths.",
    },
}
"""The sections of the help: the commands, each with the first sentence of its own help."""
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}
"""The commands. Each is defined in the file of its name, which is imported when it is needed."""
EPILOG = """\b
Examples:
  context-window                             what all sessions have cost
  context-window spend week --by cause       why, and what would save it
  context-window spend month --by session --top 10
  context-window timeline --last --why       the newest session
  context-window gateway -- claude           Claude Code, within a window
  context-window process session.jsonl --max-tokens 80000 -o trimmed.json

Exit codes: 0 success; 1 the result breaks a requested limit (--strict); 2 bad input or usage.
"""


class _Commands(UserDict[str, click.Command]):
    """The commands by name, imported at their first use."""

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __getitem__(self, name: str) -> click.Command:
        if name not in COMMANDS:
            raise KeyError(name)
        command: click.Command = getattr(import_module(f".{name}", __package__), name)
        return command


class _Group(click.Group):
    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections without importing the commands."""
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{max(map(len, COMMANDS))}}", text) for name, text in section.items()])

    def resolve_command(self, context: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names. One that names none may be a misspelling, or a question about money."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from ..alike import did_you_mean

            hint = did_you_mean(args[0], COMMANDS, "without a command, it shows what sessions have cost.").capitalize()
            context.fail(f"No such command '{printable(args[0])}'. {hint}")
        return super().resolve_command(context, args)


@click.group(
    cls=_Group,
    commands=_Commands(),
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=PROGRAM)
@click.pass_context
def commands(context: click.Context) -> None:
    """Show what fills a model's context window, and trim sessions to fit it. Without a command: what all sessions have cost."""
    if context.invoked_subcommand is not None:
        return
    from .overview import show_overview

    if not show_overview():
        say_note(context.get_help())
        context.exit(BAD_INPUT)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code.

    Args:
        args: The arguments. Default: those of the process.
    """
    prepare_streams()
    guard_terminal()
    logging.getLogger("context_window").addHandler(logging.NullHandler())  # the commands report these events themselves
    sys.exit(run(args))


def _known_errors() -> tuple[type[Exception], ...]:
    """Return the errors that are the user's to mend. They are imported when something has failed."""
    from session.errors import SessionError

    from ..errors import ContextWindowError

    return SessionError, ContextWindowError, OSError


def _hint(error: click.UsageError) -> str:
    """Return what a word that is no choice of an option may have meant."""
    choice = error.param.type if isinstance(error, click.BadParameter) and error.param is not None else None
    word = re.match("'(.+)' is not", error.message)
    if word is None or not isinstance(choice, click.Choice):
        return ""
    from ..alike import did_you_mean

    hint = did_you_mean(word[1], map(str, choice.choices))
    return f" {hint.capitalize()}" if hint else ""


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Every error is one line on standard error."""
    try:
        code = commands.main(args=None if args is None else list(args), prog_name=PROGRAM, standalone_mode=False)
        with tolerate_closed_pipe():
            sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else PROGRAM
        complain(f"{error.format_message()}{_hint(error)} Try '{command} --help'.")
        return BAD_INPUT
    except click.ClickException as error:
        complain(error.format_message())
        return error.exit_code
    except _known_errors() as error:
        from ..errors import ContextOverflowError

        complain(error_text(error))
        return BROKEN_PROMISE if isinstance(error, ContextOverflowError) else BAD_INPUT
    return code if isinstance(code, int) else DONE
