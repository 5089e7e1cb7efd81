"""Which counter counts, in one place: what the user passed, else the best that is there for the model.

The order, each step where the one before it is not to be had:

1. the counter that was passed;
2. `ctok`, for Claude's models, where it is installed (`pip install 'context-window-manager[claude]'`, Python 3.12 or later);
3. tiktoken: for OpenAI's models before 4o their own vocabulary, where tiktoken has it in its cache; else o200k, which ships with
   the package, times the ratio that the model's family has to it;
4. four characters a token, where tiktoken cannot be loaded: then the installation is broken.

Where something is installed and does not work, the statistics, the displays and an event say so.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from .counting.counter import CallableCounter, CharacterCounter, CheckedCounter, TokenCounter, expected_error_of
from .counting.ctok_counter import CtokCounter, ctok_counter, has_ctok
from .counting.images import seed_image_tokens
from .counting.tiktoken_counter import TiktokenCounter, default_counter
from .counting.vocabulary import CACHED, O200K, has_encoding, o200k
from .errors import BudgetError, ContextWindowError
from .models import Model

CTOK_VERSIONS = {7: "3.0", 11: "4.7", 6: "4.8"}
"""Generations of Claude's tokenizer by the frame of a request, in tokens: each has its own."""

UNKNOWN_ERROR = 0.15
"""By what part o200k is usually off for models of which nothing is known: as for those that are known and neither Claude's nor OpenAI's."""

STAND_IN_ERROR = 0.10
"""By what part o200k is taken to be off for models before 4o: an allowance, not measured, and too small for Asian scripts."""

OURS = (TiktokenCounter, CharacterCounter, CallableCounter, CheckedCounter, CtokCounter)
"""Their answers are counts; they need no check."""


class Choice(NamedTuple):
    """A counter, and why it is this one.

    Attributes:
        counter: What counts.
        expected_error: By what part of its counts it is usually off; 0 where that is not known.
        problem: Why it is not the counter that it should have been; empty where it is.
    """

    counter: TokenCounter
    expected_error: float
    problem: str = ""


def choose_counter(given: TokenCounter | Callable[[str], int] | None, model: Model | None) -> Choice:
    """The counter for a model.

    Args:
        given: What the user passed.
        model: The model; None where nothing is known of it.

    Raises:
        BudgetError: What the user passed is no counter.
    """
    if given is not None:
        counter = _taken(given, model)
        return Choice(counter, expected_error_of(counter))
    version = CTOK_VERSIONS.get(model.frame) if model is not None and model.family == "claude" else None
    problem = ""
    if model is not None and version is not None and has_ctok():
        try:
            ctok = ctok_counter(version, model.image_rule)
            ctok.count_text("a")
        except Exception as error:  # noqa: BLE001 - another one's package, which may be of another version than we know
            problem = f"ctok is installed and does not count: {type(error).__name__}"
        else:
            return Choice(ctok, ctok.expected_error)
    try:
        o200k()
    except (ImportError, ContextWindowError) as error:  # whatever tiktoken's compiled part lacks comes as an ImportError
        return Choice(CharacterCounter(), CharacterCounter.expected_error, f"the vocabulary cannot be loaded: {error}")
    rule, ratio, usual = (
        (seed_image_tokens, Fraction(1), UNKNOWN_ERROR) if model is None else (model.image_rule, model.token_ratio, model.expected_error)
    )
    own = _vocabulary(model)
    if has_encoding(own):
        return Choice(default_counter(rule, ratio, own), usual, problem)
    return Choice(default_counter(rule, ratio), max(usual, STAND_IN_ERROR), problem)


def _vocabulary(model: Model | None) -> str:
    """The vocabulary of an OpenAI model; for all others o200k."""
    if model is None or model.family != "openai":
        return O200K
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.name.rpartition("/")[2])
    except KeyError:
        return O200K
    return name if name in CACHED else O200K


def _taken(given: TokenCounter | Callable[[str], int], model: Model | None) -> TokenCounter:
    if type(given) in OURS:
        return given  # type: ignore[return-value]
    if isinstance(given, type):
        raise BudgetError("token_counter", given, f"this is the class; pass a counter, {given.__name__}(…)")
    if isinstance(given, TokenCounter):
        return CheckedCounter(given)
    if not callable(given):
        raise BudgetError(
            "token_counter",
            given,
            "pass a function of a text that gives its tokens, such as `lambda text: len(encoding.encode(text))`, or a TokenCounter",
        )
    return CallableCounter(given, model.image_rule) if model is not None else CallableCounter(given)
