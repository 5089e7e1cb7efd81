"""Input limits of models, against a second source: the table of litellm 1.109.1, as it was on 2026-11-23."""

import pytest

from context_window import ContextWindow, ContextWindowManager
from context_window.models import find_model
from context_window.settings.budget import resolve_budget

RECORDED = {
    name: limit
    for limit, names in (
        (
            1_000_000,
            (
                "claude-fable-5 claude-fable-5-1 claude-haiku-5-5 claude-opus-4-6 claude-opus-4-7 claude-opus-4-8 claude-opus-5 "
                "claude-opus-5-5 claude-sonnet-4-6 claude-sonnet-5 claude-sonnet-5-5 deepseek-flash deepseek-v4-flash "
                "deepseek-v4-pro grok-4.20 grok-4.3"
            ),
        ),
        (
            200_000,
            (
                "claude-haiku-4-5 claude-opus-4-5 claude-sonnet-4-5 o1 o1-pro o3 o3-deep-research o3-mini o3-pro o4-mini "
                "o4-mini-deep-research MiniMax-M2"
            ),
        ),
        (16_385, "gpt-3.5-turbo"),
        (8_192, "gpt-4 moonshot-v1-8k"),
        (128_000, "gpt-4-turbo gpt-4o gpt-4o-mini gpt-4o-search-preview c4ai-aya-expanse-32b"),
        (1_047_576, "gpt-4.1 gpt-4.1-mini gpt-4.1-nano"),
        (272_000, "gpt-5 gpt-5-mini gpt-5-nano gpt-5.1 gpt-5.2 gpt-5.2-pro gpt-5.3-codex gpt-5.4-mini gpt-5.4-nano"),
        (400_000, "gpt-5-pro gpt-5.1-codex-mini"),
        (1_050_000, "gpt-5.4 gpt-5.4-pro gpt-5.5 gpt-5.5-pro"),
        (922_000, "gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra gpt-6-astra gpt-6-luna gpt-6-sol gpt-6.1-sol gpt-6.1-terra"),
        (
            1_048_576,
            (
                "gemini-2.5-flash gemini-2.5-flash-lite gemini-2.5-pro gemini-3-flash-preview gemini-3.1-flash-lite "
                "gemini-3.1-pro-preview gemini-3.5-flash gemini-3.5-flash-lite gemini-3.6-flash gemini-3.7-flash "
                "gemini-3.8-flash gemini-4-argon kimi-k3 kimi-k3.1-pro mistral-large-4"
            ),
        ),
        (131_072, "deepseek-chat deepseek-reasoner moonshot-v1-128k"),
        (163_840, "deepseek-v3.2"),
        (500_000, "grok-4.5 grok-4.6 grok-4.7"),
        (256_000, "grok-build-0.1 grok-code-fast-1"),
        (262_144, "kimi-k2.5 kimi-k2.6 kimi-k2.7-code mistral-medium-3-5"),
        (32_768, "moonshot-v1-32k"),
    )
    for name in names.split()
}
"""Maximum tokens of a prompt (`max_input_tokens`), of the models that both tables list."""

DIFFERENT = {
    "gpt-5-pro": 272_000,  # litellm has the window
    "gpt-5.1-codex-mini": 272_000,  # litellm has the window; https://developers.openai.com/api/docs/models/gpt-5.1-codex-mini
    "gpt-5.4": 922_000,  # litellm has the window; OpenAI says 922,000 of input and 128,000 of output
    "gpt-5.4-pro": 922_000,
    "gpt-5.5": 922_000,
    "gpt-5.5-pro": 922_000,
    "deepseek-chat": 128_000,  # "128K" in the documentation
    "deepseek-reasoner": 128_000,
    "deepseek-v3.2": 128_000,
    "MiniMax-M2": 204_800,  # litellm rounds
}
"""Where the tables disagree: our limit, with the reason."""


@pytest.mark.parametrize("name", RECORDED)
def test_both_tables_agree_on_the_largest_prompt(name: str) -> None:
    assert find_model(name).input_limit == DIFFERENT.get(name, RECORDED[name])


@pytest.mark.parametrize("name", RECORDED)
def test_the_default_budget_is_accepted(name: str) -> None:
    """A prompt of the whole default budget is no larger than either table allows."""
    assert resolve_budget(name, None, ContextWindow()).tokens <= RECORDED[name]


@pytest.mark.parametrize("name", ["gpt-5", "gpt-5-mini", "gpt-5.1-codex-max", "gpt-5.2", "gpt-5.3-codex", "gpt-5.4-mini", "gpt-5-high"])
@pytest.mark.parametrize("reserve", [None, 0, 32_000, 128_000])
def test_no_budget_of_gpt_5_is_above_272_000(name: str, reserve: int | None) -> None:
    """OpenAI refuses larger prompts, however short the answer may be. The rest of the window is the answer's."""
    report = ContextWindowManager(name, context_window=ContextWindow(output_reserve=reserve)).usage()
    assert (report.budget, report.reserve, report.window) == (272_000, 128_000, 400_000)
    assert ContextWindowManager(name, context_window=ContextWindow(output_reserve=200_000)).usage().budget == 200_000


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("gpt-5-chat-latest", 128_000),
        ("gpt-5.3-codex-spark", 128_000),
        ("gpt-4.1", 1_047_576),
        ("o3", 200_000),
        ("claude-opus-5-5", 1_000_000),
    ],
)
def test_other_windows_can_be_filled_by_the_prompt(name: str, limit: int) -> None:
    model = find_model(name)
    assert model.input_limit == model.window == limit
