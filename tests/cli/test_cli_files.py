"""What the command line writes: a whole file or none, and never over the transcript."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

from context_window import ContextWindow, ContextWindowManager, Session
from session.providers import validate_anthropic
from session.transcripts import read_transcript
from tests.support.screens import long_session
from tests.support.shell import HERE, POSIX, Shell


def test_process_writes_the_view(shell: Shell, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    code, summary, err = shell("process", path, "--max-tokens", 3000, "-o", out)
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=3000, keep_first_message=True))
    session = read_transcript(path)
    view = manager.process_session(session)
    assert (code, err) == (0, "")
    assert read_transcript(out).to_dict() == view.to_dict()
    total = manager.get_token_usage()["total"]
    before = manager.get_token_usage(session)["total"]
    assert re.fullmatch(
        rf"\d+ of {len(session.items)} items changed \(.*\): {before:,} -> {total:,} tokens of 3,000; wrote .*out\.json\n", summary
    )


def test_process_writes_messages_that_anthropic_takes(shell: Shell, path: str, tmp_path: Path) -> None:
    out = tmp_path / "payload.json"
    assert shell("process", path, "--max-tokens", 3000, "--to", "anthropic", "-o", out)[0] == 0
    payload = json.loads(out.read_text(encoding="utf-8"))
    assert set(payload) == {"messages", "system"}
    assert validate_anthropic({"model": "m", "max_tokens": 1, **payload}) == []


def test_what_is_written_fits_when_it_is_read_again(shell: Shell, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    summary = json.loads(shell("process", path, "--max-tokens", 3000, "--one-shot", "--json", "-o", out)[1])
    again = json.loads(shell("usage", out, "--max-tokens", 3000, "--json")[1])
    assert summary["after"] == again["total"] <= 3000
    assert (summary["output"], summary["changed"] > 0) == (str(out), True)


def test_the_view_can_go_to_standard_output(shell: Shell, path: str) -> None:
    code, out, err = shell("process", path, "--max-tokens", 3000, "-o", "-")
    assert code == 0
    assert len(Session.from_dict(json.loads(out)).items) < len(long_session().items)
    assert "items changed" in err


@POSIX
def test_links_and_permissions_stay_as_they_are(shell: Shell, path: str, tmp_path: Path) -> None:
    original, link = tmp_path / "kept.json", tmp_path / "link.json"
    original.write_text("old")
    original.chmod(0o640)
    link.symlink_to(original)
    assert shell("process", path, "-o", link, "--force")[0] == 0
    assert link.is_symlink()
    assert stat.S_IMODE(original.stat().st_mode) == 0o640
    assert json.loads(original.read_text(encoding="utf-8"))["id"] == "long"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept.json", "link.json", "session.json"]


@POSIX
def test_a_write_that_fails_halfway_leaves_what_was_there(path: str, tmp_path: Path) -> None:
    """The system stops the file at a thousand bytes, as a full disk would. (-B: it would cut off Python's own caches too.)"""
    out = tmp_path / "out.json"
    out.write_text("old")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from context_window.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, "process", path, "-o", str(out), "--force"],
        check=False,
        capture_output=True,
        text=True,
        cwd=HERE,
    )
    assert done.returncode == 2
    assert re.fullmatch(r"context-window: .*out\.json cannot be written: .*\n", done.stderr)
    assert out.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json", "session.json"]
