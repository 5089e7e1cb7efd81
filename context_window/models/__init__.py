"""What is known of a model by its name: window, output limit, prices, tokenizer, image and document rules, how requests are framed.

`names.py` takes names apart, `prices.py` asks the price list, `facts.py` has what no list has; here they are put together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache

from ..counting.documents import DocumentRule
from ..counting.images import ImageRule, documents_of, rule_name, seed_image_tokens
from ..errors import UnknownModelError
from . import facts
from .names import Family, bare, claude_version, family
from .prices import PRICED_ON, PROVIDERS, Prices, chat_names, known_names, listed

__all__ = ["OUTPUT_RESERVE", "PRICED_ON", "PROVIDERS", "Family", "Model", "Prices", "alike", "describe_model", "find_model", "find_models"]

OUTPUT_RESERVE = 32_000
"""Tokens kept for the answer where the window is large; a fourth of the window where it is small."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model as far as budgets go.

    Attributes:
        name: As it was asked for.
        window: Tokens of prompt and answer together; None where not known.
        family: Whose it is, by its name.
        image_rule: What its provider charges for images.
        frame: Tokens that a request costs before anything is in it.
        tokenizer: What its tokenizer is called; models with the same name count texts alike.
        token_ratio: Its tokens for one of o200k's, for the median of code and prose.
        expected_error: By what part of the count that is usually off.
        output_limit: Tokens of an answer at most; None where not known.
        prices: What its maker takes for it; None where not known.
        binds_thinking: Whether it refuses reasoning after an edited place (docs/provider-rules.md, A5).
        price_cliff: Tokens of a prompt above which the provider charges more for all of it; None where it never does.
    """

    name: str
    window: int | None
    family: Family
    image_rule: ImageRule = seed_image_tokens
    frame: int = 0
    tokenizer: str = "unknown"
    token_ratio: Fraction = Fraction(1)
    expected_error: float = 0.02
    output_limit: int | None = None
    prices: Prices | None = None
    binds_thinking: bool = False
    price_cliff: int | None = None

    @property
    def document_rule(self) -> DocumentRule:
        """What its provider charges for documents whose text is not known."""
        return documents_of(self.image_rule)

    @property
    def images(self) -> str:
        """The image rule in a few words."""
        return rule_name(self.image_rule)

    @property
    def output_reserve(self) -> int:
        """Tokens of the window kept for the answer unless a `ContextWindow` says otherwise."""
        return OUTPUT_RESERVE if self.window is None else min(OUTPUT_RESERVE, self.window // 4)


def find_model(name: str) -> Model:
    """What is known of the model, its window at least.

    Raises:
        UnknownModelError: Its window is not known.
    """
    model = describe_model(name)
    if model.window is None:
        raise UnknownModelError(name, alike(name))
    return model


@lru_cache(maxsize=512)
def describe_model(name: str) -> Model:
    """What is known of the model: of a new one often its family alone, and that it is counted as its family's newest are."""
    found, whose = listed(name), family(name)
    version = claude_version(name) if whose == "claude" else (0, 0)
    newer = version >= (4, 7)
    return Model(
        name,
        found.window,
        whose,
        image_rule=facts.image_rule(name),
        frame=0 if whose != "claude" else 7 if not newer else 11 if version == (4, 7) else 6,
        tokenizer=facts.tokenizer(name),
        token_ratio=Fraction(1) if whose != "claude" else Fraction("1.46") if newer else Fraction("1.17"),
        expected_error={"claude": 0.10, "openai": 0.02}.get(whose, 0.15),
        output_limit=facts.output_limit(name),
        prices=found.prices,
        binds_thinking=facts.binds_thinking(name),
        price_cliff=found.cliff,
    )


def find_models(asked: str = "") -> Iterator[Model]:
    """The models that hold conversations and whose names have every word that is asked for, in any case; else the one so called."""
    words = asked.lower().split()
    matching = [name for name in chat_names() if all(word in name for word in words)]
    if matching:
        yield from map(describe_model, matching)
    elif (model := describe_model(asked)).window is not None:
        yield model


def alike(name: str) -> list[str]:
    """Names of known models that are much like this one, the likest first."""
    return get_close_matches(bare(name), known_names(), n=3)
