"""The exceptions: their messages, their attributes, and pickling."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from context_window import (
    AnthropicModel,
    ArgumentError,
    BudgetError,
    ClientError,
    ContextOverflowError,
    ContextWindow,
    ContextWindowError,
    ContextWindowManager,
    CountingError,
    ModelArgumentError,
    OverBudget,
    RecallError,
    Session,
    ThresholdCrossed,
    ToolsError,
    Trimmed,
    UnknownModelError,
    WindowEvent,
)
from context_window.errors import Culprit

CULPRIT = Culprit("i1", "Read output", 12_000, "pinned")

SAID = [
    (
        ContextOverflowError(13_000, 12_500, [CULPRIT]),
        (
            "what must be kept needs 13,000 tokens, 500 more than the budget of 12,500. Largest: Read output i1 (12,000 tokens: pinned). "
            "Shorten or unpin one of these, or use a larger window."
        ),
    ),
    (
        ContextOverflowError(13, 12, []),
        (
            "what must be kept needs 13 tokens, 1 more than the budget of 12. "
            "Largest: overhead (13 tokens: tools, instructions and other parts of the request outside its items). "
            "Send fewer or shorter tools and instructions, or allow more tokens."
        ),
    ),
    (
        ContextOverflowError(30_000, 12_500, [CULPRIT], 18_000),
        (
            "what must be kept needs 30,000 tokens, 17,500 more than the budget of 12,500. "
            "Largest: overhead (18,000 tokens: tools, instructions and other parts of the request outside its items); "
            "Read output i1 (12,000 tokens: pinned). Send fewer or shorter tools and instructions, or allow more tokens."
        ),
    ),
    (
        ContextOverflowError(13_500, 12_500, [CULPRIT], 1_500),
        (
            "what must be kept needs 13,500 tokens, 1,000 more than the budget of 12,500. "
            "Largest: Read output i1 (12,000 tokens: pinned). Shorten or unpin one of these, or use a larger window."
        ),
    ),
    (BudgetError("max_tokens", 0, "pass 1 or more"), "max_tokens=0: pass 1 or more"),
    (
        UnknownModelError("gtp-5", ["gpt-5", "gpt-5-pro"]),
        (
            "the context window of model 'gtp-5' is not known. Did you mean gpt-5 or gpt-5-pro? "
            "Pass max_tokens=…, the tokens that its prompt may have."
        ),
    ),
    (
        UnknownModelError("mine"),
        ("the context window of model 'mine' is not known. Pass max_tokens=…, the tokens that its prompt may have."),
    ),
    (RecallError("x1", "nothing has it"), "recall id 'x1': nothing has it"),
    (CountingError("len", -1), "the token counter 'len' returned -1; it must return a whole number of tokens, 0 or more"),
]


@pytest.mark.parametrize(("error", "message"), SAID)
def test_messages(error: ContextWindowError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize("error", [error for error, _ in SAID])
def test_errors_survive_pickling(error: ContextWindowError) -> None:
    for received in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(received) is type(error)
        assert str(received) == str(error)
        assert vars(received) == vars(error)


def test_figures_are_carried() -> None:
    overflow = ContextOverflowError(5, 3, [CULPRIT], 2)
    assert (overflow.needed, overflow.budget, overflow.culprits, overflow.overhead) == (5, 3, (CULPRIT,), 2)
    assert ContextOverflowError(5, 3, [CULPRIT]).overhead == 0
    assert (BudgetError("f", 1, "p").field, BudgetError("f", 1, "p").value, BudgetError("f", 1, "p").problem) == ("f", 1, "p")
    assert (UnknownModelError("m", ["n"]).model, UnknownModelError("m", ["n"]).alike) == ("m", ("n",))
    assert (CountingError("c", "a").counter, CountingError("c", "a").answer) == ("c", "a")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ContextWindowManager(5), ModelArgumentError),
        (lambda: AnthropicModel("sk-ant-1", "claude-sonnet-5-5"), ClientError),
        (lambda: ContextWindowManager(tools="read_file"), ToolsError),
        (lambda: ContextWindowManager().request(Session(), "mistral", model="m"), ArgumentError),  # type: ignore[arg-type]
        (lambda: ContextWindowManager(max_tokens=-1), BudgetError),
    ],
    ids=["model", "client", "tools", "provider", "limit"],
)
def test_an_error_is_named_for_what_is_wrong(call: Callable[[], object], error: type[ArgumentError]) -> None:
    with pytest.raises(ArgumentError) as caught:
        call()
    assert type(caught.value) is error


def test_only_the_three_largest_are_named() -> None:
    message = str(ContextOverflowError(9, 1, [Culprit(f"i{n}", "user message", 9 - n, "pinned") for n in range(5)]))
    assert [f"i{n}" in message for n in range(5)] == [True, True, True, False, False]


def test_an_overflow_names_the_overhead() -> None:
    """Ten large tools and a short question: the overhead is the problem, not an item."""
    tools = [{"name": f"tool_{n}", "description": "What it does. " * 100, "input_schema": {"type": "object"}} for n in range(10)]
    window = ContextWindow(max_tokens=1_000, strict=True)
    manager, session = ContextWindowManager("claude-sonnet-4-5", context_window=window, tools=tools), Session()
    session.add_message("user", "Hi")
    with pytest.raises(ContextOverflowError) as caught:
        manager.process_session(session)
    overflow, usage = caught.value, manager.get_token_usage()
    assert overflow.overhead == usage["overhead"] == overflow.needed - usage["DIALOG"]
    assert f"Largest: overhead ({overflow.overhead:,} tokens: tools" in str(overflow)
    assert "fewer or shorter tools" in str(overflow)
    assert "npin" not in str(overflow)


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    ["x" * 1_000_000, [["x" * 100] * 100] * 100, Unspeakable(), 10**4000, [10**5000]],
    ids=["text", "lists", "repr", "int", "large"],
)
def test_a_wrong_value_is_repeated_in_few_words(value: Any) -> None:
    """The value may be a whole transcript, or an object whose `repr` raises."""
    for error in (BudgetError("f", value, "p"), CountingError("c", value), UnknownModelError(value), RecallError(value, "p")):
        assert len(str(error)) < 2000


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (WindowEvent("s", 80, 200), "context window at 40% capacity (80/200 tokens)"),
        (ThresholdCrossed("s", 1999, 2000, 0.9), "context window at 99% capacity (1,999/2,000 tokens), above 90%"),
        (Trimmed("s", 100, 200, 1, 1), "context window at 50% capacity (100/200 tokens), trimmed 1 item: 1 token freed"),
        (
            Trimmed("s", 100, 200, 1200, 5000),
            "context window at 50% capacity (100/200 tokens), trimmed 1,200 items: 5,000 tokens freed",
        ),
        (
            OverBudget("s", 2100, 2000),
            (
                "context window at 105% capacity (2,100/2,000 tokens), over budget by 100 tokens: the items that must be kept take 2,100. "
                "Shorten or unpin some of them, or allow more tokens: the smallest sensible budget is 2,700 tokens"
            ),
        ),
        (
            OverBudget("s", 32_751, 8_000, overhead=32_670),
            (
                "context window at 409% capacity (32,751/8,000 tokens), over budget by 24,751 tokens: the overhead is 32,670 of them "
                "(tools, instructions and other parts of the request outside its items). Send fewer or shorter tools and instructions, or "
                "allow more tokens: the smallest sensible budget is 41,000 tokens"
            ),
        ),
    ],
)
def test_events_say_how_full_the_window_is(event: WindowEvent, message: str) -> None:
    assert str(event) == message
    assert pickle.loads(pickle.dumps(event)) == event
    with pytest.raises(AttributeError):
        event.tokens = 0  # type: ignore[misc]
