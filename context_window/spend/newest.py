"""Finds the session that was used last: of all, or of a folder's project. Reads only the beginning and the end of logs.

What counts is the time of a log's last record. Files are copied, and touched by backups; where no record has a time, the file's counts.
"""

from __future__ import annotations

import json
import os
import re
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

from session.errors import TranscriptError
from session.opening import open_regular
from session.transcripts import aider, cursor
from session.transcripts.detect import DATABASES
from session.transcripts.kimi import project_of
from session.transcripts.opencode_storage import is_database, is_stored, stored_sessions
from session.transcripts.values import count_at, moment, object_at, text_at

from .discovery import SUFFIXES, find_logs

HEAD = 256 * 1024
"""Bytes of a log in which its folder is looked for."""
TAIL = 64 * 1024
"""Bytes at the end of a log in which the time of its last record is looked for."""
_TIME = re.compile(rb'(?<!\\)"(?:timestamp|lastUpdated)"\s*:\s*("[^"\\]{10,40}"|\d{10,19}(?:\.\d+)?(?![\d.]))')
_FOLDER = re.compile(rb'(?<!\\)"cwd"\s*:\s*("(?:[^"\\]|\\.)*")')
_TREE = re.compile(rb'"trees"\s*:\s*\[\s*\{[^{}]*"uri"\s*:\s*"file://([^"\\]*)"')
_HASH = re.compile(rb'(?<!\\)"projectHash"\s*:\s*"([0-9a-f]{64})"')
_SUB_AGENT = re.compile(rb'"source"\s*:\s*\{\s*"subagent"')


def newest_log(folder: Path | None = None) -> Path | None:
    """Return the log that was written last, or None if there is none. Logs of sub-agents do not count.

    Args:
        folder: Only sessions of this folder; if it has none, those of the nearest folder above it that has some. Default: all sessions.
    """
    best: tuple[int, Path] | None = None
    for path, project in _by_time(find_logs()):
        head = _head(path) if project is None else b""
        if project is None and (not head or _SUB_AGENT.search(head)):
            continue
        if folder is None:
            return path
        own = project or cursor.folder_of(path, [folder, *folder.parents])
        distance = _distance(head, folder) if own is None else _distance_of(own, folder)
        if distance == 0:
            return path
        if distance is not None and (best is None or distance < best[0]):
            best = distance, path
    return None if best is None else best[1]


def _by_time(paths: list[Path]) -> list[tuple[Path, Path | None]]:
    """Return the logs of one session each, the newest first, with their folders where another file names them.

    Sub-agents' and those that cannot be looked at are left out.
    """
    times: list[tuple[float, Path, Path | None]] = []
    for path in paths:
        if is_stored(path) or path.name in DATABASES:
            times += _sessions_of(path)
            continue
        is_sub_agent = path.name.startswith("agent-") or path.parent.name.startswith("agent-") or "subagents" in path.parts
        if is_sub_agent or (path.suffix not in SUFFIXES and path.name != aider.FILE):
            continue
        try:
            project = str(path.parent) if path.name == aider.FILE else project_of(path)
            times.append((_last_time(path), path, Path(project) if project else None))
        except OSError:
            continue
    return [row[1:] for row in sorted(times, key=lambda row: (-row[0], row[1]))]


def _last_time(path: Path) -> float:
    """Return the Unix seconds of a log's last record, or of the file's last change.

    Raises:
        OSError: The file cannot be read.
    """
    with open_regular(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        times = (moment(json.loads(text)) for text in _TIME.findall(file.read(TAIL)))
        return max(filter(None, times), default=os.fstat(file.fileno()).st_mtime)


def _sessions_of(path: Path) -> list[tuple[float, Path, Path]]:
    """Return the time of the last change, the path and the folder of each session in a tool's storage."""
    try:
        if path.name in DATABASES:
            chats = DATABASES[path.name][1].chats(path)
            ids = {chat.id for chat in chats}
            return [(one.updated, path / one.id, Path(one.folder)) for one in chats if one.parent not in ids]
        with stored_sessions(path) as sessions:
            infos = [session.info for session in sessions if "parentID" not in session.info]
    except TranscriptError:
        return []
    return [
        (
            count_at(object_at(info, "time"), "updated") / 1_000,
            path / text_at(info, "id") if is_database(path) else path,
            Path(text_at(info, "directory")),
        )
        for info in infos
    ]


def _head(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(HEAD)
    except OSError:
        return b""


def _distance(head: bytes, folder: Path) -> int | None:
    """Return how many folders the log's folder lies above the folder, or None if it does not or is unknown."""
    if match := _FOLDER.search(head):
        try:
            return _distance_of(Path(json.loads(match[1])), folder)
        except ValueError:
            return None
    if match := _TREE.search(head):  # Amp names a folder by its address
        return _distance_of(Path(unquote(match[1].decode("utf-8", "replace"))), folder)
    if match := _HASH.search(head):  # Gemini CLI names a folder by the SHA-256 of its path
        folders = [folder, *folder.parents]
        hashes = [sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest() for path in folders]
        name = match[1].decode()
        return hashes.index(name) if name in hashes else None
    return None


def _distance_of(project: Path, folder: Path) -> int | None:
    folders = [folder, *folder.parents]
    return folders.index(project) if project in folders else None
