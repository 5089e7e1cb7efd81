"""Which of the reports in and beside a log a fold may go by. The log alone decides, so that everybody who folds it hears the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from session.items import AgentConfigUpdate, Item
from session.units import NONE

from .calibration import Counted, Report, Reports
from .trimming.fold import Fold


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

    def hear(self, item: Item, metadata: Mapping[str, Any]) -> None:
        """Takes what the item that was folded last reports of the request before it.

        Args:
            item: The item.
            metadata: The session's, which may name the model.
        """
        if item.usage is not None and self._fold.groups.response[-1] != NONE:
            model = item.extra.get("model", metadata.get("model"))
            counted = Counted.found_in(item.extra.get("counted"))
            self.take(Report(item.usage, model if isinstance(model, str) else None, counted), item.agent_id)

    def look_up(self, recorded: Mapping[str, Report], item: Item, before: Item | None) -> None:
        """Takes what was reported beside the log of the request that the item is the answer to.

        Args:
            recorded: What there is.
            item: The item that was folded last, without a report of its own.
            before: The one before it.
        """
        groups = self._fold.groups
        if groups.response[-1] != NONE and groups.starts[-1] == len(groups) - 1:
            known = recorded.get("" if before is None else before.id)
            if known is not None:
                self.take(known, item.agent_id)

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
