"""What the money bought: lifetimes against a slow twin, re-reads, the replay, and the tables."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.display.glyphs import ASCII, UNICODE
from context_window.display.lines import line_width, plain
from context_window.display.timeline import cents_of
from context_window.display.why import why_lines
from context_window.timeline.lifetimes import Lifetimes
from context_window.timeline.prefix_sums import PrefixSums
from context_window.timeline.why import Why
from session import FunctionCall, FunctionCallOutput, Message, Session, Usage
from tests.support.shell import Shell

WORDS = "The quick brown fox jumps over the lazy dog. "
NOON = datetime(2026, 3, 25, 12, tzinfo=UTC).timestamp()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50))), st.floats(0, 600))
def test_prefix_sums_are_sums(changes: list[tuple[int, int]], amount: float) -> None:
    sums, numbers = PrefixSums(10, 0), [0] * 10
    for index, number in changes:
        sums.add(index, number - numbers[index])
        numbers[index] = number
    assert [sums.first(count) for count in range(11)] == [sum(numbers[:count]) for count in range(11)]
    assert sums.find(amount) == max(count for count in range(11) if sum(numbers[:count]) <= amount)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 7), st.integers(0, 40)),
        st.tuples(st.just("charge"), st.lists(st.integers(0, 100), min_size=3, max_size=3), st.integers(0, 30)),
    ),
    max_size=25,
)


@given(STEPS)
def test_a_lifetime_cost_is_the_sum_over_requests(steps: list[tuple[str, Any, int]]) -> None:
    """Each token costs the price of its region, in each request that its item stayed in: the slow twin lays every token out."""
    prices = (0.1, 1.25, 1.0)
    lifetimes, now, costs, total, overhead_cost, requests = Lifetimes(8), [0] * 8, [0.0] * 8, 0.0, 0.0, [0] * 8
    for kind, value, number in steps:
        if kind == "put":
            lifetimes.put(value, number)
            now[value] = number
            continue
        layout: list[int | None] = [*([None] * number), *(item for item, tokens in enumerate(now) for _ in range(tokens))]
        first, second = min(value[0], len(layout)), min(value[0] + value[1], len(layout))
        regions = [(first, prices[0]), (second - first, prices[1]), (len(layout) - second, prices[2])]
        overhead_cost += lifetimes.charge(regions, number, 1.0)
        for position, item in enumerate(layout):
            price = prices[0] if position < first else prices[1] if position < second else prices[2]
            total += price
            if item is not None:
                costs[item] += price
        requests = [count + (tokens > 0) for count, tokens in zip(requests, now, strict=True)]
    for item in range(8):
        lifetimes.settle(item)
    assert lifetimes.costs == pytest.approx(costs, abs=1e-9)
    assert overhead_cost + sum(costs) == pytest.approx(total, abs=1e-9)
    assert lifetimes.requests == requests


def session_of(turns: int, *, model: str = "claude-opus-4-6") -> Session:
    """A session that reads a file every turn, cached as Anthropic does: what the request before had is read, the rest written."""
    log = Session()
    log.metadata["model"] = model
    log.append(Message("user", "Read them all.", created_at=NOON))
    cached = 0
    for turn in range(turns):
        prompt = 800 + 1_300 * turn  # a call and its output cost about 1,270 tokens
        usage = Usage(cache_read_tokens=cached, cache_write_tokens=prompt - cached, output_tokens=40)
        path = f"src/{turn % 3}.py"
        log.append(FunctionCall("Read", json.dumps({"file_path": path}), f"c{turn}", created_at=NOON + turn, usage=usage))
        log.append(FunctionCallOutput("Read", WORDS * 100, f"c{turn}", created_at=NOON + turn))
        cached = prompt
    return log


def why_of(log: Session, budget: int | None = None) -> Why:
    window = None if budget is None else ContextWindow(max_tokens=budget, keep_first_message=True)
    return ContextWindowManager("claude-opus-4-6", context_window=window).why(log)


class TestWhy:
    def test_the_parts_sum_to_the_money_and_files_read_again_are_named(self) -> None:
        why = why_of(session_of(9))
        assert sum(why.parts.values(), Decimal(0)) == why.timeline.spent.cost > 0
        assert why.parts["not explained"] == 0
        assert why.parts["answers"] == Decimal(9 * 40 * 25) / 1_000_000
        (tool,) = why.tools
        assert (tool.name, tool.calls) == ("Read", 9)
        assert {(file.path, file.reads, file.same) for file in why.rereads} == {(f"src/{number}.py", 3, 2) for number in range(3)}
        assert why.items[0].requests == 8  # the output of the first call was in all later requests

    def test_an_older_item_costs_more_than_an_equal_newer_one(self) -> None:
        why = why_of(session_of(9))
        costs = [item.cost for item in why.items if item.what.startswith("Read output: ")]
        assert costs == sorted(costs, reverse=True)
        assert len(set(costs)) == len(costs)

    def test_a_stated_price_is_divided_in_proportion_and_one_without_a_list_is_not_explained(self) -> None:
        from context_window.timeline import reports_of_items

        log = session_of(4)
        reports = reports_of_items(log)
        stated = replace(reports, by_item={id: replace(request, cost=Decimal("0.5")) for id, request in reports.by_item.items()})
        why = ContextWindowManager("claude-opus-4-6").why(log, stated)
        assert sum(why.parts.values(), Decimal(0)) == 2
        assert why.parts["not explained"] == 0
        unknown = replace(stated, by_item={id: replace(request, model="nobody-1") for id, request in stated.by_item.items()})
        assert ContextWindowManager("claude-opus-4-6").why(log, unknown).parts["not explained"] == 2

    def test_a_log_without_reports_has_no_money(self) -> None:
        log = Session()
        log.append(Message("user", "hi"))
        log.append(Message("assistant", "Hello."))
        why = ContextWindowManager().why(log)
        assert sum(why.parts.values(), Decimal(0)) == 0


HIDDEN = 700
"""Tokens of each prompt that are in no log."""
READ, WRITE, ANSWER = Decimal("0.5"), Decimal("6.25"), Decimal(25)
"""Prices of the model, in US dollars a million tokens."""


def counted_log(turns: int, words: int) -> Session:
    """A log whose reported prompts cost its local count and the overhead that is in no log."""
    log, bare, cached = Session(metadata={"model": "claude-opus-4-6"}), Session(), 0
    log.append(Message("user", "Read them all.", created_at=NOON))
    bare.append(log.items[0])
    manager = ContextWindowManager("claude-opus-4-6", context_window=ContextWindow(max_tokens=10**6))
    for turn in range(turns):
        prompt = HIDDEN + manager.analyze_session(bare)["total_tokens"]
        usage = Usage(cache_read_tokens=cached, cache_write_tokens=prompt - cached, output_tokens=40)
        call = FunctionCall("Read", json.dumps({"file_path": f"{turn}.py"}), f"c{turn}", created_at=NOON + turn)
        output = FunctionCallOutput("Read", WORDS * words, f"c{turn}", created_at=NOON + turn)
        for item in (call, output):
            bare.append(item)
        log.append(replace(call, usage=usage))
        log.append(output)
        cached = prompt
    return log


def overhead_of(has_line: bool) -> int:
    """Return what a view costs besides its items, by the local count."""
    session = Session([Message("user", WORDS * 40) for _ in range(30 if has_line else 1)])
    plan = ContextWindowManager("claude-opus-4-6", context_window=ContextWindow(max_tokens=4_000)).plan_session(session)
    assert (plan.removed is not None) == has_line
    return plan.overhead


class TestSavings:
    def test_views_that_fit_would_have_saved_nothing(self) -> None:
        savings = why_of(session_of(9)).savings
        assert savings.trims == 0
        assert savings.saved == Decimal(0)
        assert savings.managed_prompt_tokens == savings.prompt_tokens

    def test_views_under_a_budget_stay_below_it_and_save_in_a_long_session(self) -> None:
        savings = why_of(session_of(60), 12_000).savings
        assert savings.trims > 3
        assert savings.largest <= 12_000
        assert 0 < savings.saved < savings.cost

    @pytest.mark.parametrize(("words", "budget"), [(100, 4_000), (100, 12_000), (8, 2_000)])
    def test_the_replay_costs_what_its_views_would_have(self, words: int, budget: int) -> None:
        """Each view is read from the cache as far as it has the items of the one before it, in the same form, and no line before them that
        is new; the rest is written. 700 tokens of each prompt are in no log."""
        log, views = counted_log(40, words), ContextWindowManager("claude-opus-4-6", context_window=ContextWindow(max_tokens=budget))
        tokens, price, before, costs, removed = 0, Decimal(0), 0, dict[str, int](), None
        session, altered = Session(metadata=log.metadata), False
        for item in log.items:
            if isinstance(item, FunctionCall):
                plan, usage = views.plan_session(session), item.usage
                assert usage is not None
                fixed = HIDDEN + overhead_of(plan.removed is not None)
                now = {decision.item_id: decision.after for decision in plan}
                altered = altered or bool(plan.changes)
                prompt = fixed + sum(now.values()) if altered else usage.total_input
                changed = next((index for index, (name, size) in enumerate(costs.items()) if now[name] != size), None)
                kept = before if changed is None else fixed + sum(list(now.values())[:changed])
                cached = min(usage.cache_read_tokens, fixed if plan.removed != removed else kept, prompt, before)
                price += cached * READ + (prompt - cached) * WRITE + usage.output_tokens * ANSWER
                tokens, before, costs, removed = tokens + prompt, prompt, now, plan.removed
            session.append(item)
        assert altered
        savings = ContextWindowManager("claude-opus-4-6", context_window=ContextWindow(max_tokens=budget)).why(log).savings
        assert savings.managed_prompt_tokens == tokens
        assert savings.managed_cost == price / 1_000_000
        assert savings.saved == savings.cost - price / 1_000_000

    def test_a_single_trim_at_the_end_costs_more_than_it_saves(self) -> None:
        """A trim breaks the cache: what stays in the view is written again."""
        log = session_of(12)
        largest = max(point.total for point in ContextWindowManager("claude-opus-4-6").timeline(log).points[:-1])
        savings = why_of(log, largest - 300).savings
        assert savings.trims == 1
        assert savings.saved < 0


class TestTables:
    @pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
    @pytest.mark.parametrize("width", [20, 40, 80, 120])
    def test_lines_fit_any_width(self, width: int, glyphs: Any) -> None:
        lines = why_lines(why_of(session_of(9), 4_000), "log.jsonl", width, glyphs)
        assert max(map(line_width, lines)) <= width
        assert "\n".join(map(plain, lines)).isascii() or glyphs is UNICODE

    def test_the_command_has_both_forms(self, shell: Shell, tmp_path: Path) -> None:
        path = tmp_path / "session.json"
        path.write_text(json.dumps(session_of(9).to_dict()))
        code, out, _ = shell("timeline", path, "--why", "--max-tokens", 4_000)
        assert code == 0
        assert "Files read again" in out
        assert "Views under a budget of 4,000 tokens" in out
        code, out, _ = shell("timeline", path, "--why", "--max-tokens", 4_000, "--json")
        values = json.loads(out)
        assert code == 0
        assert sum(Decimal(part) for part in values["why"]["parts"].values()) == Decimal(values["spent"]["cost_usd"])
        managed = values["why"]["managed"]
        assert Decimal(managed["cost_usd"]) - Decimal(managed["managed_cost_usd"]) == Decimal(managed["saved_usd"])


@given(st.lists(st.none() | st.decimals(0, 100, places=5), max_size=6))
def test_prices_of_a_column_have_as_many_digits(costs: list[Decimal | None]) -> None:
    """And none that costs something is shown as nothing."""
    texts = cents_of(costs)
    assert len({len(text.partition(".")[2]) for text in texts if text != "unknown"}) <= 1
    for cost, text in zip(costs, texts, strict=True):
        assert (text == "unknown") == (cost is None)
        assert not cost or float(text.lstrip("<")) > 0 or cost < Decimal("0.00005")
