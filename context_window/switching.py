"""The part of a manager that holds its settings, and takes others when the model changes in the middle of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import RLock
from typing import TypeAlias

from session.session import Session

from .budget import Budget, ModelConfig, asked_for
from .config import ContextWindow
from .counting.counter import TokenCounter
from .counting.overhead import request_overhead
from .counting.provider import AnthropicClient
from .counting.told import NOTHING, Options
from .errors import BudgetError, UnknownModelError
from .following import Following
from .ledger import Ledger, Noted
from .models import alike, describe_model
from .settings import Settings, resolve_settings
from .tools import Tool
from .trimming.plan import Action, Decision

Given: TypeAlias = tuple[TokenCounter | Callable[[str], int] | None, AnthropicClient | None, ContextWindow, Sequence[Tool], Options]
"""What settings are made of beside the model: the counter that was passed, the client, the policy, the tools, what else is asked for."""


class Switching:
    """The settings in use, and `use_model`.

    A call takes `_settings` once and goes by that to its end. What it has found it notes with `_record`, so that the figures
    in the ledger are always by the settings in use.
    """

    context_window: ContextWindow
    _ledger: Ledger

    def _configure(
        self,
        model_config: object,
        token_counter: TokenCounter | Callable[[str], int] | None,
        api_client: AnthropicClient | None,
        tools: Sequence[Tool],
        options: Options,
    ) -> None:
        """Takes what the user passed, and resolves it."""
        self._given: Given = (token_counter, api_client, self.context_window, tools, options)
        self._settings = resolve_settings(model_config, *self._given)
        name, tokens = asked_for(model_config)
        self._configs: dict[str, object] = {} if name is None else {name: model_config}
        self._unnamed_tokens = tokens if name is None else None
        self._switch = RLock()  # a finaliser may ask at any time

    @property
    def _budget(self) -> Budget:
        return self._settings.budget

    def use_model(self, name: str | ModelConfig) -> None:
        """From the next call on everything goes by another model: its window, counter, image rule, and what its requests cost.

        No session is changed; the figures of the last view are counted anew. A `max_tokens` of the `ContextWindow` stays, and so does
        one that the manager was given for no model by name; one that it was given for a model holds for that model, whenever it is in
        use. With the model that is in use already, nothing changes. Calls that other threads have begun end as they began.

        Args:
            name: The model's name; or a `ModelConfig` with its name and limit, which holds for that name from then on.

        Raises:
            UnknownModelError: Nothing is known of the model, or not its window, and no limit was given for it. The manager is as it was.
            BudgetError: This is no model's name, or the limits leave nothing for the prompt. Likewise.
        """
        known, config = self._config_of(name)

        def with_model(before: Settings, given: Given) -> tuple[Settings, Given]:
            settings = resolve_settings(config, *given)
            return before if settings.equals(before) else settings, given

        self._go_over_to(with_model)
        if not isinstance(name, str):
            self._configs[known] = config

    def _count_tools(self, tools: Sequence[Tool], options: Options = NOTHING) -> None:
        """Counts these tools and options from now on, for every model, where they cost more than those that are known of."""

        def with_tools(before: Settings, given: Given) -> tuple[Settings, Given]:
            budget = before.budget
            overhead = request_overhead(budget.counter, tools, budget.frame, budget.model, options)
            if overhead.fixed <= before.overhead.fixed:
                return before, given
            return replace(before, overhead=overhead, limits=replace(before.limits, overhead=overhead.fixed)), (*given[:3], tools, options)

        self._go_over_to(with_tools)

    def _go_over_to(self, change: Callable[[Settings, Given], tuple[Settings, Given]]) -> None:
        """Puts other settings in the place of those in use, together with what they are made of, and the figures by them."""
        while True:  # until no other thread has changed anything meanwhile; nothing is counted under the lock
            with self._switch:
                before, noted, given = self._settings, self._ledger.noted, self._given
            settings, others = change(before, given)
            if settings is before:
                return
            anew = recounted(noted, before, settings)
            with self._switch:
                if before is self._settings and noted is self._ledger.noted and given is self._given:
                    self._settings, self._given = settings, others
                    self._ledger.note(anew)
                    return

    def _config_of(self, asked: object) -> tuple[str, object]:
        """The name of the model that is asked for, and what holds for it."""
        name, _ = asked_for(asked)
        if name is None:
            raise BudgetError("name", asked, "pass the model's name, or a ModelConfig with one")
        if not isinstance(asked, str):
            return name, asked
        if name in self._configs:
            return name, self._configs[name]
        model = describe_model(name)
        if model.window is None and model.family == "other":  # a slip must not cost a session its counter
            raise UnknownModelError(name, alike(name))
        return name, ModelConfig(name, self._unnamed_tokens)

    def _figures(self) -> tuple[Settings, Noted]:
        """The settings in use, and what is used by them."""
        with self._switch:
            return self._settings, self._ledger.noted

    def _record(self, noted: Noted, settings: Settings) -> None:
        """Notes figures that were found under these settings, in those of the settings in use."""
        while True:
            with self._switch:
                now = self._settings
                if settings is now:
                    self._ledger.note(noted)
                    return
            noted, settings = recounted(noted, settings, now), now


def recounted(noted: Noted, before: Settings, now: Settings) -> Noted:
    """What was noted under other settings, by these. What was added to a category or taken from it by hand stays so."""
    if noted.shown is None or before.counts_as(now):
        return noted
    frozen = noted.shown.frozen()
    was, costs = (_census(frozen, settings) for settings in (before, now))
    amounts = zip(noted.tokens, was.fold.tally.tokens, costs.fold.tally.tokens, strict=True)
    tokens = tuple(cost + said - counted if said >= counted else said for said, counted, cost in amounts)
    return replace(noted, tokens=tokens, overhead=costs.fold.overhead, correction=0, reported=None, settled=None, provider=None)


def _census(session: Session, settings: Settings) -> Following:
    following = Following(session, settings.limits.boundless(), settings.measurer)
    following.catch_up(session)
    return following


def lost_between(before: Following, now: Following, session: Session) -> bool | None:
    """Whether a view shows less than the one before it, which was decided by other settings; None where that cannot be said.

    Takes a look at every item: asked once after a switch.
    """
    if not before.follows(session):
        return None
    earlier, later = before.plan().decisions, now.plan().decisions
    return any(map(_shows_less, later, earlier)) or any(one.action is Action.DROP for one in later[len(earlier) :])


def _shows_less(now: Decision, before: Decision) -> bool:
    for gone in (Action.DROP, Action.CLEAR):
        if before.action is gone or now.action is gone:
            return now.action is gone and before.action is not gone
    shorter = now.cut is not None and (before.cut is None or now.cut.head + now.cut.tail < before.cut.head + before.cut.tail)
    return shorter or not set(now.images) <= set(before.images)
