"""Turns lines into plain text, into text with ANSI colours, or into a rich renderable for a console of any width."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING, TypeAlias

from .glyphs import Glyphs, glyphs_for
from .lines import Line, Span, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

Draw: TypeAlias = Callable[[int, Glyphs], list[Line]]
"""Returns lines for a width and a set of characters."""

NARROWEST = 20
"""Minimum width in columns. Terminals that report less do not know their width."""
SHADES = {
    "red": (197, "#ff005f"),
    "green": (64, "#5f8700"),
    "yellow": (166, "#d75f00"),
    "blue": (32, "#0087d7"),
    "magenta": (134, "#af5fd7"),
    "cyan": (30, "#008787"),
    "bright_black": (244, "#808080"),
}
"""Colours that can be read on white and on black: their numbers among a terminal's 256, and in HTML. The first sixteen are each theme's
own, and in many a yellow or a blue cannot be read.
"""
CODES = {"bold": "1", "dim": "2"} | {name: f"38;5;{number}" for name, (number, _) in SHADES.items()}
"""The numbers of each style in ANSI escape sequences (SGR)."""
RICH = {name: f"color({number})" for name, (number, _) in SHADES.items()}
"""Each colour as rich names it."""
CSS = {"bold": "font-weight: bold", "dim": "opacity: 0.6"} | {name: f"color: {colour}" for name, (_, colour) in SHADES.items()}
"""Each style in HTML."""
FIXED = "line-height: 1.25; overflow-x: auto; white-space: pre; font-family: Menlo, 'DejaVu Sans Mono', Consolas, monospace"
"""The style of a text of columns."""


def screen_width() -> int:
    """Return the columns of the terminal that standard output goes to. Without a terminal: COLUMNS, else 80."""
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def text_of(draw: Draw, width: int | None = None) -> str:
    """Return the lines as plain text, in characters that standard output can show."""
    lines = draw(screen_width() if width is None else max(NARROWEST, width), glyphs_for(getattr(sys.stdout, "encoding", None)))
    return "\n".join(map(plain, lines))


def ansi_of(draw: Draw, width: int | None = None) -> str:
    """Return the lines as text with ANSI colours, or plain text if NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return text_of(draw, width)
    columns = screen_width() if width is None else max(NARROWEST, width)
    return "\n".join(map(ansi, draw(columns, glyphs_for(getattr(sys.stdout, "encoding", None)))))


def ansi(line: Line) -> str:
    """Return the line with ANSI colours, without trailing blanks."""
    return "".join(
        f"\x1b[{';'.join(CODES[name] for name in style.split())}m{text}\x1b[0m" if style else text for text, style in _shown(line)
    )


def rich_style(style: str) -> str:
    """Return a style of ours in rich's words."""
    return " ".join(RICH.get(name, name) for name in style.split())


def html_of(draw: Draw) -> str:
    """Return the lines as HTML with colours, for notebooks. `draw` is asked for 110 columns; every text is escaped."""
    text = "\n".join("".join(map(_html, _shown(line))) for line in draw(110, glyphs_for("utf-8")))
    return f'<pre style="{FIXED}">{text}</pre>'


def _html(span: Span) -> str:
    text = escape(span.text)
    return f'<span style="{"; ".join(CSS[name] for name in span.style.split())}">{text}</span>' if span.style else text


def _shown(line: Line) -> Iterator[Span]:
    """Yield the spans without the line's trailing blanks."""
    left = len(plain(line))
    for span in line:
        if text := span.text[:left]:
            yield Span(text, span.style)
        left -= len(text)


class Drawing:
    """A rich renderable, drawn for the width and encoding of each console."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for line in self._draw(max(NARROWEST, options.max_width), glyphs_for(options.encoding)):
            text = Text(no_wrap=True, overflow="ignore", end="\n")
            for span in line:
                text.append(span.text, rich_style(span.style) or None)
            text.rstrip()
            yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        return Measurement(min(40, options.max_width), options.max_width)
