"""Target `outputs`: tables and pages that are made of a log's names.

The promise, whatever the log: CSV parses back to the rows that it was made of, and no cell begins as a formula or holds a control
character. A page has the elements and attributes of our templates, and no character that reorders text or steers a terminal. A text report
is printable.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click

from context_window import pages, reports
from context_window.cli.options import CommandOptions
from context_window.cli.spend import GROUPINGS, REASONS
from context_window.cli.spend_reading import explained
from context_window.cli.spend_tables import csv_of
from context_window.cli.spend_within import dicts
from context_window.cli.timeline import read_timeline
from context_window.cli.usage import _read
from context_window.cli.watch import LiveSession
from context_window.display.render import text_of
from context_window.display.timeline import timeline_draw
from context_window.display.usage import usage_draw
from context_window.errors import ContextWindowError
from context_window.printable import printable
from context_window.reports import session_page, spend_page
from context_window.spend import read_ledger, reasons_by, spend_by
from session import SessionError
from tests.support.claude_lines import Log, call, result

from .checks import REFUSED
from .folder import folder
from .seeds import Seed, make_seed

FORMULAS = ("=", "+", "-", "@")
ELEMENTS = frozenset(
    element
    for room in (pages, reports)
    for path in Path(str(room.__file__)).parent.glob("*.*")
    if path.suffix in {".html", ".py"}
    for element in re.findall(r"<([a-z][a-z0-9]*)", path.read_text("utf-8"))
)
"""Elements of our templates. The names in `NAMES` and in the mutations would make others."""
NAMES = (
    "=cmd()",
    "@SUM(A1)",
    "-1+1",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe",
    "a\x1b[31m\n=b",
    " =1",
)
"""Names that a log could have. Mutations put more of them into its fields."""


def output_seeds() -> Iterator[Seed]:
    """Yield a log with usage for every hostile name, as model, folder and tool."""
    for name in NAMES:
        log = Log()
        log.user("hi")
        log.answer("m1", call("c1", name))
        log.user([result("c1", "done")])
        log.answer("m2", {"type": "text", "text": name})
        yield make_seed(name, "file", "lines", [_named(line, name) for line in map(json.loads, log.lines)], "outputs")


def _named(record: Any, name: str) -> Any:
    record = {**record, "cwd": f"/{name}"} if record.get("type") else record
    if record.get("type") == "assistant":
        usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}
        record["message"] = {**record["message"], "model": name, "usage": usage}
    return record


def check_outputs(_: Seed, raw: bytes, number: int) -> str:
    """Check the promise for one mutant. Its number decides which output is made."""
    path = folder() / "named.jsonl"
    path.write_bytes(raw)
    try:
        match number % 4:
            case 0:
                requests = read_ledger([path], explain=explained).requests
                for grouping in GROUPINGS:
                    rows = spend_by(grouping, requests, zone=UTC)
                    check_csv(csv_of(dicts(rows, None), ("name",)), len(rows))
                for grouping in REASONS:
                    reasons = reasons_by(grouping, requests)
                    check_csv(csv_of([row.to_dict() for row in reasons], ("name",)), len(reasons))
                return "csv"
            case 1:
                ledger = read_ledger([path])
                check_page(spend_page(ledger.requests, zone=UTC, faults=ledger.faults).html)
                return "spend page"
            case 2:
                timed = read_timeline(str(path), CommandOptions())
                check_page(session_page(timed.timeline, title=raw[:50].decode(errors="replace")).html)
                check_text(text_of(timeline_draw(timed.timeline, timed.name, []), 100))
                return "session page"
        check_text(text_of(usage_draw(_read(str(path), LiveSession(CommandOptions()), CommandOptions()).report), 100))
    except (SessionError, ContextWindowError, click.ClickException):
        return REFUSED
    return "usage report"


def check_csv(text: str, rows: int) -> None:
    """Check a table with this number of rows beside its head."""
    head, *cells = csv.reader(io.StringIO(text), strict=True)
    assert len(cells) == rows
    assert all(len(row) == len(head) for row in cells)
    for cell in (cell for row in cells for cell in row):
        assert not cell.lstrip().startswith(FORMULAS), f"a formula: {cell!r}"
        assert printable(cell) == cell, f"a control character: {cell!r}"


def check_page(html: str) -> None:
    """Check the elements, the attributes and the characters of a page."""
    elements = _Elements(html)
    foreign = elements.names - ELEMENTS
    assert not foreign, f"elements that no template has: {foreign}"
    assert not any(name.startswith("on") for name in elements.attributes), "an attribute runs a script"
    assert elements.scripts == 1, "a script that is not ours"
    unsafe = {char for char in html if char != "\n" and printable(char) != char}
    assert not unsafe, f"characters that steer a reader: {sorted(unsafe)!r:.80}"


def check_text(text: str) -> None:
    """Check that every line of a report is printable."""
    assert all(printable(line) == line for line in text.split("\n")), "a line steers the terminal"


class _Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.scripts = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.scripts += tag == "script"

    handle_startendtag = handle_starttag
