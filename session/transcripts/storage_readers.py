"""Finds the reported usage in logs that are known by their name: opencode's storage (`opencode_storage.py`), Cline's tasks in VS Code.

`ui_messages.json` is such a task: https://docs.cline.bot/troubleshooting/task-history-recovery.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from session.errors import TranscriptError

from . import cline
from .opencode_storage import damaged_values, stored_sessions
from .opencode_storage import files_of as files_of_opencode
from .opencode_storage import is_stored as is_stored_by_opencode
from .request_readers import OpencodeReader, Request
from .source import COMPLETE, decode, open_file, parse
from .usage import dollars
from .values import JsonObject, count_at, moment, object_at, text_at

CLINE_TASK = "ui_messages.json"


def is_storage(path: Path) -> bool:
    """Return True if the path names a log of this module."""
    return path.name == CLINE_TASK or is_stored_by_opencode(path)


def files_of(path: Path) -> list[Path]:
    """Return the files whose change means that such a log has changed: the log, and what belongs to it."""
    return [path] if path.name == CLINE_TASK else files_of_opencode(path)


def read_storage(path: Path) -> tuple[list[Request], int, str]:
    """Return the reports of such a log, the number of its damaged values, and a note on usage that it does not report.

    Raises:
        TranscriptError: It cannot be read.
    """
    if path.name == CLINE_TASK:
        return *_read_cline(path), ""
    reports: list[Request] = []
    notes: Counter[str] = Counter()
    damaged = 0
    with stored_sessions(path) as sessions:
        for session in sessions:
            messages = session.messages(False)
            damaged += damaged_values(messages)
            reader = OpencodeReader()
            reports += reader.read({"info": session.info, "messages": messages})
            notes[reader.note] += 1
    del notes[""]
    return reports, damaged, "; ".join(f"{count:,} session{'s' * (count > 1)}: {note}" for note, count in sorted(notes.items()))


def _read_cline(path: Path) -> tuple[list[Request], int]:
    """Return the requests of a task. Each has an entry whose text is JSON, with the amounts once the answer has come."""
    try:
        with open_file(path) as file:
            entries = json.loads(decode(file.read()), strict=False)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, list):
        raise TranscriptError(path, "is not the list of messages that Cline writes")
    reports = []
    damaged = 0
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("say") != "api_req_started":
            continue
        amounts = _amounts(entry.get("text"))
        damaged += amounts is None
        if amounts is not None:
            reports.append(_of_cline(entry, amounts, path.parent.name))
    return reports, damaged


def _of_cline(entry: JsonObject, amounts: JsonObject, task: str) -> Request:
    time = moment(entry.get("ts"))
    return Request(
        f"cline:{task}:{entry.get('ts')}" if time is not None else "",
        time,
        cline.NAME,
        text_at(object_at(entry, "modelInfo"), "modelId"),
        "",
        task,
        input_tokens=count_at(amounts, "tokensIn"),
        cache_read=count_at(amounts, "cacheReads"),
        cache_write=count_at(amounts, "cacheWrites"),
        output_tokens=count_at(amounts, "tokensOut"),
        cost=dollars(amounts.get("cost")),
    )


def _amounts(text: object) -> JsonObject | None:
    """Return the object that the text is, or None if it is damaged."""
    values, problem = parse(text) if isinstance(text, str) else ((), None)
    return values[0] if len(values) == 1 and problem in COMPLETE and isinstance(values[0], dict) else None
