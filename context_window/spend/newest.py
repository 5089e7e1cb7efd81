"""Finds the session that was written last: of all, or of a folder's project. Reads only the beginning of logs."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

from session.opening import open_regular

from .discovery import SUFFIXES, find_logs

HEAD = 256 * 1024
"""Bytes of a log in which its folder is looked for."""
_FOLDER = re.compile(rb'(?<!\\)"cwd"\s*:\s*("(?:[^"\\]|\\.)*")')
_HASH = re.compile(rb'(?<!\\)"projectHash"\s*:\s*"([0-9a-f]{64})"')
_SUB_AGENT = re.compile(rb'"source"\s*:\s*\{\s*"subagent"')


def newest_log(folder: Path | None = None) -> Path | None:
    """Return the log that was written last, or None if there is none. Logs of sub-agents do not count.

    Args:
        folder: Only sessions of this folder; if it has none, those of the nearest folder above it that has some. Default: all sessions.
    """
    best: tuple[int, Path] | None = None
    for path in _by_time(find_logs()):
        head = _head(path)
        if not head or _SUB_AGENT.search(head):
            continue
        if folder is None:
            return path
        distance = _distance(head, folder)
        if distance == 0:
            return path
        if distance is not None and (best is None or distance < best[0]):
            best = distance, path
    return None if best is None else best[1]


def _by_time(paths: list[Path]) -> list[Path]:
    """Return the logs of one session each, the newest first. Sub-agents' and those that cannot be looked at are left out."""
    times: list[tuple[int, Path]] = []
    for path in paths:
        is_sub_agent = path.name.startswith("agent-") or "subagents" in path.parts
        if is_sub_agent or path.suffix not in SUFFIXES or "storage" in path.parts:
            continue  # nor are opencode's database and folder the log of one session
        try:
            times.append((path.stat().st_mtime_ns, path))
        except OSError:
            continue
    return [path for _, path in sorted(times, key=lambda row: (-row[0], row[1]))]


def _head(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(HEAD)
    except OSError:
        return b""


def _distance(head: bytes, folder: Path) -> int | None:
    """Return how many folders the log's folder lies above the folder, or None if it does not or is unknown."""
    folders = [folder, *folder.parents]
    if match := _FOLDER.search(head):
        try:
            project = Path(json.loads(match[1]))
        except ValueError:
            return None
        return folders.index(project) if project in folders else None
    if match := _HASH.search(head):  # Gemini CLI names a folder by the SHA-256 of its path
        hashes = [sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest() for path in folders]
        name = match[1].decode()
        return hashes.index(name) if name in hashes else None
    return None
