"""The benchmark of managed sessions against a simulated provider."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from context_window.counting.item_tokens import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter
from session import Session
from session.items import Message
from session.usage import Usage
from tests.support.shared import ROOT

BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not part of the installed package")


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("managed_accuracy")


def test_the_simulated_count_is_no_multiple_of_the_librarys(benchmark: Any) -> None:
    measurer = Measurer(TiktokenCounter())
    texts = ("It was a bright cold day in April. " * 50, "x_1 = foo(bar)[0]\n    y += 12345\n" * 50, "9876543210 " * 50)
    ratios = [benchmark.tokens_of(item) / measurer.measure(item).tokens for item in (Message("user", text) for text in texts)]
    assert max(ratios) > 1.5 * min(ratios)


@pytest.mark.parametrize("on_items", [True, False])
def test_requests_are_replayed_under_the_budget_without_the_recorded_usage(benchmark: Any, on_items: bool) -> None:
    session = Session()
    for number in range(12):
        session.append(Message("user", f"question {number} " * 100))
        session.append(Message("assistant", "an answer " * 100, usage=Usage(1)))
    requests = list(benchmark.replayed(session, "tool", False, benchmark.UNSEEN + 1_500, on_items=on_items))
    assert len(requests) == 11
    assert any(request.is_trimmed for request in requests)
    assert all(benchmark.UNSEEN < request.cost < benchmark.UNSEEN + 3_000 for request in requests)
    assert [request.bound >= request.cost for request in requests[1:]] == [True] * 10
