"""Parse items of OpenAI's Responses API into pieces, except messages: those look like other APIs' messages, and `writer.py` reads them."""

from __future__ import annotations

from dataclasses import replace

from session.parts import Text
from session.providers.pieces import OPENAI, Call, Piece, Result, Thought

from .block_parser import result_parts, text_or_json, without_secrets
from .call_ids import UNKNOWN_TOOL
from .openai_fields import call_metadata
from .values import JsonObject, id_at, json_text, list_at, text_at

_ITEM_TYPES = ("function_call", "custom_tool_call", "reasoning", "compaction", "additional_tools", "mcp_list_tools", "item_reference")


def is_item(value: JsonObject) -> bool:
    """True if the object is an item of the Responses API, and not a message."""
    kind = value.get("type")
    if not isinstance(kind, str) or (text_at(value, "role") and kind != "additional_tools"):
        return False
    if kind in ("function_call", "custom_tool_call"):
        return "name" in value
    return kind in _ITEM_TYPES or kind.endswith(("_call", "_call_output")) or kind == "tool_search_output"


def pieces_of_item(item: JsonObject, reasons: list[str]) -> list[Piece]:
    """Return the pieces of an item. An item of a tool that the provider ran gives the call and its result.

    Args:
        item: An item for which `is_item` is true.
        reasons: Gets a sentence for an item that the model does not see.
    """
    kind = text_at(item, "type")
    own_id = id_at(item, "call_id", "id")
    match kind:
        case "reasoning":
            return [_reasoning(item)]
        case "compaction":
            return [Thought(data=text_at(item, "encrypted_content"), provider=OPENAI)]
        case "function_call" | "custom_tool_call":
            arguments = item.get("arguments" if kind == "function_call" else "input")
            metadata = call_metadata(kind, text_at(item, "namespace"))
            return [Call(own_id, text_at(item, "name") or UNKNOWN_TOOL, arguments, metadata)]
        case "additional_tools" | "mcp_list_tools":
            reasons.append("left out tools that are added here; they are among the tools of the request")
            return []
        case "item_reference":
            reasons.append("the provider holds what it refers to")
            return []
    if kind.endswith("_output"):
        output = item.get("output", item.get("tools"))
        return [Result(id_at(item, "call_id"), result_parts(output, reasons))]
    return _server_call(item, kind, own_id)


def _reasoning(item: JsonObject) -> Thought:
    texts = [text_at(part, "text") for part in (*list_at(item, "summary"), *list_at(item, "content")) if isinstance(part, dict)]
    return Thought("\n".join(texts), data=text_at(item, "encrypted_content") or None, provider=OPENAI)


def _server_call(item: JsonObject, kind: str, own_id: str) -> list[Piece]:
    name = text_at(item, "name") or kind.removesuffix("_call")
    other_fields = {key: value for key, value in without_secrets(item).items() if key not in _NOT_ARGUMENTS}
    arguments = text_or_json(item["arguments"]) if "arguments" in item else json_text(other_fields)
    call = Call(own_id, name, arguments, {"type": kind})
    if kind in ("tool_search_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"):
        return [replace(call, id=id_at(item, "call_id"))]  # its result is a separate item, which names this id only
    result = next((item[key] for key in _RESULT_FIELDS if item.get(key) is not None), text_at(item, "status") or "completed")
    text = result if isinstance(result, str) else json_text(result)
    return [call, Result(own_id, (Text(text),), "error" in item and item["error"] is not None)]


_RESULT_FIELDS = ("output", "outputs", "results", "result", "error")
"""The fields that may hold the result of a tool that the provider ran."""
_NOT_ARGUMENTS = frozenset({"type", "id", "call_id", "status", "name", *_RESULT_FIELDS})
