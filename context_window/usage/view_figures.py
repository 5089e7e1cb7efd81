"""`ViewFigures`: the figures of a session's latest view, and the kinds of the items that it hides."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message

from ..decision.auto_window import limits_now
from ..decision.view import View
from ..events.definitions import Kind, Kinds
from ..settings.usage_snapshot import Rows, rows_of

ORDER: tuple[Kind, ...] = ("message", "call", "output", "reasoning", "summary", "handoff", "config update")


@dataclass(frozen=True, slots=True)
class ViewFigures:
    """The figures of a view. Amounts are tokens.

    Attributes:
        rows: Tokens by category, and of the request outside its items. They sum to the view's total.
        budget: Tokens that the request may cost; where the window is chosen by prices, those above which it is trimmed.
        freed: Tokens by which the view is smaller than the log; without items for which a summary stands.
        kinds: Items that the view hides or shows in a smaller form, by kind.
    """

    rows: Rows
    budget: int
    freed: int
    kinds: Kinds

    @property
    def tokens(self) -> int:
        """Tokens of the view, as counted here."""
        return self.rows.overhead + sum(self.rows.tokens)


def figures_of(view: View) -> ViewFigures:
    """Return the figures of a decided view. Nothing is counted for it."""
    rows = rows_of(view.tokens, view.overhead, view.correction)
    budget = view.limits.budget if view.limits.auto is None else min(view.limits.budget, limits_now(view).trigger)
    return ViewFigures(rows, budget, freed(view), reduced_kinds(view))


def freed(view: View) -> int:
    """Return the tokens by which the view is smaller than all items of the log for which no summary stands in it."""
    return view.log.total - view.replaced_tokens - sum(view.tokens)


def reduced_kinds(view: View) -> Kinds:
    """Return the items that the view hides or shows in a smaller form, by kind, without those that a summary stands for."""
    log = view.log
    reduced = (at for at, edit in view.edits.items() if edit.gone is None or not log.summarised[at])
    counts = Counter(kind_of(log.items[at]) for at in reduced)
    return tuple((kind, counts[kind]) for kind in ORDER if counts[kind])


def kind_of(item: Item) -> Kind:
    """Return an item's kind."""
    match item:
        case FunctionCallOutput():
            return "output"
        case FunctionCall():
            return "call"
        case Message():
            return "summary" if item.is_summary else "message"
        case Compaction():
            return "summary"
        case AgentHandoff():
            return "handoff"
        case AgentConfigUpdate():
            return "config update"
        case _:
            return "reasoning"
