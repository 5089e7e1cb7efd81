"""Each item is counted once. Tokenizers are what costs time; all else here is sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.counting.item_tokens import Measurer
from session.items import FunctionCallOutput, Item
from session.parts import Part
from session.session import Session
from tests.support.counting import Letters
from tests.support.engine import output_placeholder
from tests.support.harness import copy_of
from tests.support.strategies import sessions
from tests.support.twin import cost


class Recording(Letters):
    """Remembers the texts that it counted."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: Counter[str] = Counter()
        self.parts: Counter[int] = Counter()

    def count_text(self, text: str) -> int:
        self.texts[text] += 1
        return super().count_text(text)

    def count_part(self, part: Part) -> int:
        self.parts[id(part)] += 1
        return super().count_part(part)

    def asked_of(self) -> tuple[Counter[str], Counter[int]]:
        """Each text and part asked about, and how often. Not the tries at cutting a text: they are made for every new room."""
        return Counter({text: times for text, times in self.texts.items() if "characters taken out here" not in text}), self.parts


@contextmanager
def attempts_ignored(counter: Recording) -> Iterator[None]:
    """Leave out the counts made while the length of a truncation is searched: attempts are made for every new room. So is each call
    that is cleared: its cost is counted before it is decided."""

    def unrecorded(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            texts, parts = counter.texts.copy(), counter.parts.copy()
            try:
                return method(*arguments)
            finally:
                counter.texts, counter.parts = texts, parts

        return call

    methods: Any = {name: unrecorded(getattr(Measurer, name)) for name in ("_cut", "_cleared_call_tokens")}
    with patch.multiple(Measurer, **methods):
        yield


QUESTIONS = ("process", "trim", "plan", "plan one shot", "analyze", "usage of the view", "usage of the log", "other manager")


def ask(question: str, managers: list[ContextWindowManager], log: Session) -> list[Session]:
    """Calls a method of the manager; the views that it gave."""
    manager, other = managers
    match question:
        case "process":
            return [manager.process_session(log)]
        case "trim":
            return [manager.trim_session(log)]
        case "plan":
            manager.plan_session(log)
        case "plan one shot":
            manager.plan_session(log, one_shot=True)
        case "analyze":
            manager.analyze_session(log)
        case "usage of the view":
            view = manager.process_session(log)
            manager.usage(view)
            return [view]
        case "usage of the log":
            manager.format_token_usage(log)
        case _:
            return [other.process_session(log)]
    return []


@given(st.data())
def test_counted_once(data: st.DataObject) -> None:
    """Each item object is tokenised once per counter, whatever is called how often"""
    full_log = data.draw(sessions(max_steps=12))
    tokens = sum(map(cost, full_log.items))
    budgets = [max(1, tokens * data.draw(st.integers(20, 110)) // 100) for _ in range(2)]
    counter = Recording()
    managers = [ContextWindowManager(token_counter=counter, context_window=ContextWindow(max_tokens=budget)) for budget in budgets]
    # The contents of the manager's own requests (tool definitions and the like) is no item's.
    counter.texts.clear()
    log = copy_of(full_log)
    seen: dict[int, Item] = {}
    with attempts_ignored(counter):
        for item in full_log.items:
            log.append(item)
            for question in data.draw(st.lists(st.sampled_from(QUESTIONS), max_size=2)):
                for view in ask(question, managers, log):
                    seen.update((id(entry), entry) for entry in view.items)
        for question in QUESTIONS * 2:
            for view in ask(question, managers, log):
                seen.update((id(entry), entry) for entry in view.items)
    seen.update((id(entry), entry) for entry in log.items)

    once = Recording()
    measurer = Measurer(once)
    for item in seen.values():
        measurer.measure(item)
        if isinstance(item, FunctionCallOutput):
            once.texts[output_placeholder(item)] += 1  # what clearing it would cost
    event(f"changed items: {len(seen) > len(log.items)}")
    (texts, parts), (texts_once, parts_once) = counter.asked_of(), once.asked_of()
    assert texts - texts_once == Counter()
    assert parts - parts_once == Counter()


@given(st.data())
def test_asked_again_it_counts_nothing(data: st.DataObject) -> None:
    """A call that is made again counts nothing: what a cut costs is known too, and what reports need besides."""
    log = data.draw(sessions(max_steps=12))
    budget = max(1, sum(map(cost, log.items)) * data.draw(st.integers(20, 110)) // 100)
    counter = Recording()
    manager = ContextWindowManager(token_counter=counter, context_window=ContextWindow(max_tokens=budget))
    for question in QUESTIONS[:-1]:
        for _ in range(2):
            before = counter.asked
            ask(question, [manager, manager], log)
        if question not in ("trim", "plan one shot"):  # one-shot forms decide again at every call, and may look for a cut again
            assert counter.asked == before, question
