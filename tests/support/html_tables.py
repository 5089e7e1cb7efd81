"""Reads the tables and the visible text of a page."""

from __future__ import annotations

from html.parser import HTMLParser


class PageText(HTMLParser):
    """The text of a page.

    Attributes:
        tables: Each table's rows of cells, heads included.
        text: All text, and that of labels.
        tags: The names of its elements.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.tags: list[str] = []
        self._in_cell = self._is_hidden = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.text += "".join(f"{value}\n" for name, value in attrs if name == "aria-label")
        self._is_hidden = tag in {"style", "script"}
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"th", "td"}:
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._is_hidden = False
        if tag in {"th", "td"}:
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._is_hidden:
            return
        self.text += data
        if self._in_cell:
            self.tables[-1][-1][-1] += data
