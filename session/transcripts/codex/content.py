"""Parse the contents of Codex's response items, and recognize the texts that Codex itself wrote in the user's role."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import cast, get_args

from session.errors import short
from session.parts import Detail, Image, Part, Text
from session.transcripts.media import bytes_of, linked_media, media_part
from session.transcripts.usage import Counts
from session.transcripts.values import JsonObject, count_at, list_at, text_at

_TAGS = {
    "environment_context": "environment context",
    "user_instructions": "memory",
    "skill": "skill",
    "turn_aborted": "interruption",
    "user_shell_command": "shell command",
    "subagent_notification": "subagent notification",
}
"""The tags around a text that Codex wrote in the user's role, and its subject."""

_TAG = re.compile(rf"\s*<({'|'.join(_TAGS)})[ >]")
_MEMORY = re.compile(r"\s*# AGENTS\.md instructions\b")


def source_of(part: Part) -> str | None:
    """Return the subject of a text that Codex wrote in the user's role, or None for the user's own."""
    if not isinstance(part, Text):
        return None
    if _MEMORY.match(part.text):
        return "memory"
    tag = _TAG.match(part.text)
    return _TAGS[tag[1]] if tag and part.text.rstrip().endswith(f"</{tag[1]}>") else None


def parts_of(content: object, reasons: list[str]) -> tuple[Part, ...]:
    """Return the parts of a message's content or of a tool output.

    Args:
        content: A text, a list of content items, or an object whose `content` is one of these.
        reasons: Gets a sentence for everything that is left out.
    """
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if isinstance(content, dict):  # older outputs: {"content": …, "success": …}
        return parts_of(content.get("content"), reasons)
    if not isinstance(content, list):
        return ()
    return tuple(part for block in content if (part := _part(block, reasons)) is not None)


def _part(block: object, reasons: list[str]) -> Part | None:
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        reasons.append(f"left out a part of unknown form: a {type(block).__name__}")
        return None
    kind = block.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"):
        text = text_at(block, "text", "refusal")
        return Text(text) if text else None
    if kind == "input_image":
        image = linked_media(text_at(block, "image_url"), "", reasons, kind="image")
        detail = block.get("detail")
        return replace(image, detail=cast(Detail, detail)) if isinstance(image, Image) and detail in get_args(Detail) else image
    reasons.append(f"left out a part of unknown type {short(kind)}")
    return None


def picture_of(payload: JsonObject, reasons: list[str]) -> tuple[Part, ...]:
    """Return the result of the provider's image generation tool."""
    part = media_part(bytes_of(payload.get("result")), "image/png", reasons, kind="image")
    return () if part is None else (part,)


def thought_of(payload: JsonObject) -> str:
    """Return the readable text of a reasoning item."""
    parts = (*parts_of(list_at(payload, "summary"), []), *parts_of(list_at(payload, "content"), []))
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


def usage_of(report: JsonObject) -> Counts | None:
    """Return the usage of one request, or None if all its numbers are zero, as after a compaction."""
    cached, written = count_at(report, "cached_input_tokens"), count_at(report, "cache_write_input_tokens")
    total, output = count_at(report, "input_tokens"), count_at(report, "output_tokens")
    if not (cached or total or output):
        return None
    return Counts(max(total - cached - written, 0), cached, min(written, max(total - cached, 0)), output)
