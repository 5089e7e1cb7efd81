"""A cache of its own for every test, so that none reads what another has left, nor what the user has."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the cache."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(folder))
    return folder
