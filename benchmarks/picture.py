"""Draws the picture of the first page, the timeline of the sample session: `python -m benchmarks.picture`."""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from io import StringIO
from pathlib import Path

from rich.console import Console

from context_window import ContextWindowManager
from context_window.display.render import Drawing
from context_window.display.timeline import timeline_draw
from session.transcripts import read_transcript

PICTURE = Path(__file__).parents[1] / "docs" / "timeline.svg"


def timeline_svg() -> str:
    """Return what `context-window timeline` prints for the sample session, as a terminal of 80 columns."""
    with as_file(files("context_window") / "data" / "sample_session.jsonl") as path:
        log = read_transcript(path)
    console = Console(file=StringIO(), record=True, force_terminal=True, color_system="truecolor", width=80, height=24)
    console.print(Drawing(timeline_draw(ContextWindowManager(log.metadata.get("model")).timeline(log), "sample_session.jsonl")))
    picture = console.export_svg(title="context-window timeline", unique_id="timeline")
    return re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)  # fonts on other hosts: the picture must not load anything


if __name__ == "__main__":
    PICTURE.write_text(timeline_svg(), encoding="utf-8", newline="\n")
