"""Resolves a model's name and a `ContextWindow` to a budget in tokens, a counter, and the limits of views."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from session.errors import short

from ..calibration.rule import CalibrationRule
from ..counting.counter import AnyCounter, TokenCounter
from ..counting.images import estimated_image_tokens
from ..counting.overhead import RequestOverhead
from ..counting.select import select_counter
from ..decision.limits import BOUNDLESS, AutoWindow, Limits, portion
from ..decision.tool_rules import RECALL, ToolRule
from ..errors import BudgetError, ModelArgumentError, warn
from ..models import KEPT, KEPT_PART, ModelFacts, describe_model, find_model
from ..models.names import family
from ..models.prices import look_up
from ..strategies import advisers_of, is_final
from ..tools import Tool, anthropic_tools, tool_texts
from ..validation import check_amount, exact_fraction
from .context_window import ContextWindow

KNOWN = {"openai": 50, "claude": 200, "google": 60}
"""By family, in thousandths: in recorded sessions, 99 of 100 increments exceeded our count by at most this."""

UNKNOWN = CalibrationRule(prior_score=460, prior_samples=10, request_part=30, min_score=150, max_ratio=10**6)
"""The rule for unknown models and counters: such a counter may be too low by any factor, and errs in proportion to what is new."""

NOTE_PART = 20
"""A line for the model, about removed items or about usage, may cost at most the 20th part of the budget."""

LARGEST_OUTPUT = 0.1
"""Part of the budget that an output may have if the model can recall the rest."""

LIFETIME, LIFETIMES = 600.0, {"claude": 300.0}
"""Seconds that a provider's cache remembers a request, and by family of models where it is known: five minutes at Anthropic, by default."""

REWRITE = 1_150
"""Price of writing a token to the cache instead of reading it there, in percent: 1.25 and 0.1 of the plain price, as at Anthropic."""

DEFAULT_TOKENS = 128_000
"""The budget in tokens if nothing is known of the model."""

NAMES = ("name", "model", "model_name")
"""Attributes and keys of a `model_config` that may name the model; the first non-empty text counts."""

LIMITS = ("max_input_tokens", "max_tokens", "max_history_tokens", "max_context_window_tokens")
"""Attributes and keys that may limit the prompt; the first one that is not None counts. LiteLLM's model info has `max_input_tokens`, and
in its `max_tokens` the limit of the answer. Penguin's `ModelConfig` has the last two
(https://deepwiki.com/Maximooch/penguin/7.3-model-configuration)."""

WINDOWS = ("window", "context_window", "context_length")
"""Attributes and keys that may hold the tokens of prompt and answer together, as in LlamaIndex's `LLMMetadata` and OpenRouter's models."""

REMEDY = "pass a model's name, a ModelConfig(…), or an object with max_tokens; or context_window=ContextWindow(max_tokens=…) alone"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model, and the size of its prompts.

    Attributes:
        name: The provider's name of the model.
        max_tokens: Tokens that the prompt may have; None: as many as the model allows.
        binds_thinking: True if the model refuses reasoning after an edited place; None to look it up. Anthropic does not check it for
            accounts from before 2026-08-31 unless they ask for it.
        window: Tokens of prompt and answer together, where your account or tool has another window than the model's; None to look it up.
        drops_thinking: True if reasoning of earlier turns costs nothing; None to look it up. Pass False if your requests keep it
            (`clear_thinking` with `keep: "all"`).
    """

    name: str | None = None
    max_tokens: int | None = None
    binds_thinking: bool | None = None
    window: int | None = None
    drops_thinking: bool | None = None

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise ModelArgumentError("ModelConfig.name", self.name, "pass the model's name as a string, or None")
        for field in ("max_tokens", "window"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, check_amount(f"ModelConfig.{field}", getattr(self, field), least=1))
        check_choice("ModelConfig.binds_thinking", self.binds_thinking)
        check_choice("ModelConfig.drops_thinking", self.drops_thinking)


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget and the counter of a model. Amounts are tokens.

    Attributes:
        tokens: Tokens that a request may cost.
        counter: The token counter.
        window: The model's window; None if it is not known.
        reserve: Tokens of the window reserved for the answer.
        frame: Tokens that the provider adds to every request.
        binds_thinking: True if the model refuses reasoning after an edited place.
        drops_thinking: True if reasoning of earlier turns costs nothing.
        model: The model's name; None if there is none, or not even its family is known.
        expected_error: The usual relative error of the local count.
        counter_problem: The reason why a fallback counts; empty if none does.
        calibration: The rule by which usage reports are used with this counter.
        bounded: True if `tokens` is a real limit; False if none was given and the model is not known.
    """

    tokens: int
    counter: TokenCounter
    window: int | None = None
    reserve: int = 0
    frame: int = 0
    binds_thinking: bool = False
    drops_thinking: bool = False
    model: str | None = None
    expected_error: float = 0.0
    counter_problem: str = ""
    calibration: CalibrationRule = UNKNOWN
    bounded: bool = True

    def speaks_for(self, model: str | None) -> bool:
        """True if another model's usage reports apply to the model in use: both have the same tokenizer, or one of them is not known."""
        if self.model is None or model is None or model == self.model:
            return True
        description = describe_model(model)
        return description.family != "other" and description.tokenizer == describe_model(self.model).tokenizer


def warn_of_other_model(budget: Budget, model: str) -> None:
    """Warn if a request goes to a model for which the budget or its counter is wrong. Unknown names may be the same model's."""
    facts = describe_model(model)
    most = budget.tokens if facts.input_limit is None else facts.input_limit
    if budget.model in (None, model) or facts.family == "other" or (budget.speaks_for(model) and budget.tokens <= most):
        return
    limit = f", which takes {most:,}," if most < budget.tokens else ""
    problem = f"its view has up to {budget.tokens:,} tokens as {short(budget.model)} counts them"
    warn(f"a request goes to {short(model)}{limit} but {problem}; call manager.use_model(…), or make the request for the manager's model")


def resolve_budget(model_config: object, token_counter: AnyCounter | None, context_window: ContextWindow) -> Budget:
    """Return the budget and the counter. The budget is the window's `max_tokens`, or else the config's, or else the model's.

    Raises UnknownModelError if the model's window is not known and no `max_tokens` is given, BudgetError if nothing is left for the prompt,
    or a value has the wrong type.
    """
    if not isinstance(context_window, ContextWindow):
        raise BudgetError("context_window", context_window, "pass a ContextWindow(max_tokens=…)")
    source = read_config(model_config)
    name, _ = name_and_limit(source)
    config = source if isinstance(source, ModelConfig) else ModelConfig(name)
    binds, drops = config.binds_thinking, config.drops_thinking
    explicit = context_window.max_tokens if isinstance(context_window.max_tokens, int) else config.max_tokens
    if config.window is not None:
        model: ModelFacts | None = _with_window(describe_model(name or ""), config.window)
    else:
        model = None if name is None else find_model(name) if explicit is None else describe_model(name)
    if model is None or (model.window is None and model.family == "other" and model.image_rule is estimated_image_tokens):
        counter, error, problem = select_counter(token_counter, None)
        return Budget(
            DEFAULT_TOKENS if explicit is None else explicit,
            counter,
            binds_thinking=bool(binds),
            drops_thinking=bool(drops),
            expected_error=error,
            counter_problem=problem,
            bounded=explicit is not None,
        )
    tokens, reserve = (explicit, 0) if explicit is not None else _split_window(model, context_window.output_reserve)
    if context_window.below_price_cliff and model.price_cliff is not None:
        tokens = min(tokens, model.price_cliff)
    counter, error, problem = select_counter(token_counter, model)
    return Budget(
        tokens,
        counter,
        window=model.window,
        reserve=reserve,
        frame=model.frame,
        binds_thinking=model.binds_thinking if binds is None else binds,
        drops_thinking=model.drops_thinking if drops is None else drops,
        model=model.name or None,
        expected_error=error,
        counter_problem=problem,
        calibration=calibration_of(model.family) if token_counter is None else UNKNOWN,
    )


def limits_of(
    budget: Budget,
    window: ContextWindow,
    overhead: RequestOverhead,
    tools: Sequence[Tool] = (),
    *,
    one_shot: bool = False,
    newest_first: bool = False,
) -> Limits:
    """Return the limits of views. `one_shot` trims exactly to the budget as soon as it is exceeded."""
    tokens, items = budget.tokens, window.max_context_items
    trigger, target = window.ratios
    return Limits(
        budget=tokens,
        trigger=tokens if one_shot else portion(trigger, tokens),
        target=tokens if one_shot else portion(target, tokens),
        shares=window.shares.exact,
        images_kept=window.images_kept,
        images_max=BOUNDLESS if window.images_max is None else window.images_max,
        items_max=items,
        items_target=0 if items is None else items if one_shot else max(1, portion(target, items)),
        overhead=overhead.fixed,
        preamble=overhead.preamble,
        synthetic=overhead.synthetic,
        closing=overhead.closing,
        note=overhead.note,
        note_removed=window.note_removed and overhead.note * NOTE_PART <= tokens,
        usage_note=overhead.usage_note,
        digest=overhead.digest,
        usage_noted_from=window.usage_noted_from(tokens) if overhead.usage_note * NOTE_PART <= tokens else BOUNDLESS,
        binds_thinking=budget.binds_thinking,
        drops_thinking=budget.drops_thinking,
        keep_first_message=window.keep_first_message,
        clamp_messages=window.clamp_messages,
        clear_call_inputs=window.clear_call_inputs,
        tool_rules={RECALL: ToolRule(clear="first"), **window.tool_rules},
        output_part=output_part_of(window, tools),
        clear_superseded=window.clear_superseded,
        newest_first=newest_first,
        advisers=advisers_of(window.strategy, waits_for_trigger=trigger < 1),
        final=is_final(window.strategy),
        auto=None if one_shot or window.max_tokens != "auto" else auto_window(budget),
        calibration=None if one_shot or window.coverage is None else replace(budget.calibration, coverage=window.thousandths),
    )


def auto_window(budget: Budget) -> AutoWindow:
    """Return what a window is chosen by: the prices of the model, or those of most models if they are not known."""
    prices = None if budget.model is None else look_up(budget.model).prices
    rewrite = REWRITE
    if prices is not None:
        read = prices.input if prices.cache_read is None else prices.cache_read
        write = prices.input if prices.cache_write is None else prices.cache_write
        rewrite = REWRITE if not read else int(100 * (write - read) / read)
    return AutoWindow(min(KEPT, budget.tokens // KEPT_PART), rewrite, LIFETIMES.get(family(budget.model or ""), LIFETIME))


def output_part_of(window: ContextWindow, tools: Sequence[Tool]) -> Fraction | None:
    """Return the part of the budget above which outputs are shortened when they come; None for none.

    Without a setting, it depends on the model's means to see the rest: a tenth if requests carry the recall tool.
    """
    part = window.largest_output
    if part is None:
        texts = [text for text in tool_texts(tools) if f'"{RECALL}"' in text and '"from_line"' in text]
        part = LARGEST_OUTPUT if any(tool.get("name") == RECALL for tool in anthropic_tools(map(json.loads, texts))) else 1
    return None if part == 1 else exact_fraction(part)


def calibration_of(family: str) -> CalibrationRule:
    """Return the rule by which usage reports are used with our counters for a family's models."""
    return CalibrationRule(prior_score=KNOWN[family]) if family in KNOWN else UNKNOWN


def check_choice(field: str, value: object) -> bool | None:
    """Return the value of a setting that is looked up if it is None. Raises BudgetError if it is not True, False or None."""
    if value is None or isinstance(value, bool):
        return value
    raise BudgetError(field, value, "pass True or False, or None to look it up for the model")


def _with_window(model: ModelFacts, window: int) -> ModelFacts:
    """Return the model with another window. The largest prompt that it accepts stays the same."""
    return replace(model, window=window, input_limit=window if model.input_limit is None else min(window, model.input_limit))


def _split_window(model: ModelFacts, output_reserve: int | None) -> tuple[int, int]:
    """Return the tokens of the model's window for the prompt, and the rest, which only the answer can use."""
    assert model.window is not None
    assert model.input_limit is not None
    reserve = model.output_reserve if output_reserve is None else output_reserve
    if reserve >= model.window:
        raise BudgetError(
            "output_reserve", reserve, f"nothing is left for the prompt; pass less than {model.window:,}, the window of {model.name}"
        )
    tokens = min(model.window - reserve, model.input_limit)
    return tokens, model.window - tokens


def read_config(model_config: object) -> str | ModelConfig | None:
    """Return a `model_config` argument as a name or a `ModelConfig`: a mapping or another library's object is read once.

    Raises ModelArgumentError if it neither names a model nor has a limit, BudgetError if a limit has the wrong type.
    """
    if model_config is None or isinstance(model_config, str | ModelConfig):
        return model_config
    if isinstance(model_config, ContextWindow):
        raise ModelArgumentError("model_config", model_config, "this is the context window; pass it as context_window=…")
    is_mapping = isinstance(model_config, Mapping)
    get: Callable[[str], Any] = model_config.get if isinstance(model_config, Mapping) else partial(_attribute, model_config)
    label = "model_config[{!r}]" if is_mapping else "model_config.{}"

    def amount(names: Sequence[str]) -> int | None:
        values = {name: value for name in names if (value := get(name)) is not None}
        return next((check_amount(label.format(name), value, least=1) for name, value in values.items()), None)

    if isinstance(model_config, type) or not (is_mapping or any(hasattr(model_config, name) for name in (*LIMITS, *WINDOWS))):
        raise ModelArgumentError("model_config", model_config, REMEDY)
    name = next((value for key in NAMES if isinstance(value := get(key), str) and value), None)
    tokens, window = amount(LIMITS), amount(WINDOWS)
    if is_mapping and name is None and tokens is None and window is None:
        raise ModelArgumentError(
            "model_config", model_config, 'pass a mapping with a model, a limit, or both: {"model": …, "max_tokens": …}'
        )
    thinking = [check_choice(label.format(field), get(field)) for field in ("binds_thinking", "drops_thinking")]
    return ModelConfig(name, tokens, thinking[0], window, thinking[1])


def _attribute(value: object, name: str) -> object:
    return getattr(value, name, None)


def name_and_limit(config: str | ModelConfig | None) -> tuple[str | None, int | None]:
    """Return the model's name and the explicit limit in a configuration; None for each that is missing."""
    if config is None or isinstance(config, str):
        return config, None
    return config.name or None, config.max_tokens
