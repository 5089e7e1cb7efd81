"""Read the reasoning in the fields of chat messages other than the content. `block_parser.py` reads thinking blocks inside the content."""

from __future__ import annotations

from session.providers.pieces import GOOGLE, OPENAI, Thought

from .values import JsonObject, list_at, text_at


def thoughts_of(message: JsonObject) -> list[Thought]:
    """Return the thoughts in the fields of a message other than its content. Of several forms, the one that can be sent back is used."""
    thoughts = [
        Thought(text_at(block, "thinking"), text_at(block, "signature") or None, text_at(block, "data") or None)
        for block in list_at(message, "thinking_blocks")
        if isinstance(block, dict)
    ]
    if not thoughts:
        details = map(_openrouter_detail, list_at(message, "reasoning_details"))
        thoughts = [thought for thought in details if thought is not None]
    if not thoughts and (text := text_at(message, "reasoning_content", "reasoning")):
        thoughts = [Thought(text, provider=OPENAI)]
    return thoughts


def _openrouter_detail(block: object) -> Thought | None:
    """Return the thought in one of OpenRouter's details, whose `format` names the provider."""
    if not isinstance(block, dict):
        return None
    form = text_at(block, "format")
    provider = GOOGLE if form.startswith("google") else "" if form.startswith("anthropic") else OPENAI
    text, signature, data = text_at(block, "text", "summary"), text_at(block, "signature") or None, text_at(block, "data") or None
    return Thought(text, signature, data, provider) if text or signature or data else None
