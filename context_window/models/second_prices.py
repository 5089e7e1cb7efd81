"""The second price list: litellm's table, as data with its date. It checks genai-prices, and answers where that knows nothing."""

from __future__ import annotations

import csv
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from .names import spellings


class SecondPrices(NamedTuple):
    """Prices of one model in US dollars per million tokens; None where the table has no price."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None
    cache_write: Decimal | None
    cache_write_1h: Decimal | None


class _Row(NamedTuple):
    above: int
    prices: SecondPrices


def second_prices(name: str, terms: str, prompt: int) -> SecondPrices | None:
    """Return the table's prices of a model, however its name is spelled, or None if it has none. Large prompts have prices of their own.

    `terms` is `batch`, `flex`, `priority`, `fast`, or empty for the usual terms.
    """
    for spelling in spellings(name):
        if rows := _table()[1].get((spelling, terms)):
            return next((row.prices for row in reversed(rows) if prompt > row.above), rows[0].prices)
    return None


def second_list_date() -> str:
    """Return the day of the table, such as `2026-11-20`."""
    return _table()[0]


@cache
def _table() -> tuple[str, dict[tuple[str, str], list[_Row]]]:
    """Return the table's day, and its rows by model and terms, the smallest prompts first."""
    lines = csv.reader(files("context_window").joinpath("data/prices.csv").read_text(encoding="utf-8").splitlines())
    day = next(lines)[0]
    table: dict[tuple[str, str], list[_Row]] = {}
    for name, terms, above, uncached, output, *cached in lines:
        read, write, for_hour = (Decimal(price) if price else None for price in cached)
        row = _Row(int(above), SecondPrices(Decimal(uncached), Decimal(output), read, write, for_hour))
        table.setdefault((name, terms), []).append(row)
    for rows in table.values():
        rows.sort(key=lambda row: row.above)
    return day, table
