"""Read the parts of a message that are in a provider's form, as `Session.add_message` takes them beside our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from session.errors import FormatError, short
from session.items import Message
from session.parts import Part, Text

from .anthropic import from_anthropic
from .google import from_google
from .openai_chat import from_openai_chat
from .openai_responses import from_openai_responses


def read_part(part: Mapping[str, Any], where: str) -> Part:
    """Return the text, image or document that a part of Anthropic's, OpenAI's or Google's messages holds.

    Raises FormatError if it holds something else, or is damaged.
    """
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text") or part.keys() == {"text"}:
        text = part.get("text")
        if isinstance(text, str):
            return Text(text)
    try:
        items = _read_message(part, kind)
    except FormatError as error:
        raise FormatError(where, error.problem) from None
    parts = items[0].content if len(items) == 1 and isinstance(items[0], Message) else ()
    if len(parts) != 1:
        raise FormatError(where, f"{short(dict(part))} is no text, image or document of a message")
    return parts[0]


def _read_message(part: Mapping[str, Any], kind: object) -> Any:
    """Return the items of a message with this part alone, in the format that has such parts."""
    if kind in ("image", "document"):
        return from_anthropic([{"role": "user", "content": [part]}]).items
    if kind in ("image_url", "file", "input_audio"):
        return from_openai_chat([{"role": "user", "content": [part]}]).items
    if kind in ("input_image", "input_file"):
        return from_openai_responses([{"role": "user", "content": [part]}]).items
    if kind is None and part.keys() & {"inline_data", "inlineData", "file_data", "fileData"}:
        return from_google([{"role": "user", "parts": [part]}]).items
    return ()
