"""`ResultsByRule`: the results of tools that do not go by their age alone (rules 12 and 15). What a rule says is in `tool_rules.py`.

A view has this object only if its limits have such rules. All other views pay nothing for them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from session.items import FunctionCall, FunctionCallOutput
from session.units import NONE

from .file_access import file_access
from .placeholders import CLEARED, MARK
from .tool_rules import ToolRule, rule_for
from .view_totals import Tally

if TYPE_CHECKING:
    from .view_contents import ViewContents


class ResultsByRule:
    """Results, by position in the log, that are kept or cleared before others. A result is an output and the call that it answers."""

    def __init__(self, view: ViewContents) -> None:
        self._view = view
        self._results: dict[int, int] = {}  # by position of an output that a rule may keep, and of its call: the output
        self._tools: dict[int, str] = {}  # by position of such an output: the tool
        self._rules: dict[str, ToolRule] = {}  # the rules of these tools
        self._newest: dict[str, frozenset[int]] = {}  # by tool: the outputs that `keep_last` keeps now
        self._early: set[int] = set()  # results that are cleared before others, or are while what supersedes them is visible
        self._first: set[int] = set()  # those among them whose tool's rule says so
        self._by_file: dict[str, list[int]] = {}  # by file: results about it that nothing supersedes yet
        self._superseders: dict[int, int] = {}  # by position of an output or call: the first output that supersedes it

    def add(self, call: int, output: int) -> None:
        """Take the output of a call, which is new in the view."""
        limits, item, answer = self._view.limits, self._view.measures[call], self._view.measures[output]
        assert isinstance(item, FunctionCall)
        assert isinstance(answer, FunctionCallOutput)
        rule = rule_for(item.name, limits.tool_rules)
        if limits.clear_superseded and not answer.is_error and (access := file_access(item.name, item.arguments, rule)) is not None:
            results = self._by_file.setdefault(access.path, [])
            if access.replaces:
                self._superseders.update(dict.fromkeys(results, output))
                self._clear_early(results)
                results.clear()
            results += (call, output)
        if rule is None or answer.extra.get(MARK) == CLEARED:
            return
        if rule.clear == "first":
            self._first.update((call, output))
            self._clear_early((call, output))
        if rule.keeps:
            self._results[call] = self._results[output] = output
            self._tools[output] = item.name
            self._rules[item.name] = rule
            self._view.tally.kept.append(output)
            self._newest.pop(item.name, None)

    def note_gone(self, place: int) -> None:
        """Note that an item is hidden or cleared: if it is one of a tool's newest results, an older one takes its place."""
        tool = self._tools.get(place)
        if tool is not None and place in self._newest.get(tool, ()):
            del self._newest[tool]

    def note_undone(self) -> None:
        """Note that any item may be back in the view: a provisional trim was undone, or an item has returned."""
        self._newest.clear()

    def restore(self, tally: Tally, places: Sequence[int]) -> None:
        """Add items that return to the view to these sums."""
        tally.kept = sorted({*tally.kept, *self._tools.keys() & places})
        tally.early = sorted({*tally.early, *self._early.intersection(places)})

    # Kept results

    def kept(self) -> list[int]:
        """Return the outputs of the view that a rule keeps."""
        tally = self._view.tally
        tally.kept = list(filter(self._is_whole, tally.kept))
        return list(filter(self.is_kept, tally.kept))

    def is_kept(self, place: int) -> bool:
        """True if a rule keeps this result or the call that it belongs to: it is visible, and must not be cleared."""
        output = self._results.get(place)
        if output is None or self._view.hidden_reason(output) is not None:
            return False
        tool = self._tools[output]
        rule = self._rules[tool]
        return rule.clear == "never" or output in self._newest_of(tool, rule.keep_last)

    def has_kept(self, head: int) -> bool:
        """True if a rule keeps a result of the unit."""
        return bool(self._results) and any(map(self.is_kept, self._view.groups.members(head)))

    def _newest_of(self, tool: str, count: int) -> frozenset[int]:
        """Return the newest outputs of a tool that the view shows in full."""
        newest = self._newest.get(tool)
        if newest is None:
            outputs = (place for place in reversed(self._view.tally.kept) if self._tools[place] == tool)
            newest = self._newest[tool] = frozenset(islice(filter(self._is_whole, outputs), count))
        return newest

    def _is_whole(self, output: int) -> bool:
        """True if the view shows the output in full."""
        return self._view.hidden_reason(output) is None and not self._view.is_shortened(output)

    # Results that are cleared before others

    def superseder(self, place: int) -> int:
        """Return the position of the first output that supersedes this result, -1 if there is none: its file was read or written later."""
        return self._superseders.get(place, NONE)

    def is_superseded(self, place: int) -> bool:
        """True if an output that supersedes this result is in the view."""
        later = self.superseder(place)
        while later != NONE and self._view.hidden_reason(later) is not None:
            later = self.superseder(later)
        return later != NONE

    def is_early(self, place: int) -> bool:
        """True if the output or call is now cleared before others."""
        return place in self._early and (place in self._first or self.is_superseded(place))

    def _clear_early(self, places: Collection[int]) -> None:
        hidden = self._view.hidden_reason
        self._view.tally.early += (place for place in places if place not in self._early and hidden(place) is None)
        self._early.update(places)
