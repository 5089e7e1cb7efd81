"""Where the recorded transcripts lie that some tests read. They are not ours to publish, so they are kept outside the project."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TRANSCRIPTS = Path(os.environ.get("CONTEXT_WINDOW_TRANSCRIPTS") or ROOT.parent / "shared" / "data" / "transcripts")
"""The folder of recorded transcripts; the variable is for copies of the project that stand elsewhere, as in `.ci/run`."""

needs_transcripts = pytest.mark.skipif(
    not TRANSCRIPTS.is_dir(),
    reason="needs the recorded transcripts, which are not part of the project: set CONTEXT_WINDOW_TRANSCRIPTS to their folder",
)
