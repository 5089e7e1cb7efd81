"""Everything that a model's name resolves to, in one frozen object. A call reads it once, so it never mixes two models' settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..counting.anthropic_options import NO_OPTIONS, RequestOptions, keeps_all_thinking
from ..counting.count_clients import ApiClient, count_client
from ..counting.counter import AnyCounter
from ..counting.item_tokens import Measurer
from ..counting.overhead import RequestOverhead, request_overhead
from ..counting.provider_count import ProviderCounter
from ..decision.limits import Limits
from ..events.view_changes import Thresholds, thresholds_at
from ..models import describe_model
from ..tools import Tool
from .budget import Budget, limits_of, resolve_budget
from .context_window import ContextWindow

NOT_CLAUDE = "api_client is an Anthropic client, but the model is not a Claude model"
OTHER_FAMILY = {
    "claude": NOT_CLAUDE,
    "openai": "api_client is an OpenAI client, but the model is not an OpenAI model",
    "google": "api_client is a Google client, but the model is not a Gemini model",
}
"""By the family of the client: why it is not asked about a model of another family."""


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """The settings of a manager while one model is in use.

    `problems` has the reasons why a fallback counts, or why the client is not used. Each is removed when its event is emitted.
    """

    window: ContextWindow
    budget: Budget
    overhead: RequestOverhead
    measurer: Measurer
    limits: Limits
    thresholds: Thresholds
    provider: ProviderCounter | None = None
    tools: Sequence[Tool] = ()
    problems: list[str] = field(default_factory=list)

    def counts_as(self, other: Settings) -> bool:
        """True if every item and request costs the same under the other settings."""
        same = self.budget.counter == other.budget.counter and self.budget.drops_thinking == other.budget.drops_thinking
        return self is other or (same and self.overhead == other.overhead)

    def decides_as(self, other: Settings) -> bool:
        """True if every view is the same under the other settings. Usage reports apply to one model only."""
        return self.counts_as(other) and self.limits == other.limits and self.budget.model == other.budget.model

    def equals(self, other: Settings) -> bool:
        """True if nothing differs."""
        return self.decides_as(other) and self.budget == other.budget


def resolve_settings(
    model_config: object,
    token_counter: AnyCounter | None,
    api_client: ApiClient | None,
    context_window: ContextWindow,
    tools: Sequence[Tool],
    options: RequestOptions = NO_OPTIONS,
) -> Settings:
    """Return the settings for a model: the arguments are those of a manager.

    Raises UnknownModelError if the model's window is not known and no `max_tokens` is given, ClientError if a limit makes no sense, or the
    client is not Anthropic's, OpenAI's or Google's.
    """
    budget = resolve_budget(model_config, token_counter, context_window)
    if keeps_all_thinking(options):
        budget = replace(budget, drops_thinking=False)
    overhead = request_overhead(budget.counter, tools, budget.frame, budget.model, options)
    provider, problem = provider_of(api_client, budget, tools)
    return Settings(
        context_window,
        budget,
        overhead,
        Measurer(budget.counter, overhead.deferred),
        limits_of(budget, context_window, overhead, tools),
        thresholds_at(context_window.warn_at, budget.tokens),
        provider,
        tools,
        [reason for reason in (problem, budget.counter_problem) if reason],
    )


def provider_of(client: ApiClient | None, budget: Budget, tools: Sequence[Tool]) -> tuple[ProviderCounter | None, str]:
    """Return the counter that asks the provider, and the reason if there is none although a client was passed.

    Raises ClientError if this is not a client of Anthropic's, OpenAI's or Google's.
    """
    if client is None:
        return None, ""
    family = count_client(client).family
    if budget.model is None or describe_model(budget.model).family != family:
        return None, OTHER_FAMILY[family]
    return ProviderCounter(client, budget.model, tools), ""
