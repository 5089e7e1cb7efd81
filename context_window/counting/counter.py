"""The counter protocol, the four-characters estimate, and wrappers that check the answers of a user's counter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, field
from functools import partial
from math import inf
from numbers import Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

from session.estimate import estimate_part, estimate_text
from session.parts import Document, Image, Part, Text

from ..errors import ArgumentError, CountingError
from ..validation import as_whole
from .documents import text_of
from .images import ImageRule, document_rule_of, estimated_image_tokens


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of texts and parts: whole numbers, 0 or more, always the same for the same input.

    Counters that compare equal share their counts: an item that both see is counted once. Counters must be thread-safe.
    A counter may have an attribute `expected_error`, its usual error as a fraction of its counts. Statistics and displays show it.
    """

    @property
    def name(self) -> str:
        """Name of the counter in displays."""

    def count_text(self, text: str) -> int:
        """Return the tokens of a text."""

    def count_part(self, part: Part) -> int:
        """Return the tokens of a text, an image or a document."""


class Tokenizer(Protocol):
    """A tokenizer of another library, such as tiktoken's `Encoding`."""

    def encode(self, text: str, /) -> Sized:
        """Return the tokens of a text."""


AnyCounter: TypeAlias = TokenCounter | Tokenizer | Callable[[Any], int]
"""What users pass to count with: a counter, a tokenizer, or a function that returns a number of tokens (`counting_function`)."""


@dataclass(unsafe_hash=True, repr=False)
class CharacterCounter:
    """Four characters per token, 300 tokens per image. Needs no vocabulary, and is too low for most real text.

    Counts are rounded down, but a text that is not empty costs at least 1 token.
    """

    name = "4 characters"
    expected_error = 0.3
    """Shortfall against Claude's own counts of code. Base64 is counted 2.7 times too low."""

    def count_text(self, text: str) -> int:
        """Return the tokens of a text."""
        return max(1, estimate_text(text)) if text else 0

    def count_part(self, part: Part) -> int:
        """Return the tokens of a part."""
        text = part.text if isinstance(part, Text | Document) else None
        return estimate_part(part) if text is None else self.count_text(text)


class ValueCounter(ABC):
    """A counter that equals those of its class with the same values, by which it is copied."""

    name: str
    image_rule: ImageRule

    @abstractmethod
    def count_text(self, text: str) -> int:
        """Return the tokens of a text."""

    @abstractmethod
    def _values(self) -> tuple[Any, ...]:
        """Return the arguments that make such a counter."""

    def count_part(self, part: Part) -> int:
        """Return the tokens of a part."""
        return count_by_rule(self, self.image_rule, part)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueCounter) and type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()


class TextMessage(dict[str, str]):
    """A user's message with one text, as a dict and as an object: `message["content"]`, `message.content`, `message.text`."""

    def __init__(self, text: str) -> None:
        super().__init__(role="user", content=text)
        self.role, self.content, self.text = "user", text, text


ARGUMENTS: tuple[Callable[[str], object], ...] = (str, TextMessage, lambda text: [TextMessage(text)])
"""The forms in which a text is passed to a user's function, in the order in which they are tried: a text, a message, a list of messages."""


ENCODERS = ("encode_ordinary", "encode")
"""Methods of tokenizers (tiktoken, tokenizers, transformers, sentencepiece) that return the tokens of a text."""

COUNTERS = ("count_tokens", "count_text", "count", "estimate_tokens", "estimate", "get_num_tokens")
"""Methods of other libraries' counters that return their number."""


@dataclass(frozen=True, slots=True)
class EncodedLength:
    """Counts the tokens that a tokenizer's method returns."""

    encode: Callable[[str], Sized]

    def __call__(self, text: str) -> int:
        """Return the number of tokens."""
        if not isinstance(text, str):
            raise TypeError("a tokenizer takes texts")
        return len(self.encode(text))


def counting_function(counter: object) -> Callable[[Any], int]:
    """Return the method or the function by which a user's counter counts. Raises ArgumentError if it has none."""
    methods: dict[str, Callable[[Any], Any]] = {
        name: method
        for name in (*ENCODERS, *COUNTERS)
        if not isinstance(counter, Sequence) and callable(method := getattr(counter, name, None))  # every text has `encode` and `count`
    }
    if encode := next((methods[name] for name in ENCODERS if name in methods), None):
        return EncodedLength(encode)
    if callable(counter):
        return counter
    if methods:
        return next(iter(methods.values()))
    if isinstance(counter, int):
        raise ArgumentError(
            "token_counter", counter, f"tokens of the window have a name: ContextWindowManager(model, max_tokens={counter})"
        )
    raise ArgumentError(
        "token_counter",
        counter,
        "pass a function that returns the tokens of a text, such as `lambda text: len(encoding.encode(text))`, an object with a method "
        f"{', '.join((*COUNTERS, ENCODERS[-1]))}, or a TokenCounter",
    )


@dataclass(unsafe_hash=True, repr=False)
class CallableCounter:
    """A counter made of a user's function of a text, of a message, or of a list of messages. Its results are checked.

    The function is called with a text. If it raises because it expects a message, it is called with a message that holds the text, and
    from then on with messages only. Images and documents are counted by the image rule, unless the function has a `count_part` attribute.
    """

    function: Callable[[Any], int]
    image_rule: ImageRule = estimated_image_tokens
    _argument: Callable[[str], object] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.name = _function_name(self.function)

    def count_text(self, text: str) -> int:
        """Return the tokens of a text. Raises CountingError if the function did not return a whole number of 0 or more."""
        if self._argument is None:
            return self._first_count(text)
        return _checked_count(self.name, self.function(self._argument(text)))

    def _first_count(self, text: str) -> int:
        """Count a text, and find out what the function takes. If it takes nothing that we know, raise its first exception."""
        problem: Exception | None = None
        for argument in ARGUMENTS:
            try:
                result = self.function(argument(text))
            except (TypeError, AttributeError, LookupError, ValueError) as error:
                problem = problem or error
                continue
            tokens = _checked_count(self.name, result)
            if text:  # an empty text says nothing: a loop over its characters accepts anything
                self._argument = argument
            return tokens
        assert problem is not None
        raise problem

    def count_part(self, part: Part) -> int:
        """Return the tokens of a part. Raises CountingError if the function did not return a whole number of 0 or more."""
        count_part = getattr(self.function, "count_part", None)
        if count_part is not None:
            return _checked_count(self.name, count_part(part))
        return count_by_rule(self, self.image_rule, part)


@dataclass(unsafe_hash=True, repr=False)
class CheckedCounter:
    """A user's own `TokenCounter` whose results are checked."""

    counter: TokenCounter

    def __post_init__(self) -> None:
        self.name = str(self.counter.name)
        self.expected_error = expected_error_of(self.counter)

    def count_text(self, text: str) -> int:
        """Return the tokens of a text. Raises CountingError if the counter did not return a whole number of 0 or more."""
        return _checked_count(self.name, self.counter.count_text(text))

    def count_part(self, part: Part) -> int:
        """Return the tokens of a part. Raises CountingError if the counter did not return a whole number of 0 or more."""
        return _checked_count(self.name, self.counter.count_part(part))


def expected_error_of(counter: object) -> float:
    """Return the counter's usual error as a fraction of its counts, or 0 if it declares none."""
    declared = getattr(counter, "expected_error", None)
    if isinstance(declared, bool) or not isinstance(declared, Real):
        return 0.0
    error = float(declared)
    return error if 0 < error < inf else 0.0


def count_by_rule(counter: TokenCounter, image_rule: ImageRule, part: Part) -> int:
    """Return the tokens of a part.

    The counter counts texts, the rule counts images. A document costs its text, or what the rule's provider charges for such a file.
    """
    if isinstance(part, Text):
        return counter.count_text(part.text)
    if isinstance(part, Image):
        return image_rule(part)
    from .office import office_text

    if (text := text_of(part)) is not None or (text := office_text(part)) is not None:
        content = counter.count_text(text)
    else:
        pages = document_rule_of(image_rule)(part)
        content = estimate_part(part) if pages is None else pages
    return content + counter.count_text(part.title) if part.title else content


def _checked_count(counter: str, result: object) -> int:
    tokens = as_whole(result)
    if tokens is not None and tokens >= 0:
        return tokens
    raise CountingError(counter, result)


def _function_name(function: Callable[[Any], int]) -> str:
    while isinstance(function, partial):
        function = function.func
    name = str(getattr(function, "name", None) or getattr(function, "__name__", None) or type(function).__name__)
    return "custom counter" if name == "<lambda>" else name
