"""Sessions to show, and what a reader sees of them: the rows of a printed report, and their numbers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from context_window import Image, Session

CATEGORIES = ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT")

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_NUMBER = r"(\d[\d,]*)"


def long_session(turns: int = 30, *, model: str | None = None) -> Session:
    """A session with every category in it, two images, tools with odd names, and a good deal of output."""
    session = Session(id="long", metadata={"model": model} if model else {})
    session.add_message("system", "You are terse. " * 30)
    session.add_context("Notes on the project. " * 60, source="NOTES.md")
    session.add_message("user", ["Look at these.", Image(url="https://example.org/a.png", width=800, height=600)])
    for turn in range(turns):
        name = ("read_file", "grep", "mcp__a_server_with_a_long_name__and_a_tool_with_a_longer_one", "[bold]run[/bold]")[turn % 4]
        session.add_message("user", f"What does file {turn} hold, and who wrote it?")
        session.add_function_call(name, {"path": f"src/{turn}.py"}, f"call_{turn}")
        session.add_function_output(name, "def answer() -> int: return 42\n" * (10 + turn), f"call_{turn}")
        session.add_message("assistant", f"One function, answer, in file {turn}.")
    session.add_message("user", ["And this?", Image(url="https://example.org/b.png", width=200, height=100)])
    return session


def saved(session: Session, path: Path) -> str:
    """The path of the session, saved there."""
    path.write_text(json.dumps(session.to_dict()), encoding="utf-8")
    return str(path)


@dataclass(frozen=True)
class Shown:
    """The numbers in a printed usage report."""

    rows: dict[str, int]
    total: int
    free: int | None
    over: int | None


def read_report(text: str) -> Shown:
    """What a reader of the printed report finds in it."""
    rows = {name: _after(rf"(?<!\w){name}", text) for name in (*CATEGORIES, "overhead")}
    free = re.search(rf"(?<!\w)free +{_NUMBER}", text)
    over = re.search(rf"over budget by +{_NUMBER}", text[text.index("total ") :])  # the row, not the headline
    result = {name: amount for name, amount in rows.items() if amount is not None}
    total = _after(r"(?<!\w)total", text)
    assert total is not None, text
    return Shown(result, total, _number(free[1]) if free else None, _number(over[1]) if over else None)


def _after(label: str, text: str) -> int | None:
    result = re.search(rf"{label} +{_NUMBER}(?!\S)", text)
    return _number(result[1]) if result else None


def _number(text: str) -> int:
    return int(text.replace(",", ""))
