"""What counts tokens: the protocol, the 4-characters estimate, and whatever a user counts with, its answers checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from numbers import Real
from typing import Protocol, runtime_checkable

from session.estimate import estimate_part, estimate_text
from session.parts import Document, Image, Part, Text

from ..errors import CountingError
from ..whole import as_whole
from .images import ImageRule, documents_of, seed_image_tokens


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens of texts and parts: whole numbers, 0 or more, the same for the same input.

    Counters that compare equal share what they counted: an item that both see is counted once. Several threads may
    count at once. A counter that knows by what part of its counts it is usually off says so in `expected_error`, which the
    statistics and displays then show.
    """

    @property
    def name(self) -> str:
        """What the displays call it."""

    def count_text(self, text: str) -> int:
        """Tokens of a text."""

    def count_part(self, part: Part) -> int:
        """Tokens of a text, an image or a document."""


class CharacterCounter:
    """Four characters a token, 300 tokens an image: needs no vocabulary, and is too low for most real text.

    It rounds down, but to 1 at least: only nothing costs nothing.
    """

    name = "4 characters"
    expected_error = 0.3
    """What it is short of Claude's counts of code; base64 it counts 2.7 times too low."""

    def count_text(self, text: str) -> int:
        """Tokens of a text."""
        return max(1, estimate_text(text)) if text else 0

    def count_part(self, part: Part) -> int:
        """Tokens of a part."""
        text = part.text if isinstance(part, Text | Document) else None
        return estimate_part(part) if text is None else self.count_text(text)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class CallableCounter:
    """A user's function of a text, checked: images and documents go by rule unless it has a `count_part`."""

    def __init__(self, function: Callable[[str], int], image_rule: ImageRule = seed_image_tokens) -> None:
        self.function = function
        self.image_rule = image_rule
        self.name = _name(function)

    def count_text(self, text: str) -> int:
        """Tokens of a text.

        Raises:
            CountingError: The function gave something else than a whole number of 0 or more.
        """
        return _checked(self.name, self.function(text))

    def count_part(self, part: Part) -> int:
        """Tokens of a part.

        Raises:
            CountingError: As `count_text`.
        """
        own = getattr(self.function, "count_part", None)
        if own is not None:
            return _checked(self.name, own(part))
        return count_by_rule(self, self.image_rule, part)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallableCounter) and (self.function, self.image_rule) == (other.function, other.image_rule)

    def __hash__(self) -> int:
        return hash((self.function, self.image_rule))


class CheckedCounter:
    """A user's own `TokenCounter`, its answers checked as those of functions are."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self.name = str(counter.name)
        self.expected_error = expected_error_of(counter)

    def count_text(self, text: str) -> int:
        """Tokens of a text.

        Raises:
            CountingError: The counter gave something else than a whole number of 0 or more.
        """
        return _checked(self.name, self.counter.count_text(text))

    def count_part(self, part: Part) -> int:
        """Tokens of a part.

        Raises:
            CountingError: As `count_text`.
        """
        return _checked(self.name, self.counter.count_part(part))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckedCounter) and self.counter == other.counter

    def __hash__(self) -> int:
        return hash(self.counter)


def expected_error_of(counter: object) -> float:
    """By what part of its counts the counter says that it is usually off; 0 where it does not say."""
    said = getattr(counter, "expected_error", None)
    if isinstance(said, bool) or not isinstance(said, Real):
        return 0.0
    error = float(said)
    return error if 0 < error < inf else 0.0


def count_by_rule(counter: TokenCounter, image_rule: ImageRule, part: Part) -> int:
    """Tokens of a part: texts by the counter, images by the rule, documents by their text or else what the rule's provider takes."""
    if isinstance(part, Text):
        return counter.count_text(part.text)
    if isinstance(part, Image):
        return image_rule(part)
    if part.text is not None:
        content = counter.count_text(part.text)
    else:
        known = documents_of(image_rule)(part)
        content = estimate_part(part) if known is None else known
    return content + counter.count_text(part.title) if part.title else content


def _checked(counter: str, answer: object) -> int:
    tokens = as_whole(answer)
    if tokens is not None and tokens >= 0:
        return tokens
    raise CountingError(counter, answer)


def _name(function: Callable[[str], int]) -> str:
    while isinstance(function, partial):
        function = function.func
    name = str(getattr(function, "name", None) or getattr(function, "__name__", None) or type(function).__name__)
    return "custom counter" if name == "<lambda>" else name
