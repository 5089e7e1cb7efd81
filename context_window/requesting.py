"""The part of a manager that makes requests ready to send, and gives way where the provider says that one is too long. Sends nothing."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from session.read_only import source_of
from session.session import Session

from .budget import Budget
from .counting.told import TOLD
from .errors import BudgetError
from .kept import log_of
from .model_errors import PartRefusedError, PromptTooLongError
from .part_refusals import PartRefusals
from .payload import Asked, payload_of
from .settings import Settings
from .tools import Tool, anthropic_tools
from .trimming.limits import Limits, portion
from .whole import as_whole

logger = logging.getLogger(__name__)

MARGIN = 20
"""A lowered budget is lower by one part in so many: what is left is other text, and counted off by another part."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """What one session's views may cost since the provider refused one.

    Attributes:
        tokens: Tokens, by the local count.
        budget: The budget that proved too large; with another model, this no longer holds.
    """

    tokens: int
    budget: Budget


class Requesting(PartRefusals, ABC):
    """Requests for Anthropic's API, and budgets that a refusal has lowered."""

    _lowered: WeakKeyDictionary[Session, Lowered]

    @abstractmethod
    def process_session(self, session: Session) -> Session:
        """The view to send."""

    @abstractmethod
    async def aprocess_session(self, session: Session) -> Session:
        """The view to send."""

    def anthropic_request(
        self, session: Session, *, model: str, max_tokens: int, tools: Iterable[Tool] = (), **more: Any
    ) -> dict[str, Any]:
        """What `client.messages.create(**request)` takes: the view of the session, its system prompt, the tools, and cache marks.

            request = manager.anthropic_request(session, model="claude-sonnet-5-5", max_tokens=8_000, tools=[read_file])
            answer = client.messages.create(**request)

        `integrations.anthropic.create` does both, and sends another view where the API says that the prompt is too long, or that it cannot
        read an image or a document. Tools that the manager did not know of count against the budget from now on, and so does what Claude is
        told of the schema of its answer, of tools that it must call, and of thinking: the request that cost the most beside its messages is
        what there is room for.

        Args:
            session: The log; it is not changed.
            model: The model's name, as the API takes it.
            max_tokens: Tokens that the answer may have. They are lowered to what the model can answer, and to what its window has left.
            tools: Functions, or definitions in any provider's form.
            more: Whatever else the API takes, such as `thinking` or `tool_choice`; it is sent as it is. With `cache_control`, all
                marks are of its kind.

        Raises:
            BudgetError: An argument makes no sense, or nothing has been said yet.
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        asked = self._asked(model, max_tokens, tools, more)
        view = self.process_session(session)
        return payload_of(view, asked, self._cost(session), self._budget.expected_error)

    async def aanthropic_request(
        self, session: Session, *, model: str, max_tokens: int, tools: Iterable[Tool] = (), **more: Any
    ) -> dict[str, Any]:
        """As `anthropic_request`, and the event loop goes on meanwhile: counting is done in a thread.

        Args:
            session: The log; it is not changed.
            model: The model's name, as the API takes it.
            max_tokens: Tokens that the answer may have.
            tools: Functions, or definitions in any provider's form.
            more: Whatever else the API takes.

        Raises:
            BudgetError: An argument makes no sense, or nothing has been said yet.
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        import asyncio

        asked = await asyncio.to_thread(self._asked, model, max_tokens, tools, more)
        view = await self.aprocess_session(session)
        return await asyncio.to_thread(lambda: payload_of(view, asked, self._cost(session), self._budget.expected_error))

    def accept_refusal(self, session: Session, refusal: PromptTooLongError | PartRefusedError) -> bool:
        """Change the session's views so that the provider takes the next one; return True if it differs from the one that was refused.

            except anthropic.APIError as error:
                refusal = model_error(error)
                if isinstance(refusal, PromptTooLongError | PartRefusedError) and manager.accept_refusal(session, refusal):
                    ...  # ask once more, with the view that there is now

        After a prompt that was too long, views cost less from now on; how much less, `lower_budget` says. What was decided at the requests
        before stays, since they were sent so. It holds until the manager's model changes.

        After an image or document that the provider refused, views show a note in its place, with the id to recall it by. A refusal that
        names a place or a file is about that part. For any other, the parts of its kind that came after the last answer are taken for
        refused, or all of them if none did; if the next attempt fails as well, call `withdraw_refusal`. It holds for as long as the
        manager lives.

        Other sessions, forks of this one among them, are not affected, and `total_budget` stays what was asked for.

        Args:
            session: The session whose view was refused, or that view; nothing may have been added to it since.
            refusal: What the provider said.

        Raises:
            BudgetError: The one is no session, or the other no such error.
        """
        if not isinstance(refusal, PromptTooLongError | PartRefusedError):
            problem = "pass a PromptTooLongError or a PartRefusedError, as model_error makes of what a client raised"
            raise BudgetError("refusal", type(refusal), problem)
        log = log_of(session) if isinstance(session, Session) else session
        if isinstance(refusal, PartRefusedError):
            sent = source_of(session)
            return self._accept_part(log, None if sent is log else sent, refusal)
        cost, before = self._cost(log), self._lowered.get(log)
        tokens = lower_budget(cost, as_whole(refusal.tokens), as_whole(refusal.limit))
        self._lowered[log] = Lowered(tokens, self._budget)
        helps = False
        try:
            helps = self._cost(log) < cost
        finally:
            if not helps:
                self._restore(log, before)
        if not helps:
            return False
        logger.warning("a prompt counted here as %s tokens was too long: views of the session cost at most %s from now on", cost, tokens)
        return True

    def _restore(self, log: Session, before: Lowered | None) -> None:
        if before is None:
            self._lowered.pop(log, None)
        else:
            self._lowered[log] = before

    def _cost(self, session: Session) -> int:
        """Tokens of the request with the session's view."""
        state = self._state(session)
        with state.lock:
            return self._follow(session, state).fold.total

    def _limits_for(self, session: Session, settings: Settings) -> Limits:
        tokens = self._lowered_to(session, settings)
        if tokens is None:
            return settings.limits
        trigger, target = self.context_window.ratios
        return replace(settings.limits, budget=tokens, trigger=portion(trigger, tokens), target=portion(target, tokens))

    def _lowered_to(self, session: Session, settings: Settings) -> int | None:
        """Tokens that views of this session may cost since one was refused; None where none was."""
        lowered = self._lowered.get(source_of(session))
        return lowered.tokens if lowered is not None and lowered.budget is settings.budget else None

    def _asked(self, model: str, max_tokens: int, tools: Iterable[Tool], more: dict[str, Any]) -> Asked:
        asked = Asked.checked(model, max_tokens, anthropic_tools(tools), more)
        if asked.tools or not TOLD.isdisjoint(asked.more):
            self._count_tools(asked.tools, asked.more)
        return asked


def lower_budget(sent: int, tokens: int | None, limit: int | None) -> int:
    """What a view may cost by the local count, after one that counted `sent` was refused: always less, unless that was a single token.

    1. Of figures: as the limit is to what the provider counts, so is the new budget to what was sent.
    2. What the provider counts above the limit may all lie in what stays: then this much less, but at most twice as far as in 1, and
       not below half of it: where the counts are that far apart, they are so in what goes too.
    3. Without figures (or with some that make no sense): half.
    4. From any of these, one part in `MARGIN`; but half of the figure in 1 stays half.

    Args:
        sent: Tokens of the refused request, by the local count.
        tokens: What the provider counts for it; None where it did not say.
        limit: What the provider allows; None where it did not say.

    Raises:
        BudgetError: There was nothing to send.
    """
    if sent < 1:
        raise BudgetError("session", sent, "nothing of it was sent; pass the session whose view was refused")
    if tokens is None or limit is None or not 0 < limit < tokens:
        goal, least = sent // 2, 1
    else:
        in_proportion = sent * limit // tokens
        goal = min(in_proportion, max(sent - (tokens - limit), in_proportion - (sent - in_proportion)))
        least = max(1, in_proportion // 2)
    return max(least, goal - goal // MARGIN)
