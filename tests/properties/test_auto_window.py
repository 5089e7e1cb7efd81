"""`max_tokens="auto"`: where a window that is chosen by prices trims, and how far."""

from __future__ import annotations

from math import isqrt

import pytest

from context_window import BudgetError, ContextWindow, ContextWindowManager, Extract, Session
from context_window.models import KEPT
from context_window.settings.budget import LIFETIMES, REWRITE, auto_window, resolve_budget
from tests.support.counting import Letters
from tests.support.engine import AutoWindow, Engine, Limits
from tests.support.twin import cost

KEEP = 400


def grown(steps: int, size: int = 100) -> Session:
    """A log in which each request is larger by the same number of tokens."""
    log = Session()
    log.add_message("user", "a" * size, "task", 0.0)
    for number in range(steps):
        log.add_message("assistant", "b" * (size // 2), f"answer {number}", 0.0)
        log.add_message("user", "c" * (size // 2), f"question {number}", 0.0)
    return log


@pytest.mark.parametrize("rewrite", [0, 300, 1_150])
def test_a_trim_comes_where_the_formula_says(rewrite: int) -> None:
    """Above what is protected, what is kept and the step; then the view goes down to the first two."""
    log = Session()
    full = grown(200)
    limits = Limits(10**6, 10**6, 10**6 * 65 // 100, ContextWindow().shares.exact, auto=AutoWindow(KEEP, rewrite, 300.0))
    engine = Engine(log, limits)
    for item in full.items:
        log.append(item)
        outcome = engine.process(log)
        if outcome.plan.changes:
            break
    total = sum(map(cost, log.items))
    answers = [number for number, item in enumerate(log.items) if item.id.startswith("answer")]
    growth = sum(map(cost, log.items[answers[0] :])) // len(answers)
    protected = sum(map(cost, log.items[answers[-1] :]))
    threshold = protected + KEEP + max(KEEP, isqrt(2 * KEEP * growth * rewrite // 100))
    assert threshold < total <= threshold + 2 * growth
    assert outcome.total <= protected + KEEP + 2 * growth


def test_prices_decide() -> None:
    """Writing anew costs 11.5 times reading at Anthropic, and less where writes cost nothing extra; without prices, as at Anthropic."""
    windows = {name: auto_window(resolve_budget(name, None, ContextWindow(max_tokens="auto"))) for name in ("claude-sonnet-4-6", "gpt-5")}
    assert windows["claude-sonnet-4-6"] == AutoWindow(KEPT, 1_150, LIFETIMES["claude"])
    assert windows["gpt-5"].rewrite == 900
    assert auto_window(resolve_budget(None, Letters(), ContextWindow(max_tokens="auto"))).rewrite == REWRITE


def test_a_window_is_a_number_or_auto() -> None:
    with pytest.raises(BudgetError, match="max_tokens"):
        ContextWindow(max_tokens="large")  # type: ignore[arg-type]
    assert ContextWindow(max_tokens="auto").max_tokens == "auto"


def test_a_target_ratio_below_its_room_takes_the_place_of_extracts_room() -> None:
    """It does something with every strategy."""
    log = Session()
    log.add_message("user", "Read all files.")
    for number in range(60):
        call = log.add_function_call("read_file", {"path": f"src/file_{number}.py"})
        log.add_function_output(
            "read_file", "\n".join(f"value_{number}_{line} = make_{number * line}()" for line in range(12)), call.call_id
        )
    totals = []
    for ratio in (0.3, 0.5):
        window = ContextWindow(max_tokens=6_000, strategy=Extract(), target_ratio=ratio)
        manager = ContextWindowManager(token_counter=Letters(), context_window=window)
        sizes = []
        for end in range(100, len(log.items) + 1, 2):
            manager.process_session(Session(log.items[:end]))
            sizes.append(manager.get_token_usage()["total"])
        totals.append(sum(sizes))
    assert totals[0] < 0.95 * totals[1]
