"""Selects the counter for a model. The first available one of this list is used:

1. the counter that the caller passed;
2. `ctok`, for Claude models, if it is installed (`pip install 'context-window[claude]'`, Python 3.12 or later);
3. tiktoken. OpenAI models before 4o use their own vocabulary if tiktoken has it in its cache. All other models use o200k, which
   ships with the package: Gemini with the text split as Gemini splits it, Claude with a weight for each token (`claude_weights.py`);
4. four characters per token, if tiktoken cannot be loaded. The installation is broken then.

If a package is installed but does not work, the statistics, the displays and an event report it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ..errors import ArgumentError, ContextWindowError
from ..models import ModelFacts
from .counter import AnyCounter, CallableCounter, CharacterCounter, CheckedCounter, TokenCounter, counting_function, expected_error_of
from .ctok_counter import CtokCounter, ctok_counter, has_ctok
from .gigatoken_counter import GigatokenCounter
from .tiktoken_counter import TiktokenCounter, default_counter
from .vocabulary import CLAUDE, CLAUDE_HIGH, GEMINI, O200K, OLDER

CTOK_VERSIONS = {7: "3.0", 11: "4.7", 6: "4.8"}
"""Generation of Claude's tokenizer by the tokens of a request's frame: each generation has a frame of its own."""

STANDARD_RATIO = Fraction("1.17")
"""Claude's tokens per token of o200k up to 4.6; later models have more."""

UNKNOWN_ERROR = 0.15
"""Usual error of o200k for unknown models: the same as for known models that are neither Claude's nor OpenAI's."""

STAND_IN_ERROR = 0.10
"""Assumed error of o200k for OpenAI models before 4o. An allowance, not a measurement, and too small for Asian scripts."""

TRUSTED_COUNTERS = (TiktokenCounter, CharacterCounter, CallableCounter, CheckedCounter, CtokCounter, GigatokenCounter)
"""Our own counters. Their results need no check."""


class SelectedCounter(NamedTuple):
    """A counter, its usual error as a fraction of its counts (0 if unknown), and why the preferred counter is not used, if so."""

    counter: TokenCounter
    expected_error: float
    problem: str = ""


def select_counter(custom: AnyCounter | None, model: ModelFacts | None) -> SelectedCounter:
    """Return the counter for a model: the one that the caller passed, or a selected one. Raises ArgumentError if that is none."""
    if custom is not None:
        counter = _as_counter(custom, model)
        return SelectedCounter(counter, expected_error_of(counter))
    version = CTOK_VERSIONS.get(model.frame) if model is not None and model.family == "claude" else None
    problem = ""
    if model is not None and version is not None and has_ctok():
        try:
            ctok = ctok_counter(version, model.image_rule)
            ctok.count_text("a")
        except Exception as error:  # noqa: BLE001 - a third-party package, perhaps of a version that we do not know
            problem = f"ctok is installed but fails to count: {type(error).__name__}"
        else:
            return SelectedCounter(ctok, ctok.expected_error)
    try:
        return SelectedCounter(*_tiktoken_counter(model), problem)
    except (ImportError, ContextWindowError) as error:  # a broken compiled part of tiktoken raises ImportError
        return SelectedCounter(CharacterCounter(), CharacterCounter.expected_error, f"the vocabulary cannot be loaded: {error}")


def _tiktoken_counter(model: ModelFacts | None) -> tuple[TiktokenCounter, float]:
    """Return tiktoken's counter for a model, and its usual error."""
    if model is None:
        return default_counter(), UNKNOWN_ERROR
    try:
        return default_counter(model.image_rule, Fraction(1), vocabulary_of(model)), model.expected_error
    except ArgumentError:  # an older vocabulary that is not in tiktoken's cache
        return default_counter(model.image_rule), max(model.expected_error, STAND_IN_ERROR)


def vocabulary_of(model: ModelFacts) -> str:
    """Return the vocabulary of an OpenAI model or the stand-in for Gemini's or Claude's, and o200k for any other model."""
    if model.family == "claude":
        return CLAUDE_HIGH if model.token_ratio > STANDARD_RATIO else CLAUDE
    if model.family != "openai":
        return GEMINI if model.family == "google" else O200K
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.name.rpartition("/")[2])
    except KeyError:
        return O200K
    return name if name in OLDER else O200K


def _as_counter(custom: AnyCounter, model: ModelFacts | None) -> TokenCounter:
    if type(custom) in TRUSTED_COUNTERS:
        return custom  # type: ignore[return-value]
    if isinstance(custom, type):
        raise ArgumentError("token_counter", custom, f"this is the class; pass an instance, {custom.__name__}(…)")
    if isinstance(custom, TokenCounter):
        return CheckedCounter(custom)
    function = counting_function(custom)
    return CallableCounter(function, model.image_rule) if model is not None else CallableCounter(function)
