"""Fixtures that most tests of the command line use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.screens import long_session, saved
from tests.support.shell import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Return the command line, run in this process."""
    return Shell(capsys, monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a long saved session."""
    return saved(long_session(), tmp_path / "session.json")
