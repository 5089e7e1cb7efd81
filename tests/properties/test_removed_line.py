"""The line about removed items: true, counted, the same until something is removed, and only if it is wanted."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, ContextWindow, ContextWindowManager, Reason
from context_window.counting.counter import TokenCounter
from context_window.counting.overhead import note_tokens
from context_window.counting.select import select_counter
from context_window.models import describe_model
from context_window.settings import budget
from session.items import Message
from session.providers.openai_chat import to_openai_chat
from session.removed import ID_LENGTH, MAX_COUNT, Removed
from session.session import Session
from tests.support.carried_out import carried_out
from tests.support.counting import Letters
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost

UNTOLD = (Reason.ORPHAN, Reason.COMPACTED, Reason.REPLACED_PROMPT, Reason.BOUND_REASONING)
COUNTERS = [Letters(), *(select_counter(None, describe_model(name))[0] for name in ("gpt-4o", "claude-sonnet-4-5"))]
IDS = st.one_of(st.from_regex(rf"[A-Za-z0-9_.-]{{1,{ID_LENGTH}}}", fullmatch=True), st.text(min_size=1))


@given(st.data())
def test_the_line_is_true(data: st.DataObject) -> None:
    """It tells of the items that the plan drops, except orphans, bound reasoning, replaced instructions, and what left for a summary. An
    item that was removed before a summary stood for it may be counted. A plan that is applied gives the same line"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        removed = outcome.view.removed
        assert removed == outcome.plan.removed == carried_out(outcome.plan, log).removed
        dropped = [decision for decision in outcome.plan if decision.action is Action.DROP]
        ids = [decision.item_id for decision in dropped if decision.reason not in UNTOLD]
        summarised = [decision.item_id for decision in dropped if decision.reason is Reason.COMPACTED]
        event(f"a line: {removed is not None}, summarised: {bool(summarised)}")
        if not bounds.note_removed:
            assert removed is None
        elif summarised:
            assert len(ids) <= (removed.count if removed else 0) <= len(ids) + len(summarised)
        else:
            assert removed == (Removed(len(ids), ids[0], ids[-1]) if ids else None)


@given(st.data())
def test_a_view_of_a_view_has_one_line(data: st.DataObject) -> None:
    """It adds what the second view removed to what the first one had lost; a limit that forbids the line leaves the first one as it is"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), note_removed=True)
    first = process(log, bounds).view
    smaller = replace(bounds, budget=max(1, bounds.budget // 2), trigger=max(1, bounds.trigger // 2), target=bounds.target // 2)
    for note_removed in (True, False):
        outcome = process(first, replace(smaller, note_removed=note_removed))
        later, earlier = outcome.view.removed, first.removed
        dropped = [decision.reason for decision in outcome.plan if decision.action is Action.DROP]
        if Reason.COMPACTED in dropped:
            continue  # items removed before a summary stood for them may be counted
        newly = sum(reason not in UNTOLD for reason in dropped) * note_removed
        assert (later.count if later else 0) == (earlier.count if earlier else 0) + newly
        if not newly:
            assert later == earlier
        event(f"earlier: {earlier is not None}, newly: {newly > 0}")


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@given(count=st.integers(1, MAX_COUNT), first=IDS, last=IDS)
def test_no_line_costs_more_than_is_reserved(counter: TokenCounter, count: int, first: str, last: str) -> None:
    """Whatever the ids are"""
    assert counter.count_text(Removed(count, first, last).line) <= note_tokens(counter)


@pytest.mark.parametrize("counter", COUNTERS[1:], ids=lambda counter: counter.name)
def test_with_ids_of_our_own_it_costs_at_most_40_tokens_on_average(counter: TokenCounter) -> None:
    draw = Random(0)
    lines = [Removed(draw.randrange(2, 9_999), *(draw.randbytes(6).hex() for _ in range(2))).line for _ in range(500)]
    assert sum(map(counter.count_text, lines)) <= 40 * len(lines)


def conversation(turns: int) -> Session:
    log = Session(id="s")
    for turn in range(turns):
        log.add_message("user", f"question {turn} " + "x" * 200, f"u{turn}")
        log.add_message("assistant", f"answer {turn} " + "y" * 200, f"a{turn}")
    log.add_message("user", "And now?", "last")
    return log


def managed(tokens: int, **fields: bool) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=tokens, **fields))  # type: ignore[arg-type]


def test_the_model_is_told_by_default_and_not_if_it_is_not_wanted() -> None:
    view = managed(3_000).process_session(conversation(30))
    assert view.removed is not None
    assert to_openai_chat(view)[0] == {"role": "user", "content": view.removed.line}
    assert view.removed.first == "u0"
    quiet = managed(3_000, note_removed=False).process_session(conversation(30))
    assert quiet.removed is None
    assert "removed" not in str(to_openai_chat(quiet))


def test_a_small_window_has_no_line() -> None:
    note = note_tokens(Letters()) + 4
    assert managed(20 * note).process_session(conversation(30)).removed is not None
    assert managed(20 * note - 1).process_session(conversation(30)).removed is None


def test_what_is_counted_is_at_least_what_is_sent() -> None:
    manager, log = managed(3_000), conversation(30)
    view = manager.process_session(log)
    request = sum(4 + len(str(message["content"])) for message in to_openai_chat(view))
    assert request <= manager.usage().total <= request + note_tokens(Letters())
    assert manager.usage().total <= 3_000


@given(st.integers(1, 12))
def test_the_request_extends_the_one_before_until_something_is_removed(turns: int) -> None:
    manager, log = managed(3_000), Session(id="s")
    before: list[object] = []
    was_removed = None
    for item in conversation(turns * 5).items[:-1]:
        log.append(item)
        if isinstance(item, Message) and item.role == "assistant":
            continue
        view = manager.process_session(log)
        request: list[object] = list(to_openai_chat(view))
        if view.removed == was_removed:
            assert request[: len(before)] == before
        before, was_removed = request, view.removed


def test_an_id_that_the_line_shows_by_its_hash_can_be_recalled() -> None:
    manager, log = managed(3_000), Session(id="s")
    for item in conversation(30).items:
        log.append(replace(item, id=f"a long id with spaces {item.id}"))
    view = manager.process_session(log)
    assert view.removed is not None
    line = view.removed.line
    first, last = line.removesuffix("]").split("recall ids ")[1].split(" to ")
    for source in (log, view):
        assert manager.recall(source, first) is log.items[0]
        assert manager.recall(source, last) is log.get_by_id(view.removed.last)


def test_the_line_is_in_the_smallest_window_where_that_is_asked_for() -> None:
    with patch.object(budget, "NOTE_PART", 0):
        assert managed(500).process_session(conversation(30)).removed is not None
