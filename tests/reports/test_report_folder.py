"""`context-window report -o DIR/`: the tree as linked pages, written whole or not at all."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from context_window.cli import report_sessions
from context_window.cli.output import BadInputError
from context_window.cli.safe_folder import FolderTarget, is_folder, write_page
from tests.support.claude_lines import Log, call, result, text
from tests.support.html_tables import PageText
from tests.support.shell import Shell

HOSTILE = "../../<script>alert(1)</script>\" onclick='x"
KEY = "sk-ant-" + "api03-Zq8vT2nR5xW9kL4mB7cD1fG6hJ3pS0uY"
USAGE = {"input_tokens": 10, "cache_read_input_tokens": 4_000, "output_tokens": 50}


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "home"))
    return Shell(capsys, monkeypatch)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two sessions in two projects, one with hostile names and a key in its first words."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, (project, words) in enumerate((("/x/shop", f"Fix the build with {KEY} please"), (f"/x/{HOSTILE}", HOSTILE))):
        log = Log(f"s-{number}")
        log.user(words, cwd=project)
        tool = call(f"c{number}", "Read", file_path=f"/x/secret-folder/{HOSTILE}plan.py")
        log.answer(f"m{number}", tool, usage=USAGE, model="claude-opus-4-6", requestId=f"r{number}", cwd=project)
        log.user([result(f"c{number}", "word " * 900)], cwd=project)
        log.answer(f"n{number}", text("Done."), usage=USAGE, model="claude-opus-4-6", requestId=f"q{number}", cwd=project)
        log.write(folder, f"{number}.jsonl")
    return folder


def addresses(page: Path) -> list[str]:
    return re.findall(r'<a href="([^"]*)"', page.read_text("utf-8"))


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_every_session_has_a_page_and_every_link_leads_somewhere(shell: Shell, logs: Path) -> None:
    """Links are relative and stay in the folder, and names of files hold nothing that a log says."""
    out = logs.parent / "report"
    assert shell("report", logs, "-o", f"{out}/")[:2] == (0, f"wrote {out}/\n")
    index, pages = out / "index.html", sorted((out / "sessions").iterdir())
    within = [address for address in addresses(index) if address.startswith("#")]
    assert len(pages) == len(addresses(index)) - len(within) == 2
    assert all(f'id="{address[1:]}"' in index.read_text("utf-8") for address in within)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d-[0-9a-f]{12}\.html", page.name) for page in pages)
    for page in (index, *pages):
        for address in addresses(page):
            assert not urlsplit(address).scheme
            assert address in within or (page.parent / address).resolve() in {index.resolve(), *(page.resolve() for page in pages)}
    assert all(addresses(page) == ["../index.html"] for page in pages)
    whole = PageText(index.read_text("utf-8"))
    assert set(whole.tags) == set(PageText(shell("report", logs, "-o", "-")[1]).tags) | {"a"}
    (requests,) = [table for table in PageText(pages[0].read_text("utf-8")).tables if table[0][0].startswith("Request, ")]
    assert any("Read output: " in row[0] and "plan.py" in row[0] for row in requests[1:])
    if sys.platform != "win32":
        assert {path.stat().st_mode & 0o777 for path in (out, out / "sessions")} == {0o700}
        assert {path.stat().st_mode & 0o777 for path in (index, *pages)} == {0o600}


@pytest.mark.parametrize("is_folder_wanted", [True, False])
def test_first_words_are_in_a_report_only_if_asked_for(shell: Shell, logs: Path, is_folder_wanted: bool) -> None:
    """Without --titles a report has no text of a session, and with them no key. Of a path it names the file alone."""
    for titles in ((), ("--titles",)):
        out = logs.parent / f"report{len(titles)}"
        assert shell("report", logs, *titles, "-o", f"{out}/" if is_folder_wanted else out)[0] == 0
        pages = [path for path in (*out.rglob("*.html"), out) if path.is_file()]
        words = "".join(PageText(page.read_text("utf-8")).text for page in pages)
        assert ("Fix the build" in words) == bool(titles)
        assert KEY not in words
        assert "secret-folder" not in words
        assert len(pages) == (3 if is_folder_wanted else 1)


def test_why_can_be_left_out(shell: Shell, logs: Path) -> None:
    """Each page says why, the first time and from the cache, unless told otherwise."""
    for number, brief in enumerate(((), (), ("--no-why",))):
        out = logs.parent / f"report{number}"
        assert shell("report", logs, *brief, "-o", f"{out}/")[0] == 0
        assert {'id="why"' in page.read_text("utf-8") for page in out.rglob("*.html")} == {not brief}


def test_only_a_report_is_replaced_and_only_with_force(shell: Shell, logs: Path) -> None:
    out = logs.parent / "report"
    for force in ((), ("--force",)):
        assert shell("report", logs, "-o", f"{out}/", *force)[0] == 0
    before = files_below(out)
    code, _, err = shell("report", logs, "-o", out)
    assert (code, files_below(out)) == (2, before)
    assert "already exists; --force replaces it" in err
    (out / "notes.txt").write_text("mine")
    code, _, err = shell("report", logs, "-o", out, "--force")
    assert (code, "notes.txt; choose another name" in err, (out / "notes.txt").read_text()) == (2, True, "mine")
    code, _, err = shell("report", logs, "-o", f"{logs}/", "--force")
    assert (code, files_below(logs)) == (2, ["0.jsonl", "1.jsonl"])
    file = logs.parent / "file"
    file.write_text("mine")
    assert shell("report", logs, "-o", f"{file}/", "--force")[0] == 2
    assert shell("report", logs, "-o", logs.parent / "none" / "x/")[0] == 2
    assert shell("report", "-", "-o", f"{logs.parent / 'y'}/")[0] == 2
    assert file.read_text() == "mine"


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
@pytest.mark.parametrize("failing", [0, 1, 2, "the rename"])
def test_half_a_folder_is_never_left(
    shell: Shell, logs: Path, monkeypatch: pytest.MonkeyPatch, failing: object, error: BaseException, is_there: bool
) -> None:
    """Whenever it fails, at any page or at the end, there is what was there before and nothing else."""
    out, writes, replace = logs.parent / "report", iter(range(9)), Path.replace
    shell("report", logs, "-o", f"{out}/" if is_there else "-")
    before = {path: path.read_bytes() for path in logs.parent.rglob("*") if path.is_file() and "home" not in path.parts}

    def write(path: Path, content: bytes) -> None:
        if next(writes) == failing:
            raise error
        write_page(path, content)

    def rename(path: Path, target: Path) -> Path:
        if path.name == "new" and failing == "the rename":
            raise error
        return replace(path, target)

    monkeypatch.setattr(sys.modules["context_window.cli.report"], "write_page", write)  # the package has the command by that name
    monkeypatch.setattr(Path, "replace", rename)
    code, said, _ = shell("report", logs, "-o", f"{out}/", "--force")
    assert (code != 0, said) == (True, "")
    assert {path: path.read_bytes() for path in logs.parent.rglob("*") if path.is_file() and "home" not in path.parts} == before
    assert out.exists() == is_there
    assert not list(logs.parent.glob(".context-window-*"))


def test_a_log_that_is_gone_or_damaged_has_no_page(logs: Path) -> None:
    (logs / "2.jsonl").write_text("{")
    names = [str(logs / name) for name in ("0.jsonl", "2.jsonl", "3.jsonl")]
    found = list(report_sessions.found_sessions(names, report_sessions.Wanted(has_titles=True, has_pages=True, back="b")))
    assert [(session.tool, session.id, session.agent, session.requests) for session in found] == [("claude_code", "s-0", "", 2)]
    assert 'href="b"' in found[0].html


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    target = FolderTarget(str(out))

    def fill() -> None:
        with target.filled() as folder:
            (folder / "index.html").write_text("new")
            out.mkdir()
            (out / "index.html").write_text("theirs")

    with pytest.raises(BadInputError, match="already exists"):
        fill()
    assert (files_below(tmp_path), (out / "index.html").read_text()) == (["out", "out/index.html"], "theirs")
    assert is_folder(f"x{os.sep}")
    assert not is_folder("x")
    assert not is_folder("")
