"""Draws the pictures in the documents: `python -m context_window.repl.screenshot docs`.

`usage.svg` and `timeline.svg` show what `context-window usage` and `timeline` print for the sample session. `chat.svg` shows its last turn
as `chat --replay` prints it, and the output of `/context` after it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.resources import as_file, files
from io import StringIO
from pathlib import Path

from session.session import Session
from session.transcripts import read_transcript

from ..display.render import Draw, Drawing
from ..display.timeline import timeline_draw
from ..manager import ContextWindowManager
from ..settings.context_window import ContextWindow
from ..usage.report import UsageReport
from .chat import Chat, Notices
from .commands import find_command
from .render import text_block
from .replay import Replay, empty_copy

SAMPLE = "sample_session.jsonl"
BUDGET = 27_000
"""Tokens: small enough that the last turn is trimmed."""
TURNS = 1
"""Turns in the picture, counted from the end."""


def sample() -> Session:
    """Return the sample session that ships with the package."""
    with as_file(files("context_window") / "data" / SAMPLE) as path:
        return read_transcript(path)


def scene(log: Session) -> Iterator[Draw]:
    """Yield the drawings of the picture."""
    notices = Notices()
    window = ContextWindow(max_tokens=BUDGET)
    manager = ContextWindowManager(log.metadata.get("model"), context_window=window, on_event=notices.add_event)
    chat = Chat(manager, empty_copy(log), notices, is_replay=True)
    replay = Replay(log)
    while replay.turns_left > TURNS:
        list(replay.step(chat))
    while replay.turns_left:
        yield from replay.step(chat)
    command, rest = find_command("/context")
    draws = command.run(chat, rest)
    assert isinstance(draws, list)
    yield text_block("/context", before="> ")
    yield from draws


def chat_svg() -> str:
    """Return the picture of the chat."""
    return _svg("context-window chat", 100, map(Drawing, scene(sample())))


def usage_svg() -> str:
    """Return the picture of a usage report."""
    log = sample()
    manager = ContextWindowManager(log.metadata.get("model"))
    return _svg("context-window usage", 80, [manager.usage(log, title=SAMPLE)])


def timeline_svg() -> str:
    """Return the picture of a timeline."""
    log = sample()
    timeline = ContextWindowManager(log.metadata.get("model")).timeline(log)
    return _svg("context-window timeline", 80, [Drawing(timeline_draw(timeline, SAMPLE))])


PICTURES = {"chat.svg": chat_svg, "timeline.svg": timeline_svg, "usage.svg": usage_svg}
"""By file name: the function that draws the picture."""


def _svg(title: str, width: int, parts: Iterable[Drawing | UsageReport]) -> str:
    """Return a terminal of `width` columns that shows these."""
    from rich.console import Console

    console = Console(file=StringIO(), record=True, force_terminal=True, color_system="truecolor", width=width, height=24)
    for part in parts:
        console.print(part)
    picture = console.export_svg(title=title, unique_id=title.rpartition("-window ")[2])
    return re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)  # fonts on other hosts: the picture must not load anything


if __name__ == "__main__":
    for name, draw_picture in PICTURES.items():
        (Path(sys.argv[1]) / name).write_text(draw_picture(), encoding="utf-8", newline="\n")
