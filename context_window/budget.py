"""Settings resolved: from a model's name and a `ContextWindow` to one number of tokens, one counter, and what trims go by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .choice import choose_counter
from .config import ContextWindow, check_amount
from .counting.counter import TokenCounter
from .counting.overhead import RequestOverhead
from .errors import BudgetError
from .models import Model, describe_model, find_model
from .strategies import advisers_of, is_final
from .trimming.anchor import CalibrationRule
from .trimming.limits import Limits, portion

KNOWN = {"openai": 50, "claude": 200, "google": 270}
"""By family, in thousandths: of the increments in recorded sessions 99 in 100 were no further above our count."""

UNKNOWN = CalibrationRule(prior=400, beyond=10**6)
"""For models and counters of which nothing is known: a counter may be too low by any factor."""

DEFAULT_TOKENS = 128_000
"""The budget where nothing is known of the model."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model, and what its prompts may cost.

    Attributes:
        name: As its provider calls it.
        max_tokens: Tokens the prompt may have; None: what the model allows.
        binds_thinking: Whether the model refuses reasoning after an edited place; None: what is known of the model. Anthropic does not
            check it for accounts from before 2026-08-31 unless they ask for it.
    """

    name: str | None = None
    max_tokens: int | None = None
    binds_thinking: bool | None = None

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise BudgetError("ModelConfig.name", self.name, "pass the model's name as a text, or None")
        if self.max_tokens is not None:
            object.__setattr__(self, "max_tokens", check_amount("ModelConfig.max_tokens", self.max_tokens, least=1))
        check_binding("ModelConfig.binds_thinking", self.binds_thinking)


@dataclass(frozen=True, slots=True)
class Budget:
    """What was resolved. Amounts are tokens.

    Attributes:
        tokens: What a request may cost.
        counter: What counts.
        window: The model's window, where one is known.
        reserve: What of the window is kept for the answer.
        frame: What the provider adds to every request.
        binds_thinking: Whether the model refuses reasoning after an edited place.
        model: Its name, where one was asked for and at least its family is known.
        expected_error: The part of the cold count by which it is usually off.
        counter_problem: Why a lesser counter than usual counts; empty where none does.
        calibration: How the provider's reports are used with this counter.
        bounded: Whether `tokens` is somebody's limit; False where nobody gave one and nothing is known of a model.
    """

    tokens: int
    counter: TokenCounter
    window: int | None = None
    reserve: int = 0
    frame: int = 0
    binds_thinking: bool = False
    model: str | None = None
    expected_error: float = 0.0
    counter_problem: str = ""
    calibration: CalibrationRule = UNKNOWN
    bounded: bool = True

    def speaks_for(self, model: str | None) -> bool:
        """Whether what this model reports of a request says what the model in use would: it counts alike, or nothing is known of one."""
        if self.model is None or model is None or model == self.model:
            return True
        theirs = describe_model(model)
        return theirs.family != "other" and theirs.tokenizer == describe_model(self.model).tokenizer


def resolve_budget(
    model_config: object, token_counter: TokenCounter | Callable[[str], int] | None, context_window: ContextWindow
) -> Budget:
    """The budget and the counter, from the first source that knows: the window's `max_tokens`, the config's, the model.

    Raises:
        UnknownModelError: The model's window is not known and no `max_tokens` is given.
        BudgetError: Nothing is left for the prompt, or a value is of the wrong type.
    """
    if not isinstance(context_window, ContextWindow):
        raise BudgetError("context_window", context_window, "pass a ContextWindow(max_tokens=…)")
    name, config_tokens = asked_for(model_config)
    binds = check_binding("model_config.binds_thinking", getattr(model_config, "binds_thinking", None))
    explicit = context_window.max_tokens if context_window.max_tokens is not None else config_tokens
    model = None if name is None else find_model(name) if explicit is None else describe_model(name)
    if model is None or (model.window is None and model.family == "other"):
        counter, error, problem = choose_counter(token_counter, None)
        return Budget(
            DEFAULT_TOKENS if explicit is None else explicit,
            counter,
            binds_thinking=bool(binds),
            expected_error=error,
            counter_problem=problem,
            bounded=explicit is not None,
        )
    tokens, reserve = (explicit, 0) if explicit is not None else _share_of_window(model, context_window.output_reserve)
    if context_window.below_price_cliff and model.price_cliff is not None:
        tokens = min(tokens, model.price_cliff)
    counter, error, problem = choose_counter(token_counter, model)
    return Budget(
        tokens,
        counter,
        window=model.window,
        reserve=reserve,
        frame=model.frame,
        binds_thinking=model.binds_thinking if binds is None else binds,
        model=model.name,
        expected_error=error,
        counter_problem=problem,
        calibration=calibration_of(model.family) if token_counter is None else UNKNOWN,
    )


def limits_of(
    budget: Budget, window: ContextWindow, overhead: RequestOverhead, *, one_shot: bool = False, newest_first: bool = False
) -> Limits:
    """What trims go by.

    Args:
        budget: What was resolved.
        window: The policy.
        overhead: What requests cost beside their items.
        one_shot: To trim exactly to the budget, as soon as it is exceeded.
        newest_first: To take the newest first.
    """
    tokens, items = budget.tokens, window.max_context_items
    trigger, target = window.ratios
    return Limits(
        budget=tokens,
        trigger=tokens if one_shot else portion(trigger, tokens),
        target=tokens if one_shot else portion(target, tokens),
        shares=window.shares.exact,
        images_kept=window.images_kept,
        images_max=window.images_kept if window.images_max is None else window.images_max,
        items_max=items,
        items_target=0 if items is None else items if one_shot else max(1, portion(target, items)),
        overhead=overhead.fixed,
        preamble=overhead.preamble,
        synthetic=overhead.synthetic,
        binds_thinking=budget.binds_thinking,
        newest_first=newest_first,
        advisers=advisers_of(window.strategy),
        final=is_final(window.strategy),
        calibration=None if one_shot or window.coverage is None else replace(budget.calibration, coverage=window.thousandths),
    )


def calibration_of(family: str) -> CalibrationRule:
    """How reports are used with our counters for a family's models."""
    return CalibrationRule(prior=KNOWN[family]) if family in KNOWN else UNKNOWN


def check_binding(field: str, value: object) -> bool | None:
    """The value, if it can say whether a model binds thinking.

    Raises:
        BudgetError: It is not True, False or None.
    """
    if value is None or isinstance(value, bool):
        return value
    raise BudgetError(field, value, "pass True or False, or None for what is known of the model")


def _share_of_window(model: Model, asked: int | None) -> tuple[int, int]:
    """What of the model's window is the prompt's, and what is kept for the answer."""
    assert model.window is not None
    reserve = model.output_reserve if asked is None else asked
    if reserve >= model.window:
        raise BudgetError(
            "output_reserve", reserve, f"leaves nothing for the prompt; pass less than {model.window:,}, the window of {model.name}"
        )
    return model.window - reserve, reserve


def asked_for(model_config: object) -> tuple[str | None, int | None]:
    """The model's name and the explicit budget in what the user passed.

    Raises:
        BudgetError: It is nothing that names a model or has a limit.
    """
    if model_config is None or isinstance(model_config, str):
        return model_config, None
    if isinstance(model_config, ContextWindow):
        raise BudgetError("model_config", model_config, "this is the context window; pass it as context_window=…")
    if isinstance(model_config, type) or not hasattr(model_config, "max_tokens"):
        raise BudgetError(
            "model_config",
            model_config,
            "pass a model's name, a ModelConfig(…), or an object with max_tokens; or context_window=ContextWindow(max_tokens=…) alone",
        )
    tokens = model_config.max_tokens
    if tokens is not None:
        tokens = check_amount("model_config.max_tokens", tokens, least=1)
    for attribute in ("name", "model", "model_name"):
        if isinstance(name := getattr(model_config, attribute, None), str) and name:
            return name, tokens
    return None, tokens
