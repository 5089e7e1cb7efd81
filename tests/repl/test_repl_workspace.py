"""The tools of the chat: their results, their limits, and that no path leads out of the directory."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_window.errors import ContextWindowError
from context_window.repl.search import MAX_MATCHES, PatternError, Search
from context_window.repl.workspace import (
    MAX_ENTRIES,
    MAX_FILE,
    MAX_LINE,
    MAX_LINES,
    MAX_TEXT,
    Workspace,
    WorkspaceError,
)
from context_window.tools import tool_texts
from session import files
from tests.support.shell import POSIX

SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    (inside / "src").mkdir(parents=True)
    (inside / "src" / "main.py").write_text("import os\nprint('hello')\n", encoding="utf-8", newline="\n")
    (inside / "notes.md").write_text("# Notes\nhello there\n", encoding="utf-8", newline="\n")
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8", newline="\n")
    (tmp_path / "inside-too").mkdir()
    (tmp_path / "inside-too" / "x").write_text(SECRET, encoding="utf-8", newline="\n")
    return inside


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)


def test_a_file_is_read_whole_or_by_lines(workspace: Workspace) -> None:
    assert workspace.read_file("src/main.py") == "import os\nprint('hello')"
    assert workspace.read_file("src/main.py", 2) == "print('hello')"
    assert workspace.read_file("src/main.py", 1, 1) == "import os\n[src/main.py: lines 1 to 1 of 2; go on with first_line=2]"
    with pytest.raises(WorkspaceError, match="has 2 lines"):
        workspace.read_file("src/main.py", 3)


def test_a_folder_is_listed_by_name_with_sizes(workspace: Workspace) -> None:
    assert workspace.list_files() == "notes.md (20)\nsrc/"
    assert workspace.list_files(recursive=True) == "notes.md (20)\nsrc/main.py (25)"
    assert workspace.list_files("src") == "main.py (25)"


def test_matches_have_file_and_line_number(workspace: Workspace) -> None:
    assert workspace.search("hello") == "notes.md:2: hello there\nsrc/main.py:2: print('hello')"
    assert workspace.search("^import", "src/main.py") == "src/main.py:1: import os"
    assert workspace.search("(?i)HELLO", "src") == "src/main.py:2: print('hello')"
    assert workspace.search("nowhere") == "[nothing found]"


LEADING_OUT = ["../secret.txt", "src/../../secret.txt", "../inside-too/x", "..", "/", "/etc/passwd", "link", "folder/secret.txt", "chain"]


def _links(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent)
    (root / "chain").symlink_to(root / "folder" / "secret.txt")


@POSIX
@pytest.mark.parametrize("path", LEADING_OUT)
def test_no_path_or_link_reaches_outside_the_directory(root: Path, path: str) -> None:
    _links(root)
    workspace = Workspace(root)
    tools: list[Callable[[str], str]] = [workspace.read_file, workspace.list_files, lambda path: workspace.search("secret", path)]
    for tool in tools:
        with pytest.raises(WorkspaceError, match="outside the working directory"):
            tool(path)


@POSIX
def test_listings_and_searches_follow_no_link(root: Path) -> None:
    _links(root)
    (root / "to notes").symlink_to("notes.md")
    workspace = Workspace(root)
    assert SECRET not in workspace.search("secret")
    listed = workspace.list_files(recursive=True)
    assert "secret.txt" not in listed
    assert "link (a link, which leads out of the working directory)" in listed
    assert "to notes (a link)" in listed
    assert workspace.read_file("to notes") == "# Notes\nhello there"


@given(st.lists(st.sampled_from(["..", ".", "src", "link", "folder", "main.py", "secret.txt", "inside", "", "~", "a\0b"]), max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_reads_what_is_outside(root: Path, steps: list[str]) -> None:
    if os.name == "posix" and not (root / "link").is_symlink():
        _links(root)
    workspace = Workspace(root)
    for path in ("/".join(steps), str(root / "/".join(steps))):
        for tool in (workspace.read_file, workspace.list_files, lambda path: workspace.search("outside", path)):
            try:
                message = tool(path)
            except WorkspaceError:
                continue
            assert SECRET not in message
            assert "inside-too" not in message


def test_the_directory_itself_may_be_a_link(tmp_path: Path, root: Path) -> None:
    if os.name != "posix":
        pytest.skip("links need rights on Windows")
    (tmp_path / "door").symlink_to(root)
    assert Workspace(tmp_path / "door").read_file("notes.md").startswith("# Notes")


@POSIX
def test_a_pipe_does_not_make_the_model_wait(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(WorkspaceError, match="not a regular file"):
        Workspace(root).read_file("pipe")
    assert Workspace(root).search("x", "pipe") == "[nothing found]"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "PNG image"),
        (b"ab\0cd", "no text in UTF-8"),
        (b"caf\xe9 au lait", "no text in UTF-8"),
        (b"%PDF-1.7", "PDF"),
    ],
)
def test_a_binary_file_is_reported_as_one(root: Path, content: bytes, message: str) -> None:
    (root / "file").write_bytes(content)
    assert message in Workspace(root).read_file("file")
    assert f"{len(content):,} bytes" in Workspace(root).read_file("file")
    assert Workspace(root).search(".", "file") == "[nothing found]"


def test_a_character_cut_at_the_end_of_the_sniffed_bytes_is_still_text(root: Path) -> None:
    (root / "file").write_bytes(b"x" * 8_191 + "é".encode() * 10)
    assert "binary" not in Workspace(root).read_file("file")


FAULTS: list[tuple[Callable[[Workspace], str], str]] = [
    (lambda workspace: workspace.read_file("none"), "list_files shows"),
    (lambda workspace: workspace.read_file("src"), "is a folder"),
    (lambda workspace: workspace.list_files("notes.md"), "is no folder"),
    (lambda workspace: workspace.list_files("none"), "there is no folder"),
    (lambda workspace: workspace.search("x", "none"), "there is no file or folder"),
    (lambda workspace: workspace.search("("), "cannot be searched for: missing"),
    (lambda workspace: workspace.search(""), "1 to"),
    (lambda workspace: workspace.read_file("a\0b"), "is no path"),
]


@pytest.mark.parametrize(("call", "message"), FAULTS)
def test_errors_say_what_to_do(workspace: Workspace, call: Callable[[Workspace], str], message: str) -> None:
    with pytest.raises(ContextWindowError, match=message):
        call(workspace)


def test_results_are_bounded(root: Path) -> None:
    (root / "long").write_text("x\n" * 10_000, encoding="utf-8", newline="\n")
    (root / "wide").write_text("y" * 100_000, encoding="utf-8", newline="\n")
    (root / "both").write_text(("z" * 1_500 + "\n") * 1_000, encoding="utf-8", newline="\n")
    (root / "huge").write_bytes(b"w\n" * (MAX_FILE // 2 + 100))
    workspace = Workspace(root)
    assert workspace.read_file("long").count("x") == MAX_LINES
    assert f"go on with first_line={MAX_LINES + 1}" in workspace.read_file("long", 1, 10**9)
    assert workspace.read_file("wide").count("y") == MAX_LINE
    assert len(workspace.read_file("both")) < MAX_TEXT + MAX_LINE + 200
    assert "only the first" in workspace.read_file("huge", MAX_FILE // 2 - 5)
    assert workspace.search("x", "long").count("\n") == MAX_MATCHES
    assert "large file" in workspace.search("v", "huge")
    (root / "many").mkdir()
    for number in range(MAX_ENTRIES + 1):
        (root / "many" / str(number)).touch()
    assert len(workspace.list_files("many").splitlines()) == MAX_ENTRIES + 1
    assert len(workspace.list_files("many", recursive=True).splitlines()) == MAX_ENTRIES + 1


def test_folders_of_dependencies_are_skipped_unless_they_are_named(root: Path) -> None:
    for folder in (".hidden", "node_modules"):
        (root / folder).mkdir()
        (root / folder / "x").write_text("hello", encoding="utf-8", newline="\n")
    workspace = Workspace(root)
    assert "node_modules" not in workspace.search("hello") + workspace.list_files(recursive=True)
    assert "node_modules/" in workspace.list_files()
    assert workspace.search("hello", "node_modules") == "node_modules/x:1: hello"
    assert workspace.search("hello", ".hidden") == ".hidden/x:1: hello"


@POSIX  # the path is longer than Windows takes
def test_a_deep_tree_is_walked(root: Path) -> None:
    deep = root
    for _ in range(300):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "leaf").write_text("hello", encoding="utf-8", newline="\n")
    assert "leaf:1: hello" in Workspace(root).search("hello")


def test_walking_an_endless_tree_stops_at_the_time_limit(root: Path) -> None:
    for number in range(50):
        (root / "empty" / str(number)).mkdir(parents=True)
        (root / "binary").mkdir(exist_ok=True)
        (root / "binary" / str(number)).write_bytes(b"\0")
    ticks = count()
    workspace = Workspace(root, seconds=20.0, clock=lambda: float(next(ticks)))
    begun = next(ticks)
    assert "[more than these" in workspace.list_files(recursive=True)
    assert "[stopped after 20 seconds" in workspace.search("x")
    assert next(ticks) - begun < 100


def test_a_late_search_says_so_and_returns_its_matches_so_far(root: Path) -> None:
    ticks = count()
    search = Search("hello", seconds=3.0, clock=lambda: float(next(ticks)))
    for number in range(10):
        search.add_text(f"file{number}", b"hello\n")
    assert search.is_over
    assert [match.name for match in search.matches] == ["file0", "file1"]
    assert "stopped after 3 seconds" in search.report()


@given(st.text(max_size=30), st.text(max_size=200))
def test_a_search_ends_for_any_pattern_and_finds_lines_that_are_there(pattern: str, text: str) -> None:
    import time

    try:
        search = Search(pattern, seconds=0.2, clock=time.monotonic)
    except PatternError:
        return
    search.add_text("file", text.encode())
    lines = text.split("\n")
    assert all(lines[match.line - 1].rstrip("\r") == match.text for match in search.matches)
    assert [match.line for match in search.matches] == sorted({match.line for match in search.matches})


def test_the_tools_have_definitions(workspace: Workspace) -> None:
    texts = tool_texts(workspace.tools)
    assert len(texts) == 3
    assert all("working directory" in text for text in texts)


@pytest.mark.skipif(not files._HAS_FOLDER_DESCRIPTORS, reason="this system has no descriptors of folders")
@pytest.mark.parametrize("swapped", ["folder", pytest.param("file", marks=pytest.mark.long)])
def test_a_swap_while_a_file_is_opened_leads_nowhere_else(tmp_path: Path, swapped: str) -> None:
    """The tools never leave the working directory, although the model chooses the path and a folder may become a link at any moment."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, text in ((root / "sub", "public"), (outside, "secret")):
        folder.mkdir(parents=True)
        (folder / "it.txt").write_text(text)
    place = root / "sub" if swapped == "folder" else root / "sub" / "it.txt"
    aside, link = tmp_path / "aside", tmp_path / "link"
    link.symlink_to(outside if swapped == "folder" else outside / "it.txt")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            place.rename(aside)
            link.rename(place)
            place.rename(link)
            aside.rename(place)

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    workspace = Workspace(root)
    answers: set[str] = set()
    try:
        end = time.monotonic() + 20
        for attempt in count():
            if (attempt >= 1_000 and len(answers) > 1) or time.monotonic() > end:
                break
            with contextlib.suppress(WorkspaceError):
                answers.add(workspace.read_file("sub/it.txt"))
            with contextlib.suppress(WorkspaceError):
                answers.add(workspace.search("public|secret"))
    finally:
        over.set()
        thread.join(10)
    assert "public" in answers
    assert not any("secret" in answer for answer in answers)


def test_a_deleted_directory_is_reported(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "gone")
    calls: list[Callable[[], str]] = [lambda: workspace.read_file("it.txt"), workspace.list_files, lambda: workspace.search("x")]
    for call in calls:
        with pytest.raises(WorkspaceError, match=r"not a folder|there is no"):
            call()
