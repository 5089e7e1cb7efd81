"""Finds the logs of all tools where they write them, or the logs below given paths. Opens no file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from glob import glob, has_magic
from pathlib import Path

SUFFIXES = (".json", ".jsonl")
"""Endings of the names of logs."""


def log_patterns(environment: Mapping[str, str], home: Path) -> list[str]:
    """Return the patterns of the paths where the tools write their logs.

    Args:
        environment: The process's variables. `CLAUDE_CONFIG_DIR` (several folders, separated by commas), `CODEX_HOME` and
            `PI_CODING_AGENT_DIR` move a tool's folder.
        home: The user's home folder.
    """
    claude = environment.get("CLAUDE_CONFIG_DIR")
    claude_folders = (
        [part.strip() for part in claude.split(",") if part.strip()] if claude else [f"{home}/.claude", f"{home}/.config/claude"]
    )
    codex = environment.get("CODEX_HOME") or f"{home}/.codex"
    pi = environment.get("PI_CODING_AGENT_DIR") or f"{home}/.pi/agent"
    return [
        *(f"{folder}/projects/**/*.jsonl" for folder in claude_folders),
        f"{codex}/sessions/**/*.jsonl",
        f"{codex}/archived_sessions/**/*.jsonl",
        f"{home}/.gemini/tmp/*/chats/*.json*",
        f"{pi}/sessions/**/*.jsonl",
        f"{home}/.copilot/session-state/**/*.jsonl",
        f"{home}/.cline/data/sessions/**/*.messages.json",
    ]


def find_logs(paths: Iterable[str] = (), *, environment: Mapping[str, str] | None = None, home: Path | None = None) -> list[Path]:
    """Return the paths of logs, each once, in the order of their names.

    Args:
        paths: Files, folders and patterns with `*`. A folder stands for all `.json` and `.jsonl` files below it. Files are returned
            even if they do not exist, so that reading them says so. Default: where the tools write their logs.
        environment: As for `log_patterns`. Default: that of the process.
        home: As for `log_patterns`. Default: the user's.
    """
    given = list(paths)
    if not given:
        patterns = log_patterns(os.environ if environment is None else environment, Path.home() if home is None else home)
        return _sorted(Path(name) for pattern in patterns for name in glob(pattern, recursive=True, include_hidden=True))  # noqa: PTH207 - whole paths
    return _sorted(log for path in given for log in _logs_of(Path(path).expanduser()))


def _logs_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        for folder, _, names in os.walk(path):
            yield from (Path(folder, name) for name in names if name.endswith(SUFFIXES))
    elif not path.exists() and has_magic(str(path)):
        for name in glob(str(path), recursive=True):  # noqa: PTH207 - as above
            yield from _logs_of(Path(name))
    else:
        yield path


def _sorted(paths: Iterable[Path]) -> list[Path]:
    """Return the paths in order. A file that is reached by several paths stays once, under the first of them."""
    found: dict[str, Path] = {}
    for path in sorted(set(paths)):
        found.setdefault(os.path.realpath(path), path)
    return list(found.values())
