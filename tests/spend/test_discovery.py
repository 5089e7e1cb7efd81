"""Logs are found where the tools write them, whatever the folders are called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from context_window.spend.discovery import find_logs
from context_window.spend.newest import newest_log
from tests.spend.logs import write
from tests.transcripts.test_transcripts_accounted import CURSOR


@pytest.mark.parametrize("name", ["a[b]", "a*", "a?", "[!x]"])
@pytest.mark.parametrize("variable", ["", "CODEX_HOME"])
def test_a_folder_whose_name_looks_like_a_pattern_has_its_logs(tmp_path: Path, name: str, variable: str) -> None:
    """The user's home, and a folder that a variable names."""
    home = tmp_path / name
    log = (home if variable else home / ".codex") / "sessions" / "log.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    assert find_logs(environment={variable: str(home)} if variable else {}, home=home) == [log]


@pytest.mark.parametrize(
    "path",
    [
        ".factory/sessions/-project/id.jsonl",
        ".grok/sessions/project/id/chat_history.jsonl",
        ".qwen/projects/p/chats/id.jsonl",
        ".kimi-code/sessions/wd_1/session_1/agents/main/wire.jsonl",
        ".kimi/sessions/hash/id/wire.jsonl",
        ".local/share/amp/threads/T-1.json",
        ".openclaw/agents/main/sessions/id.jsonl",
        ".cursor/projects/home-me-shop/agent-transcripts/id/id.jsonl",
        ".cursor/projects/home-me-shop/agent-transcripts/id/subagents/id.jsonl",
    ],
)
def test_tools_have_their_logs_in_the_home_folder(tmp_path: Path, path: str) -> None:
    """Logs of tools that have a reader are found without a path."""
    log = tmp_path / path
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    (log.parent / "summary.json").write_text("{}")
    assert find_logs(environment={}, home=tmp_path) == [log]


@pytest.mark.parametrize(("folder", "name"), [("/home/me/my.shop", "home-me-my-shop"), ("C:\\Work\\shop", "c-Work-shop")])
def test_the_newest_transcript_of_cursor_is_that_of_the_folder(
    folder: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place names the folder; those of sub-agents and of other folders do not count."""
    logs = [
        write(tmp_path / "projects" / project / "agent-transcripts" / path, *CURSOR)
        for project, path in ((name, "a/a.jsonl"), ("other", "b/b.jsonl"), (name, "a/subagents/c.jsonl"))
    ]
    for time, log in enumerate(logs, 1):
        os.utime(log, (time, time))
    monkeypatch.setattr("context_window.spend.newest.find_logs", lambda: logs)
    assert newest_log(Path(folder)) == logs[0]
    assert newest_log() == logs[1]
