"""Guarantee: compaction. A log is managed before every request, with summarisers of every kind."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Compaction, ContextWindow, ContextWindowManager, Message, Session, Strategy, Summarize
from context_window.strategies import PriorityTrim
from session.providers.anthropic import to_anthropic, validate_anthropic
from session.providers.google import to_google, validate_google
from session.providers.openai_chat import to_openai_chat, validate_openai_chat
from session.providers.openai_responses import to_openai_responses, validate_openai_responses
from session.units import is_answer, request_points
from tests.support.checks import check_kept, check_pairs, check_subsequence
from tests.support.counting import Letters
from tests.support.harness import copy_of
from tests.support.strategies import sessions
from tests.support.twin import cost, is_summary

ANSWERS = st.sampled_from((*("x", "s" * 30) * 5, "s" * 300, "s" * 3000, "", None, RuntimeError("no"), "the prompt"))
STRATEGIES: st.SearchStrategy[Strategy] = st.sampled_from((PriorityTrim(), PriorityTrim(), Summarize(0), Summarize(4)))


class DrawnSummariser:
    """A summariser that returns drawn values and counts its prompts."""

    def __init__(self, data: st.DataObject, window: int | None) -> None:
        self.window = window
        self.asked = 0
        self._data = data

    async def __call__(self, prompt: str) -> Any:
        self.asked += 1
        assert self.window is None or len(prompt) <= self.window
        answer = self._data.draw(ANSWERS)
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return prompt if answer == "the prompt" else answer


@given(st.data())
def test_compaction(data: st.DataObject) -> None:
    """whatever summariser is asked, a managed log only grows by summaries where no response goes on; its view keeps what views
    keep, is valid, and is no further over the budget than trimming alone; originals are recalled; a second call adds nothing; a cold
    fold agrees"""
    source = data.draw(sessions())
    tokens = max(1, sum(map(cost, source.items)) * data.draw(st.sampled_from((20, 40, 60, 80))) // 100)
    window = ContextWindow(
        max_tokens=tokens,
        max_context_items=data.draw(st.sampled_from((None, None, 5, 20))),
        keep_recent_turns=data.draw(st.sampled_from((0, 0, 1, 1, 2, 3))),
        strategy=data.draw(STRATEGIES),
    )
    llm = DrawnSummariser(data, data.draw(st.sampled_from((None, None, 2500, 4000))))
    edits = data.draw(st.lists(st.integers(0, len(source.items)), max_size=2))
    asyncio.run(_run(source, window, llm, edits))


async def _run(source: Session, window: ContextWindow, llm: DrawnSummariser, edits: list[int]) -> None:
    manager, log = ContextWindowManager(token_counter=Letters(), context_window=window), copy_of(source)
    points = {*request_points(source)[-4:], *edits}
    for position, item in enumerate([*source.items, None]):
        if position in points:
            before = list(log.items)
            view = await manager.manage(log, llm)
            _check(manager, log, before, view, window)
            prompts_before, length = llm.asked, len(log.items)
            again = await manager.manage(log, llm)
            assert (list(again.items), llm.asked, len(log.items)) == (list(view.items), prompts_before, length)
        if item is not None:
            log.append(item)
    for original in source.items:
        assert manager.recall(log, original.id) is original
    summaries = [item for item in log.items if isinstance(item, Compaction) and source.get_by_id(item.id) is None]
    event(f"summaries: {min(len(summaries), 3)}")
    event(f"failed: {llm.asked > len(summaries)}")


def _check(manager: ContextWindowManager, log: Session, before: list[Any], view: Session, window: ContextWindow) -> None:
    assert list(log.items)[: len(before)] == before
    added = list(log.items)[len(before) :]
    assert len(added) <= 1
    for summary in added:
        assert isinstance(summary, Compaction)
        assert not is_answer(before[-1]) or isinstance(before[-1], Message)
        pinned = {item.id for item in before if item.pinned or item.category.value == "SYSTEM"}
        assert pinned.isdisjoint(summary.replaces)
        assert {item.id for item in before} >= set(summary.replaces)
        assert summary in view.items
        assert _cold(before, log, window).get_token_usage()["total"] >= manager.get_token_usage()["total"] or _fits(manager, window)
        visible_summaries = [item for item in view.items if is_summary(item) and not item.pinned and item.id != summary.id]
        assert not any(isinstance(item, Compaction) and item.id in summary.replaces for item in visible_summaries)
    check_subsequence(log, view)
    check_kept(log, view)
    check_pairs(log, view)
    if added:
        cold = ContextWindowManager(token_counter=Letters(), context_window=window)
        assert list(cold.process_session(log).items) == list(view.items)
    if any(is_summary(item) for item in view.items):
        request = to_anthropic(view)
        assert not request.messages or validate_anthropic(request) == []
        contents = to_google(view)
        assert not contents.contents or validate_google(contents) == []
        assert validate_openai_chat(to_openai_chat(view)) == []
        assert validate_openai_responses(to_openai_responses(view)) == []


def _cold(items: list[Any], log: Session, window: ContextWindow) -> ContextWindowManager:
    """Return a manager that has trimmed the log as it was before the summary."""
    manager = ContextWindowManager(token_counter=Letters(), context_window=window)
    manager.process_session(Session.showing(log, items, breaks=log.response_breaks, settled=0))
    return manager


def _fits(manager: ContextWindowManager, window: ContextWindow) -> bool:
    assert isinstance(window.max_tokens, int)
    return manager.get_token_usage()["total"] <= window.max_tokens
