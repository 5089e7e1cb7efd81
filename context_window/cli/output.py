"""What the command line says, and how it ends: streams, colours, one line for each fault. Decides nothing about sessions."""

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
from typing import Any, NoReturn, TextIO

import click

from ..display.glyphs import glyphs_for
from ..display.rendering import Draw, Drawing, screen_width, text_of
from ..printable import escaped, printable, printable_lines

PROGRAM = "context-window"

DONE, BROKEN_PROMISE, BAD_INPUT = 0, 1, 2
"""Exit codes."""
INTERRUPTED = 130
"""As shells report an end by Ctrl-C."""
READER_GONE = 141
"""As shells report an end because nobody reads the output any more."""


class BadInputError(click.ClickException):
    """What the user gave cannot be worked with; the message says what to do instead."""

    exit_code = BAD_INPUT


class BrokenPromiseError(click.ClickException):
    """What the user asked for cannot be kept: over budget, and `--strict`."""

    exit_code = BROKEN_PROMISE


def prepare_streams() -> None:
    """Lets both streams print anything: what their encoding does not have becomes a question mark, and what nobody can get is nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us, as in `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - it stays open until the end
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def guard_terminal() -> None:
    """Let nothing that Python itself prints steer the terminal: a traceback, a warning or a log record may quote a transcript."""
    sys.excepthook = lambda *fault: _say_plainly(traceback.format_exception(*fault))
    sys.unraisablehook = lambda fault: _say_plainly(
        [f"{fault.err_msg or 'Exception ignored in'}: {fault.object!r}\n", *traceback.format_exception(fault.exc_value)]
    )
    threading.excepthook = lambda fault: _say_plainly([] if fault.exc_type is SystemExit else traceback.format_exception(fault.exc_value))
    warnings.showwarning = lambda *warning, **_: _say_plainly([warnings.formatwarning(*warning[:4])])
    if logging.lastResort is not None:  # what prints a record that no handler takes
        logging.lastResort.setFormatter(_PlainFormatter())


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def _say_plainly(pieces: Iterable[str]) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(printable_lines("".join(pieces)))
        sys.stderr.flush()


def wants_colours(stream: TextIO) -> bool:
    """Whether to send colours: to terminals that know them, unless NO_COLOR is set; anywhere if FORCE_COLOR is."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}


def show(draw: Draw) -> None:
    """Prints what is drawn, at most as wide as the terminal."""
    if not wants_colours(sys.stdout):
        say(text_of(draw))
        return
    from rich.console import Console

    console = Console(file=sys.stdout, force_terminal=True, color_system="standard", no_color=False, width=screen_width(), height=24)
    with reader_may_go():
        console.print(Drawing(draw))


def say(text: str = "") -> None:
    """Prints a text on standard output."""
    with reader_may_go():
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def say_content(content: bytes) -> None:
    """Prints a document of JSON in UTF-8 on standard output: byte for byte, unless that is a terminal."""
    with reader_may_go():
        sys.stdout.flush()
        sys.stdout.buffer.write(shown_content(content) if sys.stdout.isatty() else content)
        sys.stdout.buffer.flush()


def shown_content(content: bytes) -> bytes:
    """Return a JSON document with the same value, in which nothing steers a terminal."""
    return escaped(content.decode(), only_ascii=glyphs_for(sys.stdout.encoding).only_ascii).encode()


def say_values(values: dict[str, Any]) -> None:
    """Prints JSON, one object a line. In ASCII: it must survive any terminal, and name no escape sequence to one."""
    say(json.dumps(values))


def fault_of(error: Exception) -> str:
    """What went wrong, in words: of a fault of the system the file and the reason, without its number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename} cannot be used: {error.strerror}" if error.filename else error.strerror


def say_aside(told: dict[str, Any] | str) -> None:
    """Prints what was done on standard error, where standard output is taken: JSON alone, so that it can be read, or a line of ours."""
    if isinstance(told, str):
        complain(told)
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{json.dumps(told)}\n")
        sys.stderr.flush()


def complain(message: str) -> None:
    """Prints one line on standard error."""
    with contextlib.suppress(OSError, ValueError):  # there may be nobody left to tell
        sys.stderr.write(f"{PROGRAM}: {printable(' '.join(message.split()))}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def reader_may_go() -> Iterator[None]:
    """Ends quietly where the reader of the output has gone, as in `| head`.

    Raises:
        BadInputError: What is printed cannot be written to where it goes, such as a full disk.
    """
    try:
        yield
    except BrokenPipeError:
        _reader_is_gone()
    except OSError as error:
        if error.errno is None or os.name != "nt":  # Windows tells of it as EINVAL
            raise BadInputError(f"standard output cannot be written: {error.strerror or error}") from None
        _reader_is_gone()


def _reader_is_gone() -> NoReturn:
    with contextlib.suppress(OSError, ValueError):  # what is still buffered must not fail once more at the interpreter's end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise click.exceptions.Exit(READER_GONE)
