"""Passes reported usage, from the items of a log or from `record_usage`, to the totals of a fold. Rules 7 and 8 of `__init__.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from session.items import AgentConfigUpdate, Item
from session.units import NONE

from ..trimming.fold import Fold
from .reported_totals import ReportedTotals
from .reports import LocalCount, Report, Reports


def has_request_usage(item: Item) -> bool:
    """True if the item states what its request cost. Some logs state only the tokens of the response."""
    return item.usage is not None and item.usage.total_input > 0


class ReportFeed:
    """The reports of one log, and the totals of its fold that start from them.

    Attributes:
        has_reports: True once there was a report.
        has_recorded: True once there was one from outside the log.
        reports: The reports outside the log.
    """

    def __init__(self, fold: Fold, totals: ReportedTotals, reports: Reports) -> None:
        self.has_reports = self.has_recorded = False
        self.reports = reports
        self._fold = fold
        self._totals = totals
        self._reporter: tuple[str | None, str | None] | None = None  # agent and model
        self._configurations: dict[str | None, tuple[object, object]] = {}  # by agent: instructions and tools

    # For readers

    @property
    def is_anchored(self) -> bool:
        """True if totals start from a report, or from the recorded cost of a saved view (rule 8)."""
        return self._totals.anchor is not None

    @property
    def reported(self) -> int | None:
        """The reported tokens of the request from which totals start; None without one."""
        return None if self._totals.anchor is None else self._totals.anchor.reported

    @property
    def saved_total(self) -> int | None:
        """The cost that a saved view stated, in tokens, if totals start from it: nothing was reported since."""
        anchor = self._totals.anchor
        return anchor.tokens if anchor is not None and anchor.reported is None else None

    @property
    def resets(self) -> int:
        """Number of times that all reports were forgotten (rule 7)."""
        return self._totals.resets

    @property
    def takes_report(self) -> bool:
        """True if a report of the request before the last response has the effect now that it would have had when the response arrived."""
        return not self._totals.is_reported(self._fold) and self._totals.is_unedited(self._fold)

    @property
    def estimate(self) -> int:
        """The likeliest tokens of the view's request. `Fold.total` is the upper bound."""
        return self._totals.estimate(self._fold)

    # Reports

    def read(self, item: Item, previous: Item | None, metadata: Mapping[str, Any]) -> None:
        """Use the usage of the last request, from the item itself or else from `record_usage`.

        Args:
            item: The item that the fold took last.
            previous: The item before it.
            metadata: The session's, which may name the model.
        """
        if self._fold.groups.response[-1] == NONE:
            return
        if item.usage is None or not has_request_usage(item):
            recorded = self._recorded_report(previous)
            if recorded is not None:
                self.use(recorded, item.agent_id)
        else:
            model = item.extra.get("model", metadata.get("model"))
            local_count = LocalCount.parse(item.extra.get("counted"))
            self._use(Report(item.usage, model if isinstance(model, str) else None, local_count), item.agent_id)

    def _recorded_report(self, previous: Item | None) -> Report | None:
        """Return the recorded report of the request that ended in this item, if the item after it begins the response."""
        groups = self._fold.groups
        begins_response = groups.response_starts[-1] == len(groups) - 1
        return self.reports.recorded().get("" if previous is None else previous.id) if begins_response else None

    def use(self, report: Report, agent: str | None) -> None:
        """Use a report from outside the log, of the request that the log's last response answers."""
        self.has_recorded = True
        self._use(report, agent)

    def _use(self, report: Report, agent: str | None) -> None:
        """Use a report of that request. If agent or model changed, forget all earlier ones."""
        self.has_reports = True
        reporter = agent, report.model
        if self._reporter not in (None, reporter):
            self._totals.forget(self._fold)
        self._reporter = reporter
        if report.usage.total_input and self.reports.speaks_for(report.model):
            sent_count = (
                report.local_count.tokens if report.local_count is not None and report.local_count.by == self.reports.counter else None
            )
            self._totals.on_report(self._fold, report.usage.total_input, report.usage.output_tokens, sent_count)

    def start_from(self, tokens: int | None) -> None:
        """Start totals from the recorded cost of a saved view, which is the log so far. Do nothing if it has none."""
        if tokens is not None:
            self.has_reports = True
            self._totals.on_saved_total(self._fold, tokens)

    def adopt(self, view_feed: ReportFeed) -> None:
        """Copy the totals of the feed whose view was sent. This fold has the same log, but its own view was not sent."""
        self._totals.adopt(self._fold, view_feed._totals)

    def configure(self, item: AgentConfigUpdate) -> None:
        """Forget all reports if the agent gets other instructions or tools: earlier reports count the former ones."""
        instructions, tools = self._configurations.get(item.agent_id, (None, None))
        current = (instructions if item.instructions is None else item.instructions, tools if item.tools is None else item.tools)
        if current != (instructions, tools):
            self._configurations[item.agent_id] = current
            self._totals.forget(self._fold)
