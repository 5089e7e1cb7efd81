"""The sessions of recorded transcripts. Several modules look at all of them, and reading them takes longest: once a process will do.

Nobody changes what comes from here: who wants to, copies it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from session.transcripts import TranscriptAccount, read_account


@cache
def account_of(path: Path) -> TranscriptAccount:
    """All sessions of the file, and what became of its lines."""
    return read_account(path)
