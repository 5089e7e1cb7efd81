"""What people typed who had never seen it, and what they should have read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_window import ArgumentError, manage
from tests.spend.logs import answer, write
from tests.support.claude_lines import Log, text
from tests.support.shell import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.chdir(tmp_path)
    return Shell(capsys, monkeypatch)


@pytest.mark.parametrize("word", ["weak", "monday", "april", "2026-04"])
def test_a_word_that_is_no_file_and_no_period_is_said_to_be_neither(shell: Shell, word: str) -> None:
    code, out, err = shell("spend", word)
    assert (code, out) == (2, "")
    assert f"{word} is neither a file nor a period; periods are today, yesterday, week, month" in err


def test_a_period_without_requests_says_when_the_newest_was(shell: Shell, tmp_path: Path) -> None:
    write(tmp_path / "claude" / "projects" / "p" / "a.jsonl", answer("m", 1))
    assert "none passes the filters. The newest is of 2026-03-25." in " ".join(shell("spend", "today")[1].split())


def test_a_session_is_found_by_the_beginning_of_its_id(shell: Shell, tmp_path: Path) -> None:
    for name in ("0d3c1111-aaaa", "0d3c2222-bbbb"):
        log = Log()
        log.user("Hi.")
        log.answer("m1", text("Hello."), usage={"input_tokens": 9, "output_tokens": 1})
        log.write(tmp_path / "claude" / "projects" / "p", f"{name}.jsonl")
    code, out, err = shell("timeline", "0d3c1111", "--json")
    assert (code, json.loads(out)["path"]) == (0, str(tmp_path / "claude" / "projects" / "p" / "0d3c1111-aaaa.jsonl"))
    assert err.startswith("context-window: reading ")
    code, _, err = shell("usage", "0d3c11112222")
    assert (code, "no such file" in err) == (2, True)
    code, _, err = shell("timeline", "0d3c-", "--why")
    assert (code, "no such file" in err) == (2, True)


def test_the_first_screen_says_where_limits_come_from(shell: Shell, tmp_path: Path) -> None:
    write(tmp_path / "claude" / "projects" / "p" / "a.jsonl", answer("m", 1))
    assert "setup claude-code shows your plan's limits here" in " ".join(shell()[1].split())


HAYSTACK: list[Any] = [
    {"role": "user", "content": [{"text": "Look."}], "meta": {}, "name": None},
    {"role": "assistant", "content": [{"tool_call": {"tool_name": "ls", "arguments": {}, "id": "c"}}], "meta": {}, "name": None},
    {"role": "tool", "content": [{"tool_call_result": {"result": "a", "origin": {}, "error": False}}], "meta": {}, "name": None},
]


@pytest.mark.parametrize("head", [[], [{"role": "system", "content": [{"text": "Be brief."}]}]])
def test_messages_of_a_framework_that_manage_does_not_know_are_refused(head: list[Any]) -> None:
    """Not read as another format's, which would lose their calls and results."""
    with pytest.raises(ArgumentError, match="has no type and only 'tool_call'"):
        manage([*head, *HAYSTACK], model="gpt-5")
