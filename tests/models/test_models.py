"""Models by name: spellings, known facts, and errors for unknown names."""

import time
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from genai_prices import data_snapshot
from hypothesis import assume, given
from hypothesis import strategies as st

from context_window import UnknownModelError
from context_window.counting.images import claude_high_tokens, claude_standard_tokens
from context_window.models import OUTPUT_RESERVE, PROVIDERS, Prices, describe_model, find_model, find_models, prices
from context_window.models.names import NEWEST_CLAUDE, bare, claude_version

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
        ("claude-sonnet-4-5[1m]", 200_000, "1.17", 7, claude_standard_tokens),
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


@pytest.mark.parametrize("name", ["gpt-oss-120b", "openai/gpt-oss-20b"])
def test_the_format_of_gpt_oss_begins_every_request_with_a_system_message(name: str) -> None:
    assert describe_model(name).frame == 65


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("us.openai.gpt-6-sol", 1_050_000),  # Bedrock's, with and without the region
        ("bedrock/global.openai.gpt-5.4", 1_050_000),
        ("openai.gpt-oss-120b-1:0", 131_072),
        ("openrouter/openai/gpt-5.4", 1_050_000),
        ("openai/gpt-6.2-sol", 1_050_000),  # newer than the price list
        ("openrouter/google/gemini-2.5-flash:free", 1_048_576),
        ("publishers/google/models/gemini-2.5-pro", 1_048_576),
        ("eu.anthropic.claude-opus-4-8", 1_000_000),
        ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-4-6-v1", 1_000_000),
        ("vertex_ai/claude-opus-4-1@20250805", 200_000),
    ],
)
def test_resellers_names(name: str, window: int) -> None:
    assert find_model(name).window == window


@pytest.mark.parametrize(
    ("name", "binds"),
    [
        ("claude-fable-5-2", True),
        ("claude-fable-5-1", True),
        ("claude-opus-5-5", True),
        ("claude-sonnet-5-5", True),
        ("us.anthropic.claude-haiku-5-5-v1:0", True),
        ("claude-mythos-5-2", True),
        ("claude-mythos-5-1", False),
        ("claude-fable-5", False),
        ("claude-opus-5", False),
        ("claude-opus-5-20260724", False),
        ("claude-sonnet-4-6", False),
        ("claude-3-5-haiku", False),
        ("claude-opus-6", True),
        ("claude-next", True),
        ("gpt-6-sol", False),
        ("gemini-3-pro", False),
        ("my-own", False),
    ],
)
def test_who_binds_thinking_to_what_came_before_it(name: str, binds: bool) -> None:
    """Anthropic's page of preserved thinking names them; all that are later do."""
    assert describe_model(name).binds_thinking is binds


@pytest.mark.parametrize(
    ("name", "input_price", "output_price", "cache_read", "cache_write", "cliff", "above"),
    [
        ("claude-opus-4-8", "5", "25", "0.5", "6.25", None, None),
        ("claude-sonnet-4-5", "3", "15", "0.3", "3.75", 200_000, "6"),
        ("claude-sonnet-4-6", "3", "15", "0.3", "3.75", None, None),  # it had a cliff until March 2026
        ("claude-haiku-5-5", "0.1", "0.5", "0.01", "0.125", 100_000, "0.5"),
        ("claude-mythos-5", "10", "50", "1", "12.5", None, None),  # in the second list only, as the next two
        ("deepseek-chat", "0.28", "0.42", "0.028", None, None, None),
        ("mistral-large-latest", "0.5", "1.5", "0.05", None, None, None),
        ("gpt-5.4", "2.5", "15", "0.25", None, 272_000, "5"),
        ("gemini-2.5-pro", "1.25", "10", "0.125", None, 200_000, "2.5"),
        ("gemini-3.7-flash", "0.75", "3.75", "0.075", None, None, None),  # twice as much from 2027 on
    ],
)
def test_prices_are_those_of_one_day(
    name: str, input_price: str, output_price: str, cache_read: str, cache_write: str | None, cliff: int | None, above: str | None
) -> None:
    model = find_model(name)
    exact = [None if price is None else Decimal(price) for price in (cache_read, cache_write, above)]
    assert model.prices == Prices(Decimal(input_price), Decimal(output_price), *exact)
    assert model.price_cliff == cliff


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("claude-3-opus-20240229", 4_096),
        ("claude-3-5-sonnet-20241022", 8_192),
        ("claude-3-7-sonnet-latest", 64_000),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-opus-4-20250514", 32_000),
        ("claude-4-opus", 32_000),
        ("claude-opus-4-5", 64_000),
        ("claude-opus-4-6", 128_000),
        ("claude-sonnet-4-6", 128_000),
        ("claude-haiku-4-5@20251001", 64_000),
        ("claude-opus-5-5", 128_000),
        ("gpt-4o", 16_384),
        ("gpt-4o-2024-05-13", 4_096),
        ("gpt-4.1-mini", 32_768),
        ("gpt-4-turbo", 4_096),
        ("gpt-4-0613", 8_192),
        ("gpt-5", 128_000),
        ("gpt-5-chat-latest", 16_384),
        ("gpt-5.3-codex", 128_000),
        ("gpt-6.2-sol", 128_000),
        ("o1-mini", 65_536),
        ("o3", 100_000),
        ("gemini-2.0-flash", 8_192),
        ("gemini-2.5-pro", 65_536),
        ("gemini-3.5-flash", 65_536),
        ("gemini-4-argon", None),
        ("my-own", None),
    ],
)
def test_output_limits(name: str, tokens: int | None) -> None:
    assert describe_model(name).output_limit == tokens


@pytest.mark.parametrize(
    ("name", "tokenizer"),
    [
        ("claude-opus-4-6", "claude 3"),
        ("claude-opus-4-7", "claude 4.7"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-4o", "o200k_base"),
        ("gpt-4.1", "o200k_base"),
        ("o1", "o200k_base"),
        ("gpt-6-sol", "o200k_base"),
        ("gemini-2.5-pro", "gemini"),
        ("my-own", "unknown"),
    ],
)
def test_tokenizers(name: str, tokenizer: str) -> None:
    assert describe_model(name).tokenizer == tokenizer


def test_models_are_found_by_words_of_their_names() -> None:
    everything = [model.name for model in find_models()]
    assert len(everything) == len(set(everything)) > 60
    assert {"claude-opus-5-5", "gpt-6-sol", "gemini-3.5-flash", "deepseek-v4-pro", "grok-4.5", "kimi-k2.5", "MiniMax-M2"} <= set(everything)
    assert "MiniMax-M2" in [model.name for model in find_models("minimax")]
    assert [model.family for model in find_models()] == sorted(
        (model.family for model in find_models()), key=["claude", "openai", "google", "other"].index
    )
    assert all(model.window and model.prices for model in find_models())
    assert [model.name for model in find_models("GEMINI 2.5 pro")] == ["gemini-2.5-pro"]
    assert [model.name for model in find_models("anthropic/claude-opus-4.8")] == ["anthropic/claude-opus-4.8"]
    assert list(find_models("nothing like it")) == []


@pytest.mark.parametrize("piece", ["gemini-", "gpt-5", "claude-", "a-", "gemini-pro-", "o1", "1", "us."])
def test_no_name_takes_long(piece: str) -> None:
    start = time.process_time()
    model = describe_model(piece * 100_000)
    assert model.window is None or model.window > 0
    assert time.process_time() - start < 2


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
    with pytest.raises(UnknownModelError, match="Pass max_tokens=…") as error:
        find_model(name)
    assert error.value.model == name
    assert meant in error.value.alike
    assert len(set(error.value.alike)) == len(error.value.alike) <= 3
    assert all(find_model(suggestion).window for suggestion in error.value.alike)


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
    (provider,) = [provider_ for provider_ in data_snapshot.get_snapshot().providers if provider_.id == provider_id]
    models = [model for model in provider.models if model.context_window]
    assert len(models) > 20
    for model in models:
        result = find_model(model.id)
        is_mended = "-chat" in model.id or model.id.startswith(("gpt-4.1", "gpt-5.5"))
        is_rounded = result.window == 1_048_576 and model.context_window == 1_000_000
        assert result.window == model.context_window or is_mended or is_rounded, model.id
        assert (result.family == "claude") == ("claude" in model.id), model.id


def test_every_model_with_a_window_in_the_price_list_is_known() -> None:
    """From any seller: no `UnknownModelError` for a name whose window the list has."""
    for provider in data_snapshot.get_snapshot().providers:
        for model in provider.models:
            assert not model.context_window or find_model(model.id).window, (provider.id, model.id)


WITH_WINDOW = [
    (provider.id, model.id) for provider in data_snapshot.get_snapshot().providers for model in provider.models if model.context_window
]
FORMS = ["{id}", "{seller}/{id}", "{seller}:{id}", "openrouter/{seller}/{id}", " {id}\n", "{id}-high", "{id}:thinking", "{id} (low)"]


@given(st.sampled_from(WITH_WINDOW), st.sampled_from(FORMS), st.booleans())
def test_a_known_model_is_known_in_every_spelling(listed: tuple[str, str], form: str, upper: bool) -> None:
    """With a seller's prefix, an effort behind it, or in capitals: no `UnknownModelError` for a name whose window the list has."""
    name = form.format(seller=listed[0], id=listed[1])
    assert find_model(name.upper() if upper else name).window


@given(st.sampled_from(WITH_WINDOW), st.integers(0, 60), st.sampled_from("qx7"))
def test_an_unknown_name_is_answered_with_names_that_are_known(listed: tuple[str, str], index: int, letter: str) -> None:
    name = listed[1][:index] + letter + listed[1][index + 1 :]
    assume(describe_model(name).window is None)
    with pytest.raises(UnknownModelError) as raised:
        find_model(name)
    error = raised.value
    assert error.model == name
    assert len(error.alike) <= 3
    assert all(find_model(alike).window and alike in str(error) for alike in error.alike)


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("deepseek/deepseek-chat", 128_000),
        ("mistral-large-latest", 262_144),
        ("deepseek-v4-pro", 1_000_000),
        ("x-ai/grok-4", 256_000),
        ("kimi-k2.5", 262_144),
        ("moonshotai/kimi-k2-0905", 262_144),
        ("MiniMax-M2", 204_800),
        ("us.amazon.nova-pro-v1:0", 300_000),
        ("nova-pro", 300_000),
        ("codestral-latest", 128_000),
        ("z-ai/glm-4.6", 202_752),  # only resellers state a window: the smallest of them
    ],
)
def test_models_of_other_makers(name: str, window: int) -> None:
    model = find_model(name)
    assert (model.window, model.family, model.tokenizer, model.expected_error) == (window, "other", "unknown", 0.15)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("sonnet", "claude-sonnet-5-5"),
        ("opus", "claude-opus-5-5"),
        ("Haiku", "claude-haiku-5-5"),
        ("opusplan", "claude-opus-5-5"),
        ("anthropic/sonnet", "claude-sonnet-5-5"),
        ("sonnet-4.5", "claude-sonnet-4-5"),
        ("opus-4-8", "claude-opus-4-8"),
        ("sonnet-4.5[1m]", "claude-sonnet-4-5[1m]"),
        ("gpt-oss:20b", "gpt-oss-20b"),
        ("gpt-5-high", "gpt-5"),
        ("gpt-5.1-codex-max-xhigh", "gpt-5.1-codex-max"),
        ("openai/gpt-5.4:low", "gpt-5.4"),
        ("o3-medium", "o3"),
        ("gpt-5-codex (high)", "gpt-5-codex"),
        ("claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-4.1-opus", "claude-opus-4-1"),
    ],
)
def test_an_alias_is_the_model_that_it_means(alias: str, name: str) -> None:
    assert replace(find_model(alias), name="") == replace(find_model(name), name="")
    assert find_model(alias).prices == find_model(name).prices


@pytest.mark.parametrize("listed", [model.name for model in find_models() if model.family == "claude"])
def test_an_alias_means_the_newest_model_of_its_class(listed: str) -> None:
    """Of the models in the list: a newer one must be written into `NEWEST_CLAUDE`. Fable 5.2 is open to few accounts."""
    name = next((name for name in NEWEST_CLAUDE if f"-{name}" in listed), None)
    if name is not None and listed != "claude-fable-5-2":
        assert claude_version(listed) <= claude_version(bare(name))


def test_a_model_is_looked_up_once() -> None:
    assert find_model("claude-opus-4-8") is find_model("claude-opus-4-8")


@given(st.data())
def test_no_name_that_the_price_list_knows_is_ruled_out_beforehand(data: st.DataObject) -> None:
    provider = data.draw(st.sampled_from([each for each in prices._snapshot().values() if each.models]))
    name = data.draw(st.sampled_from(provider.models)).id + data.draw(st.sampled_from(["", "-latest", "@20250101", "-20251211", "x"]))
    assert prices._may_match(provider.id, name.lower()) or provider.find_model(name) is None
    assert not prices._may_match("mistral", "strange")
