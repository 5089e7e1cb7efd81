"""Logs are found where the tools write them, whatever the folders are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_window.spend.discovery import find_logs


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
    ],
)
def test_tools_have_their_logs_in_the_home_folder(tmp_path: Path, path: str) -> None:
    """Logs of tools that have a reader are found without a path."""
    log = tmp_path / path
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    (log.parent / "summary.json").write_text("{}")
    assert find_logs(environment={}, home=tmp_path) == [log]
