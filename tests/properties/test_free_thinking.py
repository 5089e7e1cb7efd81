"""Guarantee: the reasoning of earlier turns costs nothing where the provider leaves it out of the prompt, and stays in the view."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, ModelConfig
from context_window.models import describe_model
from session.items import AgentHandoff, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.session import Session
from session.usage import Usage
from tests.support.counting import Letters
from tests.support.harness import process
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@pytest.mark.parametrize(
    ("model", "drops"),
    [
        ("claude-3-7-sonnet-20250219", True),
        ("claude-sonnet-4-0", True),
        ("claude-opus-4-1", True),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("claude-haiku-4-5", True),
        ("claude-opus-4-5", False),
        ("claude-sonnet-4-6", False),
        ("claude-opus-5-5", False),
        ("claude-next", False),
        ("o3", True),
        ("gpt-5", True),
        ("gpt-5.4-mini", True),
        ("gpt-5.6", False),
        ("gpt-5.10", False),
        ("gpt-6-sol", False),
        ("gemini-2.5-flash", True),
        ("gemini-3-pro", True),
        ("gemini-3.5-flash", False),
        ("gemini-next", False),
        ("my-own", False),
    ],
)
def test_whose_earlier_reasoning_is_left_out_of_the_prompt(model: str, drops: bool) -> None:
    assert describe_model(model).drops_thinking is drops


THOUGHT = Reasoning("so long a thought " * 10)
ASKED, ANSWERED = Message("user", "What?"), Message("assistant", "That.")
CALL, OUTPUT = FunctionCall("look", "{}", "c"), FunctionCallOutput("look", "seen", "c")


@pytest.mark.parametrize(
    ("items", "is_free"),
    [
        ([ASKED, THOUGHT, ANSWERED], False),  # the turn may go on
        ([ASKED, THOUGHT, ANSWERED, Message("user", "And?")], True),
        ([ASKED, THOUGHT, CALL, OUTPUT], False),  # the model needs it to go on
        ([ASKED, THOUGHT, CALL, OUTPUT, ANSWERED, Message("user", "And?")], True),
        ([ASKED, THOUGHT, CALL, OUTPUT, Message("user", "Hurry!")], False),  # sent together with the output
        ([ASKED, THOUGHT, ANSWERED, Message("user", " ")], False),  # not sent
        ([ASKED, THOUGHT, ANSWERED, Message("user", "a file", category=MessageCategory.CONTEXT)], False),  # a trim may drop it
        ([ASKED, THOUGHT, ANSWERED, AgentHandoff("sales")], False),
    ],
)
def test_a_question_that_ends_the_turn_makes_its_reasoning_free(items: list[Item], is_free: bool) -> None:
    session = Session([replace(item) for item in items])
    full_log = sum(map(cost, items))
    for model, thought in (("claude-sonnet-4-5", cost(THOUGHT) if is_free else 0), ("claude-opus-4-5", 0)):
        manager = ContextWindowManager(model, Letters(), context_window=ContextWindow(max_tokens=100_000))
        assert sum(manager.analyze_session(session)["per_category"].values()) == full_log - thought
        assert manager.process_session(session).items == session.items


def test_reported_reasoning_that_is_in_no_log_leaves_the_prompt_with_its_turn() -> None:
    answered = replace(ANSWERED, usage=Usage(input_tokens=500, output_tokens=300))
    for items, is_free in (([ASKED, answered], False), ([ASKED, answered, Message("user", "And?")], True)):
        for model, drops in (("claude-sonnet-4-5", True), ("claude-opus-4-5", False)):
            manager = ContextWindowManager(model, Letters(), context_window=ContextWindow(max_tokens=100_000))
            session = Session(items)
            total = manager.analyze_session(session)["total_tokens"]
            assert total == manager.plan_session(session).before
            assert (total < 800) is (is_free and drops)


def test_another_model_counts_it_again() -> None:
    session = Session([ASKED, THOUGHT, ANSWERED, Message("user", "And?")])
    manager = ContextWindowManager("claude-sonnet-4-5", Letters(), context_window=ContextWindow(max_tokens=100_000))
    manager.process_session(session)
    before = manager.get_token_usage()["total"]
    manager.use_model("claude-opus-4-5")
    assert manager.get_token_usage()["total"] == before + cost(THOUGHT)


@given(st.data())
def test_free_reasoning_stays_and_costs_nothing(data: st.DataObject) -> None:
    """Free reasoning is in the view or went with its unit, and the view costs what its other items cost"""
    log = data.draw(sessions())
    bounds = replace(data.draw(limits(sum(map(cost, log.items)))), drops_thinking=True, binds_thinking=False)
    outcome = process(log, bounds)
    before = {item.id: decision.before for item, decision in zip(log.items, outcome.plan.decisions, strict=True)}
    after = {item.id: decision.after for item, decision in zip(log.items, outcome.plan.decisions, strict=True)}
    for item in log.items:
        assert before[item.id] in ((0, cost(item)) if isinstance(item, Reasoning) else (cost(item),))
        assert after[item.id] <= before[item.id] or not isinstance(item, Reasoning)
    last = max((position for position, item in enumerate(log.items) if isinstance(item, Message) and item.role == "user"), default=-1)
    assert all(before[item.id] == cost(item) for item in log.items[last + 1 :])


def test_a_request_that_keeps_it_says_so() -> None:
    session = Session([ASKED, THOUGHT, ANSWERED, Message("user", "And?")])
    window = ContextWindow(max_tokens=100_000)
    kept, dropped = (
        ContextWindowManager(ModelConfig("claude-sonnet-4-5", drops_thinking=drops), Letters(), context_window=window).analyze_session(
            session
        )
        for drops in (False, True)
    )
    assert kept["total_tokens"] == dropped["total_tokens"] + cost(THOUGHT)


@pytest.mark.parametrize(("model", "drops"), [("gemini-3-flash-preview", True), ("gemini-3.5-flash", False)])
def test_the_thinking_in_a_calls_signature_leaves_with_its_turn(model: str, drops: bool) -> None:
    """The call stays, in whatever form the view shows it"""
    plain = replace(CALL, arguments='{"text": "' + "so it goes " * 300 + '"}')
    signed = replace(plain, metadata={"thought_signature": "E" * 5_000})
    sealed = (5_000 - 150) * 17 // 80

    def total(session: Session) -> int:
        manager = ContextWindowManager(model, context_window=ContextWindow(max_tokens=10**6))
        return int(manager.analyze_session(session)["total_tokens"])

    for next_items, left in (([], sealed), ([Message("user", "And?")], 0 if drops else sealed)):
        with_thinking, without = (Session([ASKED, call, OUTPUT, ANSWERED, *next_items]) for call in (signed, plain))
        assert total(with_thinking) - total(without) == left
    manager = ContextWindowManager(model, context_window=ContextWindow(max_tokens=1_500))
    session = Session([ASKED, signed, OUTPUT, ANSWERED])
    assert manager.process_session(session).items != session.items  # trimmed with the thinking in it
    session.append(Message("user", "And?"))
    assert total(manager.process_session(session)) == manager.get_token_usage()["total"]
