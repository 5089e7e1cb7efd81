"""Settings resolved: from a model's name and a `ContextWindow` to one number of tokens and one counter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .config import ContextWindow, check_amount
from .counting.counter import CallableCounter, TokenCounter
from .counting.tiktoken_counter import default_counter
from .errors import BudgetError, UnknownModelError
from .models import Model, find_model

DEFAULT_TOKENS = 128_000
"""The budget where nothing is known of the model."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model, and what its prompts may cost.

    Attributes:
        name: As its provider calls it.
        max_tokens: Tokens the prompt may have; None: what the model allows.
    """

    name: str | None = None
    max_tokens: int | None = None


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
        model: Its name, where one was asked for and is known.
        expected_error: The part of the cold count by which it is usually off.
    """

    tokens: int
    counter: TokenCounter
    window: int | None = None
    reserve: int = 0
    frame: int = 0
    binds_thinking: bool = False
    model: str | None = None
    expected_error: float = 0.0


def resolve_budget(
    model_config: object, token_counter: TokenCounter | Callable[[str], int] | None, context_window: ContextWindow
) -> Budget:
    """The budget and the counter, from the first source that knows: the window's `max_tokens`, the config's, the model.

    Raises:
        UnknownModelError: The model's window is not known and no `max_tokens` is given.
        BudgetError: Nothing is left for the prompt, or a value is of the wrong type.
    """
    name, config_tokens = _asked(model_config)
    explicit = context_window.max_tokens if context_window.max_tokens is not None else config_tokens
    model = None
    if name is not None:
        try:
            model = find_model(name)
        except UnknownModelError:
            if explicit is None:
                raise
    counter = _counter(token_counter, model)
    known: dict[str, Any] = {} if model is None else {"frame": model.frame, "binds_thinking": model.binds_thinking, "window": model.window}
    error = model.expected_error if model is not None and token_counter is None else 0.0
    if explicit is not None or model is None:
        tokens = explicit if explicit is not None else DEFAULT_TOKENS
        return Budget(tokens, counter, model=None if model is None else model.name, expected_error=error, **known)
    reserve = model.output_reserve if context_window.output_reserve is None else context_window.output_reserve
    if reserve >= model.window:
        raise BudgetError("output_reserve", reserve, f"leaves nothing of the {model.window:,} tokens that {name} has")
    return Budget(model.window - reserve, counter, reserve=reserve, model=model.name, expected_error=error, **known)


def _asked(model_config: object) -> tuple[str | None, int | None]:
    """The model's name and the explicit budget in what the user passed."""
    if model_config is None or isinstance(model_config, str):
        return model_config or None, None
    if not hasattr(model_config, "max_tokens"):
        raise BudgetError("model_config", model_config, "pass a model's name, a ModelConfig, or an object with max_tokens")
    tokens = model_config.max_tokens
    if tokens is not None:
        check_amount("model_config.max_tokens", tokens, least=1)
    for attribute in ("name", "model", "model_name"):
        if isinstance(name := getattr(model_config, attribute, None), str) and name:
            return name, tokens
    return None, tokens


def _counter(given: TokenCounter | Callable[[str], int] | None, model: Model | None) -> TokenCounter:
    if given is None:
        return default_counter(model.image_rule, model.token_ratio) if model is not None else default_counter()
    if isinstance(given, TokenCounter):
        return given
    if not callable(given):
        raise BudgetError("token_counter", given, "pass a function of a text that gives its tokens, or a TokenCounter")
    return CallableCounter(given, model.image_rule) if model is not None else CallableCounter(given)
