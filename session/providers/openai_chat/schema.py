"""Check the shape of Chat Completions messages (O0), and lay them out for the rules in `rules.py`.

Written from the API's published types, and tested on requests that the API accepted. It shares no code with the converter it checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from session.errors import FormatError, short
from session.providers.violations import CheckedPart, Payload

ROLES: dict[str, set[str]] = {
    "system": {"name"},
    "developer": {"name"},
    "user": {"name"},
    "assistant": {"name", "refusal", "audio", "tool_calls", "function_call", "annotations"},
    "tool": {"tool_call_id"},
    "function": {"name"},
}
"""For each role: the fields that a message may have in addition to role and content."""

PARTS: dict[str, tuple[str, type]] = {
    "text": ("text", str),
    "refusal": ("refusal", str),
    "image_url": ("image_url", Mapping),
    "file": ("file", Mapping),
    "input_audio": ("input_audio", Mapping),
}
"""For each type of part: its one field and the type of the value."""
_DETAILS = ("auto", "low", "high", "original")
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One tool call: its id, the tool's name, and the arguments as text."""

    where: str
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message."""

    where: str
    role: str
    parts: tuple[CheckedPart, ...] = ()
    calls: tuple[ChatCall, ...] = ()
    answers: str | None = None
    """The id of the call that a tool message answers."""


@dataclass(slots=True)
class ChatPayload(Payload):
    """A payload laid out for the rules.

    Attributes:
        is_request: True for a whole request.
        model: The model of a whole request, or an empty text.
        sets_reasoning: True if a whole request sets the reasoning effort.
        messages: The messages, without those that have no valid shape.
    """

    shape: ClassVar[str] = "O0"
    is_request: bool
    model: str = ""
    sets_reasoning: bool = False
    messages: list[ChatMessage] = field(default_factory=list)

    def every_part(self) -> Iterator[tuple[ChatMessage, CheckedPart]]:
        """Yield every part with its message."""
        for message in self.messages:
            for part in message.parts:
                yield message, part


def read_payload(raw: object) -> ChatPayload:
    """Return the payload laid out for the rules, with the faults of its shape.

    Raises FormatError if it is neither a list nor a mapping with `messages`.
    """
    if isinstance(raw, Mapping) and "messages" in raw:
        payload = ChatPayload(is_request=True, sets_reasoning=raw.get("reasoning_effort") is not None)
        payload.model = raw["model"] if isinstance(raw.get("model"), str) else ""
        messages = raw["messages"]
    elif isinstance(raw, list | tuple):
        payload = ChatPayload(is_request=False)
        messages = raw
    else:
        raise FormatError("payload", "pass the messages as the converter returns them, or a request with `messages`")
    payload.measure(raw)
    if not isinstance(messages, list | tuple):
        payload.fault("messages", "not a list")
        return payload
    if payload.is_request and not messages:
        payload.fault("messages", "an empty list: expected at least one message")
    for index, message in enumerate(messages):
        _read_message(payload, message, f"messages[{index}]")
    return payload


def _read_message(payload: ChatPayload, message: object, where: str) -> None:
    if not isinstance(message, Mapping):
        return payload.fault(where, "not an object")
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return payload.fault(f"{where}.role", f"{short(role)} is none of {', '.join(ROLES)}")
    payload.refuse_others(where, message, {*ROLES[role], "role", "content"}, f"no field of a message of role {role}")
    if not isinstance(message.get("name", ""), str) or (role == "function" and not message.get("name")):
        payload.fault(f"{where}.name", "missing, or not a text")
    answers = message.get("tool_call_id")
    if role == "tool" and not isinstance(answers, str):
        payload.fault(f"{where}.tool_call_id", "missing, or not a text")
    parts = tuple(_parts(payload, message, role, f"{where}.content"))
    calls = tuple(_calls(payload, message, f"{where}.tool_calls"))
    payload.messages.append(ChatMessage(where, role, parts, calls, answers if isinstance(answers, str) else None))
    return None


def _parts(payload: ChatPayload, message: Mapping[str, Any], role: str, where: str) -> Iterator[CheckedPart]:
    content = message.get("content")
    if isinstance(content, str):
        yield CheckedPart(where, "text", {"type": "text", "text": content})
    elif isinstance(content, list | tuple):
        if not content:
            payload.fault(where, "an empty list: expected at least one part")
        for index, part in enumerate(content):
            yield from _part(payload, part, f"{where}[{index}]")
    elif content is not None:
        payload.fault(where, "neither a text nor a list of parts")
    elif role != "assistant" or not any(message.get(name) for name in _INSTEAD_OF_CONTENT):
        payload.fault(where, "expected a text or a list of parts, got null")


def _part(payload: ChatPayload, part: object, where: str) -> Iterator[CheckedPart]:
    if not isinstance(part, Mapping):
        return payload.fault(where, "not an object")
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in PARTS:
        return payload.fault(f"{where}.type", f"{short(kind)} is no type of part")
    name, expected_type = PARTS[kind]
    if not isinstance(part.get(name), expected_type):
        return payload.fault(f"{where}.{name}", f"missing, or not of type {expected_type.__name__}")
    payload.refuse_others(where, part, {"type", name, "prompt_cache_breakpoint"}, "no field of such a part")
    if kind == "image_url":
        image = part["image_url"]
        if not isinstance(image.get("url"), str) or not image["url"]:
            return payload.fault(f"{where}.image_url.url", "missing, empty or not a text")
        if image.get("detail", "auto") not in _DETAILS:
            payload.fault(f"{where}.image_url.detail", f"{short(image['detail'])} is none of {', '.join(_DETAILS)}")
    if kind == "file" and not any(isinstance(part["file"].get(key), str) and part["file"][key] for key in ("file_data", "file_id")):
        return payload.fault(f"{where}.file", "neither file_data nor file_id")
    yield CheckedPart(where, kind, part)
    return None


def _calls(payload: ChatPayload, message: Mapping[str, Any], where: str) -> Iterator[ChatCall]:
    calls = message.get("tool_calls")
    if calls is None or message.get("role") != "assistant":
        return
    if not isinstance(calls, list | tuple) or not calls:
        payload.fault(where, "not a list of at least one call")
        return
    for index, call in enumerate(calls):
        at = f"{where}[{index}]"
        kind = call.get("type") if isinstance(call, Mapping) else None
        if not isinstance(call, Mapping) or kind not in ("function", "custom"):
            payload.fault(f"{at}.type", f"{short(kind)} is none of function, custom")
            continue
        field_name = "arguments" if kind == "function" else "input"
        inner = call.get(kind)
        values = [call.get("id"), *((inner.get("name"), inner.get(field_name)) if isinstance(inner, Mapping) else (None, None))]
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) < len(values):
            payload.fault(at, f"id, {kind}.name or {kind}.{field_name} missing, or not a text")
            continue
        yield ChatCall(at, *texts)
