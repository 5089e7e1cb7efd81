"""`manage`: the messages that a model should see, in the format in which they came. One function before any call of a model.

    messages = manage(messages, model="claude-sonnet-5-5")

It decides as the gateway does. The result is a function of the arguments: nothing is kept that a later call depends on, so a list that is
made anew at every turn gives the same views, and the provider's cache holds, as with a session that grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from session.errors import FormatError, short

from .errors import ArgumentError
from .models.names import family
from .settings.context_window import ContextWindow

if TYPE_CHECKING:
    from .gateway.windows import Windows
    from .gateway.wire_format import WireFormat

Json = dict[str, Any]

ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"})
CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal"})
RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
OTHER_BLOCKS = {"toolUse": "Bedrock's Converse API", "toolResult": "Bedrock's Converse API", "tool-call": "Vercel", "tool-result": "Vercel"}
"""Marks of formats that `manage` cannot write back."""


def manage(
    messages: Sequence[Mapping[str, Any]],
    *,
    model: str,
    max_tokens: int | Literal["auto"] = "auto",
    window: ContextWindow | None = None,
    system: str = "",
    tools: Sequence[Mapping[str, Any]] = (),
) -> list[Json]:
    """Return the messages that fit the window. Those that stay whole are the same objects; if all do, the list is equal to the one given.

    Args:
        messages: All messages of the conversation so far, as they would be sent: of Anthropic's Messages API, OpenAI's Chat Completions or
            Responses, or Google's `contents`.
        model: The model's name.
        max_tokens: Tokens that a request may have; `auto` for the window that costs least by the model's prices.
        window: Other settings. Its `max_tokens` counts, not the argument.
        system: The system prompt, if it stands outside the messages.
        tools: The tool definitions that are sent with them.

    Raises:
        ArgumentError: This is no list of messages in one of these formats.
        FormatError: A message cannot be read.
        UnknownModelError: The model's window is unknown; pass `max_tokens`.
        ContextOverflowError: The task and the newest messages alone do not fit.
    """
    from .gateway.wire_format import RequestConversation

    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not all(isinstance(each, dict) for each in messages):
        raise ArgumentError("messages", messages, "pass a list of messages, each a dictionary")
    for name, text in (("model", model), ("system", system)):
        if not isinstance(text, str):
            raise ArgumentError(name, text, "pass a text")
    given: list[Any] = list(messages)
    if not given:
        return []
    for index, message in enumerate(given):
        _check(message, f"messages[{index}]")
    _check(list(tools), "tools")
    wire = _wire_of(given, model)
    conversation = RequestConversation(model, system, given, list(tools), {}, None)
    try:
        fitted = _windows(ContextWindow(max_tokens=max_tokens) if window is None else window).fit(wire, conversation)
    except RecursionError:
        raise FormatError("messages", "nested too deeply") from None
    return given if fitted is None else wire.in_order({}, fitted)


def _check(value: Any, where: str) -> None:
    """Raise `FormatError` for what no provider can be sent, and what readers of messages do not expect."""
    from .gateway.body_json import json_bytes

    try:
        json_bytes(value)
    except (TypeError, ValueError, RecursionError):
        raise FormatError(where, "is no JSON value, or nested too deeply") from None
    if isinstance(value, dict) and not isinstance(value.get("role", ""), str | None):
        raise FormatError(f"{where}.role", f"{short(value['role'])} where a text is expected")


@lru_cache(maxsize=16)
def _windows(window: ContextWindow) -> Windows:
    """Return what fits conversations. It is kept to save work: the views would be the same without."""
    from .gateway.windows import Windows

    return Windows(window)


def _wire_of(messages: Sequence[Json], model: str) -> WireFormat:
    """Return the format of the messages. Where all formats look alike, the model decides."""
    from .gateway.anthropic_messages import AnthropicWire
    from .gateway.google_contents import GoogleWire
    from .gateway.openai_chat import ChatWire
    from .gateway.openai_responses import ResponsesWire

    for message in messages:
        if isinstance(message.get("parts"), list):
            return GoogleWire()
        if "tool_calls" in message or message.get("role") in ("system", "developer", "tool", "function"):
            return ChatWire()
        content = message.get("content")
        marks = (
            {mark for block in content if isinstance(block, dict) for mark in (block.get("type"), *block) if isinstance(mark, str)}
            if isinstance(content, list)
            else set()
        )
        if other := next((OTHER_BLOCKS[mark] for mark in OTHER_BLOCKS if mark in marks), None):
            raise ArgumentError("messages", messages, f"these are messages of {other}; pass those of Anthropic, OpenAI or Google")
        if isinstance(message.get("type"), str) or marks & RESPONSES_BLOCKS:
            return ResponsesWire()
        if marks & ANTHROPIC_BLOCKS:
            return AnthropicWire()
        if marks & CHAT_BLOCKS:
            return ChatWire()
        if "role" not in message:
            raise ArgumentError("messages", messages, "a message has neither a role nor a type")
    return AnthropicWire() if family(model) == "claude" else ChatWire()
