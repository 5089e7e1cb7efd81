"""Models as a table, grouped by maker: windows, prices, tokenizers, image rules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby

from ..models import ModelFacts
from .glyphs import QUIET, STRONG, Glyphs
from .lines import Column, Line, Span, paragraphs, table

WIDEST = 120
"""Maximum width in columns."""

MAKERS = {"claude": "Anthropic", "openai": "OpenAI", "google": "Google", "other": "Other"}

UNITS = "Amounts are in tokens, prices in US dollars per million tokens as of {day}."
LEGENDS = {
    "cliff": "Cliff: prompt size above which the whole prompt costs the given multiple.",
    "tokenizer": "Tokenizer: with the usual error of our count.",
    "images": "Images: side of a patch or tile in pixels and its price in tokens, or the maximum per image.",
}
"""Explanations of columns, printed if the column is."""


def model_lines(models: Sequence[ModelFacts], priced_on: datetime, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines of the table, none wider than `width` columns.

    Args:
        models: The models, grouped by maker.
        priced_on: Date of the prices.
        width: Columns.
        glyphs: Characters to draw with.
    """
    width = min(width, WIDEST)
    columns = [column for column in _columns(models, glyphs) if any(cell.text for cell in column.cells)]
    head, *rows = table(columns, width, glyphs)
    lines = [head]
    remaining_rows = iter(rows)
    for family, block in groupby(models, key=lambda model: model.family):
        lines.append([Span(MAKERS[family], STRONG)])
        lines += [next(remaining_rows) for _ in block]
    titles = {span.text for span in head}
    legend = " ".join([UNITS.format(day=f"{priced_on:%Y-%m-%d}"), *(legend for title, legend in LEGENDS.items() if title in titles)])
    return [*lines, [], *paragraphs([legend], width, glyphs)]


def _columns(models: Sequence[ModelFacts], glyphs: Glyphs) -> list[Column]:
    prices = [model.prices for model in models]
    return [
        Column("model", [Span(glyphs.safe(model.name)) for model in models], is_left=True, is_elastic=True, is_last_resort=True),
        Column("window", [_amount(model.window) for model in models]),
        Column("answer", [_amount(model.output_limit) for model in models], priority=4),
        Column("in", [_price(None if price is None else price.input) for price in prices], priority=7),
        Column("out", [_price(None if price is None else price.output) for price in prices], priority=6),
        Column("cached", [_price(None if price is None else price.cache_read) for price in prices], priority=3),
        Column("cliff", [Span(_cliff(model), "yellow") for model in models], priority=5),
        Column("tokenizer", [Span(_tokenizer(model), QUIET) for model in models], is_left=True, priority=2),
        Column("images", [Span(model.images, QUIET) for model in models], is_left=True, priority=1),
    ]


def _amount(tokens: int | None) -> Span:
    return Span("" if tokens is None else f"{tokens:,}")


def _price(dollars: Decimal | None) -> Span:
    return Span("" if dollars is None else _plain(dollars))


def _plain(number: Decimal) -> str:
    """Return the number without an exponent and without trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _cliff(model: ModelFacts) -> str:
    if model.price_cliff is None:
        return ""
    prices = model.prices
    multiple = "" if prices is None or not prices.input or prices.input_above is None else f" x{_plain(prices.input_above / prices.input)}"
    return f"{model.price_cliff:,}{multiple}"


def _tokenizer(model: ModelFacts) -> str:
    return f"{model.tokenizer} {model.expected_error:.0%}"
