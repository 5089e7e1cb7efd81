"""Passes reported usage, from the items of a log or from `record_usage`, to the totals of a view. Rules 7 and 8 of `__init__.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from session.items import AgentConfigUpdate, Item
from session.units import NONE

from .reported_totals import ReportedTotals
from .reports import LocalCount, Report, Reports

if TYPE_CHECKING:
    from ..decision.view import View


def has_request_usage(item: Item) -> bool:
    """True if the item states what its request cost. Some logs state only the tokens of the response."""
    return item.usage is not None and item.usage.total_input > 0


class ReportFeed:
    """The reports of one log, and the totals of its view that start from them.

    Attributes:
        totals: The totals.
        has_reports: True once there was a report.
        has_recorded: True once there was one from outside the log.
        reports: The reports outside the log.
    """

    def __init__(self, totals: ReportedTotals, reports: Reports) -> None:
        self.has_reports = self.has_recorded = False
        self.reports = reports
        self.totals = totals
        self._reporter: tuple[str | None, str | None] | None = None  # agent and model
        self._configurations: dict[str | None, tuple[object, object]] = {}  # by agent: instructions and tools

    # For readers

    @property
    def is_anchored(self) -> bool:
        """True if totals start from a report, or from the recorded cost of a saved view (rule 8)."""
        return self.totals.anchor is not None

    @property
    def reported(self) -> int | None:
        """The reported tokens of the request from which totals start; None without one."""
        return None if self.totals.anchor is None else self.totals.anchor.reported

    @property
    def saved_total(self) -> int | None:
        """The cost that a saved view stated, in tokens, if totals start from it: nothing was reported since."""
        anchor = self.totals.anchor
        return anchor.tokens if anchor is not None and anchor.reported is None else None

    @property
    def resets(self) -> int:
        """Number of times that all reports were forgotten (rule 7)."""
        return self.totals.resets

    def takes_report(self, view: View) -> bool:
        """True if a report of the request before the last response has the effect now that it would have had when the response arrived."""
        return not self.totals.is_reported(view) and self.totals.is_unedited(view)

    # Reports

    def read(self, view: View, item: Item, previous: Item | None, metadata: Mapping[str, Any]) -> None:
        """Use the usage of the last request, from the item itself or else from `record_usage`.

        Args:
            view: The view.
            item: The last item of its log.
            previous: The item before it.
            metadata: The session's, which may name the model.
        """
        if view.log.groups.response[-1] == NONE:
            return
        if item.usage is None or not has_request_usage(item):
            recorded = self._recorded_report(view, previous)
            if recorded is not None:
                self.use(view, recorded, item.agent_id)
        else:
            model = item.extra.get("model", metadata.get("model"))
            local_count = LocalCount.parse(item.extra.get("counted"))
            host = item.extra.get("host")
            host = host if isinstance(host, str) else ""
            self._use(view, Report(item.usage, model if isinstance(model, str) else None, local_count, host), item.agent_id)

    def _recorded_report(self, view: View, previous: Item | None) -> Report | None:
        """Return the recorded report of the request that ended in this item, if the item after it begins the response."""
        groups = view.log.groups
        begins_response = groups.response_starts[-1] == len(groups) - 1
        return self.reports.recorded().get("" if previous is None else previous.id) if begins_response else None

    def use(self, view: View, report: Report, agent: str | None) -> None:
        """Use a report from outside the log, of the request that the log's last response answers."""
        self.has_recorded = True
        self._use(view, report, agent)

    def _use(self, view: View, report: Report, agent: str | None) -> None:
        """Use a report of that request. If agent or model changed, forget all earlier ones."""
        self.has_reports = True
        reporter = agent, report.model
        if self._reporter not in (None, reporter):
            self.totals.forget(view)
        self._reporter = reporter
        if report.usage.prompt and self.reports.speaks_for(report.model):
            sent_count = (
                report.local_count.tokens if report.local_count is not None and report.local_count.by == self.reports.counter else None
            )
            self.totals.on_report(view, report.usage.prompt, report.usage.output_tokens, sent_count, report.host)

    def start_from(self, view: View, tokens: int | None) -> None:
        """Start totals from the recorded cost of a saved view, which is the log so far. Do nothing if it has none."""
        if tokens is not None:
            self.has_reports = True
            self.totals.on_saved_total(view, tokens)

    def adopt(self, view: View, sent: ReportFeed) -> None:
        """Copy the totals of the feed whose view was sent. This view has the same log, but was not sent."""
        self.totals.adopt(view, sent.totals)

    def configure(self, view: View, item: AgentConfigUpdate) -> None:
        """Forget all reports if the agent gets other instructions or tools: earlier reports count the former ones."""
        instructions, tools = self._configurations.get(item.agent_id, (None, None))
        current = (instructions if item.instructions is None else item.instructions, tools if item.tools is None else item.tools)
        if current != (instructions, tools):
            self._configurations[item.agent_id] = current
            self.totals.forget(view)
