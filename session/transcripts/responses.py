"""The items of OpenAI's Responses API that are no messages, as pieces. Its messages look like those of other APIs."""

from __future__ import annotations

from dataclasses import replace

from session.parts import Text

from .feeding import UNKNOWN_TOOL
from .openai_words import call_metadata
from .pieces import OPENAI, Call, Piece, Result, Thought, arguments_text, shown_parts, without_secrets
from .values import JsonObject, id_at, json_text, list_at, text_at

_OWN = ("function_call", "custom_tool_call", "reasoning", "compaction", "additional_tools", "mcp_list_tools", "item_reference")


def is_item(value: JsonObject) -> bool:
    """Whether the object is such an item."""
    kind = value.get("type")
    if not isinstance(kind, str) or (text_at(value, "role") and kind != "additional_tools"):
        return False
    if kind in ("function_call", "custom_tool_call"):
        return "name" in value
    return kind in _OWN or kind.endswith(("_call", "_call_output")) or kind == "tool_search_output"


def pieces_of_item(item: JsonObject, notes: list[str]) -> list[Piece]:
    """The pieces of the item.

    A tool that the server ran has its answer in the item of its call.

    Args:
        item: For which `is_item`.
        notes: Gets a sentence for what the model is shown in no such way.
    """
    kind = text_at(item, "type")
    own_id = id_at(item, "call_id", "id")
    match kind:
        case "reasoning":
            return [_reasoning(item)]
        case "compaction":
            return [Thought(data=text_at(item, "encrypted_content"), provider=OPENAI)]
        case "function_call" | "custom_tool_call":
            given = item.get("arguments" if kind == "function_call" else "input")
            metadata = call_metadata(kind, text_at(item, "namespace"))
            return [Call(own_id, text_at(item, "name") or UNKNOWN_TOOL, arguments_text(given), metadata)]
        case "additional_tools" | "mcp_list_tools":
            notes.append("left out tools that are added here; they are among the tools of the request")
            return []
        case "item_reference":
            notes.append("the provider holds what it refers to")
            return []
    if kind.endswith("_output"):
        output = item.get("output", item.get("tools"))
        return [Result(id_at(item, "call_id"), shown_parts(output, notes))]
    return _server_call(item, kind, own_id)


def _reasoning(item: JsonObject) -> Thought:
    told = [text_at(part, "text") for part in (*list_at(item, "summary"), *list_at(item, "content")) if isinstance(part, dict)]
    return Thought("\n".join(told), data=text_at(item, "encrypted_content") or None, provider=OPENAI)


def _server_call(item: JsonObject, kind: str, own_id: str) -> list[Piece]:
    name = text_at(item, "name") or kind.removesuffix("_call")
    rest = {key: value for key, value in without_secrets(item).items() if key not in ("type", "id", "call_id", "status", "name", *_ANSWERS)}
    arguments = arguments_text(item["arguments"]) if "arguments" in item else json_text(rest)
    call = Call(own_id, name, arguments, {"type": kind})
    if kind in ("tool_search_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"):
        return [replace(call, id=id_at(item, "call_id"))]  # an item of its own answers it, which knows this id only
    answer = next((item[key] for key in _ANSWERS if item.get(key) is not None), text_at(item, "status") or "completed")
    text = answer if isinstance(answer, str) else json_text(answer)
    return [call, Result(own_id, (Text(text),), "error" in item and item["error"] is not None)]


_ANSWERS = ("output", "outputs", "results", "result", "error")
"""Where the answer of a tool that the server ran stands."""
