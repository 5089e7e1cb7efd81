"""Models drawn as a table, a block a maker: what their windows hold, what they cost, how they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby

from ..models import Model
from .glyphs import QUIET, STRONG, Glyphs
from .lines import Column, Line, Span, table, wrapped

WIDEST = 120
"""Columns at most."""

MAKERS = {"claude": "Anthropic", "openai": "OpenAI", "google": "Google", "other": "Other"}

UNITS = "Amounts in tokens; prices in US dollars for a million of them, as of {day}."
NOTES = {
    "cliff": "Above the cliff, the whole prompt costs so many times as much.",
    "tokenizer": "Beside the tokenizer: by how much a count is usually off.",
    "images": "Images: pixels a side of a patch or tile, and what it costs, or the most that an image does.",
}
"""What a column means, where it is shown."""


def draw_models(models: Sequence[Model], priced_on: datetime, width: int, glyphs: Glyphs) -> list[Line]:
    """The lines of the table, none of them wider than `width` columns.

    Args:
        models: What to show, those of a maker together.
        priced_on: The day of the prices.
        width: Columns.
        glyphs: What to draw with.
    """
    width = min(width, WIDEST)
    columns = [column for column in _columns(models, glyphs) if any(cell.text for cell in column.cells)]
    head, *rows = table(columns, width, glyphs)
    lines = [head]
    places = iter(rows)
    for family, block in groupby(models, key=lambda model: model.family):
        lines.append([Span(MAKERS[family], STRONG)])
        lines += [next(places) for _ in block]
    shown = {span.text for span in head}
    about = " ".join([UNITS.format(day=f"{priced_on:%Y-%m-%d}"), *(note for name, note in NOTES.items() if name in shown)])
    return [*lines, [], *([Span(line, QUIET)] for line in wrapped(about, width, glyphs))]


def _columns(models: Sequence[Model], glyphs: Glyphs) -> list[Column]:
    prices = [model.prices for model in models]
    return [
        Column("model", [Span(glyphs.shown(model.name)) for model in models], left=True, elastic=True, whole=True),
        Column("window", [_amount(model.window) for model in models]),
        Column("answer", [_amount(model.output_limit) for model in models], keep=4),
        Column("in", [_price(None if one is None else one.input) for one in prices], keep=7),
        Column("out", [_price(None if one is None else one.output) for one in prices], keep=6),
        Column("cached", [_price(None if one is None else one.cache_read) for one in prices], keep=3),
        Column("cliff", [Span(_cliff(model), "yellow") for model in models], keep=5),
        Column("tokenizer", [Span(_tokenizer(model), QUIET) for model in models], left=True, keep=2),
        Column("images", [Span(model.images, QUIET) for model in models], left=True, keep=1),
    ]


def _amount(tokens: int | None) -> Span:
    return Span("" if tokens is None else f"{tokens:,}")


def _price(dollars: Decimal | None) -> Span:
    return Span("" if dollars is None else _plain(dollars))


def _plain(number: Decimal) -> str:
    """The number without an exponent and without zeros at its end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _cliff(model: Model) -> str:
    if model.price_cliff is None:
        return ""
    prices = model.prices
    times = "" if prices is None or not prices.input or prices.input_above is None else f" x{_plain(prices.input_above / prices.input)}"
    return f"{model.price_cliff:,}{times}"


def _tokenizer(model: Model) -> str:
    return f"{model.tokenizer} {model.expected_error:.0%}"
