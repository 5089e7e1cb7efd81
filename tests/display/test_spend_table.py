"""The table of `context-window spend` at any width: its columns add up to its total, or it says which are missing."""

from __future__ import annotations

from decimal import Decimal

import pytest

from context_window.display.glyphs import UNICODE
from context_window.display.spend import PARTS, spend_lines
from context_window.spend import SpendRow

ROW = SpendRow("2026-03-25", 1_594, 2_279_065, 90_584_297, 5_000_000, 946_790, 411_820, 85_798, 1_594, Decimal("71.15"))


def shown(row: SpendRow, width: int) -> list[str]:
    return ["".join(span.text for span in line) for line in spend_lines("day", [row], row.plus(SpendRow("")), [], width, UNICODE)]


@pytest.mark.parametrize("width", range(30, 125))
def test_columns_of_the_total_are_shown_or_named(width: int) -> None:
    head, *lines = shown(ROW, width)
    note = " ".join(line.strip() for line in lines[2:])
    assert all((part in head) != (part in note) for part in PARTS)


def test_all_columns_of_the_total_fit_a_terminal_of_80_columns() -> None:
    assert len(shown(ROW, 80)) == 3


def test_columns_without_an_amount_go_first_and_are_not_missed() -> None:
    text = "".join(shown(SpendRow("2026-03-25", 1, input_tokens=5, output_tokens=7), 48))
    assert ("cache" in text, "input" in text, "output" in text) == (False, True, True)


@pytest.mark.parametrize("width", range(30, 125))
def test_the_cache_which_most_of_the_money_is_for_outlasts_the_rest(width: int) -> None:
    """What is left out is a run of this order."""
    head = shown(ROW, width)[0]
    kept = [part in head for part in ("requests", "input", "output", "cache read", "cache write")]
    assert kept == sorted(kept)
