"""What providers reported of requests and no log holds: `record_usage` puts it here, and the folds read it. Decides nothing.

A report is kept by the item that its request ended in. It can be saved and restored: the same log and the same reports give the
same view, elsewhere too.
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
"""Sessions whose reports are remembered, those reported last."""
FIELDS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Counted:
    """A local count of a request: who folds the log by other limits has another view, and must know what a report is of.

    Attributes:
        tokens: The count.
        by: The counter's name; another one's counts say nothing.
    """

    tokens: int
    by: str

    def to_dict(self) -> dict[str, Any]:
        """The count as JSON values."""
        return {"tokens": self.tokens, "by": self.by}

    @classmethod
    def found_in(cls, data: object) -> Counted | None:
        """The count that these JSON values are; None where they are none."""
        if not isinstance(data, dict):
            return None
        tokens, by = data.get("tokens"), data.get("by")
        return cls(tokens, by) if type(tokens) is int and tokens >= 0 and isinstance(by, str) else None


@dataclass(frozen=True, slots=True)
class Report:
    """What was reported of one request.

    Attributes:
        usage: The provider's figures.
        model: The model that was called, where its name is known.
        counted: What the request was counted as here when it was sent, where that is known.
    """

    usage: Usage
    model: str | None = None
    counted: Counted | None = None


def _nothing() -> Mapping[str, Report]:
    return {}


def _any_model(_: str | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Reports:
    """What a fold must know of reports beside its log.

    Attributes:
        recorded: Gives the reports that are not in the log now, by the id of the last item of the request.
        counter: What counts now.
        speaks_for: Whether a model's reports say anything of requests of the model in use. None is a model of unknown name.
        version: Another one where all reports are others.
    """

    recorded: Callable[[], Mapping[str, Report]] = _nothing
    counter: str = ""
    speaks_for: Callable[[str | None], bool] = _any_model
    version: int = 0


class Calibration:
    """The reports that were given with `record_usage`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reports: OrderedDict[str, dict[str, Report]] = OrderedDict()
        self.version = 0

    def reports(self, session_id: str, counter: str, speaks_for: Callable[[str | None], bool]) -> Reports:
        """What a fold of the session is to know.

        Args:
            session_id: The session.
            counter: As the attribute of `Reports`.
            speaks_for: As the attribute of `Reports`.
        """
        return Reports(lambda: self._reports.get(session_id, {}), counter, speaks_for, self.version)

    def record(self, session_id: str, item_id: str, report: Report) -> bool:
        """Adds a report, in the place of one of the same request. Says whether that makes a difference.

        Args:
            session_id: The session.
            item_id: The last item of the request; empty where it had none.
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
        """The reports as JSON values. No content is in them, only ids and numbers."""
        with self._lock:
            return {
                "version": VERSION,
                "sessions": {
                    session_id: {item_id: _values(report) for item_id, report in reports.items()}
                    for session_id, reports in self._reports.items()
                },
            }

    def restore(self, data: object) -> None:
        """Takes the reports of `to_dict` in the place of its own; folds begin anew.

        Raises:
            FormatError: The data is no such thing. Then nothing is changed.
        """
        version = data.get("version") if isinstance(data, dict) else None
        if version != VERSION or not isinstance(data, dict):
            raise FormatError("calibration.version", f"{short(version)} is not a version this release reads; it reads {VERSION}")
        sessions = _mapping(data.get("sessions"), "calibration.sessions")
        found = OrderedDict(
            (session_id, {item_id: _report(one, f"{where}.{item_id}") for item_id, one in _mapping(reports, where).items()})
            for session_id, reports in sessions.items()
            for where in (f"calibration.sessions.{session_id}",)
        )
        with self._lock:
            self._reports = found
            self.version += 1


def _values(report: Report) -> dict[str, Any]:
    amounts = {name: amount for name in FIELDS if (amount := getattr(report.usage, name))}
    named = {} if report.model is None else {"model": report.model}
    return {**amounts, **named, **({} if report.counted is None else {"counted": report.counted.to_dict()})}


def _report(data: object, where: str) -> Report:
    values = _mapping(data, where)
    model = values.pop("model", None)
    if model is not None and not isinstance(model, str):
        raise FormatError(f"{where}.model", f"{short(model)} is no model's name")
    counted = values.pop("counted", None)
    if counted is not None and Counted.found_in(counted) is None:
        raise FormatError(f"{where}.counted", f"{short(counted)} is no count of tokens by a counter")
    if unknown := [name for name in values if name not in FIELDS]:
        raise FormatError(where, f"{short(unknown[0])} is not one of {', '.join(FIELDS)}")
    return Report(Usage(**values), model, Counted.found_in(counted))


def _mapping(data: object, where: str) -> dict[str, Any]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise FormatError(where, f"{short(data)} where an object is expected")
    return dict(data)
