"""The budget and the counter resolved from a user's arguments."""

from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from context_window import (
    ArgumentError,
    CharacterCounter,
    ContextWindow,
    ContextWindowManager,
    ModelConfig,
    TiktokenCounter,
    TokenCounter,
    UnknownModelError,
)
from context_window.counting import CallableCounter, default_counter
from context_window.counting import select as choice
from context_window.counting.counter import CheckedCounter
from context_window.counting.images import claude_high_tokens
from context_window.models import find_model
from context_window.settings.budget import DEFAULT_TOKENS, Budget, resolve_budget
from tests.support.counting import Letters


def resolve(model_config: Any = None, counter: Any = None, **settings: Any) -> Budget:
    return resolve_budget(model_config, counter, ContextWindow(**settings))


def config(**attributes: Any) -> Any:
    """An object of another library."""
    return SimpleNamespace(**attributes)


@pytest.mark.parametrize(
    ("model_config", "max_tokens", "tokens", "model"),
    [
        (None, None, DEFAULT_TOKENS, None),
        (None, 5_000, 5_000, None),
        ("claude-sonnet-4-5", None, 200_000 - 32_000, "claude-sonnet-4-5"),
        ("claude-sonnet-4-5", 5_000, 5_000, "claude-sonnet-4-5"),
        ("gpt-3.5-turbo", None, 16_385 - 4_096, "gpt-3.5-turbo"),
        (ModelConfig("claude-sonnet-4-5"), None, 168_000, "claude-sonnet-4-5"),
        (ModelConfig("claude-sonnet-4-5", 70_000), None, 70_000, "claude-sonnet-4-5"),
        (ModelConfig("claude-sonnet-4-5", 70_000), 5_000, 5_000, "claude-sonnet-4-5"),
        (ModelConfig(max_tokens=70_000), None, 70_000, None),
        (ModelConfig(), None, DEFAULT_TOKENS, None),
        (ModelConfig("my-own-model", 70_000), None, 70_000, None),
        ("my-own-model", 5_000, 5_000, None),
        (config(max_tokens=70_000), None, 70_000, None),
        (config(max_tokens=None, model="gpt-4o"), None, 128_000 - 32_000, "gpt-4o"),
        (config(max_tokens=70_000, model_name="gpt-4o"), None, 70_000, "gpt-4o"),
        (config(max_tokens=70_000, name=None, model="gpt-4o"), None, 70_000, "gpt-4o"),
        (config(max_tokens=70_000, name=5, model=object()), None, 70_000, None),
        ("claude-opus-99", 5_000, 5_000, "claude-opus-99"),
        ({"model": "gpt-4o", "max_tokens": 70_000}, None, 70_000, "gpt-4o"),
        ({"model": "gpt-4o", "max_tokens": 70_000}, 5_000, 5_000, "gpt-4o"),
        ({"model": "gpt-4o", "temperature": 0.7}, None, 96_000, "gpt-4o"),
        ({"max_tokens": 70_000}, None, 70_000, None),
        (MappingProxyType({"name": "gpt-4o", "max_tokens": None}), None, 96_000, "gpt-4o"),
        ({"model": "gpt-4o", "max_context_window_tokens": 100_000, "max_history_tokens": 85_000}, None, 85_000, "gpt-4o"),
        (config(model="gpt-4o", max_history_tokens=None, max_context_window_tokens=90_000), None, 90_000, "gpt-4o"),
    ],
)
def test_the_first_source_that_knows(model_config: Any, max_tokens: int | None, tokens: int, model: str | None) -> None:
    budget = resolve(model_config, max_tokens=max_tokens)
    assert (budget.tokens, budget.model) == (tokens, model)


@pytest.mark.parametrize("name", ["my-own-model", "", "claude-opus-99"])
@pytest.mark.parametrize("as_config", [False, True])
def test_an_unknown_model_without_max_tokens(name: str, as_config: bool) -> None:
    if as_config and not name:
        return  # a config may leave its name empty
    with pytest.raises(UnknownModelError, match="Pass max_tokens=…"):
        resolve(ModelConfig(name) if as_config else name)


@pytest.mark.parametrize(
    ("model_config", "message"),
    [
        (
            5,
            r"pass a model's name, a ModelConfig\(…\), or an object with max_tokens; or context_window=ContextWindow\(max_tokens=…\) alone",
        ),
        ({}, "pass a mapping with a model, a limit, or both"),
        ({"temperature": 0.7, "model": ""}, "pass a mapping with a model, a limit, or both"),
        ({"max_tokens": 0}, r"model_config\['max_tokens'\]=0: pass a whole number of 1 or more"),
        ({"model": "gpt-4o", "max_tokens": "5000"}, "pass a whole number of 1 or more"),
        ({"model": "gpt-4o", "binds_thinking": "no"}, r"model_config\['binds_thinking'\]='no': pass True or False"),
        (["claude-sonnet-4-5"], "pass a model's name"),
        (b"claude-sonnet-4-5", "pass a model's name"),
        (ModelConfig, "pass a model's name"),
        (ContextWindow(max_tokens=5_000), "this is the context window; pass it as context_window="),
        (config(max_tokens=0), "model_config.max_tokens=0: pass a whole number of 1 or more"),
        (config(max_tokens=-4), "pass a whole number of 1 or more"),
        (config(max_tokens=True), "pass a whole number of 1 or more"),
        (config(max_tokens=5e4), "pass a whole number of 1 or more"),
        (config(max_tokens="5000"), "pass a whole number of 1 or more"),
    ],
)
def test_invalid_model_configs(model_config: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        resolve(model_config)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "ModelConfig.max_tokens=0: pass a whole number of 1 or more"),
        ({"max_tokens": 1.5}, "pass a whole number of 1 or more"),
        ({"name": 5}, "ModelConfig.name=5: pass the model's name as a string, or None"),
    ],
)
def test_a_model_config_is_checked_when_it_is_made(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ModelConfig(**arguments)


@pytest.mark.parametrize("window", [{"max_tokens": 5}, 5, ContextWindow, "large"])
def test_invalid_context_windows(window: Any) -> None:
    with pytest.raises(ArgumentError, match=r"pass a ContextWindow\(max_tokens=…\)"):
        ContextWindowManager(context_window=window)


def test_the_reserve() -> None:
    assert (resolve("gpt-4o").reserve, resolve("gpt-4o").window) == (32_000, 128_000)
    assert (resolve("gpt-4o", output_reserve=0).tokens, resolve("gpt-4o", output_reserve=0).reserve) == (128_000, 0)
    assert resolve("gpt-4o", output_reserve=127_999).tokens == 1
    assert resolve("gpt-4o", max_tokens=5_000).reserve == 0  # an explicit budget is the prompt's
    for reserve in (128_000, 10**9):
        with pytest.raises(ArgumentError, match="nothing is left for the prompt; pass less than 128,000, the window of gpt-4o"):
            resolve("gpt-4o", output_reserve=reserve)


def test_defaults_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "has_ctok", lambda: False)
    budget, model = resolve("claude-opus-4-7"), find_model("claude-opus-4-7")
    assert budget.counter is default_counter(model.image_rule, Fraction(1), "o200k_claude_4.7")
    assert (budget.frame, budget.binds_thinking, budget.expected_error) == (11, model.binds_thinking, 0.10)
    assert (resolve().frame, resolve().counter, resolve().window) == (0, default_counter(), None)


def test_a_new_claude_with_max_tokens_is_counted_as_claude() -> None:
    """Otherwise it would be counted a third too low, and overflow."""
    budget = resolve("claude-opus-99", max_tokens=100_000)
    assert (budget.window, budget.frame) == (None, 6)
    assert budget.counter is resolve("claude-opus-5").counter


@pytest.mark.parametrize("counter", [TiktokenCounter(), CharacterCounter(), CallableCounter(len)], ids=lambda counter: counter.name)
def test_our_own_counters_are_taken_as_they_are(counter: TokenCounter) -> None:
    assert resolve(counter=counter).counter is counter
    assert resolve("claude-opus-5", counter).counter is counter


def test_a_users_counters_are_checked() -> None:
    mine = Letters()
    assert resolve(counter=mine).counter == CheckedCounter(mine)
    assert resolve(counter=mine).counter == resolve(counter=mine).counter
    assert resolve("claude-opus-5", len).counter == CallableCounter(len, claude_high_tokens)
    assert resolve(counter=len).counter == CallableCounter(len)
    assert resolve("claude-opus-5", len).expected_error == 0.0  # of a counter of one's own nothing is known


@pytest.mark.parametrize(
    ("model", "budget"),
    [("claude-haiku-5-5", 100_000), ("gemini-2.5-pro", 200_000), ("gpt-5.4", 272_000), ("claude-opus-4-7", 1_000_000 - 32_000)],
)
def test_a_budget_can_stay_below_the_size_from_which_prompts_cost_more(model: str, budget: int) -> None:
    assert resolve_budget(model, None, ContextWindow(below_price_cliff=True)).tokens == budget
    assert resolve_budget(model, None, ContextWindow(below_price_cliff=True, max_tokens=1_000)).tokens == 1_000
    assert resolve_budget(model, None, ContextWindow()).tokens >= budget


def test_a_config_can_say_whether_thinking_is_bound() -> None:
    """Providers check it only for some accounts, and perhaps for models that are not known yet."""
    assert resolve("claude-opus-5-5").binds_thinking
    assert not resolve(ModelConfig("claude-opus-5-5", binds_thinking=False)).binds_thinking
    assert resolve(ModelConfig("claude-opus-5", binds_thinking=True)).binds_thinking
    assert resolve(ModelConfig("my-own", 1_000, binds_thinking=True)).binds_thinking
    assert resolve(ModelConfig(max_tokens=1_000, binds_thinking=True)).binds_thinking
    assert not resolve(ModelConfig("my-own", 1_000)).binds_thinking
    with pytest.raises(ArgumentError, match="pass True or False, or None"):
        ModelConfig(binds_thinking="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "settings", "tokens", "window", "reserve"),
    [
        (ModelConfig("claude-opus-5-5", window=200_000), {}, 168_000, 200_000, 32_000),
        (ModelConfig("gpt-5.5", window=258_400), {"output_reserve": 0}, 258_400, 258_400, 0),
        (ModelConfig("gpt-5", window=1_000_000), {}, 272_000, 1_000_000, 728_000),  # the model refuses more, whatever the window
        (ModelConfig("gpt-5", window=100_000, max_tokens=50_000), {}, 50_000, 100_000, 0),
        (ModelConfig("my-own", window=40_000), {}, 30_000, 40_000, 10_000),
        (ModelConfig(window=40_000), {}, 30_000, 40_000, 10_000),
    ],
)
def test_a_window_of_ones_own_replaces_the_models(
    config: ModelConfig, settings: dict[str, Any], tokens: int, window: int, reserve: int
) -> None:
    """An account or a tool may have another window than the model."""
    budget = resolve_budget(config, None, ContextWindow(**settings))
    assert (budget.tokens, budget.window, budget.reserve, budget.model) == (tokens, window, reserve, config.name)


def test_a_window_is_a_number_of_tokens() -> None:
    for wrong in (0, -1, "200k", 1.5):
        with pytest.raises(ArgumentError, match=r"ModelConfig\.window"):
            ModelConfig("gpt-5", window=wrong)  # type: ignore[arg-type]
