"""Builds the plain items of a saved session, which nearly all are, in a third of the time that the classes take to check every field.

An item is plain if it has no field but its class's own, its id and its time, and at most one part, a text. Data is not trusted: values that
are not exactly those of a plain item give None, and the classes decide (`serial.py`).
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from .base import copy_with
from .items import ROLES, FunctionCall, FunctionCallOutput, Item, Message
from .parts import Part, Text
from .sanitize import clean

_MESSAGES: dict[str, Message] = {role: Message(role, "") for role in ROLES}
_CALL = FunctionCall("", "", "")
_OUTPUT = FunctionCallOutput("", "", "")
"""Items with the values that plain ones have in common."""


def plain_item(values: object) -> Item | None:
    """Return the item that these JSON values describe; None if they are not those of a plain item."""
    if type(values) is not dict:
        return None
    item_id, created_at = values.get("id"), values.get("created_at")
    if not (_is_clean(item_id) and item_id and type(created_at) is float and isfinite(created_at)):
        return None
    match values.get("type"):
        case "message":
            return _message(values, item_id, created_at)
        case "function_call":
            return _call(values, item_id, created_at)
        case "function_call_output":
            return _output(values, item_id, created_at)
    return None


def _message(values: dict[str, Any], item_id: object, created_at: float) -> Message | None:
    role, content = values.get("role"), _parts(values.get("content"))
    if len(values) != 5 or type(role) is not str or role not in _MESSAGES or content is None:
        return None
    return copy_with(_MESSAGES[role], id=item_id, created_at=created_at, content=content, extra={})


def _call(values: dict[str, Any], item_id: object, created_at: float) -> FunctionCall | None:
    name, arguments, call_id = values.get("name"), values.get("arguments"), values.get("call_id")
    if not (len(values) == 6 and _is_clean(name) and _is_clean(arguments) and _is_clean(call_id)):
        return None
    return copy_with(_CALL, id=item_id, created_at=created_at, name=name, arguments=arguments, call_id=call_id, metadata={}, extra={})


def _output(values: dict[str, Any], item_id: object, created_at: float) -> FunctionCallOutput | None:
    name, output, call_id = values.get("name"), _parts(values.get("output")), values.get("call_id")
    if not (len(values) == 6 and _is_clean(name) and output is not None and _is_clean(call_id)):
        return None
    return copy_with(_OUTPUT, id=item_id, created_at=created_at, name=name, output=output, call_id=call_id, extra={})


def _parts(values: object) -> tuple[Part, ...] | None:
    """Return no part or a text; None for anything else."""
    if type(values) is not list or len(values) > 1:
        return None
    if not values:
        return ()
    part = values[0]
    is_text = type(part) is dict and len(part) == 2 and part.get("type") == "text" and _is_clean(part.get("text"))
    return (Text(part["text"]),) if is_text else None


def _is_clean(text: object) -> bool:
    return type(text) is str and (text.isascii() or clean(text) is text)
