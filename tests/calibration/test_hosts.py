"""Guarantee: bounds hold where a router changes the host behind a model, once each was seen. Without names, nothing changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session.items import Message
from session.session import Session
from session.usage import Usage
from tests.support.counting import Letters

FACTORS = st.dictionaries(st.sampled_from("abc"), st.integers(1_000, 1_040), min_size=2)
"""By host, thousandths that it counts for a local token."""


def totals(log: Session) -> list[int]:
    """The total before each answer, after the first."""
    manager = ContextWindowManager("gemini-3-pro", token_counter=Letters(), context_window=ContextWindow(max_tokens=10**6))
    session, found = Session(), []
    for item in log.items:
        if item.role == "assistant" and session.items[1:]:  # type: ignore[union-attr]
            found.append(manager.get_token_usage(session)["total"])
        session.append(item)
    return found


def log_of(factors: dict[str, int], hosts: list[str], *, named: bool = True) -> tuple[Session, list[int]]:
    """A log whose answers come from these hosts, and the cost of each request after the first."""
    log, costs, local = Session(), [], 0
    for number, host in enumerate(hosts):
        log.append(Message("user", "q" * (8_000 if number == 0 else 36), id=f"q{number}"))
        local += len(log.items[-1].text) + 4  # type: ignore[union-attr]
        costs.append(local * factors[host] // 1_000)
        log.append(Message("assistant", "a", usage=Usage(costs[-1], 0, 0, 1), extra={"host": host} if named else {}, id=f"a{number}"))
        local += 5
    return log, costs[1:]


@given(FACTORS, st.data())
def test_a_change_of_host_is_covered_once_each_host_was_seen(factors: dict[str, int], data: st.DataObject) -> None:
    names = sorted(factors)
    hosts = [*names, *data.draw(st.lists(st.sampled_from(names), min_size=3, max_size=12))]
    log, costs = log_of(factors, hosts)
    bounds = totals(log)[len(names) - 1 :]
    assert all(bound >= cost for bound, cost in zip(bounds, costs[len(names) - 1 :], strict=True))
    assert all(
        bound - cost <= cost * (max(factors.values()) - min(factors.values()) + 60) // 1_000
        for bound, cost in zip(bounds, costs[len(names) - 1 :], strict=True)
    )


@given(st.lists(st.just("a"), min_size=2, max_size=8), st.integers(1_000, 1_040))
def test_one_host_is_as_none(hosts: list[str], factor: int) -> None:
    assert totals(log_of({"a": factor}, hosts)[0]) == totals(log_of({"a": factor}, hosts, named=False)[0])
