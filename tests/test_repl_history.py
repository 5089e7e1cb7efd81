"""What was typed is kept in a file of its own, for its owner alone; what is in the way of that does not end the chat."""

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
def test_what_was_typed_stays_private_and_optional(tmp_path: Path, mask: int) -> None:
    """The file is made anew where it has been removed meanwhile, and where it cannot be, the chat goes on."""
    home = tmp_path / "made" / "home"
    history = home / "history"
    path = saved(long_session(2), tmp_path / "log.json")
    environment = {"ANTHROPIC_API_KEY": "key", "CONTEXT_WINDOW_HOME": str(home)}
    before = os.umask(mask)
    try:
        with console("chat", width=80, cwd=str(tmp_path), environment=environment) as shown:
            shown.until(">")
            shown.type("/model")
            shown.until("the model is")
            assert "+/model" in history.read_text()
            assert stat.S_IMODE(history.stat().st_mode) == 0o600
            history.unlink()
            shown.type(f"/load {path}")
            shown.until("turns")
            assert f"+/load {path}" in history.read_text()
            assert stat.S_IMODE(history.stat().st_mode) == 0o600
            history.unlink()
            history.mkdir()
            shown.type("/pin")
            shown.until("nothing is pinned")
            shown.type("/quit")
            assert shown.leave() == 0
            assert "Traceback" not in shown.text
    finally:
        os.umask(before)
    assert {stat.S_IMODE(one.stat().st_mode) for one in (home, home.parent)} == {0o700}
    assert stat.S_IMODE((home / "sessions.db").stat().st_mode) == 0o600
