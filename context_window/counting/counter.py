"""What counts tokens: the protocol, the 4-characters estimate, and any callable of a user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from session.estimate import estimate_part, estimate_text
from session.parts import Document, Image, Part, Text

from ..errors import CountingError
from .images import ImageRule, seed_image_tokens


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens of texts and parts: whole numbers, 0 or more, the same for the same input."""

    @property
    def name(self) -> str:
        """What the displays call it."""

    def count_text(self, text: str) -> int:
        """Tokens of a text."""

    def count_part(self, part: Part) -> int:
        """Tokens of a text, an image or a document."""


class CharacterCounter:
    """Four characters a token, 300 tokens an image: needs no vocabulary, and is too low for most real text."""

    name = "4 characters"

    def count_text(self, text: str) -> int:
        """Tokens of a text."""
        return estimate_text(text)

    def count_part(self, part: Part) -> int:
        """Tokens of a part."""
        return estimate_part(part)


class CallableCounter:
    """A user's function of a text, checked: images and documents go by rule unless it has a `count_part`."""

    def __init__(self, function: Callable[[str], int], image_rule: ImageRule = seed_image_tokens) -> None:
        self.function = function
        self.image_rule = image_rule
        self.name = str(getattr(function, "name", None) or getattr(function, "__name__", None) or type(function).__name__)

    def count_text(self, text: str) -> int:
        """Tokens of a text.

        Raises:
            CountingError: The function gave something else than a whole number of 0 or more.
        """
        return self._checked(self.function(text))

    def count_part(self, part: Part) -> int:
        """Tokens of a part.

        Raises:
            CountingError: As `count_text`.
        """
        own = getattr(self.function, "count_part", None)
        if own is not None:
            return self._checked(own(part))
        return count_by_rule(self, self.image_rule, part)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallableCounter) and (self.function, self.image_rule) == (other.function, other.image_rule)

    def __hash__(self) -> int:
        return hash((self.function, self.image_rule))

    def _checked(self, answer: object) -> int:
        if not isinstance(answer, int) or isinstance(answer, bool) or answer < 0:
            raise CountingError(self.name, answer)
        return answer


def count_by_rule(counter: TokenCounter, image_rule: ImageRule, part: Part) -> int:
    """Tokens of a part: texts by the counter, images by the rule, documents by their text or else a price a page."""
    if isinstance(part, Text):
        return counter.count_text(part.text)
    if isinstance(part, Image):
        return image_rule(part)
    if isinstance(part, Document) and part.text is not None:
        return counter.count_text(part.text)
    return estimate_part(part)
