"""Turns lines into plain text, into text with ANSI colours, or into a rich renderable for a console of any width."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, TypeAlias

from .glyphs import Glyphs, glyphs_for
from .lines import Line, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

Draw: TypeAlias = Callable[[int, Glyphs], list[Line]]
"""Returns lines for a width and a set of characters."""

NARROWEST = 20
"""Minimum width in columns. Terminals that report less do not know their width."""


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
    from rich.console import Console

    output = StringIO()
    console = Console(
        file=output,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        no_color=False,
        width=screen_width() if width is None else max(NARROWEST, width),
        height=24,  # without it, rich overrides width and height for TERM=dumb
    )
    glyphs = glyphs_for(getattr(sys.stdout, "encoding", None))
    console.print(Drawing(lambda columns, _: draw(columns, glyphs)))
    return output.getvalue().removesuffix("\n")


def html_of(draw: Draw) -> str:
    """Return the lines as HTML with colours, for notebooks. `draw` is asked for 110 columns; every text is escaped."""
    from rich.console import Console

    console = Console(file=StringIO(), record=True, force_jupyter=False, width=110, height=24)
    console.print(Drawing(lambda columns, _: draw(columns, glyphs_for("utf-8"))))
    return console.export_html(inline_styles=True, code_format='<pre style="line-height:1.25;overflow-x:auto">{code}</pre>')


class Drawing:
    """A rich renderable, drawn for the width and encoding of each console."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for line in self._draw(max(NARROWEST, options.max_width), glyphs_for(options.encoding)):
            text = Text(no_wrap=True, overflow="ignore", end="\n")
            for span in line:
                text.append(span.text, span.style or None)
            text.rstrip()
            yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        return Measurement(min(40, options.max_width), options.max_width)
