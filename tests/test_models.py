"""Models by name: however it is spelled, what is known of it, and what is said of one that is not known."""

from fractions import Fraction

import pytest
from genai_prices import data_snapshot

from context_window import UnknownModelError
from context_window.counting.images import claude_high_tokens, claude_standard_tokens
from context_window.models import OUTPUT_RESERVE, PROVIDERS, describe_model, find_model

CLAUDE_4_5 = [
    "claude-sonnet-4-5",
    "claude-sonnet-4-5-20250929",
    "claude-sonnet-4.5",
    "CLAUDE-Sonnet-4-5",
    " claude-sonnet-4-5\n",
    "anthropic:claude-sonnet-4-5",
    "anthropic/claude-sonnet-4.5",
    "openrouter/anthropic/claude-sonnet-4.5",
    "claude-sonnet-4-5@20250929",
    "vertex_ai/claude-sonnet-4-5@20250929",
    "publishers/anthropic/models/claude-sonnet-4-5",
    "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
]


@pytest.mark.parametrize("name", CLAUDE_4_5)
def test_one_model_by_many_names(name: str) -> None:
    model = find_model(name)
    assert (model.name, model.window, model.family, model.frame) == (name, 200_000, "claude", 7)
    assert (model.token_ratio, model.image_rule) == (Fraction("1.17"), claude_standard_tokens)


@pytest.mark.parametrize(
    ("name", "window", "ratio", "frame", "rule"),
    [
        ("claude-3-5-haiku-20241022", 200_000, "1.17", 7, claude_standard_tokens),
        ("claude-3-opus-20240229", 200_000, "1.17", 7, claude_standard_tokens),
        ("claude-2.1", 200_000, "1.17", 7, claude_standard_tokens),
        ("claude-4-sonnet", 200_000, "1.17", 7, claude_standard_tokens),
        ("claude-sonnet-4-20250514", 200_000, "1.17", 7, claude_standard_tokens),
        ("claude-sonnet-4@20250514", 200_000, "1.17", 7, claude_standard_tokens),
        ("claude-opus-4-6", 1_000_000, "1.17", 7, claude_standard_tokens),
        ("claude-opus-4-7", 1_000_000, "1.46", 11, claude_high_tokens),
        ("global.anthropic.claude-opus-4-7-v1:0", 1_000_000, "1.46", 11, claude_high_tokens),
        ("anthropic/claude-opus-4.7", 1_000_000, "1.46", 11, claude_high_tokens),
        ("claude-opus-4-8", 1_000_000, "1.46", 6, claude_high_tokens),
        ("claude-opus-5", 1_000_000, "1.46", 6, claude_high_tokens),
        ("claude-sonnet-4-5[1m]", 1_000_000, "1.17", 7, claude_standard_tokens),
    ],
)
def test_claude_by_version(name: str, window: int, ratio: str, frame: int, rule: object) -> None:
    model = find_model(name)
    assert (model.window, model.token_ratio, model.frame, model.image_rule) == (window, Fraction(ratio), frame, rule)


@pytest.mark.parametrize(
    ("name", "window", "family"),
    [
        ("gpt-4o", 128_000, "openai"),
        ("gpt-4o-mini-2024-07-18", 128_000, "openai"),
        ("azure/gpt-4o", 128_000, "openai"),
        (" gpt-4o\n", 128_000, "openai"),
        ("openai:gpt-5", 400_000, "openai"),
        ("gpt-5-2025-08-07", 400_000, "openai"),
        ("gpt-5-chat-latest", 128_000, "openai"),
        ("gpt-5.2-chat-latest", 128_000, "openai"),
        ("ft:gpt-4o-2024-08-06:someone::id", 128_000, "openai"),
        ("o3", 200_000, "openai"),
        ("chatgpt-4o-latest", 128_000, "openai"),
        ("gemini-2.5-pro", 1_048_576, "google"),
        ("gemini-2.5-pro-preview-06-05", 1_048_576, "google"),
        ("gemini-2.5-pro-preview-tts", 8_192, "google"),  # its own window, not that of the model it is named after
        ("models/gemini-2.5-flash", 1_048_576, "google"),
        ("google-gla:gemini-2.5-flash", 1_048_576, "google"),
        ("google/gemini-2.5-pro:free", 1_048_576, "google"),
        ("gemini-3-pro-preview", 1_048_576, "google"),
    ],
)
def test_other_families(name: str, window: int, family: str) -> None:
    model = find_model(name)
    assert (model.window, model.family, model.frame, model.token_ratio) == (window, family, 0, Fraction(1))
    assert not model.binds_thinking


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("claude-sonet-4-5", "claude-sonnet-4-5"),
        ("Claude-Opus-47", "claude-opus-4-7"),
        ("gpt5", "gpt-5"),
        ("openai/gpt_5_mini", "gpt-5-mini"),
        ("gemini2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_a_misspelled_name_gets_suggestions(name: str, meant: str) -> None:
    with pytest.raises(UnknownModelError, match=r"Pass ContextWindow\(max_tokens=…\)") as error:
        find_model(name)
    assert error.value.model == name
    assert meant in error.value.alike
    assert len(set(error.value.alike)) == len(error.value.alike) <= 3
    assert all(find_model(one).window for one in error.value.alike)


@pytest.mark.parametrize("name", ["", "my-own-model", "x" * 1_000_000, "a:b:c", "/", ":", "::", "\0", "日本"], ids=range(9))
def test_a_name_that_nothing_is_like(name: str) -> None:
    with pytest.raises(UnknownModelError) as error:
        find_model(name)
    assert error.value.alike == ()
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("name", "family", "ratio"),
    [("claude-next", "claude", "1.46"), ("claude-opus-99", "claude", "1.46"), ("gpt-99", "openai", "1"), ("my", "other", "1")],
)
def test_of_a_new_model_the_family_is_known(name: str, family: str, ratio: str) -> None:
    """A Claude without a version, or with a high one, is counted as the newest, which cost most."""
    model = describe_model(name)
    assert (model.window, model.family, model.token_ratio, model.output_reserve) == (None, family, Fraction(ratio), OUTPUT_RESERVE)


def test_the_reserve_for_the_answer_is_a_fourth_at_most() -> None:
    assert find_model("claude-sonnet-4-5").output_reserve == 32_000
    assert find_model("gpt-3.5-turbo").output_reserve == 16_385 // 4


@pytest.mark.parametrize("provider_id", PROVIDERS)
def test_all_that_the_snapshot_knows_is_found_by_its_own_name(provider_id: str) -> None:
    """With its own window, but for the few that are mended. Google sells Claude, too."""
    (provider,) = [one for one in data_snapshot.get_snapshot().providers if one.id == provider_id]
    known = [model for model in provider.models if model.context_window]
    assert len(known) > 20
    for model in known:
        found = find_model(model.id)
        assert found.window == model.context_window or "-chat" in model.id, model.id
        assert (found.family == "claude") == ("claude" in model.id), model.id


def test_a_model_is_looked_up_once() -> None:
    assert find_model("claude-opus-4-8") is find_model("claude-opus-4-8")
