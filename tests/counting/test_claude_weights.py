"""The weights by which tokens of o200k stand in for Claude's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.counting import TiktokenCounter
from context_window.counting.claude_weights import CLAUDE_3, CLAUDE_4_7, UNIT, token_weight

COUNTERS = [TiktokenCounter(encoding="o200k_claude_3"), TiktokenCounter(encoding="o200k_claude_4.7")]


@pytest.mark.parametrize("runs", [CLAUDE_3, CLAUDE_4_7])
def test_a_token_costs_by_its_look(runs: dict[str, tuple[int, int, int]]) -> None:
    spaced, bare, more = runs["lower"]
    assert token_weight(runs, b" time") == spaced + 2 * more  # type: ignore[arg-type]
    assert token_weight(runs, b"time") == bare + 2 * more  # type: ignore[arg-type]
    assert token_weight(runs, b"getName") == bare + more + runs["name"][1] + 2 * runs["name"][2]  # type: ignore[arg-type]


@given(st.binary(min_size=1, max_size=40))
def test_a_token_costs_something_and_no_more_than_its_bytes(token: bytes) -> None:
    for runs in (CLAUDE_3, CLAUDE_4_7):
        assert 1 <= token_weight(runs, token) <= UNIT * len(token)


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@given(lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=60), min_size=1, max_size=6))
def test_more_lines_never_cost_less(counter: TiktokenCounter, lines: list[str]) -> None:
    texts = ["\n".join(lines[:length]) + "\n" for length in range(1, len(lines) + 1)]
    counts = [counter.count_text(text) for text in texts]
    assert counts == sorted(counts)


def test_capitals_cost_more_than_prose_from_4_7_on() -> None:
    prose, capitals = "the weather is fine today", "THE WEATHER IS FINE TODAY"
    older, newer = COUNTERS
    assert newer.count_text(prose) < 1.6 * older.count_text(prose)
    assert newer.count_text(capitals) > 1.6 * older.count_text(capitals)
