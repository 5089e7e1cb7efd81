"""Reads only the requests that a log reports usage for. No session is built, and a log of lines is never in memory as a whole.

    log = read_requests("~/.claude/projects/my-project/0d3c….jsonl")
    sum(request.output_tokens for request in log.requests)

The first JSON value that a format recognizes decides which reader of `request_readers.py` gets the values, as in `detect.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from session.errors import TranscriptError
from session.plan_limits import PlanLimits
from session.sanitize import MAX_COUNT
from session.units import is_answer

from . import aider
from .detect import EXAMINED_MAX, FORMATS, HEAD_BYTES, read_account, stored_format
from .request_readers import (
    NO_LINEAGE,
    READERS,
    ClaudeCodeReader,
    CodexReader,
    CopilotReader,
    GeminiReader,
    Lineage,
    PiReader,
)
from .requests import Request, RequestReader
from .source import COMPLETE, CUT_OFF, Line, Source
from .storage_readers import CLINE_TASK, read_storage
from .trajectory_readers import TRAJECTORY_READERS

__all__ = ["NO_LINEAGE", "Lineage", "ReadLog", "Request", "each_once", "read_requests"]


@dataclass(frozen=True, slots=True)
class ReadLog:
    """The requests in one log.

    Attributes:
        requests: Each request once, in the order in which the log first reports them.
        damaged_lines: Lines that could not be read in full, and requests of more than `MAX_COUNT` tokens. Neither a last line that is
            still being written counts, nor one that looks whole and has nothing to do with usage: it is not parsed.
        lineage: The logs whose reports it may repeat.
        note: A sentence on usage that it does not report, or not by request; empty if there is none.
        limits: The limits of the user's plan, as it states them last; None if it does not.
    """

    requests: tuple[Request, ...]
    damaged_lines: int
    lineage: Lineage = NO_LINEAGE
    note: str = ""
    limits: PlanLimits | None = None


def each_once(reports: Iterable[Request]) -> list[Request]:
    """Return each request once. Of several reports of one, the first with the most output tokens stays: earlier ones are partial.

    Args:
        reports: The reports. Those without an id all stay.
    """
    requests: dict[str, Request] = {}
    for index, report in enumerate(reports):
        key = report.id or f"#{index}"
        earlier = requests.get(key)
        if earlier is None or report.output_tokens > earlier.output_tokens:
            requests[key] = report
    return list(requests.values())


def read_requests(path: str | os.PathLike[str], on_read: Callable[[int], object] | None = None) -> ReadLog:
    """Return the requests that a log reports usage for.

    Args:
        path: A tool's log. `~` is expanded.
        on_read: Called as the file is read, with the number of bytes read since the last call.

    Raises:
        TranscriptError: The file cannot be read, or is not a log of a format whose usage we can read.
    """
    source = Source(Path(path).expanduser(), on_read)
    stored = None if source.path.name == CLINE_TASK else stored_format(source)
    if source.path.name == CLINE_TASK or stored is not None:
        requests, damaged, note = read_storage(source.path, stored)
        return ReadLog(
            tuple(each_once(request for request in requests if request.cost or 0 < request.total <= MAX_COUNT)), damaged, note=note
        )
    if source.path.suffix not in (".json", ".jsonl") and aider.claims(source.bytes(HEAD_BYTES).decode("utf-8", "replace")):
        return _log(_known(aider.requests_in(source), source.path), 0)
    document, lines = source.document_or_lines()
    reader: RequestReader | None = None
    if isinstance(document, list):  # one run, as the list of its entries
        reader = _reader_of(document, source.path)
        lines = iter((Line(1, tuple(document), None),))
    elif document is not None:
        lines = iter((Line(1, (document,), None),))
    reports: list[Request] = []
    damaged = 0
    for line in lines:
        damaged += line.problem not in COMPLETE and line.problem != CUT_OFF
        for value in line.values:
            if isinstance(value, dict):
                if reader is None and (reader := _reader_of(value, source.path)) is not None:
                    source.is_needed = _needed_by(reader)
                if reader is not None:
                    reports += (request for request in reader.read(value) if request.total or request.cost)
        if reader is None and line.number > EXAMINED_MAX:
            break
    if reader is None:
        raise TranscriptError(source.path, "no log of a known format found")
    reports += getattr(reader, "rest", list)()
    own = {name: getattr(reader, name) for name in ("lineage", "note", "limits") if hasattr(reader, name)}
    return _log(_known(reports, source.path), damaged, **own)


def _known(reports: list[Request], path: Path) -> list[Request]:
    """Return the reports.

    Raises:
        TranscriptError: There are none, but the log has answers.
    """
    if not reports and _has_answers(path):
        raise TranscriptError(path, "has answers of a model, but no usage of them that can be read")
    return reports


def _log(reports: Iterable[Request], damaged: int, **own: Any) -> ReadLog:
    requests = each_once(report for report in reports if report.total or report.cost)
    sound = tuple(request for request in requests if request.total <= MAX_COUNT)
    return ReadLog(sound, damaged + len(requests) - len(sound), **own)


def _has_answers(path: Path) -> bool:
    """Return True if the log's sessions have answers of a model. A log without usage is read a second time for this."""
    try:
        sessions = read_account(path).sessions
    except TranscriptError:
        return False
    return any(is_answer(item) for session in sessions for item in session.items)


MARKS: dict[type[RequestReader], tuple[bytes, ...]] = {
    ClaudeCodeReader: (b'"usage"',),
    CodexReader: (b'"session_meta"', b'"turn_context"', b'"token_count"'),
    CopilotReader: (b'"session.start"', b'"assistant.usage"', b'"session.shutdown"', b'"assistant.message"'),
    GeminiReader: (b'"tokens"', b'"sessionId"', b'"projectHash"'),
    PiReader: (b'"usage"', b'"session"'),
}
"""Byte strings; each line that a reader needs has at least one of them. A class `Requests` has them as `MARKS`. Other readers need all
lines.
"""


def _needed_by(reader: RequestReader) -> Callable[[bytes], bool] | None:
    """Return the function that picks the lines to parse: those with a mark of the reader, and those that do not look whole.

    Parsing is most of the work, and most of a log are outputs of tools.
    """
    marks: tuple[bytes, ...] = MARKS.get(type(reader), getattr(reader, "MARKS", ()))

    def is_needed(raw: bytes) -> bool:
        for mark in marks:  # `any` would create a generator for each line
            if mark in raw:
                return True
        return not (raw.startswith(b"{") and raw.endswith(b"}\n"))

    return is_needed if marks else None


def _reader_of(value: object, path: Path) -> RequestReader | None:
    """Return a new reader for the format that claims the value, or None if none does.

    Raises:
        TranscriptError: The usage in logs of this format cannot be read.
    """
    form = next((format_ for format_ in FORMATS if format_.claims(value)), None)
    if form is None:
        return None
    if (own := getattr(form, "Requests", None)) is not None:
        reader: RequestReader = own(path)
        return reader
    readers = READERS | TRAJECTORY_READERS
    if form.NAME not in readers:
        raise TranscriptError(path, f"is a log of {form.NAME}, whose usage by request cannot be read")
    return readers[form.NAME]()
