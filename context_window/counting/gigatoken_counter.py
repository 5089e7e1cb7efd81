"""Counts with `gigatoken`, if it is installed: the same counts as tiktoken's, many times as fast. The extra `fast`."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import Any
from unicodedata import category

from session.extras import install_line

from ..errors import ArgumentError
from .images import ImageRule, estimated_image_tokens
from .tiktoken_counter import TiktokenCounter
from .vocabulary import O200K, WEIGHTS, o200k, token_ranks


class GigatokenCounter(TiktokenCounter):
    """Counts what `TiktokenCounter` counts with o200k, and much faster. tiktoken remains the default and the reference.

        ContextWindowManager("gpt-5", GigatokenCounter.for_model("gpt-5"))

    The two know different versions of Unicode. So tiktoken counts the texts that have a character which Python does not know.
    Counters with the same values are equal.
    """

    def __init__(self, image_rule: ImageRule = estimated_image_tokens, ratio: Fraction = Fraction(1), encoding: str = O200K) -> None:
        """
        Args:
            image_rule: Returns the tokens of an image.
            ratio: The model's tokens per token of the vocabulary.
            encoding: o200k_base, or one of those that weigh its tokens.

        Raises:
            ArgumentError: The ratio is not above 0, or `gigatoken` is not installed.
        """
        super().__init__(image_rule, ratio, encoding)
        if not has_gigatoken():
            raise ArgumentError("token_counter", "gigatoken", f"is not installed; {install_line('fast')}")
        self.name = self.name.replace("tiktoken", "gigatoken")

    @classmethod
    def for_model(cls, model: str) -> GigatokenCounter:
        """Return the counter whose counts are those of the model's own `TiktokenCounter`.

        Raises:
            ArgumentError: The model's tokens are not counted with o200k, or `gigatoken` is not installed.
        """
        from ..models import describe_model
        from .select import select_counter

        counter = select_counter(None, describe_model(model)).counter
        if type(counter) is not TiktokenCounter or counter.vocabulary not in (O200K, *WEIGHTS):
            raise ArgumentError("model", model, f"is counted with {counter.name}; leave out the counter")
        return cls(counter.image_rule, counter.ratio, counter.vocabulary)

    def _tokens(self, text: str) -> int:
        if text.isascii() or not any(map(_is_unknown, set(text))):
            return self._weighed(_encoder()(text))
        return self._weighed(o200k().encode_ordinary(text))


def has_gigatoken() -> bool:
    """True if `gigatoken` is installed. Does not import it."""
    return find_spec("gigatoken") is not None


def _is_unknown(character: str) -> bool:
    """True for characters that a tokenizer with a newer version of Unicode may know, and for halves of characters."""
    return category(character) in ("Cn", "Cs")


@cache
def _encoder() -> Any:
    """Return the function that encodes a text. The vocabulary is read from a file, which is deleted at once."""
    import tempfile
    from base64 import b64encode
    from pathlib import Path

    from gigatoken import Tokenizer

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "o200k_base.tiktoken"
        path.write_bytes(b"".join(b"%b %d\n" % (b64encode(token), rank) for token, rank in token_ranks().items()))
        return Tokenizer.from_tiktoken(path, "o200k", {}).backend.encode
