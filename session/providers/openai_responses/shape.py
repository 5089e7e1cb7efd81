"""R0: whether a payload has the shape of input items of the Responses API, laid out for the rules in `rules.py`.

Written from the API's published types, and tried on requests that it took: the types ask for more than the API does. It shares no
code with the converter it checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from session.errors import FormatError, short
from session.providers.violations import Violation, text_of, wire_size

REQUIRED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "message": {"role": str},
    "function_call": {"call_id": str, "name": str, "arguments": str},
    "function_call_output": {"call_id": str, "output": (str, list, tuple)},
    "custom_tool_call": {"call_id": str, "name": str, "input": str},
    "custom_tool_call_output": {"call_id": str, "output": (str, list, tuple)},
    "reasoning": {"summary": (list, tuple)},
    "computer_call": {"call_id": str},
    "computer_call_output": {"call_id": str, "output": Mapping},
    "local_shell_call": {"call_id": str, "action": Mapping},
    "local_shell_call_output": {"id": str, "output": str},
    "shell_call": {"call_id": str, "action": Mapping},
    "shell_call_output": {"call_id": str, "output": (list, tuple)},
    "apply_patch_call": {"call_id": str, "operation": Mapping},
    "apply_patch_call_output": {"call_id": str, "status": str},
    "mcp_approval_request": {"id": str, "name": str, "arguments": str},
    "mcp_approval_response": {"approval_request_id": str, "approve": bool},
    "mcp_call": {"id": str, "name": str, "arguments": str},
    "mcp_list_tools": {"id": str, "server_label": str, "tools": (list, tuple)},
    "tool_search_call": {"arguments": object},
    "tool_search_output": {"tools": (list, tuple)},
    "web_search_call": {"id": str},
    "file_search_call": {"id": str},
    "code_interpreter_call": {"id": str},
    "image_generation_call": {"id": str},
    "compaction": {"encrypted_content": str},
    "compaction_trigger": {},
    "configuration_update": {},
    "additional_tools": {"role": str, "tools": (list, tuple)},
    "item_reference": {"id": str},
    "program": {"call_id": str},
    "program_output": {"call_id": str},
}
"""By type of item: the fields it must have, and what they are."""

ONLY: dict[str, set[str]] = {
    "message": {"role", "content", "id", "status", "phase"},
    "function_call": {"call_id", "name", "arguments", "id", "status", "namespace", "caller", "async"},
    "function_call_output": {"call_id", "output", "id", "status", "name", "namespace", "caller"},
    "custom_tool_call": {"call_id", "name", "input", "id", "status", "namespace", "caller", "async"},
    "custom_tool_call_output": {"call_id", "output", "id", "status", "caller"},
    "reasoning": {"id", "summary", "content", "encrypted_content", "status"},
}
"""By type of item: all the fields it may have; nothing is said of other types."""

PARTS: dict[str, tuple[str, ...]] = {
    "input_text": ("text",),
    "output_text": ("text",),
    "refusal": ("refusal",),
    "input_image": ("image_url", "file_id"),
    "input_file": ("file_data", "file_url", "file_id"),
}
"""By type of part: the fields of which it has one, a text."""
_MAY_BE_BLANK = ("text", "refusal")
_OF_USER = {"input_text", "input_image", "input_file"}
_IN = {"assistant": {"output_text", "refusal"}, "system": {"input_text"}, "developer": {"input_text"}}
"""By role: the parts that may stand there; elsewhere, `_OF_USER`."""
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
_DETAILS = ("auto", "low", "high", "original")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a content or an output; one that is a text is one part."""

    where: str
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the input."""

    where: str
    type: str
    data: Mapping[str, Any]
    parts: tuple[Part, ...] = ()


@dataclass(slots=True)
class Payload:
    """What the rules read.

    Attributes:
        continues: Whether a whole request goes on with what the provider keeps: calls may be answered that are not in it.
        items: What had no shape is left out.
        faults: The violations of R0.
    """

    continues: bool = False
    items: list[Item] = field(default_factory=list)
    faults: list[Violation] = field(default_factory=list)

    def fault(self, where: str, message: str) -> None:
        """Notes a violation of R0."""
        self.faults.append(Violation("R0", where, message))


def read_payload(given: object) -> Payload:
    """The payload laid out, with what is wrong with its shape.

    Raises:
        FormatError: It is neither a list nor a mapping with `input`.
    """
    payload = Payload()
    if isinstance(given, Mapping) and "input" in given:
        payload.continues = given.get("previous_response_id") is not None or given.get("conversation") is not None
        items = given["input"]
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        elif isinstance(items, list | tuple) and not items and not payload.continues:
            payload.fault("input", "an empty list: expected at least one item")
    elif isinstance(given, list | tuple):
        items = given
    else:
        raise FormatError("payload", "pass the items as the converter returns them, or a request with `input`")
    _, problem = wire_size(given)
    if problem is not None:
        payload.fault("payload", problem)
    if not isinstance(items, list | tuple):
        payload.fault("input", "neither a text nor a list")
        return payload
    seen: set[str] = set()
    for place, item in enumerate(items):
        _read_item(payload, item, f"input[{place}]", seen)
    return payload


def _read_item(payload: Payload, item: object, where: str, seen: set[str]) -> None:
    if not isinstance(item, Mapping):
        return payload.fault(where, "not an object")
    kind = item.get("type", "message" if "role" in item else None)
    if not isinstance(kind, str) or kind not in REQUIRED:
        return payload.fault(f"{where}.type", f"{short(kind)} is no type of item")
    faults = len(payload.faults)
    for name, wanted in REQUIRED[kind].items():
        if name not in item or not isinstance(item[name], wanted):
            payload.fault(f"{where}.{name}", "missing, or of another type")
    for key in sorted(map(text_of, item.keys() - ONLY.get(kind, set(item)) - {"type"})):
        payload.fault(f"{where}.{key}", f"no field of an item of type {kind}")
    _check_id(payload, kind, item, where, seen)
    if len(payload.faults) > faults:
        return None
    parts: tuple[Part, ...] = ()
    if kind == "message":
        parts = _read_message(payload, item, where)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        parts = _parts(payload, item["output"], f"{where}.output", _OF_USER, "input_text")
    elif kind == "reasoning":
        _check_reasoning(payload, item, where)
    payload.items.append(Item(where, kind, item, parts))
    return None


def _check_id(payload: Payload, kind: str, item: Mapping[str, Any], where: str, seen: set[str]) -> None:
    item_id = item.get("id")
    if item_id is None:
        return
    if not isinstance(item_id, str) or not 0 < len(item_id) <= 64 or not item_id.startswith(PREFIXES.get(kind, "")):
        payload.fault(f"{where}.id", f"{short(item_id)}: expected 1 to 64 characters that begin with {short(PREFIXES.get(kind, ''))}")
    elif item_id in seen and kind != "local_shell_call_output":
        payload.fault(f"{where}.id", f"duplicate item found with id {item_id}")
    else:
        seen.add(item_id)


def _read_message(payload: Payload, message: Mapping[str, Any], where: str) -> tuple[Part, ...]:
    role = message["role"]
    if role not in ("user", "assistant", "system", "developer"):
        payload.fault(f"{where}.role", f"{short(role)} is none of user, assistant, system, developer")
        return ()
    if message.get("phase") not in (None, "commentary", "final_answer"):
        payload.fault(f"{where}.phase", f"{short(message['phase'])} is none of commentary, final_answer")
    text = "output_text" if role == "assistant" else "input_text"
    return _parts(payload, message.get("content"), f"{where}.content", _IN.get(role, _OF_USER), text)


def _parts(payload: Payload, content: object, where: str, allowed: set[str], text: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Part(where, text, {"type": text, "text": content}),)
    if not isinstance(content, list | tuple):
        payload.fault(where, "neither a text nor a list of parts")
        return ()
    found = []
    for place, part in enumerate(content):
        at = f"{where}[{place}]"
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(part, Mapping) or not isinstance(kind, str) or kind not in PARTS or kind not in allowed:
            payload.fault(f"{at}.type", f"{short(kind)}: supported here are {', '.join(sorted(allowed))}")
        elif not any(isinstance(value := part.get(name), str) and (value or name in _MAY_BE_BLANK) for name in PARTS[kind]):
            payload.fault(at, f"none of {', '.join(PARTS[kind])}, or not a text")
        elif kind == "input_image" and part.get("detail", "auto") not in _DETAILS:
            payload.fault(f"{at}.detail", f"{short(part['detail'])} is none of {', '.join(_DETAILS)}")
        else:
            found.append(Part(at, kind, part))
    return tuple(found)


def _check_reasoning(payload: Payload, item: Mapping[str, Any], where: str) -> None:
    for place, part in enumerate(item["summary"]):
        if not isinstance(part, Mapping) or part.get("type") != "summary_text" or not isinstance(part.get("text"), str):
            payload.fault(f"{where}.summary[{place}]", "not of type summary_text, or without its text")
    if not isinstance(item.get("encrypted_content"), str | None):
        payload.fault(f"{where}.encrypted_content", "not a text")
    if not item.get("id") and not item.get("encrypted_content"):
        payload.fault(where, "neither an id nor encrypted content")
