"""What a client raised, as an error of ours: told without the client, in one line, whatever it holds. And what a turn's calls are."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import (
    BudgetError,
    FunctionCall,
    FunctionCallOutput,
    Message,
    MessageCategory,
    ModelAccessError,
    ModelError,
    ModelNetworkError,
    ModelOverloadedError,
    ModelRateLimitError,
    PromptTooLongError,
    Session,
)
from context_window.refusals import model_error, too_long
from tests.support.looping import add, manager

KINDS = [ModelError, ModelRateLimitError, ModelOverloadedError, ModelAccessError, ModelNetworkError, PromptTooLongError]


class APIError(Exception):
    """As Anthropic's client has it, as far as it is looked at."""

    def __init__(self, message: object = "", body: object = None, status_code: object = None, headers: object = None) -> None:
        super().__init__(message)
        self.body, self.status_code = body, status_code
        self.response = type("Response", (), {"headers": headers})()


class APITimeoutError(APIError):
    pass


APIConnectionError = type("APIConnectionError", (APIError,), {})


def said(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


# Errors


@pytest.mark.parametrize("kind", KINDS)
def test_errors_come_whole_from_other_processes(kind: type[ModelError]) -> None:
    error = kind("busy", 429, "rate_limit_error", "req_1", 2.5)
    for received in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(received) is kind
        assert (str(received), vars(received)) == (str(error), vars(error))


def test_the_figures_of_a_prompt_come_along() -> None:
    error = PromptTooLongError("too long", 400, tokens=9, limit=8)
    received = pickle.loads(pickle.dumps(error))
    assert (received.tokens, received.limit) == (9, 8)


def test_an_error_says_what_happened_and_what_to_do() -> None:
    error = ModelRateLimitError("Too many requests.", 429, "rate_limit_error", retry_after=20)
    assert str(error) == (
        "the model did not answer (HTTP 429 rate_limit_error): Too many requests. It asks to wait 20 s. "
        "Wait, then go on with the session as it is."
    )
    assert str(ModelNetworkError("no route")) == (
        "the model did not answer: no route. Check the network and the base URL, then go on with the session as it is."
    )


# Refusals


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (APIError("x", said("rate_limit_error", "slow down"), 429), ModelRateLimitError),
        (APIError("x", said("overloaded_error", "Overloaded"), 200), ModelOverloadedError),
        (APIError("x", None, 503), ModelOverloadedError),
        (APIError("x", "<html>", 401), ModelAccessError),
        (APIError("x", said("billing_error", "pay"), 400), ModelAccessError),
        (APIError("x", {"error": "text"}, 418), ModelError),
        (APIError("x", said("invalid_request_error", "prompt is too long"), 400), PromptTooLongError),
        (APIError("x", None, 413), PromptTooLongError),
        (APIError("no status"), ModelNetworkError),
        (APIConnectionError("no route"), ModelNetworkError),
    ],
)
def test_status_and_words_tell_what_it_is(raised: Exception, expected: type[ModelError]) -> None:
    assert type(model_error(raised)) is expected


@pytest.mark.parametrize("raised", [ValueError("x"), KeyError("y"), TypeError("stream() got an unexpected keyword argument"), OSError("z")])
def test_a_fault_in_the_program_is_none(raised: Exception) -> None:
    assert model_error(raised) is None


@pytest.mark.parametrize(
    ("header", "seconds"), [("3", 3.0), ("0.5", 0.5), ("soon", None), ("-1", None), ("nan", None), ("1e9", None), (None, None)]
)
def test_how_long_to_wait_is_told_where_it_makes_sense(header: str | None, seconds: float | None) -> None:
    error = model_error(APIError("x", said("rate_limit_error", "slow"), 429, {"retry-after": header}))
    assert error is not None
    assert error.retry_after == seconds


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.text(), JSON | st.builds(said, st.text(), st.text()), JSON, st.none() | st.dictionaries(st.just("retry-after"), JSON))
def test_whatever_came_it_is_one_short_line(message: str, body: Any, status: Any, headers: Any) -> None:
    error = model_error(APIError(message, body, status, headers))
    assert isinstance(error, ModelError)
    assert len(str(error)) < 1_200
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("message", "figures"),
    [
        ("prompt is too long: 1,208,310 tokens > 1,000,000 maximum", (1_208_310, 1_000_000)),
        ("messages: Prompt is too long", (None, None)),
        ("input length and `max_tokens` exceed context limit: 5 + 9 > 8, decrease", (5, 0)),
        ("input length and max_tokens exceed context limit", (None, None)),
        ("ValidationException: Input is too long for requested model.", (None, None)),
        ("max_tokens: 99 > 64, which is the maximum allowed", None),
        ("the image is too long", None),
        ("prompt is too long: " + "9" * 100_000 + " tokens > 1 maximum", (None, None)),
    ],
)
def test_what_a_message_says_of_the_length(message: str, figures: tuple[int | None, int | None] | None) -> None:
    assert too_long(message) == figures


# A turn's calls


def test_calls_are_counted_since_the_last_user_message() -> None:
    limits = manager(max_tool_calls_per_turn=2)
    session = Session([Message("user", "Hi"), FunctionCall("a", "{}", "1"), FunctionCallOutput("a", "x", "1")])
    assert (limits.tool_calls(session).used, limits.tool_calls(session).left) == (1, 1)
    session.append(FunctionCall("a", "{}", "2"))
    session.append(FunctionCall("a", "{}", "3"))
    session.append(Message("user", "a passage", category=MessageCategory.CONTEXT))  # it begins no turn
    assert (limits.tool_calls(session).used, limits.tool_calls(session).left) == (3, 0)
    session.append(Message("user", "Next."))
    assert (limits.tool_calls(session).used, limits.tool_calls(session).left) == (0, 2)
    assert limits.tool_calls(Session()).used == 0


def test_only_sessions_have_calls() -> None:
    with pytest.raises(BudgetError):
        manager().tool_calls(3)  # type: ignore[arg-type]


def test_tools_that_a_loop_brings_count_from_then_on() -> None:
    limits, session = manager(), Session([Message("user", "Hi")])
    limits.process_session(session)
    without = limits.get_token_usage()["overhead"]
    limits.count_tools([add])
    limits.process_session(session)
    assert limits.get_token_usage()["overhead"] > without
    assert limits.get_token_usage()["overhead"] == manager(tools=[add]).analyze_session(session)["overhead_tokens"]
    limits.count_tools([])
    limits.process_session(session)
    assert limits.get_token_usage()["overhead"] > without
