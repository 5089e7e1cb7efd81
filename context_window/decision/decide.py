"""`RULES`, and `decide`: what a view becomes when the model is called now. Pure: a decision that nobody keeps has changed nothing.

How the decisions at all calls follow from one another is in `replay.py`.
"""

from __future__ import annotations

from copy import copy

from .arrivals import Arrivals
from .auto_window import limits_now
from .digests import Digests
from .frontier import Frontier, Unread
from .images import Images
from .priority import ItemLimit, TokenLimit
from .refused_reads import RefusedReads
from .request_texts import RequestTexts
from .state_note import StateNote
from .strategy import Strategies
from .summaries import Summaries
from .usage_note import UsageNote
from .view import Rule, View

RULES: tuple[Rule, ...] = (
    Summaries(),
    RefusedReads(),
    Arrivals(),
    Images(),
    Strategies(),
    StateNote(),
    ItemLimit(),
    UsageNote(),
    Unread(),
    TokenLimit(),
    Frontier(),
    RequestTexts(),
    Digests(),
)
"""All rules, in the order in which they decide. A new rule is a file, and a line here. Its amounts and texts: ARCHITECTURE.md."""
TEXT_RULES = tuple(rule for rule in RULES if type(rule).cost is not Rule.cost)
"""Those whose texts cost tokens. A rule that overrides `additions` must override `cost`, too."""


def decide(view: View) -> View:
    """Return the view for a request at the end of the log: the same object if nothing is taken or added."""
    decided = start = copy(view)
    start.limits = limits_now(view)
    for rule in RULES:
        decided = rule.decide(decided)
    if decided.changes != view.changes:
        for rule in RULES:
            decided = rule.settle(decided, start)
    is_unchanged = decided.changes == view.changes and decided.usage_noted == view.usage_noted
    if is_unchanged:
        return view
    decided.limits = view.limits
    return decided
