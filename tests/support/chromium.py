"""A real Chromium for tests of pages. It is the system's own: nothing is downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # every other host is unreachable
]
CONTRAST_LEAST = 4.5
"""Of text: level AA of https://www.w3.org/TR/WCAG22/#contrast-minimum."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a browser without a profile. Skips the test if it does not start."""
    from playwright.sync_api import Error, sync_playwright

    assert CHROMIUM is not None
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        except Error as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """What a page asks for and complains about.

    Attributes:
        requests: Addresses that it asked for.
        complaints: Errors, refusals by its policy among them, and warnings of its console.
    """

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text) if message.type in {"error", "warning"} else None)


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def least_contrast(page: Page) -> float:
    """Return the smallest contrast between a visible text and its background."""
    return float(page.evaluate(_CONTRAST))


_CONTRAST = """() => {
  const numbers = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = (color) => {
    const [r, g, b] = numbers(color).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      const parts = numbers(color);
      if (parts.length < 4 || parts[3] > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  let least = 21;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest("svg, script, style")) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
}"""
