"""Requests that are ready to send to Anthropic, and smaller views after the provider refused one. Sends nothing itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from session.read_only import source_of
from session.session import Session

from ..counting.anthropic_options import COUNTED_OPTIONS
from ..errors import ArgumentError
from ..model_errors import PartRefusedError, PromptTooLongError
from ..sessions import LoweredBudget, Sessions, log_of
from ..settings.active_settings import ActiveSettings
from ..settings.budget import warn_of_other_model
from ..tools import Tool, anthropic_tools
from ..validation import as_whole
from .part_refusals import PartRefusals
from .payload import RequestOptions, payload_of

logger = logging.getLogger(__name__)

MARGIN = 20
"""A lowered budget is lowered by another 1/20: the remaining text may be miscounted by a different ratio."""


class AnthropicRequests:
    """Makes requests of views, and lowers a session's budget after a prompt was refused as too long."""

    def __init__(self, active: ActiveSettings, sessions: Sessions, refusals: PartRefusals) -> None:
        self._active = active
        self._sessions = sessions
        self._refusals = refusals

    def options(self, model: str, max_tokens: int, tools: Iterable[Tool], extra: Mapping[str, Any]) -> RequestOptions:
        """Check a request's options and reserve room for those that cost tokens. Raises ArgumentError if one makes no sense."""
        options = RequestOptions.checked(model, max_tokens, anthropic_tools(tools), extra)
        if options.tools or not COUNTED_OPTIONS.isdisjoint(options.extra):
            self._active.count_tools(options.tools, options.extra)
        warn_of_other_model(self._active.current.budget, model)
        return options

    def payload(self, session: Session, view: Session, options: RequestOptions) -> dict[str, Any]:
        """Return the request with this view of the session, as `client.messages.create` takes it.

        Raises ArgumentError if the view is empty, or the options leave no room for the answer.
        """
        settings = self._active.current
        return payload_of(view, options, self._sessions.cost(session, settings), settings.budget.expected_error)

    def accept_refusal(self, session: Session, refusal: PromptTooLongError | PartRefusedError) -> bool:
        """Change the session's views after a refusal; return True if the next view differs from the refused one.

        Raises ArgumentError if the session is not a session, or the refusal is not such an error.
        """
        if not isinstance(refusal, PromptTooLongError | PartRefusedError):
            problem = "pass a PromptTooLongError or a PartRefusedError; model_error converts a client's exception"
            raise ArgumentError("refusal", type(refusal), problem)
        log = log_of(session) if isinstance(session, Session) else session
        if isinstance(refusal, PartRefusedError):
            sent_view = source_of(session)
            return self._refusals.accept(log, None if sent_view is log else sent_view, refusal)
        return self._lower(log, refusal)

    def accept_count(self, session: Session, tokens: int) -> None:
        """Lower the budget of a session's views by what the provider counted more than the local count, if that is less than now."""
        log, settings = log_of(session), self._active.current
        lowered = allowed_tokens(settings.budget.tokens, self._sessions.cost(log, settings), tokens)
        if lowered < self._sessions.limits_for(log, settings).budget:
            self._sessions.state(log).lowered = LoweredBudget(lowered, settings.budget)

    def _lower(self, log: Session, refusal: PromptTooLongError) -> bool:
        settings, state = self._active.current, self._sessions.state(log)
        cost, before = self._sessions.cost(log, settings), state.lowered
        tokens = lower_budget(cost, as_whole(refusal.tokens), as_whole(refusal.limit))
        state.lowered = LoweredBudget(tokens, settings.budget)
        is_smaller = False
        try:
            is_smaller = self._sessions.cost(log, settings) < cost
        finally:
            if not is_smaller:
                state.lowered = before
        if not is_smaller:
            return False
        logger.warning(
            "the provider refused a prompt of %s tokens by the local count as too long: views of the session cost at most %s from now on",
            cost,
            tokens,
        )
        return True


def allowed_tokens(budget: int, local_tokens: int, tokens: int) -> int:
    """Return the local tokens that a view may cost for the provider to count the budget: it is smaller by the difference of the counts.

    Views that grow have larger differences, which later reports tell. At least a quarter of the budget is left.
    """
    return max(budget // 4, budget - max(0, tokens - local_tokens))


def lower_budget(local_tokens: int, tokens: int | None, limit: int | None) -> int:
    """Return the local tokens that a view may cost after one was refused: fewer than `local_tokens`, unless that was a single token.

    1. With the provider's figures, scale: the new budget is to `local_tokens` as the limit is to the provider's count.
    2. The whole excess may be in items that stay. Then scaling is not enough, and the excess is subtracted instead. This at most doubles
       the reduction of step 1, and never goes below half of its result: if the counts differ so much, they differ in the removed items
       too.
    3. Without figures, or with impossible ones, take half.
    4. Subtract the safety margin of 1/`MARGIN`, but stay at half of the result of step 1.

    Args:
        local_tokens: Tokens of the refused request, by the local count.
        tokens: The provider's count of it; None if it gave none.
        limit: The tokens that the provider allows; None if it gave no figure.

    Raises:
        ArgumentError: The request was empty.
    """
    if local_tokens < 1:
        raise ArgumentError("session", local_tokens, "nothing of it was sent; pass the session whose view was refused")
    if tokens is None or limit is None or not 0 < limit < tokens:
        goal, least = local_tokens // 2, 1
    else:
        scaled = local_tokens * limit // tokens
        goal = min(scaled, max(local_tokens - (tokens - limit), scaled - (local_tokens - scaled)))
        least = max(1, scaled // 2)
    return max(least, goal - goal // MARGIN)
