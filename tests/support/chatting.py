"""Conversations of `context-window chat` with stubs of every provider, as a user would start them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.stubs import AnthropicStub, GeminiStub, OpenAIChatStub, OpenAIResponsesStub, Stub

USAGE_LINE = re.compile(
    r"^\S+  ([\d,]+) of ([\d,]+) tokens \S (\d+|<1)%"
    r"(?: \S turn \$([\d.]+)\+? \S session \$([\d.]+)\+?| \S price unknown)$",
    re.MULTILINE,
)
"""The line below each turn: tokens, budget, percent, cost of the turn, cost of the session."""


class Api(NamedTuple):
    """The start of a chat with one provider's stub."""

    stub: type[Stub]
    model: str
    path: str
    options: tuple[str, ...] = ()

    def arguments(self, stub: Stub) -> tuple[str, ...]:
        return ("--model", self.model, "--base-url", f"{stub.url}{self.path}", *self.options)


APIS = {
    "anthropic": Api(AnthropicStub, "claude-sonnet-5-5", ""),
    "openai-responses": Api(OpenAIResponsesStub, "gpt-5.2", "/v1"),
    "openai": Api(OpenAIChatStub, "gpt-5.2", "/v1", ("--provider", "openai")),
    "google": Api(GeminiStub, "gemini-3-pro-preview", ""),
}


def environment(home: Path) -> dict[str, str]:
    """The environment of a chat: keys of all providers, and a folder for its sessions."""
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "key")
    return {**keys, "CONTEXT_WINDOW_HOME": str(home), "NO_PROXY": "127.0.0.1"}


def last_text(request: Mapping[str, Any]) -> str:
    """The newest message of a request to any provider, as text."""
    return str((request.get("messages") or request.get("input") or request.get("contents"))[-1])  # type: ignore[index]
