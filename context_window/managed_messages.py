"""`manage`: the messages that a model should see, in the format in which they came. One function before any call of a model.

    messages = manage(messages, model="claude-sonnet-5-5")

It decides as the gateway does. The result is a function of the arguments: nothing is kept that a later call depends on, so a list that is
made anew at every turn gives the same views, and the provider's cache holds, as with a session that grows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from session.errors import FormatError, short

from .errors import ArgumentError
from .models.names import family
from .settings.context_window import ContextWindow

if TYPE_CHECKING:
    from .gateway.windows import Windows
    from .gateway.wire_format import MessageFormat

Json = dict[str, Any]
M = TypeVar("M")

ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"})
CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal"})
RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
VERCEL_BLOCKS = frozenset({"tool-call", "tool-result", "tool-approval-request", "tool-approval-response", "reasoning"})
LANGCHAIN_TYPES = frozenset({"human", "ai", "system", "tool", "function"})
CONVERSE_BLOCKS = frozenset(
    {"text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent", "cachePoint", "reasoningContent"}
    | {"citationsContent", "searchResult"}
)
LEVELS_MAX = 200
SMOLAGENTS_ROLES = frozenset({"tool-call", "tool-response"})


def manage(
    messages: Sequence[M],
    *,
    model: str,
    max_tokens: int | Literal["auto"] = "auto",
    window: ContextWindow | None = None,
    system: str = "",
    tools: Sequence[Mapping[str, Any]] = (),
) -> list[M]:
    """Return the messages that fit the window. Those that stay whole are the same objects; if all do, the list is equal to the one given.

    Args:
        messages: All messages of the conversation so far, as they would be sent: of Anthropic's Messages API, OpenAI's Chat Completions or
            Responses, Google's `contents`, Bedrock's Converse API, Vercel's AI SDK (`ModelMessage`), smolagents, LlamaIndex, AutoGen
            (`LLMMessage`) or the Agent Framework. Each is a dictionary, or an object of the client or framework, such as `types.Content`.
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

    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise ArgumentError("messages", messages, "pass a list of messages, each a dictionary")
    given = [_as_dict(message, messages) for message in messages]
    for name, text in (("model", model), ("system", system)):
        if not isinstance(text, str):
            raise ArgumentError(name, text, "pass a text")
    if not given:
        return []
    for index, message in enumerate(given):
        _check(message, f"messages[{index}]")
    _check(list(tools), "tools")
    wire = _format_of(given, model, are_steps=hasattr(messages[0], "render_as_markdown"))
    conversation = RequestConversation(model, system, given, list(tools), {}, None)
    try:
        fitted = _windows(ContextWindow(max_tokens=max_tokens) if window is None else window).fit(wire, conversation)
    except RecursionError:
        raise FormatError("messages", "nested too deeply") from None
    return list(messages) if fitted is None else _as_given(wire.in_order({}, fitted), given, messages)


def _as_dict(message: object, messages: object) -> Json:
    """Return a message as a dictionary: itself, or its fields."""
    if isinstance(message, dict):
        return message
    if callable(dump := getattr(message, "model_dump", None)):
        return dump(mode="json", by_alias=True, exclude_none=True)  # type: ignore[no-any-return]  # a dictionary, of any model
    if callable(dump := getattr(message, "to_dict", None)):
        return dump()  # type: ignore[no-any-return]  # likewise
    if hasattr(message, "role") and hasattr(message, "content"):
        return {"role": message.role, "content": message.content}
    raise ArgumentError("messages", messages, "pass a list of messages, each a dictionary")


def _as_given(view: Sequence[Json], dictionaries: Sequence[Json], messages: Sequence[M]) -> list[M]:
    """Return the messages of a view in the class of those that were given. What stayed whole is the object that was given."""
    originals = {id(each): message for each, message in zip(dictionaries, messages, strict=True)}
    kinds = {type(message) for message in messages}
    made: Callable[[Json], Any] = dict if dict in kinds else _maker(kinds)
    return [originals[id(each)] if id(each) in originals else made(each) for each in view]


def _maker(kinds: set[Any]) -> Callable[[Json], Any]:
    """Return what makes an object from its fields: of the class that their `type` names, or else of the most general one given."""
    general = min(kinds, key=lambda kind: len(kind.__mro__))
    if not hasattr(general, "model_validate"):
        return general.from_dict  # type: ignore[no-any-return]  # smolagents' and the Agent Framework's
    if general.model_config.get("val_json_bytes") == "base64":  # Google's bytes are base64 in JSON only
        return lambda message: general.model_validate_json(json.dumps(message))
    classes = {name: each for name, each in vars(sys.modules[general.__module__]).items() if hasattr(each, "model_validate")}
    return lambda message: classes.get(str(message.get("type")), general).model_validate(message)


def _check(value: Any, where: str) -> None:
    """Raise `FormatError` for what no provider can be sent, and what readers of messages do not expect."""
    try:
        json.dumps(value, default=_elsewhere)
    except (TypeError, ValueError, RecursionError):
        raise FormatError(where, "is no JSON value, or nested too deeply") from None
    if _is_deep(value):
        raise FormatError(where, f"is nested deeper than {LEVELS_MAX} levels")
    if isinstance(value, dict) and not isinstance(value.get("role", ""), str | None):
        raise FormatError(f"{where}.role", f"{short(value['role'])} where a text is expected")
    if isinstance(value, dict) and isinstance(value.get("content"), bytes):
        raise FormatError(f"{where}.content", "bytes where a text or a list is expected")


def _is_deep(value: object) -> bool:
    """True for more than `LEVELS_MAX` levels. How deep `json` goes before it raises depends on the version of Python."""
    level = [value]
    for _ in range(LEVELS_MAX):
        level = [
            member
            for holder in level
            if isinstance(holder, dict | list | tuple)
            for member in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not level:
            return False
    return True


def _elsewhere(value: object) -> str:
    """Let pass what a framework converts itself: bytes, as boto3's images are, and objects, as smolagents' images are."""
    if isinstance(value, bytes) or type(value).__module__ != "builtins":
        return ""
    raise TypeError


@lru_cache(maxsize=16)
def _windows(window: ContextWindow) -> Windows:
    """Return what fits conversations. It is kept to save work: the views would be the same without."""
    from .gateway.windows import Windows

    return Windows(window)


def _format_of(messages: Sequence[Json], model: str, *, are_steps: bool = False) -> MessageFormat:
    """Return the format of the messages. Where all formats look alike, the model decides.

    Args:
        messages: The messages.
        model: The model's name.
        are_steps: True if they are objects of smolagents.
    """
    from .gateway.agent_framework_messages import AgentFrameworkFormat
    from .gateway.anthropic_messages import AnthropicWire
    from .gateway.autogen_messages import TYPES, AutoGenFormat
    from .gateway.converse_messages import ConverseFormat
    from .gateway.google_contents import GoogleWire
    from .gateway.llamaindex_messages import LlamaIndexFormat
    from .gateway.openai_chat import ChatWire
    from .gateway.openai_responses import ResponsesWire
    from .gateway.smolagents_messages import SmolagentsFormat, role_of
    from .gateway.vercel_messages import VercelFormat

    if any(str(message.get("type")) in LANGCHAIN_TYPES for message in messages):
        raise ArgumentError("messages", messages, "these are LangChain's messages; use context_window.integrations.langchain")
    if are_steps or any(role_of(message) in SMOLAGENTS_ROLES for message in messages):
        return SmolagentsFormat()
    if any(_is_vercel(block) for message in messages for block in _blocks(message)):
        return VercelFormat()
    if isinstance(messages[0].get("contents"), list):
        return AgentFrameworkFormat()
    if isinstance(messages[0].get("blocks"), list):
        return LlamaIndexFormat()
    if str(messages[0].get("type")) in TYPES:
        return AutoGenFormat()
    for index, message in enumerate(messages):
        for block in _blocks(message):
            if "type" not in block and CONVERSE_BLOCKS.isdisjoint(block):
                names = ", ".join(sorted(map(short, block))[:3])
                problem = f"a block of message {index} has no type and only {names}; pass messages of a format that `manage` names"
                raise ArgumentError("messages", messages, problem)
    for message in messages:
        if isinstance(parts := message.get("parts"), list):
            if any(isinstance(part, dict) and "type" in part for part in parts):
                raise ArgumentError("messages", messages, "these are Vercel's UI messages; pass what `convertToModelMessages` returns")
            return GoogleWire()
        if "tool_calls" in message or message.get("role") in ("system", "developer", "tool", "function"):
            return ChatWire()
        blocks = _blocks(message)
        if any("type" not in block for block in blocks):
            return ConverseFormat()
        marks = {str(block["type"]) for block in blocks}
        if isinstance(message.get("type"), str) or marks & RESPONSES_BLOCKS:
            return ResponsesWire()
        if marks & ANTHROPIC_BLOCKS:
            return AnthropicWire()
        if marks & CHAT_BLOCKS:
            return ChatWire()
        if "role" not in message:
            raise ArgumentError("messages", messages, "a message has neither a role nor a type")
    return AnthropicWire() if family(model) == "claude" else ChatWire()


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _is_vercel(block: Json) -> bool:
    """True for a block that only Vercel's AI SDK has."""
    kind = str(block.get("type"))
    is_file = kind == "file" and not {"mediaType", "mimeType"}.isdisjoint(block)
    return kind in VERCEL_BLOCKS or is_file or (kind == "image" and "image" in block)
