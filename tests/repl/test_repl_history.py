"""The file of the input history is readable only by its owner. If it cannot be written, the chat continues."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

pytest.importorskip("pexpect", reason="needs a pty, which Windows has not")

from tests.support.console import console
from tests.support.screens import long_session, saved

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pty")


@pytest.mark.parametrize("mask", [0, 0o022], ids=["umask 000", "umask 022"])
def test_the_input_history_is_private_and_optional(tmp_path: Path, mask: int) -> None:
    """A deleted file is created again. If that fails, the chat continues."""
    home = tmp_path / "made" / "home"
    history = home / "history"
    path = saved(long_session(2), tmp_path / "log.json")
    environment = {"ANTHROPIC_API_KEY": "key", "CONTEXT_WINDOW_HOME": str(home)}
    before = os.umask(mask)
    try:
        with console("chat", width=80, cwd=str(tmp_path), environment=environment) as screen:
            screen.until(">")
            screen.type("/model")
            screen.until("the model is")
            assert "+/model" in history.read_text()
            assert stat.S_IMODE(history.stat().st_mode) == 0o600
            history.unlink()
            screen.type(f"/load {path}")
            screen.until("turns")
            assert f"+/load {path}" in history.read_text()
            assert stat.S_IMODE(history.stat().st_mode) == 0o600
            history.unlink()
            history.mkdir()
            screen.type("/pin")
            screen.until("nothing is pinned")
            screen.type("/quit")
            assert screen.leave() == 0
            assert "Traceback" not in screen.text
    finally:
        os.umask(before)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (home, home.parent)} == {0o700}
    assert stat.S_IMODE((home / "sessions.db").stat().st_mode) == 0o600
