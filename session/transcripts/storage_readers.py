"""Finds the reported usage in logs that are known by their name: opencode's storage (`opencode_storage.py`), and tasks of Cline, Roo Code
and Kilo Code in VS Code.

`ui_messages.json` is such a task: https://docs.cline.bot/troubleshooting/task-history-recovery. Its input tokens are those that the cache
had no part in; since Roo Code 3.29.5 and Kilo Code 4.119.0 they are the whole prompt: https://github.com/RooCodeInc/Roo-Code/pull/8954.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from session.errors import TranscriptError

from . import cline
from .chat_databases import file_and_session
from .chat_databases import files_of as files_of_database
from .detect import DATABASES, Format
from .opencode_storage import damaged_values, stored_sessions
from .opencode_storage import files_of as files_of_opencode
from .opencode_storage import is_database as is_database_of_opencode
from .opencode_storage import is_stored as is_stored_by_opencode
from .request_readers import OpencodeReader
from .requests import Request, amounts_of
from .source import COMPLETE, decode, open_file, parse
from .usage import Counts, dollars, split_total
from .values import JsonObject, count_at, moment, object_at, text_at

CLINE_TASK = "ui_messages.json"
VS_CODE_TOOLS = {"saoudrizwan.claude-dev": cline.NAME, "rooveterinaryinc.roo-cline": "roo_code", "kilocode.kilo-code": "kilo_code"}
"""The tools that write tasks, by the folders of their data."""
WHOLE_SINCE = {"roo_code": 1_761_955_200.0, "kilo_code": 1_762_905_600.0}
"""Unix seconds of the releases since which input tokens are the whole prompt: 2025-11-01 and 2025-11-12."""


def is_database(path: Path) -> bool:
    """Return True if the path has the name of a tool's database."""
    return is_database_of_opencode(path) or path.name in DATABASES


def is_storage(path: Path) -> bool:
    """Return True if the path names a log of this module."""
    return path.name == CLINE_TASK or path.name in DATABASES or is_stored_by_opencode(path) or file_and_session(path)[1] != ""


def files_of(path: Path) -> list[Path]:
    """Return the files whose change means that such a log has changed: the log, and what belongs to it."""
    if path.name == CLINE_TASK:
        return [path]
    return files_of_opencode(path) if is_stored_by_opencode(path) else files_of_database(path)


def read_storage(path: Path, form: Format | None = None) -> tuple[list[Request], int, str]:
    """Return the reports of such a log, the number of its damaged values, and a note on usage that it does not report.

    Args:
        path: The log.
        form: Its format, if it is known.

    Raises:
        TranscriptError: It cannot be read.
    """
    if path.name == CLINE_TASK:
        return *_read_cline(path), ""
    for known, database in DATABASES.values():
        if known is form:
            requests, note = database.requests(path)
            return requests, 0, note
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
    with open_file(path) as file:
        entries = _one_value(decode(file.read()))
    if not isinstance(entries, list):
        raise TranscriptError(path, "is not the list of messages that Cline writes")
    tool = next((tool for folder, tool in VS_CODE_TOOLS.items() if folder in path.parts), "")
    reports = []
    damaged = 0
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("say") != "api_req_started":
            continue
        amounts = _amounts(entry.get("text"))
        damaged += amounts is None
        if amounts is not None:
            reports.append(_of_task(entry, amounts, path.parent.name, tool or ("roo_code" if "apiProtocol" in amounts else cline.NAME)))
    return reports, damaged


def _of_task(entry: JsonObject, amounts: JsonObject, task: str, tool: str) -> Request:
    time = moment(entry.get("ts"))
    names = ("tokensIn", "cacheReads", "cacheWrites", "tokensOut")
    counts = Counts(*(count_at(amounts, name) for name in names))
    if _is_whole_prompt(tool, amounts, time):
        counts = split_total(*counts[:4])
    return Request(
        f"{tool}:{task}:{entry.get('ts')}" if time is not None else "",
        time,
        tool,
        text_at(object_at(entry, "modelInfo"), "modelId"),
        "",
        task,
        **amounts_of(counts),
        cost=dollars(amounts.get("cost")),
    )


def _is_whole_prompt(tool: str, amounts: JsonObject, time: float | None) -> bool:
    """True if the input tokens include those of the cache. The record names no version, but fewer tokens than cached ones do not."""
    if tool not in WHOLE_SINCE or count_at(amounts, "tokensIn") < count_at(amounts, "cacheReads") + count_at(amounts, "cacheWrites"):
        return False
    return amounts.get("apiProtocol") != "anthropic" or time is None or time >= WHOLE_SINCE[tool]


def _amounts(text: object) -> JsonObject | None:
    """Return the object that the text is, or None if it is damaged."""
    value = _one_value(text) if isinstance(text, str) else None
    return value if isinstance(value, dict) else None


def _one_value(text: str) -> object:
    """Return the JSON value that the text is, or None if it is damaged, or more than one."""
    values, problem = parse(text)
    return values[0] if len(values) == 1 and problem in COMPLETE else None
