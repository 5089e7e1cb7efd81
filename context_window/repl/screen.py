"""What the user of a chat sees: answers as Markdown while they arrive, a sign of life while nothing does, usage and money.

Texts of a model, a tool or a log never steer the terminal: everything passes `clean` or `Glyphs.safe`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.default_styles import DEFAULT_STYLES
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.style import Style
from rich.syntax import ANSI_DARK, ANSISyntaxTheme
from rich.text import Text
from rich.theme import Theme

from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory
from session.parts import Part
from session.parts import Text as TextPart

from ..display.glyphs import QUIET, glyphs_for
from ..display.lines import fit
from ..display.render import RICH, Draw, Drawing
from ..printable import printable_lines

Key = TypeVar("Key")

MAX_TEXT = 100_000
"""Characters of one text that are shown."""
MAX_PREVIEW = 8_000
"""Characters at the end of an unfinished answer that are drawn again and again."""
MARKDOWN_WIDTH = 100
"""Columns of Markdown, at most: longer lines are hard to read."""


def _in_our_colours(styles: Mapping[Key, Style]) -> dict[Key, Style]:
    """Return styles of rich with our colours, and without backgrounds: its own suit only dark terminals."""
    return {name: style.without_color + Style.parse(_our_colour(style)) for name, style in styles.items()}


def _our_colour(style: Style) -> str:
    return RICH.get("" if style.color is None else style.color.name.removeprefix("bright_"), "none")


CODE: Any = ANSISyntaxTheme(_in_our_colours(ANSI_DARK))
"""The colours of code; rich takes them as a theme, though its types say a name."""


def clean(text: str) -> str:
    """Return the text without anything that would steer a terminal. Tabs become spaces."""
    return printable_lines(text[:MAX_TEXT].replace("\r\n", "\n").expandtabs(4)) + ("…" if len(text) > MAX_TEXT else "")


def parts_text(parts: Sequence[Part]) -> str:
    """Return the texts of the parts, with a note in place of each image and document."""
    return "\n".join(part.text if isinstance(part, TextPart) else f"[{type(part).__name__.lower()}]" for part in parts)


class Screen:
    """Prints to standard output, in colours if it takes them."""

    def __init__(self) -> None:
        theme = Theme(_in_our_colours(DEFAULT_STYLES) | {name: Style.parse(colour) for name, colour in RICH.items()})
        self.console = Console(highlight=False, markup=False, emoji=False, theme=theme)
        self.glyphs = glyphs_for(self.console.encoding)

    def draw(self, draw: Draw) -> None:
        """Print a drawing."""
        self.console.print(Drawing(draw))

    def inform(self, text: str, style: str = QUIET) -> None:
        """Print a message of the chat itself, as one paragraph."""
        self.console.print(Text(self.glyphs.safe(" ".join(text.split())), style))

    def text(self, text: str, style: str = "") -> None:
        """Print a text as it is."""
        self.console.print(Text(clean(text), style))

    def markdown(self, text: str) -> None:
        """Print Markdown, after an empty line."""
        self.console.print()
        self.console.print(self.rendered(text), width=min(MARKDOWN_WIDTH, self.console.width))

    def rendered(self, text: str) -> RenderableType:
        """Return Markdown for the console; the text itself if it shows only ASCII, which has no bullets."""
        if self.glyphs.only_ascii:
            return Text(clean(text))
        return Markdown(clean(text), code_theme=CODE, hyperlinks=False)

    def item(self, item: Item) -> None:
        """Print a message, a call or a result. System prompts, context and reasoning are not shown."""
        match item:
            case Message(category=MessageCategory.DIALOG, role="user"):
                self.text(f"> {parts_text(item.content)}", "cyan")
            case Message(category=MessageCategory.DIALOG):
                self.markdown(parts_text(item.content))
            case FunctionCall():
                self.text(fit(f"{self.glyphs.dot} {item.name} {item.arguments}", self.console.width, self.glyphs), "yellow")
            case FunctionCallOutput():
                text = parts_text(item.output).strip()
                first, _, rest = text.partition("\n")
                outcome = (" failed" if item.is_error else "") + (f" ({len(text):,} characters)" if rest else "")
                self.text(fit(f"  {item.name}{outcome}: {first}", self.console.width, self.glyphs), QUIET)

    @contextmanager
    def working(self, what: str) -> Iterator[LiveAnswer]:
        """Show that something is under way for as long as the block lasts, and the answer as it arrives."""
        answer = LiveAnswer(self, what)
        live = Live(answer, console=self.console, transient=True, refresh_per_second=10)
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            live.start(refresh=True)  # drawn by its thread alone, the first line could stay when an answer comes at the same time
        try:
            yield answer
        finally:
            answer.end_text()
            live.stop()


class LiveAnswer:
    """An answer on its way, drawn again and again with a spinner below it, and printed when it is complete."""

    def __init__(self, screen: Screen, what: str) -> None:
        self.what = what
        self.has_text = False
        self._screen = screen
        self._since = time.monotonic()
        self._text = ""
        self._spinner = Spinner("line" if screen.glyphs.only_ascii else "dots")

    def add_text(self, piece: str) -> None:
        """Add a piece of the answer."""
        self._text += piece
        self.has_text = True

    def end_text(self) -> None:
        """Print the text: it is complete, or the rest will not come."""
        text, self._text = self._text.strip(), ""
        if text:
            self._screen.markdown(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._text.strip():
            width = options.update_width(min(MARKDOWN_WIDTH, options.max_width))
            lines = console.render_lines(self._screen.rendered(self._text[-MAX_PREVIEW:]), width)
            for line in ([], *lines[-max(1, console.height - 4) :]):
                yield from (*line, Segment.line())
        dot, seconds = self._screen.glyphs.dot, int(time.monotonic() - self._since)
        self._spinner.update(text=Text(self._screen.glyphs.safe(f"{self.what} {dot} {seconds} s {dot} Ctrl-C stops"), QUIET))
        yield self._spinner
