"""The items of the Responses API that a session has no kind of its own for, and how it carries them, for both ways.

- A call that a client answers (shell, computer, patches, approvals) is a `FunctionCall`, its answer a `FunctionCallOutput`, so that
  they stand or fall together and other providers are told a story that is true. Both keep the item as it came.
- A call that the provider itself carried out (web search, code interpreter, MCP) is a `Reasoning`: a sealed piece of the response,
  which goes when the reasoning before it goes. Its `data` is the item as JSON.
- What a client put there for the provider (tools added later, references) is a system message without content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from session.parts import Image, Part, Text
from session.stack import with_room

PROVIDER = "provider"
"""In `extra` of reasoning: whose it is. Missing means Anthropic's."""
OURS = "openai"
ITEM = "openai_item"
"""In `metadata` of a call, in `extra` of all else: the item as it came."""
TYPE = "openai_type"
"""In `metadata` of a custom call, in `extra` of reasoning that is an item of another type: its type."""
ID = "openai_id"
"""In `extra` or `metadata`: the id that the provider gave the item."""
SUMMARY = "openai_summary"
"""In `extra` of reasoning: its summaries, where they are not just its text."""
PHASE = "openai_phase"
"""In `extra` of an assistant's message: whether it is commentary or the answer. The provider wants it back."""
FIELDS = "openai_fields"
"""In `extra` or `metadata`: other fields, carried along; those of calls in `CALL_FIELDS` are sent again."""
CALL_FIELDS = ("namespace", "caller", "async")


class Pair(NamedTuple):
    """A type of call that a client answers.

    Attributes:
        key: The field that holds the call's id.
        output: The type of its answer.
        output_key: The field there.
    """

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


def carried_out(item: Mapping[str, Any]) -> bool:
    """Whether the provider itself carries this call out, although clients carry out others of its type."""
    return str(item.get("type")).startswith("tool_search") and (item.get("execution") == "server" or item.get("call_id") is None)


def call_name(item: Mapping[str, Any]) -> str:
    """The name of the tool that a call of a client's type is one of."""
    return str(item["type"]).removesuffix("_call").removesuffix("_request")


def call_arguments(item: Mapping[str, Any]) -> str:
    """What is asked, as JSON."""
    return json_text({key: value for key, value in item.items() if key not in ("type", "id", "call_id", "status")})


def output_parts(item: Mapping[str, Any]) -> tuple[Part, ...]:
    """What is answered: an image where it is a screenshot of an address or a file, else JSON."""
    shown = item.get("output")
    if isinstance(shown, Mapping) and shown.get("type") == "computer_screenshot":
        if isinstance(url := shown.get("image_url"), str) and url:
            return (Image(url=url),)
        if isinstance(file_id := shown.get("file_id"), str) and file_id:
            return (Image(file_id=file_id),)
    if isinstance(shown, str):
        return (Text(shown),)
    return (Text(json_text({key: value for key, value in item.items() if key not in ("type", "id", "call_id", "status")})),)


def json_text(value: object) -> str:
    """A value that JSON can hold, as compact JSON."""
    return with_room(lambda: json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
