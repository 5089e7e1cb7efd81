"""What the model thought, as chat messages carry it beside their content. Thinking blocks in the content are in `pieces.py`."""

from __future__ import annotations

from .pieces import GOOGLE, OPENAI, Thought
from .values import JsonObject, list_at, text_at


def thoughts_of(message: JsonObject) -> list[Thought]:
    """The thoughts beside a message's content: the form that can be sent back, where it has several."""
    blocks = [block for block in list_at(message, "thinking_blocks") if isinstance(block, dict)]
    found = [Thought(text_at(block, "thinking"), text_at(block, "signature") or None, text_at(block, "data") or None) for block in blocks]
    found = found or [thought for block in list_at(message, "reasoning_details") if (thought := _detail(block)) is not None]
    if not found and (text := text_at(message, "reasoning_content", "reasoning")):
        found = [Thought(text, provider=OPENAI)]
    return found


def _detail(block: object) -> Thought | None:
    """One of OpenRouter's, which say in `format` whose reasoning it is."""
    if not isinstance(block, dict):
        return None
    form = text_at(block, "format")
    provider = GOOGLE if form.startswith("google") else "" if form.startswith("anthropic") else OPENAI
    text, signature, data = text_at(block, "text", "summary"), text_at(block, "signature") or None, text_at(block, "data") or None
    return Thought(text, signature, data, provider) if text or signature or data else None
