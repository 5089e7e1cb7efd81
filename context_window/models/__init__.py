"""All that is known about a model by its name: window, output limit, prices, tokenizer, image and document rules, request frame.

`names.py` parses names, `prices.py` reads the price list, `facts.py` has the facts that no list has. This file combines them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ..alike import alike
from ..counting.documents import DocumentRule
from ..counting.images import ImageRule, document_rule_of, estimated_image_tokens, rule_name
from ..errors import UnknownModelError
from . import facts
from .names import Family, bare, claude_version, family
from .prices import PRICED_ON, PROVIDERS, ListedModel, Prices, chat_names, find_window, known_names, look_up

__all__ = [
    "OUTPUT_RESERVE",
    "PRICED_ON",
    "PROVIDERS",
    "Family",
    "ModelFacts",
    "Prices",
    "describe_model",
    "find_model",
    "find_models",
    "similar_names",
]

OUTPUT_RESERVE = 32_000
"""Tokens reserved for the answer in a large window. A small window reserves a quarter of itself."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts about a model that budgets depend on.

    Attributes:
        name: The name as the caller wrote it.
        window: Tokens of prompt and answer together; None if unknown.
        family: The family of its name, which identifies its maker.
        image_rule: Its provider's rule for images.
        frame: Tokens of an empty request.
        tokenizer: Name of its tokenizer; models with the same name count texts alike.
        token_ratio: Its tokens per token of o200k, for the median of code and prose.
        expected_error: Usual error of that estimate, as a fraction of the count.
        input_limit: Maximum tokens of a prompt, at most the window; None if the window is unknown.
        output_limit: Maximum tokens of an answer; None if unknown.
        binds_thinking: True if it refuses reasoning after an edited place (docs/provider-rules.md, A5).
        drops_thinking: True if its provider leaves the reasoning of earlier turns out of the prompt.
        listing: Its entry in the price list; None to look it up when a price is needed, since the list takes long to import.
    """

    name: str
    window: int | None
    family: Family
    image_rule: ImageRule = estimated_image_tokens
    frame: int = 0
    tokenizer: str = "unknown"
    token_ratio: Fraction = Fraction(1)
    expected_error: float = 0.02
    input_limit: int | None = None
    output_limit: int | None = None
    binds_thinking: bool = False
    drops_thinking: bool = False
    listing: ListedModel | None = None

    @property
    def prices(self) -> Prices | None:
        """Its maker's prices; None if unknown."""
        return (self.listing or look_up(self.name)).prices

    @property
    def price_cliff(self) -> int | None:
        """Prompt size in tokens above which the provider charges more for the whole prompt; None if there is none."""
        return (self.listing or look_up(self.name)).cliff

    @property
    def document_rule(self) -> DocumentRule:
        """Its provider's rule for documents without text."""
        return document_rule_of(self.image_rule)

    @property
    def images(self) -> str:
        """The image rule in a few words."""
        return rule_name(self.image_rule)

    @property
    def output_reserve(self) -> int:
        """Tokens of the window reserved for the answer, unless a `ContextWindow` sets another number."""
        return OUTPUT_RESERVE if self.window is None else min(OUTPUT_RESERVE, self.window // 4)


def find_model(name: str) -> ModelFacts:
    """Return the model. Its window is always known.

    Raises:
        UnknownModelError: Its window is not known.
    """
    model = describe_model(name)
    if model.window is None:
        raise UnknownModelError(name, similar_names(name))
    return model


@lru_cache(maxsize=1 << 14)
def describe_model(name: str) -> ModelFacts:
    """Return all that is known about the model.

    For a new model that may be no more than its family: it is then counted like the family's newest models.
    """
    window, model_family = find_window(name), family(name)
    version = claude_version(name) if model_family == "claude" else (0, 0)
    is_newer_claude = version >= (4, 7)
    return ModelFacts(
        name,
        window,
        model_family,
        image_rule=facts.image_rule(name),
        frame=facts.frame(name),
        tokenizer=facts.tokenizer(name),
        token_ratio=Fraction(1) if model_family != "claude" else Fraction("1.46") if is_newer_claude else Fraction("1.17"),
        expected_error={"claude": 0.10, "openai": 0.02, "google": 0.05}.get(model_family, 0.15),
        input_limit=None if window is None else facts.input_limit(name, window),
        output_limit=facts.output_limit(name),
        binds_thinking=facts.binds_thinking(name),
        drops_thinking=facts.drops_thinking(name),
    )


def find_models(query: str = "") -> Iterator[ModelFacts]:
    """Yield the conversational models whose names contain every word of the query, in any case.

    If none does, the query may be the exact name of any model, in any provider's spelling.
    """
    words = query.lower().split()
    matching = [name for name in chat_names() if all(word in name.lower() for word in words)]
    if matching:
        yield from map(describe_model, matching)
    elif (model := describe_model(query)).window is not None:
        yield model


def similar_names(name: str) -> list[str]:
    """Return names of known models that are spelled much like this one, the most similar first."""
    return alike(bare(name), known_names())
