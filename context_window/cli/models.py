"""`context-window models`: what is known of the models that can be named."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from session.redaction import short

from ..printable import printable
from .output import BadInputError, say_values, show

if TYPE_CHECKING:
    from ..models import Model

EPILOG = """\b
Examples:
  context-window models
  context-window models claude opus
  context-window models us.anthropic.claude-sonnet-4-5-20250929-v1:0
  context-window models gpt --json | jq -r 'select(.price_cliff) | .name'
"""


@click.command(epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[FILTER]...")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON, one model a line.")
def models(words: tuple[str, ...], as_json: bool) -> None:
    """List the known models: windows, prices, tokenizers, images.

    FILTER is a part of the name, or several, in any case. A name in the spelling of a provider or reseller shows the model that it
    means.
    """
    from ..display.models import draw_models
    from ..models import PRICED_ON, alike, find_models

    asked = " ".join(words)
    found = list(find_models(asked))
    if not found:
        near = alike(asked)
        hint = f"did you mean {', '.join(near)}?" if near else "context-window models lists all"
        raise BadInputError(f"no model is known as {printable(short(asked))}; {hint}")
    if as_json:
        for model in found:
            say_values(figures(model))
        return
    show(lambda width, glyphs: draw_models(found, PRICED_ON, width, glyphs))


def figures(model: Model) -> dict[str, Any]:
    """What is shown of a model, as JSON values: amounts in tokens, prices in US dollars for a million tokens."""
    prices = model.prices
    return {
        "name": model.name,
        "family": model.family,
        "window": model.window,
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
