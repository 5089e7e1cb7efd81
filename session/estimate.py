"""Estimates tokens at four characters each: needs no tokenizer and knows no model, but is too low for most real text.

Each item costs 4 tokens plus its content. Text: `len // 4`. An image: 300. A call or an output: `len(name) // 4 + len(content) // 4 + 5`.
A document without its text: 2,000 per page. Reasoning: its text and its encrypted data, both as text. Handoffs:
their names and reason. Config updates: their instructions, and 0 without any.
"""

from __future__ import annotations

from .items import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from .parts import Document, Image, Part

ITEM_TOKENS = 4
IMAGE_TOKENS = 300
CALL_TOKENS = 5
"""Tokens of a call or an output in addition to its texts."""
PAGE_TOKENS = 2_000
BYTES_PER_PAGE = 50_000
"""For documents whose text is unknown: 50,000 bytes per page, at a price between the providers' 1,500 and 3,000 tokens."""


def estimate_text(text: str) -> int:
    """Return the tokens of a text, at four characters each."""
    return len(text) // 4


def estimate_part(part: Part) -> int:
    """Return the tokens of a part. Images and documents without text have a flat price."""
    if isinstance(part, Image):
        return IMAGE_TOKENS
    if isinstance(part, Document):
        if part.text is not None:
            return len(part.text) // 4
        return PAGE_TOKENS * (1 + len(part.data or b"") // BYTES_PER_PAGE)
    return len(part.text) // 4


def estimate_item(item: Item) -> int:
    """Return the tokens of an item. A config update without instructions is not sent, so it costs nothing."""
    match item:
        case AgentConfigUpdate(instructions=None):
            return 0
        case AgentConfigUpdate():
            content = len(item.instructions or "") // 4
        case AgentHandoff():
            content = (len(item.to_agent) + len(item.from_agent or "") + len(item.reason or "")) // 4
        case Message():
            content = sum(map(estimate_part, item.content))
        case FunctionCall():
            content = len(item.name) // 4 + len(item.arguments) // 4 + CALL_TOKENS
        case FunctionCallOutput():
            content = len(item.name) // 4 + sum(map(estimate_part, item.output)) + CALL_TOKENS
        case Compaction():
            content = len(item.summary) // 4
        case _:
            content = len(item.text) // 4 + len(item.data or "") // 4
    return ITEM_TOKENS + content
