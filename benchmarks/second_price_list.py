"""Write the second price list, `context_window/data/prices.csv`, from litellm's table.

    python -m benchmarks.second_price_list DATE FILE

FILE is `model_prices_and_context_window_backup.json` of the package litellm, DATE the day it was fetched. Only facts are taken: names and
prices.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.model_limits import MODES

MAKERS = ("anthropic", "openai", "gemini", "deepseek", "xai", "moonshot", "mistral", "zai", "minimax")
TARGET = Path(__file__).parent.parent / "context_window" / "data" / "prices.csv"
KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
FIELDS = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
)
TERMS = {"": "", "batch": "_batches", "priority": "_priority", "flex": "_flex"}
"""The suffix of a price's name by the terms that it is for."""
THRESHOLD = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("date", help="day of the table, such as 2026-11-20")
    parser.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    table = json.loads(options.file.read_text(encoding="utf-8"))
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([options.date, "terms", "above", *KINDS])
        writer.writerows(rows(table))


def rows(table: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield a row for each model, terms and prompt size above which they hold: US dollars per million tokens."""
    for name, entry in sorted(table.items()):
        if entry.get("litellm_provider") not in MAKERS or entry.get("mode") not in MODES or name.startswith("ft:"):
            continue
        sizes = ["", *sorted(match[1] for key in entry if (match := THRESHOLD.fullmatch(key)))]
        fast = Decimal(str((entry.get("provider_specific_entry") or {}).get("fast", 0)))
        for size in sizes:
            for terms, suffix in TERMS.items():
                prices = _prices(entry, f"_above_{size}k_tokens" * bool(size) + suffix)
                if prices[:2] and all(prices[:2]):
                    yield [name.rpartition("/")[2], terms, f"{size}000" if size else "0", *prices]
            if fast and not size:
                dear = [f"{(Decimal(price) * fast).normalize():f}" if price else "" for price in _prices(entry, "")]
                yield [name.rpartition("/")[2], "fast", "0", *dear]


def _prices(entry: Mapping[str, Any], suffix: str) -> list[str]:
    prices = (entry.get(f"{field}{suffix}") for field in FIELDS)
    return ["" if not price else f"{(Decimal(str(price)) * 1_000_000).normalize():f}" for price in prices]


if __name__ == "__main__":
    main()
