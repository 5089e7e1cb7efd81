"""The items of the Responses API that a session has no kind for, and how a session carries them. Used for reading and writing.

- A call that the client answers (shell, computer, patches, approvals) is a `FunctionCall`, its answer a `FunctionCallOutput`. So a trim
  keeps or drops both, and other providers see an ordinary tool call. Both keep the original item.
- A call that the provider itself ran (web search, code interpreter, MCP) is a `Reasoning`: an opaque part of the response, dropped together
  with the reasoning before it. Its `data` is the item as JSON.
- An item that the client adds for the provider (late tools, references) is a system message without content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from session.parts import Image, Part, Text
from session.stack import with_room

PROVIDER = "provider"
"""In `extra` of reasoning: the provider that made it. Missing means Anthropic."""
ITEM = "openai_item"
"""In `metadata` of a call, in `extra` of other items: the original item."""
TYPE = "openai_type"
"""The type of the original item: in `metadata` of a custom call, in `extra` of a `Reasoning` that carries another item."""
ID = "openai_id"
"""In `extra` or `metadata`: the provider's id of the item."""
SUMMARY = "openai_summary"
"""In `extra` of reasoning: its summaries, if they differ from its text."""
PHASE = "openai_phase"
"""In `extra` of an assistant message: "commentary" or "final_answer". The provider expects it back."""
FIELDS = "openai_fields"
"""In `extra` or `metadata`: the other fields of the item. Of these, only the `CALL_FIELDS` of calls are sent back."""
CALL_FIELDS = ("namespace", "caller", "async")


class Pair(NamedTuple):
    """A type of call that the client answers: the field that holds its id, the type of the answer, and the field of that id there."""

    key: str
    output: str
    output_key: str


PAIRS = {
    "apply_patch_call": Pair("call_id", "apply_patch_call_output", "call_id"),
    "computer_call": Pair("call_id", "computer_call_output", "call_id"),
    "local_shell_call": Pair("call_id", "local_shell_call_output", "id"),
    "mcp_approval_request": Pair("id", "mcp_approval_response", "approval_request_id"),
    "program": Pair("call_id", "program_output", "call_id"),
    "shell_call": Pair("call_id", "shell_call_output", "call_id"),
    "tool_search_call": Pair("call_id", "tool_search_output", "call_id"),
}
OUTPUTS = {pair.output: pair for pair in PAIRS.values()}
FROM_CLIENT = frozenset({"additional_tools", "compaction_trigger", "configuration_update", "item_reference"})


def runs_at_provider(item: Mapping[str, Any]) -> bool:
    """True if the provider runs this call itself, although clients run other calls of its type."""
    return str(item.get("type")).startswith("tool_search") and (item.get("execution") == "server" or item.get("call_id") is None)


def call_name(item: Mapping[str, Any]) -> str:
    """Return the tool's name for a call of a type in `PAIRS`."""
    return str(item["type"]).removesuffix("_call").removesuffix("_request")


def call_arguments(item: Mapping[str, Any]) -> str:
    """Return the arguments of a call as JSON."""
    return json_text({key: value for key, value in item.items() if key not in ("type", "id", "call_id", "status")})


def output_parts(item: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return the content of an answer: an image for a screenshot with a URL or a file id, else JSON."""
    output = item.get("output")
    if isinstance(output, Mapping) and output.get("type") == "computer_screenshot":
        if isinstance(url := output.get("image_url"), str) and url:
            return (Image(url=url),)
        if isinstance(file_id := output.get("file_id"), str) and file_id:
            return (Image(file_id=file_id),)
    return (Text(output if isinstance(output, str) else call_arguments(item)),)


def json_text(value: object) -> str:
    """Return a JSON value as compact JSON."""
    return with_room(lambda: json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
