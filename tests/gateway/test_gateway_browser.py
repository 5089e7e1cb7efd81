"""The gateway's page in a real Chromium, which can reach no other host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.gateway.test_gateway_http import MESSAGES, post
from tests.gateway.test_gateway_recall import Model, anthropic_turns
from tests.support.chromium import CONTRAST_LEAST, Watched, chromium, least_contrast, needs_chromium, overflow
from tests.support.gateways import gateway
from tests.support.stubs.anthropic import AnthropicStub

pytestmark = [needs_chromium, pytest.mark.no_cover]

WINDOW = 3_000
TURNS = 16
WAIT = 20_000
"""Milliseconds. Updates come every two seconds."""
SHAPES_LEAST = 3
"""Contrast of shapes: https://www.w3.org/TR/WCAG22/#non-text-contrast."""
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}

FOCUSABLE = """() => [...document.querySelectorAll("a[href], button, summary, [tabindex='0']")]
    .filter((element) => element.checkVisibility()).map((element) => window.nameOf(element))"""
NAME = """window.nameOf = (element) => element.id || element.getAttribute("aria-label") || element.getAttribute("aria-labelledby")
    || element.textContent.trim(); null"""
SHAPES = """() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = (color) => numbers(color).slice(0, 3).map((c) => linear(c / 255))
    .reduce((sum, c, place) => sum + c * [0.2126, 0.7152, 0.0722][place], 0);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const shapes = [[".band", "fill"], [".limit", "stroke"], [".mark:not(.cross)", "fill"], [".cross", "stroke"]];
  return shapes.flatMap(([selector, property]) => [...document.querySelectorAll(`.plot ${selector}`)].map((shape) => {
    const own = light(getComputedStyle(shape)[property]);
    return [selector, (Math.max(own, paper) + 0.05) / (Math.min(own, paper) + 0.05)];
  }));
}"""
"""Returns the contrast between each shape of the charts and the page."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A gateway after two conversations, the latest with several trims."""
    with AnthropicStub(Model()) as stub, gateway(stub.url, WINDOW) as running:
        send(running)
        for _ in anthropic_turns(running, streamed=True, turns=TURNS):
            pass
        yield running


@contextmanager
def opened_tab(browser: Browser, **options: Any) -> Iterator[tuple[Page, Watched]]:
    """Open a tab for as long as the `with` lasts."""
    context = browser.new_context(**options)
    try:
        page = context.new_page()
        yield page, Watched(page)
    finally:
        context.close()


def send(address: str, text: str = "Hello", turns: int = 1) -> None:
    """Send a request of a conversation with this many turns of the user."""
    messages: list[Any] = [{"role": ("user", "assistant")[turn % 2], "content": f"{text} {turn}"} for turn in range(2 * turns - 1)]
    body = json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": messages}).encode()
    assert post(address, MESSAGES, body, HEADERS).status_code == 200


def load(page: Page, address: str) -> None:
    """Open the gateway's page, which has a conversation."""
    page.goto(address)
    expect(page.locator("#window")).to_have_count(1)
    page.evaluate(NAME)


def focused(page: Page) -> str:
    return str(page.evaluate("window.nameOf(document.activeElement)"))


def test_the_page_follows_the_requests_and_asks_nobody_else(browser: Browser) -> None:
    """Works without the network: every other host is unreachable, and none is asked. Requests appear without a reload."""
    with AnthropicStub() as stub, gateway(stub.url, 8_000) as address, opened_tab(browser) as (page, watched):
        page.goto(address)
        assert page.locator("h2").inner_text() == "No conversation yet"
        send(address)
        expect(page.locator("#window .point")).to_have_count(1, timeout=WAIT)
        send(address, turns=2)
        expect(page.locator("#window .point")).to_have_count(2, timeout=WAIT)
        assert page.locator("#state").inner_text() == "Live"
        assert watched.complaints == []
        assert {request.split("?")[0] for request in watched.requests if not request.startswith("data:")} == {
            f"{address}/",
            f"{address}/live",
        }


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 400, 1_200])
def test_no_width_needs_scrolling_to_the_side(browser: Browser, address: str, width: int) -> None:
    """Usable at 400 px width."""
    with opened_tab(browser, viewport={"width": width, "height": 700}) as (page, watched):
        load(page, address)
        for summary in page.locator("summary").all():
            summary.click()
        assert overflow(page) == 0
        assert page.locator("#window .picture").bounding_box()["width"] > 0.7 * width - 60  # type: ignore[index]
        assert watched.complaints == []


@pytest.mark.long
def test_tab_reaches_every_control_and_arrow_keys_every_point(browser: Browser, address: str) -> None:
    """Usable by keyboard: one stop for each chart, and from there each of its points, with its values in words."""
    with opened_tab(browser) as (page, _):
        load(page, address)
        page.locator("#pause").click()
        page.evaluate("document.activeElement.blur()")
        expected = set(page.evaluate(FOCUSABLE))
        assert len(expected) >= 10
        reached = set()
        for _ in range(len(expected) + 1):
            page.keyboard.press("Tab")
            reached.add(focused(page))
        assert expected <= reached
        labels = page.locator("#window .point").evaluate_all("points => points.map((point) => point.getAttribute('aria-label'))")
        assert len(labels) == TURNS
        page.locator("#window .point").last.focus()
        walked = [focused(page)]
        for _ in range(TURNS):
            page.keyboard.press("ArrowLeft")
            walked.append(focused(page))
        assert walked == [*reversed(labels), labels[0]]
        assert page.locator("#window .readout").inner_text() == labels[0]
        for key, label in (("End", labels[-1]), ("Home", labels[0]), ("ArrowRight", labels[1])):
            page.keyboard.press(key)
            assert focused(page) == label
        assert page.evaluate("document.querySelectorAll('#window .point[tabindex=\"0\"]').length") == 1


@pytest.mark.long
def test_an_update_leaves_the_reader_where_he_is(browser: Browser) -> None:
    """The focus stays on its point, open parts stay open, and the conversation that is shown stays. Pause stops it all."""
    with AnthropicStub() as stub, gateway(stub.url, 8_000) as address, opened_tab(browser) as (page, watched):
        send(address)
        send(address, turns=2)
        load(page, address)
        page.locator("#window summary").click()
        page.locator("#window .point").first.focus()
        label = focused(page)
        send(address, "Another")
        expect(page.locator("nav tbody tr")).to_have_count(2, timeout=WAIT)
        send(address, turns=3)
        expect(page.locator("#window .point")).to_have_count(3, timeout=WAIT)
        assert focused(page) == label
        assert page.locator("#window .readout").inner_text() == label
        assert page.evaluate("document.querySelector('#window-values').open") is True
        page.locator("nav a").last.focus()
        link = focused(page)
        send(address, turns=4)
        expect(page.locator("#window .point")).to_have_count(4, timeout=WAIT)
        assert focused(page) == link
        page.locator("#pause").press("Enter")
        assert page.locator("#state").inner_text() == "Paused"
        asked = len(watched.requests)
        page.wait_for_timeout(2_500)
        assert len(watched.requests) == asked
        assert watched.complaints == []


@pytest.mark.long
def test_the_page_says_so_when_the_gateway_has_ended(browser: Browser) -> None:
    with opened_tab(browser) as (page, _):
        with gateway("http://127.0.0.1:9", 8_000) as address:
            page.goto(address)
        expect(page.locator("#state")).to_have_text("The gateway does not answer", timeout=WAIT)


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read_in_light_and_dark(browser: Browser, address: str, scheme: Any) -> None:
    """Texts have a contrast of 4.5 and shapes of 3 (WCAG 2.2, 1.4.3 and 1.4.11)."""
    with opened_tab(browser, color_scheme=scheme) as (page, _):
        load(page, address)
        for summary in page.locator("summary").all():
            summary.click()
        assert least_contrast(page) >= CONTRAST_LEAST
        contrasts = page.evaluate(SHAPES)
        assert {name for name, _ in contrasts} == {".band", ".limit", ".mark:not(.cross)", ".cross"}
        assert [(name, ratio) for name, ratio in contrasts if ratio < SHAPES_LEAST] == []


@pytest.mark.long
def test_everything_has_a_name_for_those_who_do_not_see_it(browser: Browser, address: str) -> None:
    """The browser's own tree for screen readers has a name for every picture, control and region; headings skip no level."""
    with opened_tab(browser) as (page, _):
        load(page, address)
        session = page.context.new_cdp_session(page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        shown = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
        named = {"image", "img", "button", "link", "region", "navigation", "graphics-document", "SvgRoot", "DisclosureTriangle"}
        assert {role for role, _ in shown} >= {"link", "button", "region", "navigation"}
        assert [(role, name) for role, name in shown if role in named and not name.strip()] == []
        assert sum(name.startswith("request ") and role in {"image", "img"} for role, name in shown) == 2 * TURNS
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((heading) => Number(heading.tagName[1]))")
        assert levels[0] == 1
        assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
        assert page.evaluate("document.documentElement.lang") == "en"
        assert page.title() == "context-window gateway"
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
        assert len(ids) == len(set(ids))


@pytest.mark.long
def test_without_scripts_the_page_is_a_page(browser: Browser, address: str) -> None:
    """Each point is a stop of its own, and links lead to the other conversations."""
    with opened_tab(browser, java_script_enabled=False) as (page, watched):
        page.goto(address)
        assert page.locator("#window .point[tabindex='0']").count() == TURNS
        page.locator("nav a").last.click()
        assert page.locator("#window .point").count() == 1
        assert watched.complaints == []
