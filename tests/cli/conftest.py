"""Fixtures that most tests of the command line use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.screens import long_session, saved


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a long saved session."""
    return saved(long_session(), tmp_path / "session.json")
