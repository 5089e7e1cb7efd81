"""Check the shape of Anthropic's messages (A0), and lay out their blocks for the rules in `rules.py`.

Written from the API's published types. It shares no code with the converter it checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from session.errors import FormatError, short
from session.providers.violations import Payload, text_of

_CACHED = {"cache_control"}
_FIELDS: dict[str, tuple[dict[str, type], set[str]]] = {
    "text": ({"text": str}, {"citations"} | _CACHED),
    "image": ({"source": Mapping}, {"transformations"} | _CACHED),
    "document": ({"source": Mapping}, {"title", "context", "citations"} | _CACHED),
    "tool_use": ({"id": str, "name": str, "input": object}, {"caller", "toolset_name"} | _CACHED),
    "tool_result": ({"tool_use_id": str}, {"content", "is_error", "toolset_name"} | _CACHED),
    # No cache_control in these two: rule A7 reports it.
    "thinking": ({"thinking": str, "signature": object}, _CACHED),
    "redacted_thinking": ({"data": object}, _CACHED),
}
"""For each block type: its required fields with their types, and its optional fields. `object` if a rule checks the value."""

_ASSISTANT_ONLY = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use"})
_USER_ONLY = frozenset({"tool_result", "image", "document"})
_RESULT_TYPES = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
_OTHER_TYPES = _RESULT_TYPES | {"server_tool_use", "container_upload", "compaction", "mcp_tool_use", "mcp_tool_result"}
_SOURCES = {
    "base64": ("media_type", "data"),
    "url": ("url",),
    "file": ("file_id",),
    "text": ("media_type", "data"),
    "content": ("content",),
}


@dataclass(frozen=True, slots=True)
class Block:
    """One content block with its place in the payload."""

    where: str
    type: str
    data: Mapping[str, Any]
    inner: tuple[Block, ...] = ()
    """The blocks of a tool result's own content."""


@dataclass(frozen=True, slots=True)
class CheckedMessage:
    """One message."""

    where: str
    role: str
    blocks: tuple[Block, ...]


@dataclass(slots=True)
class AnthropicPayload(Payload):
    """A payload laid out for the rules.

    Attributes:
        turns: The messages, without those that have no valid shape.
        system: The blocks of the system prompt.
        tools: The tool definitions of a whole request.
        thinking: The type of the request's thinking setting, such as "enabled", or None.
        is_request: True for a whole request.
        size: Bytes of the payload as JSON.
    """

    shape: ClassVar[str] = "A0"
    is_request: bool
    turns: list[CheckedMessage] = field(default_factory=list)
    system: tuple[Block, ...] = ()
    tools: tuple[Block, ...] = ()
    thinking: str | None = None
    size: int = 0

    def every_block(self) -> Iterator[Block]:
        """Yield all blocks in the order of the prompt: tools, system, messages. Blocks inside a result precede it."""
        yield from self.tools
        yield from self.system
        for turn in self.turns:
            for block in turn.blocks:
                yield from block.inner
                yield block


def read_payload(raw: object) -> AnthropicPayload:
    """Return the payload laid out for the rules, with the faults of its shape.

    Raises FormatError if it is neither a pair `(messages, system)` nor a mapping with `messages`.
    """
    if isinstance(raw, Mapping) and "messages" in raw:
        payload = AnthropicPayload(is_request=True)
        messages, system = raw["messages"], raw.get("system")
        thinking, tools = raw.get("thinking"), raw.get("tools")
        if isinstance(thinking, Mapping):
            payload.thinking = text_of(thinking.get("type"))
        if isinstance(tools, list | tuple):
            payload.tools = tuple(Block(f"tools[{index}]", "tool", tool) for index, tool in enumerate(tools) if isinstance(tool, Mapping))
    elif isinstance(raw, tuple) and len(raw) == 2:
        payload = AnthropicPayload(is_request=False)
        messages, system = raw
    else:
        raise FormatError("payload", "pass (messages, system) as the converter returns them, or a request with `messages`")
    payload.size = payload.measure(raw)
    if system is not None:
        payload.system = tuple(_blocks(payload, system, "system", "system"))
    if not isinstance(messages, list | tuple):
        payload.fault("messages", "not a list")
        return payload
    for index, message in enumerate(messages):
        _read_message(payload, message, f"messages[{index}]")
    return payload


def _read_message(payload: AnthropicPayload, message: object, where: str) -> None:
    if not isinstance(message, Mapping):
        return payload.fault(where, "not an object")
    payload.refuse_others(where, message, {"role", "content"}, "extra inputs are not permitted")
    role = message.get("role")
    if role not in ("user", "assistant"):
        return payload.fault(f"{where}.role", f"{short(role)} is neither user nor assistant")
    payload.turns.append(CheckedMessage(where, role, tuple(_blocks(payload, message.get("content"), f"{where}.content", role))))
    return None


def _blocks(payload: AnthropicPayload, content: object, where: str, inside: str) -> Iterator[Block]:
    """Yield the blocks of a content. `inside` is the role of its message, or "system", or "tool_result"."""
    if isinstance(content, str):
        yield Block(where, "text", {"type": "text", "text": content})
    elif isinstance(content, Sequence) and not isinstance(content, bytes):
        for index, block in enumerate(content):
            yield from _block(payload, block, f"{where}[{index}]", inside)
    else:
        payload.fault(where, "neither a text nor a list of blocks")


def _block(payload: AnthropicPayload, block: object, where: str, inside: str) -> Iterator[Block]:
    if not isinstance(block, Mapping):
        return payload.fault(where, "not an object")
    kind = block.get("type")
    if not isinstance(kind, str) or not (kind in _FIELDS or kind in _OTHER_TYPES or kind.endswith("_tool_result")):
        return payload.fault(f"{where}.type", f"{short(kind)} is no type of block")
    if not _is_allowed(kind, inside):
        payload.fault(where, f"a {kind} block is not allowed in {inside}")
    if not _has_fields(payload, kind, block, where):
        return None
    # The content "" is empty, not an empty text block. A result inside a result is refused anyway, and may be nested without end.
    inner = (block.get("content") or ()) if kind == "tool_result" and inside != "tool_result" else ()
    yield Block(where, kind, block, tuple(_blocks(payload, inner, f"{where}.content", "tool_result")))
    return None


def _is_allowed(kind: str, inside: str) -> bool:
    if inside == "system":
        return kind == "text"
    if inside == "tool_result":
        return kind in _RESULT_TYPES
    return kind not in (_USER_ONLY if inside == "assistant" else _ASSISTANT_ONLY)


def _has_fields(payload: AnthropicPayload, kind: str, block: Mapping[str, Any], where: str) -> bool:
    if kind not in _FIELDS:
        return True
    required, optional = _FIELDS[kind]
    before = len(payload.faults)
    for name, expected_type in required.items():
        if name not in block or not isinstance(block[name], expected_type):
            payload.fault(f"{where}.{name}", f"missing, or not of type {expected_type.__name__}")
    payload.refuse_others(where, block, {*required, *optional, "type"}, "extra inputs are not permitted")
    if not isinstance(block.get("is_error", False), bool):
        payload.fault(f"{where}.is_error", "not a boolean")
    if kind in ("image", "document") and len(payload.faults) == before:
        _check_source(payload, kind, block["source"], f"{where}.source")
    return len(payload.faults) == before


def _check_source(payload: AnthropicPayload, kind: str, source: Mapping[str, Any], where: str) -> None:
    names = _SOURCES.get(text_of(source.get("type")))
    if names is None or (kind == "image" and source["type"] in ("text", "content")):
        return payload.fault(f"{where}.type", f"{short(source.get('type'))} is no source of {kind}s")
    for name in names:
        if source["type"] != "content" and not (isinstance(source.get(name), str) and source[name]):
            payload.fault(f"{where}.{name}", "missing, empty or not a text")
    return None
