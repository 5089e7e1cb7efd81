"""`context-window models`: a table for any width, the same figures as JSON, and a hint where nothing is so called."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from context_window.display.glyphs import ASCII, UNICODE
from context_window.display.lines import plain
from context_window.display.models import model_lines
from context_window.models import PRICED_ON, ModelFacts, Prices, describe_model, find_models
from context_window.models.prices import ListedModel
from tests.support.screens import ESCAPES
from tests.support.shell import Shell


@pytest.mark.parametrize("columns", [80, 120])
def test_all_models_fit_the_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = shell("models")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= columns
    for model in find_models():
        (row,) = [line for line in lines if line.startswith(f"{model.name} ")]
        assert f" {model.window:,} " in row
    assert [line for line in lines if line in {"Anthropic", "OpenAI", "Google"}] == ["Anthropic", "OpenAI", "Google"]
    heads = {"model", "window", "answer", "in", "out", "cached", "cliff"}
    assert heads <= set(lines[0].split()) <= heads | {"tokenizer", "images"}
    assert ("images" in lines[0]) == (columns == 120)


def test_a_row_has_what_is_known(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = shell("models", "gpt-5.5")[1]
    (row,) = [line for line in out.splitlines() if line.startswith("gpt-5.5 ")]
    cells = re.split(r"\s{2,}", row)
    assert cells == ["gpt-5.5", "1,050,000", "128,000", "5", "30", "0.5", "272,000 x2", "o200k_base 2%", "32 px x 1.2"]
    assert "as of 2026-11-21" in out
    assert "Cliff: prompt size" in out


def test_a_column_that_says_nothing_is_left_out(shell: Shell) -> None:
    out = shell("models", "opus-4-8")[1]
    assert "cliff" not in out


@pytest.mark.parametrize("words", [("OPUS", "4"), ("opus-4",), ("claude opus 4",)])
def test_a_filter_is_words_that_the_name_has(shell: Shell, words: tuple[str, ...]) -> None:
    names = [json.loads(line)["name"] for line in shell("models", *words, "--json")[1].splitlines()]
    assert "claude-opus-4-8" in names
    assert all("opus" in name and "4" in name for name in names)
    assert len(names) == len(set(names))


def test_as_json_it_is_the_same(shell: Shell) -> None:
    values = {values_of["name"]: values_of for values_of in map(json.loads, shell("models", "--json")[1].splitlines())}
    models = {model.name: model for model in find_models()}
    assert values.keys() == models.keys()
    for name, model in models.items():
        row = values[name]
        assert (row["window"], row["output_limit"], row["price_cliff"]) == (model.window, model.output_limit, model.price_cliff)
        assert model.prices is not None
        assert row["prices"]["input"] == float(model.prices.input)
        assert (row["tokenizer"], row["images"]) == (model.tokenizer, model.images)
    assert values["claude-opus-5-5"]["binds_thinking"] is True
    assert values["gpt-5.4"]["prices"] == {"input": 2.5, "output": 15.0, "cache_read": 0.25, "cache_write": None, "input_above": 5.0}


@pytest.mark.parametrize("name", ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "openrouter/openai/gpt-5.4", "claude-opus-4@20250514"])
def test_a_name_in_a_resellers_spelling_shows_its_model(shell: Shell, name: str) -> None:
    code, out, _ = shell("models", name, "--json")
    assert code == 0
    (model,) = map(json.loads, out.splitlines())
    assert (model["name"], model["window"]) == (name, describe_model(name).window)


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("gpt5", "did you mean gpt-5"),
        ("claude-opuss-4", "did you mean claude-opus-4"),
        ("zzzz", "`context-window models` lists all models"),
    ],
)
def test_where_nothing_matches_similar_names_are_told(shell: Shell, query: str, hint: str) -> None:
    code, out, err = shell("models", query)
    assert (code, out) == (2, "")
    assert err.startswith(f"context-window: no model is named '{query}'; {hint}")
    assert err.count("\n") == 1


def test_what_is_asked_for_cannot_steer_the_terminal(shell: Shell) -> None:
    code, _, err = shell("models", "\x1b[31mred\nline")
    assert code == 2
    assert "\x1b" not in err
    assert err.count("\n") == 1


def test_colours_change_nothing_else(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    plainly = shell("models", "gemini")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert ESCAPES.sub("", shell("models", "gemini")[1]) == plainly


MODELS = st.lists(
    st.builds(
        lambda name, window, limit, price, cliff: replace(
            describe_model("gpt-5.4"),
            name=name,
            window=window,
            output_limit=limit,
            listing=ListedModel(None, price and Prices(input=price, output=price * 5, cache_read=None, input_above=price * 2), cliff),
        ),
        st.text(max_size=60) | st.just("日本語のモデル" * 5) | st.just("\x1b[31mred"),
        st.none() | st.integers(1, 2_000_000),
        st.none() | st.integers(1, 300_000),
        st.none() | st.decimals(Decimal("0.001"), 999, places=3),
        st.none() | st.integers(1, 2_000_000),
    ),
    min_size=1,
    max_size=8,
)


@given(models=MODELS, width=st.integers(40, 200))
def test_no_line_is_wider_than_the_width(models: list[ModelFacts], width: int) -> None:
    for glyphs in (UNICODE, ASCII):
        for line in model_lines(models, PRICED_ON, width, glyphs):
            assert cell_len(plain(line)) <= width
            assert "\x1b" not in plain(line)
