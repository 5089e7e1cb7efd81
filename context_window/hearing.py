"""Which of the reports in and beside a log a fold may go by. The log alone decides, so that everybody who folds it hears the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from session.items import AgentConfigUpdate, Item
from session.units import NONE

from .calibration import Counted, Report, Reports
from .trimming.fold import Fold


def speaks(item: Item) -> bool:
    """Whether the item itself says what its request cost. Some logs hold the answer's tokens alone."""
    return item.usage is not None and item.usage.total_input > 0


class Hearing:
    """Hands a fold what is reported of its log.

    Attributes:
        any: Whether there was any report yet.
        reports: What is known beside the log.
    """

    def __init__(self, fold: Fold, reports: Reports) -> None:
        self.any = False
        self._fold = fold
        self.reports = reports
        self._from: tuple[str | None, str | None] | None = None
        self._configured: dict[str | None, tuple[object, object]] = {}

    def hear(self, item: Item, before: Item | None, metadata: Mapping[str, Any]) -> None:
        """Takes what is reported of the request that the log's last response answers: by the item, or where that says nothing of a
        request, beside the log.

        Args:
            item: The item that was folded last.
            before: The one before it.
            metadata: The session's, which may name the model.
        """
        if self._fold.groups.response[-1] == NONE:
            return
        if item.usage is None or not speaks(item):
            recorded = self._beside_the_log(before)
            if recorded is not None:
                self.take(recorded, item.agent_id)
        else:
            model = item.extra.get("model", metadata.get("model"))
            counted = Counted.found_in(item.extra.get("counted"))
            self.take(Report(item.usage, model if isinstance(model, str) else None, counted), item.agent_id)

    def _beside_the_log(self, before: Item | None) -> Report | None:
        """What was recorded of the request that ended in this item, where the item that was folded last begins the answer."""
        groups = self._fold.groups
        begins = groups.starts[-1] == len(groups) - 1
        return self.reports.recorded().get("" if before is None else before.id) if begins else None

    def take(self, report: Report, agent: str | None) -> None:
        """The request that the log's last response answers was reported. Of another agent or model, all that was before is forgotten."""
        self.any = True
        now = agent, report.model
        if self._from not in (None, now):
            self._fold.forget_reports()
        self._from = now
        if report.usage.total_input and self.reports.speaks_for(report.model):
            counted = report.counted.tokens if report.counted is not None and report.counted.by == self.reports.counter else None
            self._fold.report(report.usage.total_input, report.usage.output_tokens, counted)

    def go_on_from(self, tokens: int | None) -> None:
        """The log so far is a view, which says itself what it costs."""
        if tokens is not None:
            self.any = True
            self._fold.go_on_from(tokens)

    def configure(self, item: AgentConfigUpdate) -> None:
        """The agent has other instructions or tools: they are in no token of the log, and in none that was reported before."""
        instructions, tools = self._configured.get(item.agent_id, (None, None))
        now = (instructions if item.instructions is None else item.instructions, tools if item.tools is None else item.tools)
        if now != (instructions, tools):
            self._configured[item.agent_id] = now
            self._fold.forget_reports()
