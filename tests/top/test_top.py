"""The browser, driven by Textual's pilot: what is on the screen after keys and clicks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("textual", reason="an extra")

from textual.pilot import Pilot
from textual.worker import WorkerFailed

from context_window.display.glyphs import ASCII, UNICODE, Glyphs
from context_window.top import app as app_module
from context_window.top.app import Top
from context_window.top.library import Library
from tests.cli.test_cli_hostile import MARK, raw

from .logs import NOON, Session, library, two_projects, written

PATIENCE = 60.0
"""Seconds to wait at most, also on a busy machine."""
Scene = Callable[["Screen"], Awaitable[None]]


def noon() -> datetime:
    return datetime(2026, 3, 1, 16, tzinfo=UTC)


class Screen:
    """The browser and its pilot."""

    def __init__(self, app: Top, pilot: Pilot[str]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def current(self) -> str:
        """The row under the cursor."""
        (line,) = (line for line in self.lines if line.startswith("> "))
        return line

    async def until(self, *texts: str) -> None:
        """Wait until all of these are on the screen."""
        end = time.monotonic() + PATIENCE
        while not all(text in self.text for text in texts):
            assert time.monotonic() < end, f"no {texts} on the screen:\n{self.text}"
            await self.pilot.pause(0.02)

    async def until_current(self, text: str) -> None:
        """Wait until this is in the row under the cursor."""
        end = time.monotonic() + PATIENCE
        while not any(line.startswith("> ") and text in line for line in self.lines):
            assert time.monotonic() < end, f"no row with {text!r} under the cursor:\n{self.text}"
            await self.pilot.pause(0.02)

    async def enter(self, *texts: str) -> None:
        """Open the row under the cursor, and wait until all these texts are on the screen."""
        await self.press("enter")
        await self.until(*texts)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()


def play(found: Library, scene: Scene, *, width: int = 80, height: int = 24, glyphs: Glyphs = UNICODE) -> Top:
    """Show sessions to a scene, and return the browser."""
    app = Top(found, glyphs, clock=noon)

    async def run() -> None:
        async with app.run_test(size=(width, height)) as pilot:
            await scene(Screen(app, pilot))

    asyncio.run(run())
    return app


@pytest.fixture
def found(tmp_path: Path) -> Library:
    return library(two_projects(tmp_path / "logs"), tmp_path)


def test_the_first_screen_has_the_projects(found: Library) -> None:
    async def scene(screen: Screen) -> None:
        await screen.until("2 projects", "Quit", "> /work/garden")
        lines = screen.lines
        assert len(lines) == 24
        assert lines[0] == "all sessions"
        assert lines[1].split() == ["project", "today", "$", "7", "days", "$", "all", "$", "requests", "last", "used"]
        assert lines[2].split() == [">", "/work/garden", *["0.07"] * 3, "2", "14:04:00"]
        assert lines[3].split()[0] == "/work/shop"
        assert lines[-6] == "its latest session: 10,510 of 1,000,000 tokens, 1%"
        assert lines[-5].startswith("█·")
        assert lines[-2] == "2 projects · by last used"
        assert [word for word in ("Open", "Back", "Filter", "Sort", "Quit") if word not in lines[-1]] == []

    play(found, scene)


@pytest.mark.parametrize(("enter", "leave"), [("enter", "escape"), ("right", "left")])
def test_enter_goes_in_and_escape_goes_back(found: Library, enter: str, leave: str) -> None:
    """Projects, sessions by title or first words, requests, items with their files and commands."""

    async def scene(screen: Screen) -> None:
        await screen.until("2 projects")
        await screen.press("down", enter)
        await screen.until("2 sessions", "The blue door", "Mend the till.")
        assert screen.lines[0] == "all sessions → /work/shop"
        await screen.until_current("The blue door")
        await screen.until_current("claude-opus-4-6")
        await screen.press("down", enter)
        await screen.until("5 requests")
        assert screen.lines[0] == "all sessions → /work/shop → Mend the till."
        await screen.until("> next")
        await screen.press(enter)
        await screen.until("Read output: src/coin.py", "Bash call: pytest -q tests/te", "user message: Mend the till.")
        assert screen.lines[0].endswith("→ next request")
        await screen.until_current("overhead")
        await screen.press(enter)  # there is nothing below
        assert screen.lines[0].endswith("→ next request")
        for title, noun in (
            ("→ Mend the till.", "5 requests"),
            ("→ /work/shop", "2 sessions"),
            ("all sessions", "2 projects"),
            ("", "2 projects"),
        ):
            await screen.press(leave)
            await screen.until(noun)
            assert screen.lines[0].endswith(title)
        await screen.until_current("/work/shop")

    play(found, scene)


def test_a_request_shows_what_happened_before_it(found: Library) -> None:
    async def scene(screen: Screen) -> None:
        await screen.until("2 projects")
        await screen.enter("Water the beans.")
        await screen.enter("3 requests")
        await screen.press("down")
        await screen.until_current("! cache break:")
        await screen.until("request 2: 10,510 of 1,000,000 tokens")
        assert "◆ overhead" in screen.lines[-4]
        await screen.press("end")
        assert screen.current.split()[1] == "1"

    play(found, scene)


def test_a_wide_screen_has_more_columns(found: Library) -> None:
    async def scene(screen: Screen) -> None:
        await screen.until("2 projects")
        await screen.enter("1 session")
        await screen.enter("3 requests")
        await screen.enter("of prompt", "category")
        await screen.pilot.resize_terminal(60, 24)
        await screen.until("tokens")
        end = time.monotonic() + PATIENCE
        while "of prompt" in screen.text:
            assert time.monotonic() < end
            await screen.pilot.pause(0.02)

    play(found, scene, width=120)


def test_the_mouse_moves_and_opens(found: Library) -> None:
    async def scene(screen: Screen) -> None:
        await screen.until("2 projects")
        await screen.pilot.click("#rows", offset=(5, 2))
        await screen.until_current("/work/shop")
        assert screen.lines[0] == "all sessions"
        await screen.pilot.click("#rows", offset=(5, 0))  # the head
        await screen.pilot.click("#rows", offset=(5, 9))  # no row
        await screen.until_current("/work/shop")
        await screen.pilot.click("#rows", offset=(5, 2))
        await screen.until("2 sessions")

    play(found, scene)


def test_the_filter_and_the_order(found: Library) -> None:
    async def scene(screen: Screen) -> None:
        await screen.until("2 projects")
        await screen.press("s")
        await screen.until("\n2 projects · by cost\n")
        first = screen.lines[2].removeprefix("> ").split()[0]
        assert first == "/work/garden"
        await screen.press("slash", *"SHOP")
        await screen.until("1 of 2 projects · by cost · with SHOP")
        assert [line for line in screen.lines if "/work/" in line] == [screen.current]
        await screen.press("enter")
        await screen.enter("2 sessions")
        await screen.press("escape")
        await screen.until("with SHOP")
        await screen.press("escape")
        await screen.until("\n2 projects · by cost\n")
        await screen.press("slash", *"zz")
        await screen.until("0 of 2 projects")
        await screen.press("escape")
        await screen.until_current("/work/shop")

    play(found, scene)


def test_it_follows_logs_and_keeps_the_cursor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log grows, a project comes: the figures change, the row under the cursor stays."""
    monkeypatch.setattr(app_module, "INTERVAL", 0.05)
    logs = two_projects(tmp_path / "logs")

    async def scene(screen: Screen) -> None:
        await screen.until("2 projects")
        await screen.press("down")
        barn = Session("s-barn", "/work/barn", "Mend the roof.", NOON + 180)
        barn.turn()
        written(barn, logs)
        await screen.until("3 projects")
        await screen.until_current("/work/shop")
        assert screen.lines[2].split()[0] == "/work/barn"
        await screen.press("up", "up", "enter")
        await screen.until("Mend the roof.")
        await screen.enter("2 requests")
        await screen.until("> next")
        before = screen.current
        await screen.press("down")
        assert screen.current.split()[1] == "1"
        barn.turn(file="roof.py")
        written(barn, logs)
        await screen.until("3 requests")
        assert screen.current.split()[1] == "1"
        await screen.press("home")
        await screen.until("> next")
        assert screen.current != before
        barn.says("Done.")
        written(barn, logs)
        await screen.until("4 requests")
        await screen.until("> next")
        await screen.enter("assistant message: Done.", "Read output: src/roof.py")

    play(library(logs, tmp_path), scene)


STEERING = MARK.replace("\0", "")


@pytest.mark.parametrize("mark", [STEERING, "[b]x[/] [@click=app.quit]z[/] $x {y}"])
def test_nothing_in_a_log_steers_the_terminal_or_is_read_as_markup(tmp_path: Path, mark: str) -> None:
    hostile = Session(f"s{mark.replace('/', '')}", f"/work/{mark}", f"Look. {mark}")
    hostile.turn(file=mark, model=f"claude-{mark}")
    hostile.shell(mark)
    hostile.turn()
    hostile.write(tmp_path / "logs", "log.jsonl")

    async def scene(screen: Screen) -> None:
        for shown in ("1 project", "1 session", "4 requests", "items"):
            await screen.until(shown)
            assert raw("\n".join(segment.text for strip in screen.app.screen._compositor.render_strips() for segment in strip)) == []
            if mark != STEERING and shown != "4 requests":
                assert mark[:20] in screen.text
            await screen.press("enter")

    play(library(tmp_path / "logs", tmp_path), scene, width=120)


def test_a_terminal_of_ascii_gets_ascii(found: Library) -> None:
    async def scene(screen: Screen) -> None:
        await screen.until("2 projects")
        await screen.enter("Water the beans.")
        await screen.enter("3 requests")
        assert "\n".join(screen.lines[:-1]).isascii()

    play(found, scene, glyphs=ASCII)


def test_a_log_that_has_gone_shows_the_requests_it_had(tmp_path: Path) -> None:
    logs = two_projects(tmp_path / "logs")

    async def scene(screen: Screen) -> None:
        await screen.until("2 projects")
        (logs / "s-garden" / "s-garden.jsonl").unlink()
        await screen.enter("1 session")
        await screen.enter("2 requests", "10,510")
        await screen.enter("the log does not tell what was in this window")

    play(library(logs, tmp_path), scene)


class Slow(Library):
    """A library that reads until it is told to stop."""

    def look(self) -> bool:
        self.progress = 30, 100
        GATE.wait(PATIENCE)
        return super().look()


GATE = threading.Event()


def test_keys_work_while_logs_are_read(tmp_path: Path) -> None:
    GATE.clear()

    async def scene(screen: Screen) -> None:
        await screen.until("reading 30%")
        await screen.press("enter", "escape", "s", "down")
        began = time.monotonic()
        await screen.press("q")
        assert time.monotonic() - began < PATIENCE / 2

    app = play(Slow([str(two_projects(tmp_path / "logs"))], tmp_path / "c.sqlite3", library(tmp_path, tmp_path)._new_grown), scene)
    GATE.set()
    assert app.return_value is None


def test_logs_without_usage_end_it_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"type": "nothing"}\n', encoding="utf-8")

    async def scene(screen: Screen) -> None:
        end = time.monotonic() + PATIENCE
        while screen.app.return_value is None:
            assert time.monotonic() < end
            await screen.pilot.pause(0.02)

    assert play(library(tmp_path, tmp_path), scene).return_value == f"{tmp_path / 'log.jsonl'} no log of a known format found"


class Faulty(Library):
    """A library with a fault in it."""

    def look(self) -> bool:
        raise ValueError(MARK)


def test_a_fault_of_the_program_ends_it_and_is_kept(tmp_path: Path) -> None:
    app = Top(Faulty([], tmp_path / "c.sqlite3", library(tmp_path, tmp_path)._new_grown), UNICODE)

    async def run() -> None:
        async with app.run_test() as pilot:
            while app.fault is None:
                await pilot.pause(0.02)

    with pytest.raises(WorkerFailed):
        asyncio.run(run())
    assert isinstance(app.fault, ValueError)
