"""Check the shape of input items of the Responses API (R0), and lay them out for the rules in `rules.py`.

Written from the API's published types, and tested on requests that the API accepted: it requires less than the types. It shares no code
with the converter it checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from session.errors import FormatError, short
from session.providers.violations import CheckedPart, Payload

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
"""For each type of item: its required fields and the types of their values."""

ALLOWED_FIELDS: dict[str, set[str]] = {
    "message": {"role", "content", "id", "status", "phase"},
    "function_call": {"call_id", "name", "arguments", "id", "status", "namespace", "caller", "async"},
    "function_call_output": {"call_id", "output", "id", "status", "name", "namespace", "caller"},
    "custom_tool_call": {"call_id", "name", "input", "id", "status", "namespace", "caller", "async"},
    "custom_tool_call_output": {"call_id", "output", "id", "status", "caller"},
    "reasoning": {"id", "summary", "content", "encrypted_content", "status"},
}
"""For some types of items: all the fields that they may have. Other types are not restricted."""

PARTS: dict[str, tuple[str, ...]] = {
    "input_text": ("text",),
    "output_text": ("text",),
    "refusal": ("refusal",),
    "input_image": ("image_url", "file_id"),
    "input_file": ("file_data", "file_url", "file_id"),
}
"""For each type of part: the fields of texts. It must have one of them."""
_MAY_BE_BLANK = ("text", "refusal")
_USER_PARTS = {"input_text", "input_image", "input_file"}
_ROLE_PARTS = {"assistant": {"output_text", "refusal"}, "system": {"input_text"}, "developer": {"input_text"}}
"""The types of parts that a role may hold; `_USER_PARTS` for other roles."""
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
_DETAILS = ("auto", "low", "high", "original")


@dataclass(frozen=True, slots=True)
class ResponsesItem:
    """One item of the input."""

    where: str
    type: str
    data: Mapping[str, Any]
    parts: tuple[CheckedPart, ...] = ()


@dataclass(slots=True)
class ResponsesPayload(Payload):
    """A payload laid out for the rules.

    Attributes:
        continues: True if a whole request continues a conversation that the provider stored: it may answer calls that it does not hold.
        items: The items, without those that have no valid shape.
    """

    shape: ClassVar[str] = "R0"
    continues: bool = False
    items: list[ResponsesItem] = field(default_factory=list)


def read_payload(raw: object) -> ResponsesPayload:
    """Return the payload laid out for the rules, with the faults of its shape.

    Raises FormatError if it is neither a list nor a mapping with `input`.
    """
    payload = ResponsesPayload()
    if isinstance(raw, Mapping) and "input" in raw:
        payload.continues = raw.get("previous_response_id") is not None or raw.get("conversation") is not None
        items = raw["input"]
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        elif isinstance(items, list | tuple) and not items and not payload.continues:
            payload.fault("input", "an empty list: expected at least one item")
    elif isinstance(raw, list | tuple):
        items = raw
    else:
        raise FormatError("payload", "pass the items as the converter returns them, or a request with `input`")
    payload.measure(raw)
    if not isinstance(items, list | tuple):
        payload.fault("input", "neither a text nor a list")
        return payload
    used_ids: set[str] = set()
    for index, item in enumerate(items):
        _read_item(payload, item, f"input[{index}]", used_ids)
    return payload


def _read_item(payload: ResponsesPayload, item: object, where: str, used_ids: set[str]) -> None:
    if not isinstance(item, Mapping):
        return payload.fault(where, "not an object")
    kind = item.get("type", "message" if "role" in item else None)
    if not isinstance(kind, str) or kind not in REQUIRED:
        return payload.fault(f"{where}.type", f"{short(kind)} is no type of item")
    faults = len(payload.faults)
    for name, expected_type in REQUIRED[kind].items():
        if name not in item or not isinstance(item[name], expected_type):
            payload.fault(f"{where}.{name}", "missing, or of another type")
    if kind in ALLOWED_FIELDS:
        payload.refuse_others(where, item, {*ALLOWED_FIELDS[kind], "type"}, f"no field of an item of type {kind}")
    _check_id(payload, kind, item, where, used_ids)
    if len(payload.faults) > faults:
        return None
    parts: tuple[CheckedPart, ...] = ()
    if kind == "message":
        parts = _read_message(payload, item, where)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        parts = _parts(payload, item["output"], f"{where}.output", _USER_PARTS, "input_text")
    elif kind == "reasoning":
        _check_reasoning(payload, item, where)
    payload.items.append(ResponsesItem(where, kind, item, parts))
    return None


def _check_id(payload: ResponsesPayload, kind: str, item: Mapping[str, Any], where: str, used_ids: set[str]) -> None:
    item_id = item.get("id")
    if item_id is None:
        return
    if not isinstance(item_id, str) or not 0 < len(item_id) <= 64 or not item_id.startswith(PREFIXES.get(kind, "")):
        payload.fault(f"{where}.id", f"{short(item_id)}: expected 1 to 64 characters that begin with {short(PREFIXES.get(kind, ''))}")
    elif item_id in used_ids and kind != "local_shell_call_output":
        payload.fault(f"{where}.id", f"duplicate item found with id {item_id}")
    else:
        used_ids.add(item_id)


def _read_message(payload: ResponsesPayload, message: Mapping[str, Any], where: str) -> tuple[CheckedPart, ...]:
    role = message["role"]
    if role not in ("user", "assistant", "system", "developer"):
        payload.fault(f"{where}.role", f"{short(role)} is none of user, assistant, system, developer")
        return ()
    if message.get("phase") not in (None, "commentary", "final_answer"):
        payload.fault(f"{where}.phase", f"{short(message['phase'])} is none of commentary, final_answer")
    text = "output_text" if role == "assistant" else "input_text"
    return _parts(payload, message.get("content"), f"{where}.content", _ROLE_PARTS.get(role, _USER_PARTS), text)


def _parts(payload: ResponsesPayload, content: object, where: str, allowed: set[str], text: str) -> tuple[CheckedPart, ...]:
    if isinstance(content, str):
        return (CheckedPart(where, text, {"type": text, "text": content}),)
    if not isinstance(content, list | tuple):
        payload.fault(where, "neither a text nor a list of parts")
        return ()
    parts = []
    for index, part in enumerate(content):
        at = f"{where}[{index}]"
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(part, Mapping) or not isinstance(kind, str) or kind not in PARTS or kind not in allowed:
            payload.fault(f"{at}.type", f"{short(kind)}: the supported types are {', '.join(sorted(allowed))}")
        elif not any(isinstance(value := part.get(name), str) and (value or name in _MAY_BE_BLANK) for name in PARTS[kind]):
            payload.fault(at, f"none of {', '.join(PARTS[kind])}, or not a text")
        elif kind == "input_image" and part.get("detail", "auto") not in _DETAILS:
            payload.fault(f"{at}.detail", f"{short(part['detail'])} is none of {', '.join(_DETAILS)}")
        else:
            parts.append(CheckedPart(at, kind, part))
    return tuple(parts)


def _check_reasoning(payload: ResponsesPayload, item: Mapping[str, Any], where: str) -> None:
    for index, part in enumerate(item["summary"]):
        if not isinstance(part, Mapping) or part.get("type") != "summary_text" or not isinstance(part.get("text"), str):
            payload.fault(f"{where}.summary[{index}]", "not of type summary_text, or without its text")
    if not isinstance(item.get("encrypted_content"), str | None):
        payload.fault(f"{where}.encrypted_content", "not a text")
    if not item.get("id") and not item.get("encrypted_content"):
        payload.fault(where, "neither an id nor encrypted content")
