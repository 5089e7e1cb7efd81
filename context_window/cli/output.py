"""Output and exit codes of the command line: streams, colours, one line per error. Knows nothing about sessions."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from ..printable import escaped, printable, printable_lines

if TYPE_CHECKING:
    from ..display.render import Draw

PROGRAM = "context-window"

DONE, BROKEN_PROMISE, BAD_INPUT = 0, 1, 2
"""Exit codes."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""
PIPE_CLOSED = 141
"""Exit code if the reader of the output has gone, as in shells."""
CLEAR = "\x1b[H\x1b[2J\x1b[3J"
"""Moves to the first cell of the screen and empties the screen and what was scrolled off it."""
ERASE = "\x1b[2K"
"""Empties the line."""


class BadInputError(click.ClickException):
    """The user's input cannot be used. The message says what to do instead."""

    exit_code = BAD_INPUT


class BrokenPromiseError(click.ClickException):
    """The result breaks a limit that the user asked for with `--strict`."""

    exit_code = BROKEN_PROMISE


def prepare_streams() -> None:
    """Let both streams print any text. Characters that the encoding lacks become question marks; a closed stream discards all."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process, as with `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - it stays open until the end
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def guard_terminal() -> None:
    """Remove control sequences from all that Python itself prints: a traceback, warning or log record may quote a transcript."""
    sys.excepthook = lambda *fault: _say_plainly(traceback.format_exception(*fault))
    sys.unraisablehook = lambda fault: _say_plainly(
        [f"{fault.err_msg or 'Exception ignored in'}: {fault.object!r}\n", *traceback.format_exception(fault.exc_value)]
    )
    threading.excepthook = lambda fault: _say_plainly([] if fault.exc_type is SystemExit else traceback.format_exception(fault.exc_value))
    warnings.showwarning = lambda *warning, **_: _say_plainly([warnings.formatwarning(*warning[:4])])
    if logging.lastResort is not None:  # prints records that no handler takes
        logging.lastResort.setFormatter(_PlainFormatter())


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def _say_plainly(pieces: Iterable[str]) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(printable_lines("".join(pieces)))
        sys.stderr.flush()


def wants_colours(stream: TextIO) -> bool:
    """True if the stream gets colours: a terminal that knows them, or any stream if FORCE_COLOR is set, but none if NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}


def show(draw: Draw) -> None:
    """Print a drawing, at most as wide as the terminal."""
    from ..display.render import ansi_of, text_of

    if not wants_colours(sys.stdout):
        say(text_of(draw))
        return
    with tolerate_closed_pipe():
        click.echo(ansi_of(draw), color=True)  # which an old console of Windows understands, too


def say(text: str = "") -> None:
    """Print a text on standard output, without anything that a terminal would execute."""
    with tolerate_closed_pipe():
        sys.stdout.write(f"{printable_lines(text)}\n")
        sys.stdout.flush()


def draw_over(text: str) -> None:
    """Print a text on standard error in the place of its last line. Printable texts only, no wider than the terminal."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(f"\r{ERASE}{text}", file=sys.stderr, nl=False, color=True)


def clear_screen() -> None:
    """Empty the terminal before it is drawn on again."""
    with tolerate_closed_pipe():
        sys.stdout.write(CLEAR)


def say_note(text: str) -> None:
    """Print a text on standard error that is no complaint."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{printable_lines(text)}\n")
        sys.stderr.flush()


def say_content(content: bytes) -> None:
    """Print a JSON document in UTF-8 on standard output. It is printed byte for byte, except on a terminal."""
    with tolerate_closed_pipe():
        sys.stdout.flush()
        sys.stdout.buffer.write(terminal_safe(content) if sys.stdout.isatty() else content)
        sys.stdout.buffer.flush()


def terminal_safe(content: bytes) -> bytes:
    """Return a JSON document with the same value and without control sequences."""
    from ..display.glyphs import glyphs_for

    return escaped(content.decode(), only_ascii=glyphs_for(sys.stdout.encoding).only_ascii).encode()


def say_values(values: dict[str, Any]) -> None:
    """Print a JSON object in one line. It is ASCII, so that it passes any terminal and contains no escape sequence."""
    say(json.dumps(values))


def error_text(error: Exception) -> str:
    """Return the error in words. An OSError becomes the file and the reason, without the error number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename} cannot be used: {error.strerror}" if error.filename else error.strerror


def say_aside(summary: dict[str, Any] | str) -> None:
    """Print a summary on standard error, because standard output holds the result: a line, or JSON without our program's name."""
    if isinstance(summary, str):
        complain(summary)
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{json.dumps(summary)}\n")
        sys.stderr.flush()


def complain(message: str) -> None:
    """Print one line on standard error, without keys: an option's value, or an address, may be or hold one."""
    from session.redaction import without_secrets  # slow, and only for errors

    with contextlib.suppress(OSError, ValueError):  # standard error may be closed
        sys.stderr.write(f"{PROGRAM}: {without_secrets(printable(' '.join(message.split())))}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def tolerate_closed_pipe() -> Iterator[None]:
    """Exit quietly if the reader of the output has gone, as with `| head`.

    Raises:
        BadInputError: The output cannot be written, for example because the disk is full.
    """
    try:
        yield
    except BrokenPipeError:
        _exit_pipe_closed()
    except OSError as error:
        if error.errno is None or os.name != "nt":  # Windows reports a closed pipe as EINVAL
            _discard_output()
            raise BadInputError(f"standard output cannot be written: {error.strerror or error}") from None
        _exit_pipe_closed()


def _discard_output() -> None:
    """Discard the rest of the output, so that it does not fail again when the interpreter exits, which would change the exit code."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_pipe_closed() -> NoReturn:
    _discard_output()
    raise click.exceptions.Exit(PIPE_CLOSED)
