"""Chromium, driven by playwright: the system's own, never a downloaded one. Where there is none, the tests that need it are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # every other host is unreachable
]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium for as long as the `with` lasts. Skips the test where there is none that starts."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except Error as error:
            pytest.skip(f"Chromium does not start: {str(error).splitlines()[0]}")
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A browser's page, with everything that it asked for and complained about.

    Attributes:
        page: The page.
        requests: Addresses that it asked for.
        complaints: Errors and warnings of its console, and exceptions of its scripts.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))


@contextmanager
def watched_page(browser: Browser, **options: object) -> Iterator[Watched]:
    """Open a page for as long as the `with` lasts."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    try:
        yield Watched(context)
    finally:
        context.close()
