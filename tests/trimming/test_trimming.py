"""Logs that random ones seldom are, each at many budgets: the fold must agree with its slow twin at each item."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import settings

from session.items import AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.parts import Image
from session.session import Session
from tests.support.checks import check_sums
from tests.support.engine import Engine, Limits, cleared
from tests.support.harness import copy_of
from tests.support.twin import Facts, cost, fold, folds

BUDGETS = 40 if settings().max_examples >= 1_000 else 6 if settings().max_examples >= 100 else 3
"""Budgets of a log in one test. Tests of the same log begin at different budgets, so that together they try ten times as many."""
IMAGES_KEPT = (0, 1, 3, 8, 99)
SHARES = (Fraction("0.1"), Fraction("0.35"), Fraction("0.5"), Fraction("0.05"))


def picture(width: int) -> Image:
    return Image(url="u", width=width, height=10)


def call(name: str, category: MessageCategory = MessageCategory.SYSTEM_OUTPUT) -> FunctionCall:
    return FunctionCall("tool", "{}", name, id=f"call {name}", category=category)


def output(name: str, *content: str | Image) -> FunctionCallOutput:
    return FunctionCallOutput("tool", content, name, id=f"output {name}")


def said(role: str, *content: str | Image, **more: object) -> Message:
    return Message(role, content, **more)  # type: ignore[arg-type]


def late(category: MessageCategory) -> list[Item]:
    """An answer comes late to a unit with images that was dropped: cleared before, or, in other categories, as it was."""
    return [
        said("user", "go"),
        Reasoning("hm", signature="s"),
        call("a", category),
        call("b", category),
        output("a", picture(150), "x" * 300, picture(90)),
        said("user", "well?", picture(80)),
        Reasoning("so", signature="s"),
        said("assistant", "y" * 120),
        said("user", "go on"),
        said("assistant", "y" * 60),
        said("user", "more", picture(70), *map(picture, range(1, 5))),
        said("assistant", "z" * 40),
        output("b", picture(60), "late" * 20),
        said("user", "and now?", picture(50)),
        said("assistant", "fine"),
        said("user", "thanks"),
        said("assistant", "bye"),
    ]


def as_large_as_its_placeholder(name: str) -> FunctionCallOutput:
    """An output whose placeholder would cost as much, so that clearing it gains nothing."""
    outputs = (output(name, "x" * size) for size in range(999))
    return next(entry for entry in outputs if cost(entry) == cost(cleared(entry)))


LOGS: dict[str, list[Item]] = {
    "outputs that cost what their placeholders cost": [
        said("user", "go"),
        call("a"),
        as_large_as_its_placeholder("a"),
        call("b"),
        output("b", "x" * 200),
        said("assistant", "so"),
        said("user", "well?"),
        call("c"),
        as_large_as_its_placeholder("c"),
        said("assistant", "fine"),
        said("user", "bye"),
    ],
    "an answer comes late to a unit that was cleared and dropped": late(MessageCategory.SYSTEM_OUTPUT),
    "an answer comes late to a unit that was dropped as it was": late(MessageCategory.CONTEXT),
    "two answers come late, in turn": [
        said("user", "go"),
        call("a"),
        call("b"),
        call("c"),
        said("assistant", "x" * 200),
        said("user", "well?"),
        call("d"),
        output("d", "y" * 200),
        output("a", "z" * 90),
        said("assistant", "x" * 100),
        output("c", "z" * 90),
        said("user", "thanks"),
        said("assistant", "x" * 80),
        said("user", "bye"),
    ],
    "images in protected items, and in others": [
        said("system", "rules"),
        said("user", picture(40), category=MessageCategory.SYSTEM),
        said("user", "a", picture(60), picture(30)),
        said("assistant", "ok"),
        said("user", picture(90), pinned=True),
        call("a"),
        call("b"),
        output("a", picture(120), "x" * 90),
        FunctionCallOutput("tool", (picture(70),), "b", id="output b", pinned=True),
        said("assistant", "ok"),
        said("assistant", picture(45), extra={"summary": True}),
        said("user", "b", picture(20)),
        said("assistant", "ok"),
        said("user", "c", picture(10)),
    ],
    "an image that costs less than its placeholder, in an output that was passed over": [
        said("user", "go"),
        call("a"),
        output("a", "a", Image(url="https://example.org/a.png", width=1, height=10), "b"),
        call("b"),
        output("b", "x" * 800),
        said("assistant", "ok" * 40),
        said("user", "well?"),
        call("c"),
        output("c", "x" * 600),
        said("assistant", "so"),
        said("user", "and?" * 60, picture(1)),
        said("assistant", "y" * 90),
        said("user", "on"),
        said("assistant", "y" * 90),
        said("user", "bye"),
    ],
    "summaries of summaries, of parts of units, and of what the model is about to read": [
        said("user", "a" * 50, id="a"),
        Reasoning("t", signature="s", id="t"),
        call("x"),
        output("x", "x" * 99),
        said("assistant", "b" * 50, id="b"),
        Compaction("s" * 30, ("a", "call x"), id="first"),
        said("user", "c" * 50, id="c"),
        said("assistant", "d" * 50, id="d"),
        Compaction("s" * 20, ("first", "t", "call x", "output x", "b", "c", "d"), id="second"),
        said("assistant", "e" * 50, id="e"),
        said("user", "f" * 50, id="f"),
        said("assistant", "g" * 50, id="g"),
    ],
    "a summary of a unit in the frontier, whose reasoning has gone before": [
        said("user", "go"),
        said("system", "rules", id="rules"),
        Reasoning("hm", signature="s", id="hm"),
        said("assistant", "ok"),
        call("a"),
        call("b"),
        said("user", "well?"),
        Compaction("s" * 20, ("hm", "call a", "call b"), id="summary"),
        said("system", "new rules"),
        said("assistant", "so"),
        said("user", "bye"),
    ],
    "an answer comes late to a unit that a summary stands for, and another summary to the answer": [
        said("user", "go"),
        call("a"),
        call("b"),
        output("a", "x" * 50),
        said("assistant", "ok"),
        said("user", "well?"),
        Compaction("s" * 20, ("call a", "call b", "output a"), id="first"),
        said("assistant", "so"),
        said("user", "on"),
        said("assistant", "on"),
        output("b", "y" * 50),
        said("user", "and?"),
        Compaction("s" * 20, ("output b",), id="second"),
        said("assistant", "fine"),
        said("user", "bye"),
    ],
    "the last user message of one category after that of another, each passed over by a trim": [
        said("user", "a" * 60),
        said("assistant", "b" * 300),
        said("system", "c"),
        said("assistant", "d"),
        said("system", "c"),
        said("assistant", "d" * 20),
        said("user", "e" * 20, category=MessageCategory.SYSTEM_OUTPUT),
        said("assistant", "f" * 300),
        said("system", "g"),
        said("assistant", "h" * 20),
        said("user", "i"),
    ],
    "a handoff after context that stood alone in the user's turn": [
        said("user", "go"),
        call("a"),
        output("a", "x" * 200),
        said("assistant", "y" * 30),
        said("user", "z" * 120, category=MessageCategory.CONTEXT),
        AgentHandoff("b"),
        said("user", "well?", category=MessageCategory.CONTEXT),
    ],
    "a question after context and a blank message": [
        said("user", "go"),
        call("a"),
        said("user", "z" * 60, category=MessageCategory.CONTEXT),
        said("user", "\r"),
        said("user", "well?"),
    ],
    "a pinned output after images of its unit were replaced": [
        said("user", "go"),
        call("a"),
        call("b"),
        call("c"),
        output("a", picture(150), picture(200), picture(9)),
        FunctionCallOutput("tool", ("kept",), "b", pinned=True, id="output b"),
        output("c", picture(100), "x" * 100),
    ],
    "reasoning before and after what changes": [
        said("user", "go"),
        Reasoning("one", signature="s"),
        call("a"),
        output("a", "x" * 400),
        Reasoning("two", signature="s", pinned=True),
        call("b"),
        output("b", "y" * 400),
        Reasoning("three", signature="s"),
        said("assistant", "so"),
        said("developer", "new rules"),
        Reasoning("four", signature="s"),
        said("assistant", "ok"),
        said("user", "bye"),
    ],
}

FACTS: dict[str, Facts] = {name: {} for name in LOGS}
"""By log: what the twin has computed of it. Folds by other limits share it."""


@pytest.mark.parametrize("binds_thinking", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize("images_kept", IMAGES_KEPT)
@pytest.mark.parametrize("name", LOGS)
def test_the_fold_agrees_with_its_twin(name: str, images_kept: int, *, binds_thinking: bool) -> None:
    items, facts = LOGS[name], FACTS[name]
    total = sum(map(cost, items))
    step = max(1, total // BUDGETS)
    first = 1 + step * (2 * IMAGES_KEPT.index(images_kept) + binds_thinking) // (2 * len(IMAGES_KEPT))
    for budget in range(first, total + 20, step):
        bounds = Limits(
            budget, budget, budget * 2 // 3, SHARES, images_kept, images_kept, preamble=9, synthetic=5, binds_thinking=binds_thinking
        )
        log = copy_of(Session(id="s"))
        engine = Engine(log, bounds)
        for item, twin in zip(items, folds(items, bounds, facts), strict=True):
            log.append(item)
            outcome = engine.process(log)
            assert list(outcome.view.items) == twin.view()
            assert outcome.total == twin.total()
            check_sums(outcome)


@pytest.mark.parametrize("percent", [pytest.param(10, marks=pytest.mark.long), 50, pytest.param(65, marks=pytest.mark.long), 100])
@pytest.mark.parametrize("name", LOGS)
def test_the_fold_agrees_with_its_twin_if_items_are_too_many(name: str, percent: int) -> None:
    """At every number of items, so that some leave a category exactly its share."""
    items, facts = LOGS[name], FACTS[name]
    shares = (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    for most in range(1, len(items)):
        target = max(1, most * percent // 100)
        bounds = Limits(9_999, 9_999, 9_999, shares, 9, 9, items_max=most, items_target=target)
        log = copy_of(Session(id="s"))
        engine = Engine(log, bounds)
        for item, twin in zip(items, folds(items, bounds, facts), strict=True):
            log.append(item)
            assert list(engine.process(log).view.items) == twin.view()


@pytest.mark.parametrize("name", LOGS)
def test_the_fold_agrees_with_its_twin_if_a_view_is_used_as_a_log(name: str) -> None:
    """Wherever the view ended: at the request points before that nothing is decided, at that one and after it all is."""
    items = LOGS[name]
    budget = sum(map(cost, items)) // 3
    bounds = Limits(budget, budget, budget * 2 // 3, SHARES, 1, 1)
    for settled in range(len(items) + 1):
        log = Session(items, id="s")
        log.restore_seams(frozenset(), settled)
        assert list(Engine(log, bounds).process(log).view.items) == fold(log, bounds, FACTS[name]).view()
