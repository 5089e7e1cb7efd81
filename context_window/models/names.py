"""Names of models taken apart: the many spellings of one model, whose it is, its version. What is known of it is not here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

Family: TypeAlias = Literal["claude", "openai", "google", "other"]

LONGEST = 200
"""Characters of a name that are looked at: none has as many, and some patterns take the square of their number."""

NEWEST = (99, 0)
"""The version of a name without one: it may be the newest."""

_RESOLD = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google)\.(?=[a-z])")
"""Amazon's Bedrock writes the region and the maker in front: `us.anthropic.claude-…`, `openai.gpt-oss-120b-1:0`."""


def bare(name: str) -> str:
    """The name in small letters, without the path of whoever passes it on: `openrouter/anthropic/…`, `models/…`."""
    return name.strip().rpartition("/")[2].lower()[:LONGEST]


def spellings(name: str) -> Iterator[str]:
    """The name as price lists may know it, the likeliest first: `openai:gpt-5`, `ft:gpt-4o:someone::id`, `us.openai.gpt-6-sol`."""
    short = bare(name)
    yield short
    pieces = [short]
    if ":" in short:
        pieces = [piece for piece in short.split(":")[:2] if piece]
        yield from pieces
    for piece in pieces:
        if (without := _RESOLD.sub("", piece)) != piece:
            yield without
            yield re.sub(r"-1$", "", without)  # Bedrock's revision, `-1:0`


def family(name: str) -> Family:
    """Whose model it is."""
    lower = name.lower()
    if "claude" in lower:
        return "claude"
    if re.search(r"\b(gpt|chatgpt|o[1-9]|codex)", lower):
        return "openai"
    return "google" if re.search(r"gemini|gemma", lower) else "other"


def claude_version(name: str) -> tuple[int, int]:
    """Major and minor version: `claude-opus-4-7` is (4, 7), `claude-3-5-haiku` (3, 5)."""
    return _version(r"claude-(?:[a-z]+-)?v?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name)


def gemini_version(name: str) -> tuple[int, int]:
    """Major and minor version: `gemini-2.5-pro` is (2, 5). The first one had none in its name."""
    if re.fullmatch(r"gemini-pro(-vision)?", bare(name)):
        return (1, 0)
    return _version(r"gemini-(?:[a-z]+-){0,4}(\d{1,2})(?:\.(\d{1,2}))?", name)


def _version(pattern: str, name: str) -> tuple[int, int]:
    numbers = re.search(pattern, name.lower())
    return (int(numbers[1]), int(numbers[2] or 0)) if numbers else NEWEST
