"""Logs of Claude Code for the browser, and a library of them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from context_window.cli.options import CommandOptions
from context_window.cli.watch import LiveSession
from context_window.top.library import Library
from tests.support.claude_lines import Log, call, result, text

WORDS = "The quick brown fox jumps over the lazy dog. "
NOON = 12 * 60
"""The minute of the first line."""
MODEL = "claude-opus-4-6"


def usage(new: int, read: int, written: int, output: int = 50) -> dict[str, int]:
    return {"input_tokens": new, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, "output_tokens": output}


class Session(Log):
    """A session that reads a file in each turn, and runs a command in its last one."""

    def __init__(self, session: str, project: str = "/work/shop", asks: str = "Mend the till.", start: int = NOON) -> None:
        super().__init__(session)
        self._cwd, self._minute, self._turns = project, start, 0
        self._prompt = 10_000
        self.user(asks)

    def add(self, kind: str, **fields: Any) -> str:
        self._minute += 1
        return super().add(kind, **{"cwd": self._cwd, "minute": self._minute, **fields})

    def turn(self, *, file: str = "till.py", read: int | None = None, model: str = MODEL) -> None:
        """A request that calls a tool, and the tool's output."""
        self._turns += 1
        own, path = f"{self.session}-{self._turns}", f"{self._cwd}/src/{file}"
        report = usage(10, self._prompt if read is None else read, 500 if read is None else self._prompt - read)
        self.answer(f"m{own}", call(f"c{own}", file_path=path), usage=report, model=model, requestId=f"r{own}")
        self.user([result(f"c{own}", WORDS * 20)])
        self._prompt += 500

    def shell(self, command: str) -> None:
        """A request that runs a command, and its output."""
        self._turns += 1
        own = f"{self.session}-{self._turns}"
        self.answer(
            f"m{own}", call(f"c{own}", "Bash", command=command), usage=usage(10, self._prompt, 500), model=MODEL, requestId=f"r{own}"
        )
        self.user([result(f"c{own}", "1 passed")])
        self._prompt += 500

    def says(self, words: str) -> None:
        """A last answer."""
        self.answer(f"m{self.session}-end", text(words), usage=usage(10, self._prompt, 100), model=MODEL, requestId=f"r{self.session}-end")


def written(session: Session, folder: Path, *, title: str = "") -> Path:
    """Write a session, with a title that its tool gave it."""
    if title:
        session.raw(json.dumps({"type": "custom-title", "customTitle": title, "sessionId": session.session}))
    return session.write(folder / session.session, f"{session.session}.jsonl")


def two_projects(folder: Path) -> Path:
    """Two sessions of one project and one of another."""
    till = Session("s-till")
    for file in ("till.py", "coin.py", "till.py"):
        till.turn(file=file)
    till.shell("pytest -q tests/test_till.py")
    written(till, folder)
    door = Session("s-door", asks="Paint the door.", start=NOON + 60)
    door.turn()
    written(door, folder, title="The blue door")
    garden = Session("s-garden", "/work/garden", "Water the beans.", start=NOON + 120)
    garden.turn(file="beans.py")
    garden.turn(file="beans.py", read=1_000)
    written(garden, folder)
    return folder


def never_done(names: Sequence[str], read: object) -> list[bytes]:
    """Take the place of what reads a batch of logs in a worker."""
    time.sleep(120)
    return []


def library(logs: Path, cache: Path) -> Library:
    """The sessions below a folder."""
    return Library([str(logs)], cache / "spend.sqlite3", lambda: LiveSession(CommandOptions()).grown)
