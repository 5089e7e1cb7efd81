"""Parses model names: the many spellings of one model, its family, its version. Facts about the model are in `facts.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

Family: TypeAlias = Literal["claude", "openai", "google", "other"]

LONGEST = 200
"""Characters of a name that are looked at. No name is as long, and some patterns take quadratic time."""

NEWEST = (99, 0)
"""Version of a name without a version, which may be the newest model."""

_BEDROCK_PREFIX = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google)\.(?=[a-z])")
"""Region and maker in front of a name on Amazon Bedrock: `us.anthropic.claude-…`, `openai.gpt-oss-120b-1:0`."""


NEWEST_CLAUDE = {"fable": "5-1", "opus": "5-5", "sonnet": "5-5", "haiku": "5-5"}
"""Version that an alias such as Claude Code's `opus` means, as of November 2026."""

_CLAUDE_ALIAS = re.compile(r"(?P<class>fable|opus|sonnet|haiku)(?P<version>[-.]\d[-.\d]*)?(?P<window>\[1m\])?")
_EFFORT = re.compile(r"[-: ]\(?(none|minimal|low|medium|high|xhigh|thinking)\)?$")
"""Reasoning effort behind a model's name, as some tools write it: `gpt-5-high`, `gpt-5 (high)`."""
_VERSION_FIRST = re.compile(r"claude-([4-9](?:[-.]\d)?)-(fable|opus|sonnet|haiku)\b")
"""The order of Claude 3's names, which some sellers keep: `claude-4.5-sonnet`."""


def bare(name: str) -> str:
    """Return the name in lower case, without the path of a reseller: `openrouter/anthropic/…`, `models/…`.

    Aliases are spelled out: `sonnet` is `claude-sonnet-5-5`, `opus-4.8[1m]` is `claude-opus-4.8[1m]`, `claude-4.6-sonnet` is
    `claude-sonnet-4.6`.
    """
    short = _VERSION_FIRST.sub(r"claude-\2-\1", name.strip().rpartition("/")[2].lower()[:LONGEST])
    alias = _CLAUDE_ALIAS.fullmatch("opus" if short == "opusplan" else short)
    if alias is None:
        return short
    return f"claude-{alias['class']}{alias['version'] or '-' + NEWEST_CLAUDE[alias['class']]}{alias['window'] or ''}"


def spellings(name: str) -> Iterator[str]:
    """Yield the name as price lists may spell it, the likeliest first.

    Handles `openai:gpt-5`, `ft:gpt-4o:someone::id`, `us.openai.gpt-6-sol`, `gpt-oss:20b` and `gpt-5-high`.
    """
    short = bare(name)
    yield from _spellings(short)
    if (without_effort := _EFFORT.sub("", short)) != short:
        yield from _spellings(without_effort)


def _spellings(short: str) -> Iterator[str]:
    yield short
    if short.startswith("nova-"):
        yield f"amazon.{short}"
    pieces = [short]
    if ":" in short:
        yield short.replace(":", "-", 1)
        pieces = [piece for piece in dict.fromkeys((*short.split(":")[:2], short.partition(":")[2])) if piece]
        yield from pieces
    for piece in pieces:
        if (without := _BEDROCK_PREFIX.sub("", piece)) != piece:
            yield without
            yield re.sub(r"-1$", "", without)  # Bedrock's revision, `-1:0`


def family(name: str) -> Family:
    """Return the family of the model, which identifies its maker."""
    lower = name.lower()
    if "claude" in lower or "claude" in bare(name):
        return "claude"
    if re.search(r"\b(gpt|chatgpt|o[1-9]|codex)", lower):
        return "openai"
    return "google" if re.search(r"gemini|gemma", lower) else "other"


def is_on_vertex(name: str) -> bool:
    """True if the name says that Vertex AI serves the model: `vertex_ai/…`, `google-vertex:…`, `publishers/google/models/…`, `vercel/…`."""
    return re.search(r"vertex|publishers/google/|vercel", name.lower()[:LONGEST]) is not None


def is_on_responses(name: str) -> bool:
    """True if the name says that the Responses API serves the model: `responses/…`, `openai/responses/…`, `openai-responses:…`.

    OpenRouter and Vercel use it for OpenAI's models, whatever their own form is: `openrouter/…`, `vercel_ai_gateway/…`.
    """
    return re.search(r"\bresponses[/:]|openrouter|vercel", name.lower()[:LONGEST]) is not None


def claude_version(name: str) -> tuple[int, int]:
    """Return major and minor version: `claude-opus-4-7` is (4, 7), `claude-3-5-haiku` (3, 5)."""
    return _version(r"claude-(?:[a-z]+-)?v?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name if "claude" in name.lower() else bare(name))


def gemini_version(name: str) -> tuple[int, int]:
    """Return major and minor version: `gemini-2.5-pro` is (2, 5). The name of the first version had no number."""
    if re.fullmatch(r"gemini-pro(-vision)?", bare(name)):
        return (1, 0)
    return _version(r"gemini-(?:[a-z]+-){0,4}(\d{1,2})(?:\.(\d{1,2}))?", name)


def _version(pattern: str, name: str) -> tuple[int, int]:
    numbers = re.search(pattern, name.lower())
    return (int(numbers[1]), int(numbers[2] or 0)) if numbers else NEWEST
