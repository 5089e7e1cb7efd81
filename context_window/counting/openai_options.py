"""Tokens of the answer's schema in a request to OpenAI, in the form of either of its APIs. Used for counting only, never sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .anthropic_options import RequestOptions, json_text
from .counter import TokenCounter
from .framing import Framing

COUNTED_OPTIONS = frozenset({"response_format", "text"})
"""Options that hold the schema: of Chat Completions and of Responses."""


def schema_tokens(counter: TokenCounter, framing: Framing, options: RequestOptions, *, has_tools: bool) -> int:
    """Return the tokens of the answer's schema; 0 if none is asked for. With tools it shares their section.

    The model sees the schema as JSON without spaces. `{"type": "json_object"}` adds nothing (28 records). Raises ToolsError if the schema
    cannot be written as JSON.
    """
    if (schema := schema_of_answer(options)) is None:
        return 0
    heading = framing.chat_schema if "response_format" in options and not has_tools else 0
    return max(
        0, counter.count_text(json_text(schema, "the schema in response_format or text", separators=(",", ":"))) + framing.schema + heading
    )


def schema_of_answer(options: RequestOptions) -> Mapping[str, Any] | None:
    """Return the schema of the answer from Chat Completions' `response_format`, else from Responses' `text.format`, else None."""
    chat, text = options.get("response_format"), options.get("text")
    chat_form = chat.get("json_schema") if isinstance(chat, Mapping) and chat.get("type") == "json_schema" else None
    responses_form = text.get("format") if isinstance(text, Mapping) else None
    for form in (chat_form, responses_form):
        if isinstance(form, Mapping) and isinstance(schema := form.get("schema"), Mapping):
            return schema
    return None
