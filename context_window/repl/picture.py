"""The picture of the chat in the README, drawn by the chat itself: `python -m context_window.repl.picture docs/chat.svg`.

It is the end of the sample session that ships with the package, gone through as `chat --replay` does, and what `/context` says then.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.resources import as_file, files
from io import StringIO
from pathlib import Path

from session.session import Session
from session.transcripts import read_transcript

from ..config import ContextWindow
from ..display.rendering import Draw, Drawing
from ..manager import ContextWindowManager
from .chat import Chat, News
from .commands import find
from .drawing import text_block
from .replay import Replay, empty_copy

SAMPLE = "sample_session.jsonl"
BUDGET = 27_000
"""Tokens: few enough that the last turn is trimmed."""
TURNS = 1
"""Turns that are shown, the last."""
WIDTH = 100
"""Columns."""


def sample() -> Session:
    """The session that the picture shows."""
    with as_file(files("context_window") / "data" / SAMPLE) as path:
        return read_transcript(path)


def scene(log: Session) -> Iterator[Draw]:
    """What the picture shows of a session."""
    news = News()
    window = ContextWindow(max_tokens=BUDGET)
    manager = ContextWindowManager(log.metadata.get("model"), context_window=window, on_event=news.hear)
    chat = Chat(manager, empty_copy(log), news, replaying=True)
    replay = Replay(log)
    while replay.left > TURNS:
        list(replay.step(chat))
    while replay.left:
        yield from replay.step(chat)
    command, rest = find("/context")
    shown = command.run(chat, rest)
    assert isinstance(shown, list)
    yield text_block("/context", before="> ")
    yield from shown


def svg() -> str:
    """The picture."""
    from rich.console import Console

    console = Console(file=StringIO(), record=True, force_terminal=True, color_system="truecolor", width=WIDTH, height=24)
    for draw in scene(sample()):
        console.print(Drawing(draw))
    drawn = console.export_svg(title="context-window chat", unique_id="chat")
    return re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)  # fonts from elsewhere: a picture fetches nothing


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(svg(), encoding="utf-8", newline="\n")
