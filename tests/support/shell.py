"""The command line, run here or in a process of its own."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from context_window.cli import run
from tests.support.shared import ROOT

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals, links and permissions as POSIX has them")


def heed_interrupts() -> None:
    """Restore the default handling of Ctrl-C, which background jobs of a shell ignore and their children inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


HERE = str(ROOT)
"""Where processes start, so that they find the packages as the tests do."""


class Shell:
    """Runs the command line here; returns its exit code and its output."""

    def __init__(self, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._capture = capture
        patch.delenv("FORCE_COLOR", raising=False)
        patch.setenv("COLUMNS", "100")

    def __call__(self, *args: object) -> tuple[int, str, str]:
        code = run([str(arg) for arg in args])
        content = self._capture.readouterr()
        return code, content.out, content.err


def program(*args: str) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "context_window", *args]
