"""All that a model's name resolves to, in one frozen object: a call takes it once, and so never mixes two models' settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .budget import Budget, limits_of, resolve_budget
from .config import ContextWindow
from .counting.counter import TokenCounter
from .counting.measure import Measurer
from .counting.overhead import RequestOverhead, request_overhead
from .counting.provider import AnthropicClient, ProviderCounter, check_client
from .counting.told import NOTHING, Options
from .models import describe_model
from .tools import Tool
from .trimming.limits import Limits
from .watch import Marks, marks_at

NOT_CLAUDE = "api_client is Anthropic's, and the model is none of Claude's"


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """What a manager goes by while one model is in use.

    Attributes:
        budget: The budget and the counter.
        overhead: What requests cost beside their items.
        measurer: What measures items with that counter.
        limits: What trims go by.
        marks: Where usage is warned of.
        provider: Who is asked for the provider's own counts.
        untold: Why a lesser counter counts, or a client that was given is not asked: taken out as it is told.
    """

    budget: Budget
    overhead: RequestOverhead
    measurer: Measurer
    limits: Limits
    marks: Marks
    provider: ProviderCounter | None = None
    untold: list[str] = field(default_factory=list)

    def counts_as(self, other: Settings) -> bool:
        """Whether every item and request costs the same under the other ones."""
        return self is other or (self.budget.counter == other.budget.counter and self.overhead == other.overhead)

    def decides_as(self, other: Settings) -> bool:
        """Whether every view is the same under the other ones. What providers reported speaks for one model alone."""
        return self.counts_as(other) and self.limits == other.limits and self.budget.model == other.budget.model

    def equals(self, other: Settings) -> bool:
        """Whether nothing at all would differ."""
        return self.decides_as(other) and self.budget == other.budget


def resolve_settings(
    model_config: object,
    token_counter: TokenCounter | Callable[[str], int] | None,
    api_client: AnthropicClient | None,
    context_window: ContextWindow,
    tools: Sequence[Tool],
    options: Options = NOTHING,
) -> Settings:
    """The settings for a model.

    Args:
        model_config: As a manager takes it.
        token_counter: Likewise.
        api_client: Likewise.
        context_window: The policy.
        tools: The tools that requests will carry.
        options: What else they will ask for.

    Raises:
        UnknownModelError: The model's window is not known and no `max_tokens` is given.
        BudgetError: A limit makes no sense, or the client is none of Anthropic's.
    """
    budget = resolve_budget(model_config, token_counter, context_window)
    overhead = request_overhead(budget.counter, tools, budget.frame, budget.model, options)
    provider, problem = provider_of(api_client, budget, tools)
    return Settings(
        budget,
        overhead,
        Measurer(budget.counter),
        limits_of(budget, context_window, overhead),
        marks_at(context_window.warn_at, budget.tokens),
        provider,
        [why for why in (problem, budget.counter_problem) if why],
    )


def provider_of(client: AnthropicClient | None, budget: Budget, tools: Sequence[Tool]) -> tuple[ProviderCounter | None, str]:
    """Who is asked for the provider's counts, or why a client that was given is not.

    Raises:
        BudgetError: It is no client of Anthropic's.
    """
    if client is None:
        return None, ""
    check_client(client)
    if budget.model is None or describe_model(budget.model).family != "claude":
        return None, NOT_CLAUDE
    return ProviderCounter(client, budget.model, tools), ""
