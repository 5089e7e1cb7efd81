"""The screen of `context-window top`: where the user is, what is shown there, and the keys. What is shown is made elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from time import monotonic
from typing import ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import Footer, Input
from textual.worker import WorkerFailed

from ..display.glyphs import QUIET, STRONG, Glyphs
from ..display.lines import Line, Span, fit, fit_ends
from ..printable import printable
from .conversations import Opened
from .entries import Entry
from .layout import GAUGE_LINES, gauge_lines
from .library import Library
from .pages import NEXT, Page, chosen, entry_name, items_page, projects_page, request_name, requests_page, sessions_page
from .readers import Reader
from .widgets import Lines, RowList

INTERVAL = 2.0
"""Seconds between two looks at the logs."""
NAMED_AT_ONCE = 25
"""Sessions whose titles are looked for between two drawings."""
LEVELS = ("projects", "sessions", "requests", "items")


@dataclass(slots=True)
class Place:
    """A level that the user went into.

    Attributes:
        title: What it is about.
        project: The project; empty on the level of projects.
        session: The name of the session below it.
        request: The name of the request below that.
        cursor: The key of the row under the cursor; None before there was one.
        order: The number of the order of rows.
        needle: The text that rows must have.
        page: What was shown last.
        opened: The session that this page is of.
    """

    title: str
    project: str = ""
    session: str = ""
    request: str = ""
    cursor: str | None = None
    order: int = 0
    needle: str = ""
    page: Page | None = None
    opened: Opened | None = None


class Top(App[str]):
    """The browser. It returns a sentence if there was nothing to show.

    Attributes:
        places: The levels that the user went into, from projects down.
        fault: What ended it, if that was a fault of the program.
    """

    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    CSS = """
    Screen { layout: vertical; background: ansi_default; }
    RowList { height: 1fr; }
    #needle { border: none; height: 1; padding: 0; display: none; background: ansi_default; }
    #needle.shown { display: block; }
    """
    BINDINGS: ClassVar = [
        Binding("enter,right", "open", "Open", key_display="enter"),
        Binding("escape,left", "leave", "Back", key_display="esc"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("s", "sort", "Sort"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, library: Library, glyphs: Glyphs, *, clock: Callable[[], datetime] | None = None) -> None:
        """
        Args:
            library: The sessions.
            glyphs: Characters to draw with.
            clock: Returns the time in the zone whose days count. Default: the machine's.
        """
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.places = [Place("all sessions")]
        self.fault: BaseException | None = None
        self._library, self._glyphs = library, glyphs
        self._clock = clock or (lambda: datetime.now().astimezone())
        self._logs, self._sessions = Reader(), Reader()

    @property
    def place(self) -> Place:
        """Where the user is."""
        return self.places[-1]

    def compose(self) -> ComposeResult:
        """Return the parts of the screen from top to bottom."""
        yield Lines(1, "title")
        yield RowList(self._glyphs, self._moved, self.action_open)
        yield Lines(GAUGE_LINES, "gauge")
        yield Lines(1, "status")
        yield Input(placeholder="only rows with this text; Enter keeps it, Esc shows all", id="needle")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to read."""
        self._rows.focus()
        self.follow()
        self.set_interval(0.25, self._show_progress)

    @property
    def _rows(self) -> RowList:
        return self.query_one(RowList)

    def _fatal_error(self) -> None:
        """End, and keep the fault for whoever runs this: Textual would print a traceback with the values of variables, raw."""
        error = self._exception
        self.fault = error.error if isinstance(error, WorkerFailed) else error
        self._close_messages_no_wait()

    # Reading

    @work(exclusive=True, group="follow")
    async def follow(self) -> None:
        """Look at the logs every two seconds, and show what has changed."""
        while True:
            began = monotonic()
            if await self._logs.do(self._library.look):
                if not self._library.entries:
                    self.exit(self._nothing())
                    return
                await self._fill()
            await asyncio.sleep(max(INTERVAL, monotonic() - began))  # at most half of one core's time

    def _nothing(self) -> str:
        faults = self._library.faults
        if not faults:
            return "the logs have no requests whose usage can be read"
        more = f"; and {len(faults) - 1:,} more logs cannot be read" if len(faults) > 1 else ""
        return f"{faults[0].path} {faults[0].problem}{more}"

    async def _fill(self) -> None:
        """Make the page of the place anew, and show it if the user is still there."""
        place = self.place
        now = self._clock()
        if place.session:
            await self._open_session(place)
        elif place.project:
            entries = self._entries(place)
            self._show(place, await self._logs.do(partial(sessions_page, entries, dict(self._library.titles), now)))
            self.name_sessions()
        else:
            self._show(place, await self._logs.do(partial(projects_page, self._library.entries, now)))

    async def _open_session(self, place: Place) -> None:
        entry = next((entry for entry in self._entries(place) if entry_name(entry.key) == place.session), None)
        if entry is None:
            return
        opened = await self._sessions.do(partial(self._library.open, entry))
        if opened is place.opened:
            return
        if place.request:
            index, number = _point_named(opened, place.request)
            make = partial(items_page, opened.conversations[index], number, place.project)
        else:
            make = partial(requests_page, opened, self._clock())
        page = await self._sessions.do(make)
        place.opened = opened
        self._show(place, page)

    def _entries(self, place: Place) -> list[Entry]:
        return [entry for entry in self._library.entries if entry.key.project == place.project]

    @work(exclusive=True, group="names")
    async def name_sessions(self) -> None:
        """Look for words for the sessions of the place, those that were used last first."""
        place = self.place
        while (unnamed := self._library.unnamed(self._entries(place))) and place is self.place:
            if await self._logs.do(partial(self._library.name, unnamed[:NAMED_AT_ONCE])):
                titles = dict(self._library.titles)
                self._show(place, await self._logs.do(partial(sessions_page, self._entries(place), titles, self._clock())))

    # Showing

    def _show(self, place: Place, page: Page) -> None:
        place.page = page
        if place is self.place:
            self._draw()

    def _draw(self) -> None:
        place = self.place
        page = place.page
        self._rows.show(page, [] if page is None else chosen(page, place.order, place.needle), place.cursor)
        self._show_status()

    def _show_status(self) -> None:
        place, glyphs = self.place, self._glyphs
        separator = f" {glyphs.arrow} "
        path = [Span(each.title, STRONG if each is place else QUIET) for each in self.places]
        text = separator.join(span.text for span in path)
        width = max(1, self.size.width)
        self.query_one("#title", Lines).show([[Span(fit_ends(text, width, glyphs), STRONG)]])
        self.query_one("#status", Lines).show([self._status(width)])

    def _status(self, width: int) -> Line:
        place, page, shown = self.place, self.place.page, len(self._rows.rows)
        parts: list[str] = []
        if page is not None:
            of_all = f"{shown:,} of {len(page.rows):,}" if place.needle else f"{shown:,}"
            parts = [f"{of_all} {page.noun}{'' if len(page.rows) == 1 else 's'}", f"by {page.orders[place.order % len(page.orders)]}"]
        if place.needle:
            parts.append(f"with {place.needle}")
        if page is None:
            done, total = self._library.progress
            parts.append(f"reading {100 * min(done, total) // total}%" if total else "reading")
        if page is not None and page.note:
            parts.append(page.note)
        if self._library.faults and not place.project:
            count = len(self._library.faults)
            parts.append(f"{'1 log' if count == 1 else f'{count:,} logs'} not read in full: spend --json")
        return [Span(fit(f" {self._glyphs.dot} ".join(parts), width, self._glyphs), QUIET)]

    def _show_progress(self) -> None:
        if self.place.page is None:
            self._show_status()

    def on_resize(self) -> None:
        """Fit all lines to the new width."""
        self.call_after_refresh(self._draw)

    def _moved(self) -> None:
        """Remember the row, and show its window."""
        row = self._rows.current
        if row is not None:
            self.place.cursor = row.key
        gauge = None if row is None else row.gauge
        self.query_one("#gauge", Lines).show(gauge_lines(gauge, self.size.width, self._glyphs))

    # Keys

    def action_open(self) -> None:
        """Go into the row under the cursor."""
        row, place = self._rows.current, self.place
        if row is None or place.page is None or place.request:
            return
        name = next((span.text for span, head in zip(row.cells, place.page.heads, strict=True) if head.least), "")
        if place.session:
            number = row.cells[0].text
            title = f"{NEXT} request" if number == NEXT else f"request {number}"
            self.places.append(Place(title, place.project, place.session, row.key))
        elif place.project:
            self.places.append(Place(name, place.project, row.key))
        else:
            self.places.append(Place(name, row.key))
        self._go()

    def action_leave(self) -> None:
        """Leave the filter, or else the place."""
        needle = self.query_one("#needle", Input)
        if needle.has_class("shown") or self.place.needle:
            needle.value = self.place.needle = ""
            self._hide_filter()
        elif len(self.places) > 1:
            self.places.pop()
            self._go()

    def _go(self) -> None:
        self._draw()
        self.fill_now()

    @work(exclusive=True, group="fill")
    async def fill_now(self) -> None:
        """Make the page of the place at once."""
        await self._fill()

    def action_sort(self) -> None:
        """Show the rows in the next order."""
        self.place.order += 1
        self.place.cursor = None  # to the first rows of the new order
        self._draw()

    def action_filter(self) -> None:
        """Ask for a text that rows must have."""
        needle = self.query_one("#needle", Input)
        needle.value = self.place.needle
        needle.add_class("shown")
        needle.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the rows with the text so far."""
        if (text := printable(event.value)) != event.value:
            event.input.value = text
        self.place.needle = text
        self._draw()

    def on_input_submitted(self) -> None:
        """Keep the text, and go back to the rows."""
        self._hide_filter()

    def _hide_filter(self) -> None:
        self.query_one("#needle", Input).remove_class("shown")
        self._rows.focus()
        self._draw()


def _point_named(opened: Opened, name: str) -> tuple[int, int]:
    """Return the number of the conversation and of the request in it. One that is gone is the last."""
    for index, conversation in enumerate(opened.conversations):
        for point in conversation.timeline.points:
            if request_name(index, point) == name:
                return index, point.number
    return 0, opened.conversations[0].timeline.points[-1].number
