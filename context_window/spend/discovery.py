"""Finds the logs of all tools where they write them, or the logs below given paths. Opens no file but crush's list of projects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from glob import has_magic
from pathlib import Path

from session.transcripts import aider, crush
from session.transcripts.databases import is_file
from session.transcripts.detect import ALL_FORMATS
from session.transcripts.storage_readers import CLINE_TASK, VS_CODE_TOOLS, is_database

from .walk import below, matches, walked

SUFFIXES = (".json", ".jsonl")
"""Endings of the names of logs."""


def log_patterns(environment: Mapping[str, str], home: Path) -> list[tuple[str, str]]:
    """Return the folders of the tools, and the patterns of the paths below them where the tools write their logs.

    Args:
        environment: The process's variables. `CLAUDE_CONFIG_DIR` (several folders, separated by commas), `CODEX_HOME`, `COPILOT_HOME`,
            `PI_CODING_AGENT_DIR`, `XDG_CONFIG_HOME`, `XDG_DATA_HOME`, `APPDATA` and the variables of the readers' `PLACES` move the
            folders of tools.
        home: The user's home folder.
    """
    config = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    data = environment.get("XDG_DATA_HOME") or f"{home}/.local/share"  # also on macOS: https://github.com/anomalyco/opencode/issues/18633
    claude = environment.get("CLAUDE_CONFIG_DIR")  # https://code.claude.com/docs/en/env-vars
    claude_folders = [part.strip() for part in claude.split(",") if part.strip()] if claude else [f"{home}/.claude", f"{config}/claude"]
    codex = environment.get("CODEX_HOME") or f"{home}/.codex"  # https://developers.openai.com/codex/environment-variables
    # https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-config-dir-reference
    copilot = [environment["COPILOT_HOME"]] if environment.get("COPILOT_HOME") else [f"{home}/.copilot", f"{config}/copilot"]
    pi = environment.get("PI_CODING_AGENT_DIR") or f"{home}/.pi/agent"
    return [
        *((folder, "projects/**/*.jsonl") for folder in claude_folders),
        (codex, "sessions/**/*.jsonl"),
        (codex, "archived_sessions/**/*.jsonl"),
        (f"{home}/.gemini", "tmp/*/chats/*.json*"),
        (pi, "sessions/**/*.jsonl"),
        *((folder, "session-state/**/*.jsonl") for folder in copilot),
        (f"{home}/.cline", "data/sessions/**/*.messages.json"),
        (f"{home}/.cline", f"data/tasks/*/{CLINE_TASK}"),
        *(
            (f"{folder}/User/globalStorage/{name}", f"tasks/*/{CLINE_TASK}")
            for folder in _vs_code(environment, home, config)
            for name in VS_CODE_TOOLS
        ),
        (f"{data}/opencode", "opencode*.db"),
        (f"{data}/opencode", "storage/session/*/*.json"),
        *(found for form in ALL_FORMATS for place in getattr(form, "PLACES", ()) for found in place.where(environment, home)),
    ]


def _vs_code(environment: Mapping[str, str], home: Path, config: str) -> list[str]:
    """Return the folders of VS Code's user data: https://docs.cline.bot/troubleshooting/task-history-recovery."""
    parents = [config, f"{home}/Library/Application Support", *filter(None, [environment.get("APPDATA")])]
    return [f"{parent}/{edition}" for parent in parents for edition in ("Code", "Code - Insiders")] + [f"{home}/.vscode-server/data"]


def find_logs(
    paths: Iterable[str] = (), *, environment: Mapping[str, str] | None = None, home: Path | None = None, folder: Path | None = None
) -> list[Path]:
    """Return the paths of logs, each once, in the order of their names.

    Args:
        paths: Files, folders and patterns with `*`. A folder stands for all `.json` and `.jsonl` files, databases and aider's histories
            below it. Files are returned even if they do not exist, and folders that cannot be listed, so that reading them says so.
            Default: where the tools write their logs.
        environment: As for `log_patterns`. Default: that of the process.
        home: As for `log_patterns`. Default: the user's.
        folder: The folder in which, and above which, aider's histories are looked for. Default: the process's.
    """
    named_paths = list(paths)
    if not named_paths:
        patterns = log_patterns(os.environ if environment is None else environment, Path.home() if home is None else home)
        found = (path for folder, pattern in patterns for path in below(Path(folder), Path(pattern).parts))
        logs = [log for path in found for log in (crush.databases_in(path) if path.name == "projects.json" else [path])]
        return _sorted([*logs, *_histories(folder)])
    return _sorted(log for path in named_paths for log in _logs_of(Path(path).expanduser()))


def _histories(folder: Path | None) -> Iterator[Path]:
    """Yield aider's histories in a folder and in those above it. Default: the process's folder, if it still exists."""
    with suppress(OSError):
        here = Path.cwd() if folder is None else folder
        yield from (path for parent in (here, *here.parents) if is_file(path := parent / aider.FILE))


def _logs_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        files = walked(path, lambda way: not _is_read_with_session(path.joinpath(*way)), has_links=True)
        yield from (
            file
            for file, way in files
            if way is None or ((file.name.endswith((*SUFFIXES, aider.FILE)) or is_database(file)) and file.is_file())
        )
    elif not path.exists() and has_magic(str(path)):
        for match in matches(str(path)):
            yield from _logs_of(match)
    else:
        yield path


def _is_read_with_session(folder: Path) -> bool:
    """True for a folder of opencode's that is read with the sessions beside it."""
    storage = folder.parent
    return storage.name == "storage" and folder.name in {"message", "part", "session_diff", "todo"} and (storage / "session").is_dir()


def _sorted(paths: Iterable[Path]) -> list[Path]:
    """Return the paths in order. A file that is reached by several paths stays once, under the first of them."""
    by_real_path: dict[str, Path] = {}
    for path in sorted(set(paths)):
        by_real_path.setdefault(os.path.realpath(path), path)
    return list(by_real_path.values())
