"""`context-window models`: windows, prices and tokenizers of the known models."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from session.redaction import short

from ..printable import printable
from .output import BadInputError, say_values, show

if TYPE_CHECKING:
    from ..models import ModelFacts

EPILOG = """\b
Examples:
  context-window models
  context-window models claude opus
  context-window models us.anthropic.claude-sonnet-5-5
  context-window models gpt --json | jq -r 'select(.price_cliff) | .name'
"""


@click.command(epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[FILTER]...")
@click.option("--json", "as_json", is_flag=True, help="Print the models as JSON, one per line.")
def models(words: tuple[str, ...], as_json: bool) -> None:
    """List the known models: windows, prices, tokenizers, images.

    FILTER is one or more parts of a name, in upper or lower case. The full name of a model works in the spelling of any provider or
    reseller.
    """
    from ..display.models import model_lines
    from ..models import PRICED_ON, find_models, similar_names

    query = " ".join(words)
    matches = list(find_models(query))
    if not matches:
        similar = similar_names(query)
        hint = f"did you mean {' or '.join(similar)}?" if similar else "`context-window models` lists all models"
        raise BadInputError(f"no model is named {printable(short(query))}; {hint}")
    if as_json:
        for model in matches:
            say_values(figures(model))
        return
    show(lambda width, glyphs: model_lines(matches, PRICED_ON, width, glyphs))


def figures(model: ModelFacts) -> dict[str, Any]:
    """Return the row of a model as JSON values: amounts in tokens, prices in US dollars per million tokens."""
    prices = model.prices
    return {
        "name": model.name,
        "family": model.family,
        "window": model.window,
        "input_limit": model.input_limit,
        "output_limit": model.output_limit,
        "prices": None
        if prices is None
        else {name: _number(getattr(prices, name)) for name in ("input", "output", "cache_read", "cache_write", "input_above")},
        "price_cliff": model.price_cliff,
        "tokenizer": model.tokenizer,
        "token_ratio": float(model.token_ratio),
        "expected_error": model.expected_error,
        "images": model.images,
        "binds_thinking": model.binds_thinking,
    }


def _number(price: Decimal | None) -> float | None:
    return None if price is None else float(price)
