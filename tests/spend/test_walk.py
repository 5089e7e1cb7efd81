"""The walk to the logs ends, stays in the tool's folder, and finds what a plain search finds; what is no file is not opened."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend import read_ledger, walk
from context_window.spend.discovery import find_logs
from context_window.spend.walk import matches
from session.errors import TranscriptError
from session.opening import open_regular
from session.transcripts.source import open_file
from tests.spend.logs import answer, write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")
NAMES = st.sampled_from(["a", "b", "a.jsonl", ".h", "[x]"])
PARTS = st.sampled_from(["a", "*", "**", "*.jsonl", "[ab]", "?", ".h"])


@given(
    files=st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=8),
    parts=st.builds(lambda parts, last: [*parts, last], st.lists(PARTS, max_size=3), PARTS.filter(lambda part: part != "**")),
)
def test_without_links_a_pattern_means_what_it_always_means(files: list[list[str]], parts: list[str]) -> None:
    """The slow twin is the standard library's search. What a last `**` means to it differs between Pythons, so none is drawn."""
    with tempfile.TemporaryDirectory() as name:
        for way in files:
            path = Path(name, *way)
            if not any(parent.is_file() for parent in path.parents) and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        pattern = os.path.join(name, *parts)  # noqa: PTH118 - a pattern
        expected = {os.path.normpath(path) for path in glob(pattern, recursive=True, include_hidden=True)}  # noqa: PTH207 - the twin
        assert {str(path) for path in matches(pattern)} == expected


def home_with_links(folder: Path) -> Path:
    """Return a home whose sessions have two links that lead around, one to the root, one to a device and one to another's log."""
    sessions = folder / ".codex" / "sessions"
    for part in ("one", "two"):
        (sessions / part).mkdir(parents=True)
        (sessions / part / "log.jsonl").write_text("{}\n", encoding="utf-8")
    (sessions / "one" / "back").symlink_to(sessions)
    (sessions / "two" / "back").symlink_to(sessions)
    (sessions / "root").symlink_to("/")
    (sessions / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "other.jsonl").write_text("{}\n", encoding="utf-8")
    (sessions / "other.jsonl").symlink_to(folder / "other.jsonl")
    return folder


def test_no_link_is_followed_below_a_tools_folder(tmp_path: Path) -> None:
    """Two that lead around never ended, and one to the root walked the machine. The tool's own folder may be a link."""
    home = home_with_links(tmp_path / "real")
    expected = [Path(".codex", "sessions", part, "log.jsonl") for part in ("one", "two")]
    assert [log.relative_to(home) for log in find_logs(environment={}, home=home)] == expected
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / ".codex").symlink_to(home / ".codex")
    assert [log.relative_to(tmp_path / "link") for log in find_logs(environment={}, home=tmp_path / "link")] == expected


def test_a_named_folder_is_walked_without_its_links_to_folders(tmp_path: Path) -> None:
    home = home_with_links(tmp_path)
    names = [str(log.relative_to(home)) for log in find_logs([str(home)])]
    assert sorted(names) == [".codex/sessions/one/log.jsonl", ".codex/sessions/other.jsonl", ".codex/sessions/two/log.jsonl"]


def test_a_walk_stops_at_a_number_of_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.jsonl").touch()
    monkeypatch.setattr(walk, "MOST_ENTRIES", 10)
    assert len(list(matches(f"{tmp_path}/*.jsonl"))) == 10


@contextmanager
def another_user() -> Iterator[None]:
    """Be a user without rights for a while, as root can."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("is_named", [True, False])
def test_what_this_user_may_not_read_is_named(is_named: bool) -> None:
    """Whatever is in it is not silently left out of the sum."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        home.chmod(0o755)
        projects = home / ".claude" / "projects"
        logs = [write(projects / part / "log.jsonl", answer(part, 1)) for part in ("open", "closed", "file")]
        logs[1].parent.chmod(0o700 if os.geteuid() == 0 else 0)
        logs[2].chmod(0o600 if os.geteuid() == 0 else 0)
        read_ledger(logs)  # imports what it needs while it may
        with another_user():
            ledger = read_ledger(find_logs([str(projects)] if is_named else [], environment={}, home=home))
        logs[1].parent.chmod(0o700)
    assert (len(ledger.requests), ledger.logs) == (1, 1)
    assert [fault.path for fault in ledger.faults] == [str(logs[1].parent), str(logs[2])]
    assert [fault.problem[:17] for fault in ledger.faults] == ["permission denied"] * 2


def test_a_pipe_or_a_device_in_a_logs_place_is_not_waited_for(tmp_path: Path) -> None:
    """Also if it takes the log's place between the look and the opening."""
    pipe, log = tmp_path / "pipe.jsonl", tmp_path / "log.jsonl"
    os.mkfifo(pipe)
    log.write_text("{}\n", encoding="utf-8")
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(TranscriptError, match="not a regular file"):
            open_file(path)
    real_stat: Any = os.stat

    def seen_before(path: object, *rest: Any, **options: Any) -> Any:
        return real_stat(log) if path == pipe else real_stat(path, *rest, **options)

    problems: list[BaseException] = []

    def opened() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("session.opening.os.stat", seen_before)
            try:
                open_regular(pipe)
            except OSError as error:
                problems.append(error)

    thread = threading.Thread(target=opened, daemon=True)
    thread.start()
    thread.join(20)
    assert [str(problem) for problem in problems] == ["[Errno 22] is not a regular file"]
