"""`context-window report`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.html_tables import PageText
from tests.support.shell import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "home"))
    return Shell(capsys, monkeypatch)


def answer(message: str, *, output: int, project: str = "/x/shop") -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 4_000, "output_tokens": output}
    content = [{"type": "text", "text": "fine"}]
    body = {"id": message, "role": "assistant", "model": "claude-opus-4-6", "content": content, "usage": usage}
    common = {"sessionId": "s1", "cwd": project, "timestamp": "2026-03-25T12:00:00Z", "uuid": message, "parentUuid": None}
    return {"type": "assistant", "message": body, "requestId": f"r-{message}", **common}


def write(path: Path, *values: object) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "a.jsonl", answer("m1", output=5), answer("m2", output=700))


@pytest.mark.parametrize("path", ["a.jsonl", "."])
def test_it_writes_a_page_and_replaces_one_only_with_force(shell: Shell, log: Path, path: str) -> None:
    """OUT is readable only by its owner. An existing file is replaced only with --force."""
    out = log.parent / "out.html"
    for force in ((), ("--force",)):
        assert shell("report", log.parent / path, "-o", out, *force)[:2] == (0, f"wrote {out}\n")
    page = PageText(out.read_text("utf-8"))
    assert page.tables
    if sys.platform != "win32":
        assert out.stat().st_mode & 0o777 == 0o600
    out.write_text("mine", "utf-8")
    code, _, err = shell("report", log.parent / path, "-o", out)
    assert (code, out.read_text("utf-8")) == (2, "mine")
    assert "already exists; --force replaces it" in err


def test_one_log_is_a_session_and_a_folder_is_all(shell: Shell, log: Path) -> None:
    write(log.parent / "b.jsonl", answer("m3", output=9, project="/x/blog"))
    session = PageText(shell("report", log, "-o", "-")[1])
    everything = PageText(shell("report", log.parent, "-o", "-", "--timezone", "UTC")[1])
    assert [row[0].split(",")[0] for row in session.tables[0][1:]] == ["request 1", "request 2", "the next request"]
    assert {row[0] for table in everything.tables if table[0][0] == "Project" for row in table[1:]} == {"/x/shop", "/x/blog"}
    one = PageText(shell("report", log.parent, "-o", "-", "--project", "blog")[1])
    assert {row[0] for table in one.tables if table[0][0] == "Project" for row in table[1:]} == {"/x/blog"}


def test_what_does_not_apply_is_refused(shell: Shell, log: Path) -> None:
    for arguments in ((log, "--since", "2026-01-01"), (log.parent, "--session", "s1")):
        code, out, err = shell("report", *arguments, "-o", "-")
        assert (code, out) == (2, "")
        assert err.startswith(f"context-window: {arguments[1]}: such options are for ")


def test_nothing_readable_writes_nothing(shell: Shell, tmp_path: Path) -> None:
    write(tmp_path / "a.json", {"x": 1})
    code, _, err = shell("report", tmp_path, "-o", tmp_path / "out.html")
    assert code == 2
    assert "no log of a known format" in err
    assert "no report was written" in err
    assert not (tmp_path / "out.html").exists()


def test_faults_are_in_the_page(shell: Shell, log: Path) -> None:
    write(log.parent / "b.json", {"x": 1})
    code, out, err = shell("report", log.parent, "-o", "-")
    assert code == 0
    assert "b.json: no log of a known format found" in err
    assert "1 log could not be read completely" in PageText(out).text
