"""`session` is a common name: where a user's own module takes its place, the import says so instead of failing somewhere inside."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def _run(directory: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code],
        cwd=directory,
        env=environment,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def _assert_named(done: subprocess.CompletedProcess[str], shadow: Path) -> None:
    assert done.returncode == 1
    _, error, message = done.stderr.rpartition("\nImportError: ")
    assert error, done.stderr
    assert "cannot import name" not in message, "that is Python's own message, from somewhere inside"
    assert "session" in message.replace(str(shadow), "")
    assert str(shadow) in message


@pytest.mark.parametrize("name", ["session.py", "session/__init__.py"])
@pytest.mark.parametrize(
    "code",
    [
        "import context_window",
        "import session, context_window",
        "from context_window import Session",
        "import context_window.cli",
    ],
)
def test_a_shadowed_session_is_named(tmp_path: Path, name: str, code: str) -> None:
    shadow = tmp_path / name
    shadow.parent.mkdir(exist_ok=True)
    shadow.write_text("USER = 'anna'\n", encoding="utf-8")
    _assert_named(_run(tmp_path, code), shadow)


def test_a_shadow_that_has_our_names_is_named_too(tmp_path: Path) -> None:
    """A user's own `Session` would get through a check that looks for nothing but the name."""
    shadow = tmp_path / "session.py"
    shadow.write_text("Session = Message = MessageCategory = Text = Image = object\n", encoding="utf-8")
    _assert_named(_run(tmp_path, "import context_window"), shadow)


def test_a_directory_of_that_name_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "notes.txt").write_text("not a package", encoding="utf-8")
    done = _run(tmp_path, "import context_window, session; print(session.Session.__name__)")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "Session", "")
