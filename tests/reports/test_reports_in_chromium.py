"""Reports in a real Chromium: nothing is loaded, everything can be reached by keyboard, and it fits a telephone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from context_window.reports import Link, SessionKey, session_page, spend_page
from context_window.spend.reasons import MCP, SHELL
from context_window.timeline import Marker, MarkerKind, Point, Timeline
from session import FunctionCall, FunctionCallOutput, Item
from session.transcripts.makeup import Makeup, Part
from session.transcripts.reported_requests import Request
from tests.support.chromium import CONTRAST_LEAST, Watched, chromium, least_contrast, needs_chromium, overflow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [needs_chromium, pytest.mark.no_cover]

DAY = 86_400
START = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()


def requests() -> list[Request]:
    """Forty days of requests to nine models, with names that break no line."""
    models = ("claude-opus-4-6", "claude-sonnet-4-5", "gpt-5.5", "gpt-5.3-codex", "gemini-2.5-pro", "nobody-knows-1", "gpt-5.4-mini")
    request = Request("", START, "codex", "", "/home/" + "very-long-name" * 8, "", input_tokens=900, cache_read=40_000, output_tokens=800)
    return [
        replace(
            request,
            time=START + number * DAY / 3,
            model=models[number % 7],
            project=request.project if number % 5 else "/x/shop",
            session=f"s{number % 9}",
            cache_write=2_000,
            reasoning=60,
            makeup=Makeup((Part(SHELL, "Bash", "git diff", 9_000, 0, 0), Part(MCP, "mcp__" + "x" * 50, "server" * 9, 500, 0, 0))),
        )
        for number in range(120)
    ]


def session() -> Timeline:
    """Sixty requests, with all kinds of markers."""
    points = []
    for number, request in enumerate(requests()[:60], 1):
        markers = (
            Marker(MarkerKind.TRIM, 900),
            Marker(MarkerKind.COMPACTION, 4_000),
            Marker(MarkerKind.CACHE_BREAK, 9_000, "a pause of 12 minutes", Decimal("0.04")),
        )[number % 3 :]
        tokens = (2_000, 500 * number, 300 * number, 1_000 * number)
        cost, shown = Decimal("0.2"), markers if number % 10 == 0 else ()
        points.append(
            Point(
                number,
                number,
                tokens,
                4_000,
                time=request.time,
                request=request,
                cost=cost,
                markers=shown,
                added="Bash output",
                added_tokens=99,
                new_items=((0, 99), (1, 9)),
            )
        )
    return Timeline("s", (*points, Point(61, 61, (1, 2, 3, 4), 5, is_next=True)), (), 100_000, None, "claude-opus-4-6", "a counter")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module", params=["spend", "session"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a report on the disk."""
    links = {SessionKey("codex", f"s{number}"): [Link("sessions/1.html", ""), Link("sessions/2.html", "agent" * 9)] for number in range(3)}
    items: list[Item] = [FunctionCall("Read", json.dumps({"file_path": "a" * 90}), "c"), FunctionCallOutput("Read", "text", "c")]
    if request.param == "spend":
        page = spend_page(requests(), zone=UTC, titles=dict.fromkeys(links, "A title of some words " * 3), pages=links)
    else:
        page = session_page(session(), title="a" * 90 + ".jsonl", items=items, explained=requests(), back="../index.html")
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page.html, "utf-8")
    return path.as_uri()


def opened(browser: Browser, report: str, *, width: int = 1000, scheme: Literal["dark", "light"] = "light") -> tuple[Page, Watched]:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watched = Watched(page)
    page.goto(report)
    return page, watched


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_loads_nothing_and_can_be_read(browser: Browser, report: str, scheme: Literal["dark", "light"]) -> None:
    """One file is all there is; texts have the contrast of level AA in light and dark."""
    page, watched = opened(browser, report, scheme=scheme)
    assert [address for address in watched.requests if not address.startswith("data:")] == [report]
    assert watched.complaints == []
    assert least_contrast(page) >= CONTRAST_LEAST
    page.close()


@pytest.mark.parametrize("width", [400, 320])
def test_it_fits_a_telephone(browser: Browser, report: str, width: int) -> None:
    page, _ = opened(browser, report, width=width)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    assert overflow(page) == 0
    page.close()


@pytest.mark.parametrize("width", [1280, 400, 320])
def test_names_of_axes_do_not_overlap(browser: Browser, report: str, width: int) -> None:
    """Below each chart at least two names can be read, and none touches another or leaves the window."""
    page, _ = opened(browser, report, width=width)
    for chart in page.query_selector_all(".chart"):
        boxes = [box for name in chart.query_selector_all(".ticks text, .axis span") if (box := name.bounding_box()) and box["width"]]
        assert len(chart.query_selector_all(".ticks text:not(.minor)")) >= 2
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
        for one, other in combinations(boxes, 2):
            is_beside = one["x"] + one["width"] < other["x"] or other["x"] + other["width"] < one["x"]
            assert is_beside or one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
    page.close()


def test_the_keyboard_reaches_everything(browser: Browser, report: str) -> None:
    """Tab stops at each chart, table and list of values; arrow keys walk over the points, and the line below names each."""
    page, _ = opened(browser, report)
    own = (".chart", ".scroll:visible", "summary:visible", "a:visible")
    stops = sum(page.locator(name).count() for name in own)
    for _ in range(stops + 2):
        page.keyboard.press("Tab")
        page.evaluate("document.activeElement.dataset.reached = true")
    assert page.locator("body [data-reached]").count() == stops
    chart = page.locator(".chart").first
    chart.locator(".point").last.focus()
    last = chart.locator(".readout").inner_text()
    page.keyboard.press("ArrowLeft")
    assert chart.locator(".readout").inner_text() == chart.locator(".point").nth(-2).get_attribute("aria-label") != last
    page.keyboard.press("Home")
    assert chart.locator(".readout").inner_text() == chart.locator(".point").first.get_attribute("aria-label")
    page.close()


def test_a_screen_reader_has_names_and_tables(browser: Browser, report: str) -> None:
    """Every picture and every table that scrolls has a name, and headings do not skip a level."""
    page, _ = opened(browser, report)
    for picture in page.query_selector_all("svg:not([aria-hidden])"):
        assert picture.get_attribute("aria-labelledby") or picture.get_attribute("aria-label")
    assert all(
        region.get_attribute("aria-label") or region.get_attribute("aria-labelledby") for region in page.query_selector_all("[role=region]")
    )
    levels = [int(name[1]) for name in page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map((e) => e.tagName)")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    page.close()


def test_it_can_be_printed(browser: Browser, report: str) -> None:
    """On paper, tables show all their rows, and the tree all its branches."""
    page, _ = opened(browser, report)
    page.emulate_media(media="print")
    assert page.evaluate("[...document.querySelectorAll('.branch table')].every((e) => e.checkVisibility({contentVisibilityAuto: true}))")
    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter((e) => e.checkVisibility() && e.scrollHeight > e.clientHeight + 1).length"
    )
    assert cut == 0
    assert len(page.pdf()) > 1_000
    page.close()
