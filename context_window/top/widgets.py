"""The parts of the screen: a list with a cursor, and a few lines. They draw lines as they are: no markup is read in any text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from ..display.glyphs import Glyphs
from ..display.lines import Line, Span
from ..display.render import rich_style
from .layout import page_lines
from .pages import Page, Row

MARGIN = 2
"""Columns of the mark beside the row under the cursor."""
WHEEL = 2
"""Rows that a turn of the mouse's wheel moves the cursor by."""
REVERSE = Style(reverse=True)


def strip_of(line: Line, width: int) -> Strip:
    """Return a line as Textual draws it, cut off or filled up to the width."""
    segments = [Segment(span.text, Style.parse(rich_style(span.style)) if span.style else Style.null()) for span in line]
    return Strip(segments).adjust_cell_length(width)


class Lines(Widget):
    """Lines of text that others have fitted to the width."""

    DEFAULT_CSS = "Lines { height: auto; }"

    def __init__(self, height: int, id: str) -> None:
        """
        Args:
            height: Number of lines.
            id: The widget's id.
        """
        super().__init__(id=id)
        self.styles.height = height
        self.lines: Sequence[Line] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Draw these lines."""
        if lines != self.lines:
            self.lines = lines
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return a line of the widget."""
        return strip_of(self.lines[y] if y < len(self.lines) else [], self.size.width)


class RowList(ScrollView, can_focus=True, inherit_bindings=False):
    """The rows of a page below their head. Only rows in view are laid out, so the number of rows costs nothing."""

    BINDINGS: ClassVar = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-1000000000)", show=False),
        Binding("end", "move(1000000000)", show=False),
    ]
    DEFAULT_CSS = "RowList { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }"

    def __init__(self, glyphs: Glyphs, moved: Callable[[], None], opened: Callable[[], None]) -> None:
        """
        Args:
            glyphs: Characters to draw with.
            moved: Called when the cursor is on another row, or the row has changed.
            opened: Called when the row under the cursor was clicked.
        """
        super().__init__(id="rows")
        self.rows: Sequence[Row] = ()
        self.cursor = 0
        self._glyphs, self._moved, self._opened = glyphs, moved, opened
        self._page: Page | None = None
        self._drawn: tuple[int, int, int, Sequence[Line]] = 0, 0, 0, ()
        """The first row, the number of rows and the width of the lines that were laid out last."""

    @property
    def current(self) -> Row | None:
        """The row under the cursor; None if there are none."""
        return self.rows[self.cursor] if self.rows else None

    def show(self, page: Page | None, rows: Sequence[Row], key: str | None) -> None:
        """Show these rows of a page, with the cursor on the one with a key, or else where it is.

        Args:
            page: The page; None for an empty screen.
            rows: The rows in order.
            key: The row's key; None for the first row.
        """
        found = 0 if key is None else next((index for index, row in enumerate(rows) if row.key == key), self.cursor)
        moved = found - self.cursor
        self._page, self.rows, self.cursor = page, rows, max(0, min(found, len(rows) - 1))
        self._drawn = 0, 0, 0, ()
        self.virtual_size = Size(self.size.width, len(rows) + 1)
        if moved and key is not None:
            self.scroll_to(y=self.scroll_offset.y + moved, animate=False, immediate=True)
        self._keep_in_view()
        self.refresh()
        self._moved()

    def action_move(self, rows: int) -> None:
        """Move the cursor by so many rows, as far as there are any."""
        self.cursor = max(0, min(self.cursor + rows, len(self.rows) - 1))
        self._keep_in_view()
        self.refresh()
        self._moved()

    def action_page(self, pages: int) -> None:
        """Move the cursor by so many screens."""
        self.action_move(pages * max(1, self._height - 1))

    @property
    def _height(self) -> int:
        """Rows in view: all lines but the head."""
        return max(1, self.size.height - 1)

    def _keep_in_view(self) -> None:
        top = self.scroll_offset.y
        wanted = max(min(top, self.cursor), self.cursor - self._height + 1)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)

    def on_resize(self, event: events.Resize) -> None:
        """Keep the cursor in view."""
        self.virtual_size = Size(event.size.width, len(self.rows) + 1)
        self._keep_in_view()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row that was clicked; if it was there already, open the row."""
        event.stop()
        row = self.scroll_offset.y + event.y - 1
        if event.y < 1 or row >= len(self.rows):
            return
        if row == self.cursor:
            self._opened()
        else:
            self.action_move(row - self.cursor)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move the cursor down."""
        self._wheel(event, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move the cursor up."""
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        event.stop()
        event.prevent_default()
        self.action_move(WHEEL * direction)

    def render_line(self, y: int) -> Strip:
        """Return a line of the widget: the head, or a row."""
        width = self.scrollable_content_region.width
        lines = self._lines(self.scroll_offset.y, self._height, width - MARGIN - 1)  # and a blank before the scroll bar
        if y >= len(lines):
            return Strip.blank(width)
        is_current = y > 0 and self.scroll_offset.y + y - 1 == self.cursor
        if is_current:  # in one style: quiet letters would not be seen
            return strip_of([Span("> "), *(Span(span.text) for span in lines[y])], width).apply_style(REVERSE)
        return strip_of([Span(" " * MARGIN), *lines[y]], width)

    def _lines(self, top: int, height: int, width: int) -> Sequence[Line]:
        if self._page is None:
            return ()
        if self._drawn[:3] != (top, height, width) or not self._drawn[3]:
            self._drawn = top, height, width, page_lines(self._page, self.rows[top : top + height], width, self._glyphs)
        return self._drawn[3]
