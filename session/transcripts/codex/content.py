"""The contents of Codex's response items: their parts, and which of them Codex wrote itself."""

from __future__ import annotations

import re
from typing import cast, get_args

from session.errors import short
from session.parts import Detail, Image, Part, Text
from session.transcripts.blocks import image_of, media_of
from session.transcripts.usages import Counts
from session.transcripts.values import JsonObject, count_at, list_at, text_at

_TAGS = {
    "environment_context": "environment context",
    "user_instructions": "memory",
    "skill": "skill",
    "turn_aborted": "interruption",
    "user_shell_command": "shell command",
    "subagent_notification": "subagent notification",
}
"""Tags around a text in the user's role that Codex wrote, and what it is about."""

_TAG = re.compile(rf"\s*<({'|'.join(_TAGS)})[ >]")
_MEMORY = re.compile(r"\s*# AGENTS\.md instructions\b")


def source_of(part: Part) -> str | None:
    """What Codex's own text in the user's role is about; None where the user wrote it."""
    if not isinstance(part, Text):
        return None
    if _MEMORY.match(part.text):
        return "memory"
    found = _TAG.match(part.text)
    return _TAGS[found[1]] if found and part.text.rstrip().endswith(f"</{found[1]}>") else None


def parts_of(content: object, notes: list[str]) -> tuple[Part, ...]:
    """The parts of a message's content or of an output.

    Args:
        content: A text, a list of content items, or an object with one of those.
        notes: Gets a sentence for everything that could not be taken over.
    """
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if isinstance(content, dict):  # older outputs: {"content": …, "success": …}
        return parts_of(content.get("content"), notes)
    if not isinstance(content, list):
        return ()
    return tuple(part for block in content if (part := _part(block, notes)) is not None)


def _part(block: object, notes: list[str]) -> Part | None:
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        notes.append(f"left out a part that is a {type(block).__name__}")
        return None
    kind = block.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"):
        text = text_at(block, "text", "refusal")
        return Text(text) if text else None
    if kind == "input_image":
        found = media_of(text_at(block, "image_url"), "", notes, image=True)
        detail = block.get("detail")
        if isinstance(found, Image) and detail in get_args(Detail):
            return Image(data=found.data, url=found.url, media_type=found.media_type, detail=cast(Detail, detail))
        return found
    notes.append(f"left out a part of unknown type {short(kind)}")
    return None


def picture_of(payload: JsonObject, notes: list[str]) -> tuple[Part, ...]:
    """What the provider's own picture tool answered."""
    found = image_of(payload.get("result"), "image/png", notes)
    return (found,) if found is not None else ()


def thought_of(payload: JsonObject) -> str:
    """The readable text of a reasoning item."""
    parts = (*parts_of(list_at(payload, "summary"), []), *parts_of(list_at(payload, "content"), []))
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


def usage_of(reported: JsonObject) -> Counts | None:
    """The usage of one request; None where the numbers are all zero, as after a compaction."""
    cached, total = count_at(reported, "cached_input_tokens"), count_at(reported, "input_tokens")
    output = count_at(reported, "output_tokens")
    if not (cached or total or output):
        return None
    return Counts(input_tokens=max(total - cached, 0), cache_read_tokens=cached, output_tokens=output)
