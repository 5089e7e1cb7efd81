"""The command line: `main`, which turns every error into one line and an exit code. Each command has a file of its own.

To add a command, write its file and add it to the loop below. Nothing slow is imported before a command runs: `--help` must be fast.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from session.errors import SessionError

from .. import __version__
from ..alike import did_you_mean
from ..errors import ContextOverflowError, ContextWindowError
from .chat import chat
from .completion import completion
from .convert import convert
from .demo import demo
from .gateway import gateway
from .mcp import mcp
from .models import models
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
from .overview import show_overview
from .plan import plan
from .process import process
from .repair import repair
from .report import report
from .setup import setup
from .spend import spend
from .statusline import statusline
from .timeline import timeline
from .top import top
from .usage import usage

EPILOG = """\b
Examples:
  context-window demo
  context-window usage session.jsonl
  context-window process session.jsonl --max-tokens 80000 -o trimmed.json
  context-window convert rollout.jsonl --to openai -o messages.json

Exit codes: 0 success; 1 the result breaks a requested limit (--strict); 2 bad input or usage.
"""


@click.group(
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=PROGRAM)
@click.pass_context
def commands(context: click.Context) -> None:
    """Show what fills a model's context window, and trim sessions to fit it. Without a command: what all sessions have cost."""
    if context.invoked_subcommand is None and not show_overview():
        say_note(context.get_help())
        context.exit(BAD_INPUT)


for command in (
    demo,
    usage,
    timeline,
    spend,
    top,
    report,
    plan,
    process,
    convert,
    repair,
    models,
    chat,
    gateway,
    setup,
    statusline,
    mcp,
    completion,
):
    commands.add_command(command)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code.

    Args:
        args: The arguments. Default: those of the process.
    """
    prepare_streams()
    guard_terminal()
    logging.getLogger("context_window").addHandler(logging.NullHandler())  # the commands report these events themselves
    sys.exit(run(args))


def _hint(error: click.UsageError) -> str:
    """Return what a word that is no choice of an option may have meant."""
    choice = error.param.type if isinstance(error, click.BadParameter) and error.param is not None else None
    word = re.match("'(.+)' is not", error.message)
    if word is None or not isinstance(choice, click.Choice):
        return ""
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
    except ContextOverflowError as error:
        complain(str(error))
        return BROKEN_PROMISE
    except (SessionError, ContextWindowError, OSError) as error:
        complain(error_text(error))
        return BAD_INPUT
    return code if isinstance(code, int) else DONE
