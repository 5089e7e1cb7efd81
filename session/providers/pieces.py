"""What a block of a provider's message holds: the parts, thoughts, calls and results that parsers return and readers turn into items.

Values only. The parsers are in each provider's package and in `session/transcripts/block_parser.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from session.parts import Part

OPENAI, GOOGLE = "openai", "google"
"""The provider that made a piece of reasoning, in `extra["provider"]`. Anthropic's reasoning has no such entry."""


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning, in the fields of `Reasoning`. `provider` is empty for Anthropic's."""

    text: str = ""
    signature: str | None = None
    data: str | None = None
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `id` is empty if the source has none; `arguments` are the text or the JSON value that the source has."""

    id: str
    name: str
    arguments: object
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """A tool result. `call_id` and `name` are empty if the source has none."""

    call_id: str
    parts: tuple[Part, ...]
    is_error: bool = False
    name: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)


Piece: TypeAlias = Part | Thought | Call | Result
