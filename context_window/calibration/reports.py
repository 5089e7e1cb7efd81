"""Reported usage that is in no log: `record_usage` puts it here, and `report_feed.py` reads it. Decides nothing.

A report is stored under the last item of its request. Reports can be saved and restored: the same log and the same reports give the same
view on every machine.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from session.errors import FormatError, short
from session.usage import Usage

VERSION = 1
SESSIONS = 1_000
"""Number of sessions whose reports are remembered, those with the latest reports."""
FIELDS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "last_prompt")


@dataclass(frozen=True, slots=True)
class LocalCount:
    """Local token count of a sent request. Stored so a report can be matched to its request even if the log is replayed with other limits.

    Attributes:
        tokens: The count.
        by: Name of the counter. Counts of different counters cannot be compared.
    """

    tokens: int
    by: str

    def to_dict(self) -> dict[str, Any]:
        """Return the count as JSON values."""
        return {"tokens": self.tokens, "by": self.by}

    @classmethod
    def parse(cls, data: object) -> LocalCount | None:
        """Return the count in these JSON values; None if they are not a valid one."""
        if not isinstance(data, dict):
            return None
        tokens, by = data.get("tokens"), data.get("by")
        return cls(tokens, by) if type(tokens) is int and tokens >= 0 and isinstance(by, str) else None


@dataclass(frozen=True, slots=True)
class Report:
    """The reported usage of one request.

    Attributes:
        usage: The provider's figures.
        model: Name of the model that was called, if known.
        local_count: Local count of the request when it was sent, if known.
        host: Who ran the model, if a router chose among several; only in logs.
    """

    usage: Usage
    model: str | None = None
    local_count: LocalCount | None = None
    host: str = ""


def _no_reports() -> Mapping[str, Report]:
    return {}


def _any_model(_: str | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of one session outside its log, and which of them count.

    Attributes:
        recorded: Returns the present reports by the id of the last item of their request.
        counter: Name of the counter in use.
        speaks_for: True if a model's reports are meaningful for the model in use. None is a model of unknown name.
        version: Changes when all reports are replaced.
    """

    recorded: Callable[[], Mapping[str, Report]] = _no_reports
    counter: str = ""
    speaks_for: Callable[[str | None], bool] = _any_model
    version: int = 0


class Calibration:
    """The reports of all sessions that were passed to `record_usage`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reports: OrderedDict[str, dict[str, Report]] = OrderedDict()
        self.version = 0

    def reports(self, session_id: str, counter: str, speaks_for: Callable[[str | None], bool]) -> Reports:
        """Return the reports of a session.

        Args:
            session_id: The session's id.
            counter: As in `Reports`.
            speaks_for: As in `Reports`.
        """
        return Reports(lambda: self._reports.get(session_id, {}), counter, speaks_for, self.version)

    def record(self, session_id: str, item_id: str, report: Report) -> bool:
        """Add a report, or replace the one of the same request, and return True if that changes anything.

        Args:
            session_id: The session's id.
            item_id: Id of the last item of the request; empty if it had none.
            report: The report.
        """
        with self._lock:
            reports = self._reports.setdefault(session_id, {})
            before, reports[item_id] = reports.get(item_id), report
            self._reports.move_to_end(session_id)
            while len(self._reports) > SESSIONS:
                self._reports.popitem(last=False)
        return report != before

    def to_dict(self) -> dict[str, Any]:
        """Return the reports as JSON values: ids and numbers, no content."""
        with self._lock:
            return {
                "version": VERSION,
                "sessions": {
                    session_id: {item_id: _values(report) for item_id, report in reports.items()}
                    for session_id, reports in self._reports.items()
                },
            }

    def restore(self, data: object) -> None:
        """Replace all reports by those from `to_dict`. Views are then computed again from the start.

        Raises:
            FormatError: The data is not from `to_dict`. Nothing is changed then.
        """
        version = data.get("version") if isinstance(data, dict) else None
        if version != VERSION or not isinstance(data, dict):
            raise FormatError("calibration.version", f"{short(version)} is not a version this release reads; it reads {VERSION}")
        sessions = _mapping(data.get("sessions"), "calibration.sessions")
        restored = OrderedDict(
            (session_id, {item_id: _report(values, f"{where}.{item_id}") for item_id, values in _mapping(reports, where).items()})
            for session_id, reports in sessions.items()
            for where in (f"calibration.sessions.{session_id}",)
        )
        with self._lock:
            self._reports = restored
            self.version += 1


def _values(report: Report) -> dict[str, Any]:
    amounts = {name: amount for name in FIELDS if (amount := getattr(report.usage, name))}
    model = {} if report.model is None else {"model": report.model}
    return {**amounts, **model, **({} if report.local_count is None else {"counted": report.local_count.to_dict()})}


def _report(data: object, where: str) -> Report:
    values = _mapping(data, where)
    model = values.pop("model", None)
    if model is not None and not isinstance(model, str):
        raise FormatError(f"{where}.model", f"{short(model)} is not the name of a model")
    count_data = values.pop("counted", None)
    local_count = LocalCount.parse(count_data)
    if count_data is not None and local_count is None:
        raise FormatError(f"{where}.counted", f"{short(count_data)} is not a token count with its counter")
    if unknown := [name for name in values if name not in FIELDS]:
        raise FormatError(where, f"{short(unknown[0])} is not one of {', '.join(FIELDS)}")
    return Report(Usage(**values), model, local_count)


def _mapping(data: object, where: str) -> dict[str, Any]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise FormatError(where, f"{short(data)} where an object is expected")
    return dict(data)
