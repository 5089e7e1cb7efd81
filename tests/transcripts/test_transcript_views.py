"""The main task on every real transcript: usage adds up, views fit, and no protected item is lost.

`tests.support.checks` checks the promises from the items alone, independently of the planner's code.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from context_window import ContextWindow, ContextWindowManager
from context_window.counting import default_counter
from context_window.counting.item_tokens import Measurer
from session.items import Item, Message
from session.providers import validate_anthropic
from session.session import Session
from session.units import request_points
from tests.support.checks import check_kept, check_oldest_first, check_pairs, check_subsequence, free_tokens, protected
from tests.support.recordings import account_of
from tests.support.shared import TRANSCRIPTS, needs_transcripts

pytestmark = needs_transcripts

BUDGET_COUNT = int(os.environ.get("CONTEXT_WINDOW_BUDGETS", "0"))
"""Use this many budgets instead of four: `CONTEXT_WINDOW_BUDGETS=40 pytest tests/transcripts/test_transcript_views.py`."""
BUDGET_RATIOS = tuple((step + 1) / (BUDGET_COUNT + 1) for step in range(BUDGET_COUNT)) or (0.10, 0.25, 0.50, 0.90)
SYSTEM_PROMPT = "You are a careful assistant that reads before it writes and says what it did. " * 125
"""About 2,000 tokens."""

FILES = sorted(path for folder in ("claude_code", "claude_code_fixtures") for path in (TRANSCRIPTS / folder).rglob("*.jsonl"))


def sessions(path: Path) -> tuple[Session, ...]:
    return tuple(session for session in account_of(path).sessions if session.items)


def with_system_prompt(session: Session) -> Session:
    longer = Session([Message("system", SYSTEM_PROMPT, id="system prompt", created_at=0.0), *session.items], id=session.id)
    longer.restore_seams(session.response_breaks, 0)
    return longer


def cost(item: Item) -> int:
    return Measurer(default_counter()).measure(item).tokens


@pytest.mark.parametrize("prompt", [False, pytest.param(True, marks=pytest.mark.long)], ids=["as it is", "with a system prompt"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name[:12]}/{path.stem[:12]}")
def test_every_transcript_fits_after_trimming(path: Path, prompt: bool) -> None:
    for session in sessions(path):
        log = with_system_prompt(session) if prompt else session
        manager = ContextWindowManager()
        stats = manager.analyze_session(log)
        report = manager.usage().to_dict()
        assert sum(row["tokens"] for row in report["categories"].values()) + report["overhead"] == report["total"] == stats["total_tokens"]
        saved = json.dumps(log.to_dict())
        for part in BUDGET_RATIOS:
            check_views(log, max(1, int(part * stats["total_tokens"])), coverage=None)
        check_views(log, max(1, stats["total_tokens"] // 2), coverage=0.95)
        assert json.dumps(log.to_dict()) == saved


def goes_by_no_age(item: Item) -> bool:
    """True for the user's messages, which may be the task beside a summary, and for what loaded tools."""
    return (isinstance(item, Message) and item.role == "user") or "loaded_tools" in item.extra


def check_views(log: Session, budget: int, *, coverage: float | None) -> None:
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=budget, coverage=coverage))
    for make in (manager.process_session, manager.trim_session):
        view = make(log)
        usage = manager.get_token_usage()
        check_subsequence(log, view)
        check_kept(log, view)
        check_pairs(log, view)
        check_oldest_first(log, view, excused=goes_by_no_age)
        if coverage is None:  # otherwise it includes the provider's reports
            assert usage["total"] == usage["overhead"] + sum(map(cost, view.items))
        if usage["total"] > budget:
            assert manager.analyze_session(view)["over_budget"]
            assert free_tokens(log, view, cost) == 0
            protected_ids = {log.items[position].id for position in protected(list(log.items), log.response_breaks)}
            assert {item.id for item in view.items} <= protected_ids
        if request_points(log)[-1] == len(log.items):
            assert validate_anthropic(view.to_anthropic_messages()) == []


def test_how_often_protected_items_are_too_large(record_property: Callable[[str, object], None]) -> None:
    """Record how often it happens. It is the exception: a session of some length fits in a quarter of its size."""
    counts: Counter[str] = Counter()
    for log in (session for path in FILES for session in sessions(path)):
        size = ContextWindowManager(context_window=ContextWindow(coverage=None)).analyze_session(log)["total_tokens"]
        for part in BUDGET_RATIOS:
            manager = ContextWindowManager(context_window=ContextWindow(max_tokens=max(1, int(part * size)), coverage=None))
            fits = not manager.analyze_session(manager.process_session(log))["over_budget"]
            counts[f"{part:.0%} {'fits' if fits else 'over budget'}"] += 1
            assert fits or part < 0.25 or len(log.items) < 20
    for name, count in sorted(counts.items()):
        record_property(name, count)
    assert any("over budget" in name for name in counts), "no transcript shows what happens then"
