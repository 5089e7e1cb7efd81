"""Client exceptions converted to our errors: by status and words, without importing the client, in one line."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ModelAccessError, ModelError, ModelNetworkError, ModelOverloadedError, ModelRateLimitError, PromptTooLongError
from context_window.requests.client_errors import model_error, too_long

KINDS = [ModelError, ModelRateLimitError, ModelOverloadedError, ModelAccessError, ModelNetworkError, PromptTooLongError]


class APIError(Exception):
    """A stand-in for the exception of Anthropic's client, with the attributes that we read."""

    def __init__(self, message: object = "", body: object = None, status_code: object = None, headers: object = None) -> None:
        super().__init__(message)
        self.body, self.status_code = body, status_code
        self.response = type("Response", (), {"headers": headers})()


class APITimeoutError(APIError):
    pass


APIConnectionError = type("APIConnectionError", (APIError,), {})


def error_body(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


# Errors


@pytest.mark.parametrize("kind", KINDS)
def test_errors_survive_pickling(kind: type[ModelError]) -> None:
    error = kind("busy", 429, "rate_limit_error", "req_1", 2.5)
    for received in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(received) is kind
        assert (str(received), vars(received)) == (str(error), vars(error))


def test_the_figures_of_a_prompt_survive_pickling() -> None:
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
        (APIError("x", error_body("rate_limit_error", "slow down"), 429), ModelRateLimitError),
        (APIError("x", error_body("overloaded_error", "Overloaded"), 200), ModelOverloadedError),
        (APIError("x", None, 503), ModelOverloadedError),
        (APIError("x", "<html>", 401), ModelAccessError),
        (APIError("x", error_body("billing_error", "pay"), 400), ModelAccessError),
        (APIError("x", {"error": "text"}, 418), ModelError),
        (APIError("x", error_body("invalid_request_error", "prompt is too long"), 400), PromptTooLongError),
        (APIError("x", None, 413), PromptTooLongError),
        (APIError("no status"), ModelNetworkError),
        (APIConnectionError("no route"), ModelNetworkError),
    ],
)
def test_status_and_message_decide_the_kind_of_error(raised: Exception, expected: type[ModelError]) -> None:
    assert type(model_error(raised)) is expected


@pytest.mark.parametrize("raised", [ValueError("x"), KeyError("y"), TypeError("stream() got an unexpected keyword argument"), OSError("z")])
def test_faults_in_the_program_are_not_model_errors(raised: Exception) -> None:
    assert model_error(raised) is None


@pytest.mark.parametrize(
    ("header", "seconds"), [("3", 3.0), ("0.5", 0.5), ("soon", None), ("-1", None), ("nan", None), ("1e9", None), (None, None)]
)
def test_the_time_to_wait_is_kept_if_it_is_valid(header: str | None, seconds: float | None) -> None:
    error = model_error(APIError("x", error_body("rate_limit_error", "slow"), 429, {"retry-after": header}))
    assert error is not None
    assert error.retry_after == seconds


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.text(), JSON | st.builds(error_body, st.text(), st.text()), JSON, st.none() | st.dictionaries(st.just("retry-after"), JSON))
def test_any_exception_becomes_one_short_line(message: str, body: Any, status: Any, headers: Any) -> None:
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
def test_figures_in_a_message_are_read(message: str, figures: tuple[int | None, int | None] | None) -> None:
    assert too_long(message) == figures
