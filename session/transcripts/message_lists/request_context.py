"""Reads the rest of the request that a list of messages belongs to: system prompt, tools, response, usage, ids and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from session.transcripts.usage import Counts, usage_of
from session.transcripts.values import JsonObject, carried, list_at, object_at, objects_at, text_at
from session.transcripts.writer import is_message

from .find_lists import ENVELOPE_NAMES, MessageList

SYSTEM_NAMES = ("system", "instructions", "systemInstruction", "system_instruction", "system_prompt")
RESPONSE_NAMES = ("response", "output", "completion", "reply")
ID_NAMES = ("session_id", "sessionId", "conversation_id", "id", "sample_id", "task_id", "instance_id")
MODEL_NAMES = ("model", "model_name", "modelId", "model_id")
CONTENT_NAMES = frozenset(
    {*SYSTEM_NAMES, *RESPONSE_NAMES, *ENVELOPE_NAMES, "messages", "contents", "tools", "toolConfig", "input", "attachments", "events"}
)
"""Fields that are not settings: they are in the session, or too large for its metadata."""
OPTION_CHARS_MAX, RECORD_CHARS_MAX = 20_000, 2_000
"""Characters of JSON that a setting of the request, or a value next to the request, may have to go into the metadata."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The rest of the request that a list of messages belongs to.

    Attributes:
        own_id: The conversation's id in the file, or an empty text.
        system: The system prompt next to the messages, or None.
        response: The messages of the response.
        usage: The reported usage.
        metadata: `model`, `tools` (their definitions), `options` (the request's other settings), `record` (values next to it).
    """

    own_id: str
    system: object
    response: list[JsonObject]
    usage: Counts | None
    metadata: dict[str, object]


def read_request_context(message_list: MessageList) -> RequestContext:
    """Return the rest of the request that a list of messages belongs to."""
    parents = message_list.parents
    if not parents:
        return RequestContext("", None, [], usage=None, metadata={})
    request, record = parents[0], parents[-1]
    response: JsonObject = next((value for parent in parents for name in RESPONSE_NAMES if (value := object_at(parent, name))), {})
    response = response or (record if "choices" in record or "candidates" in record else {})
    reports = [response.get("usage"), response.get("usageMetadata"), *(parent.get("usage") for parent in reversed(parents))]
    usage = next(filter(None, map(usage_of, reports)), None)
    own_id = next((str(parent[name]) for name in ID_NAMES for parent in parents if _is_id(parent.get(name))), "")
    system = next((request[name] for name in SYSTEM_NAMES if request.get(name)), None)
    if isinstance(system, dict):
        system = system.get("parts", [system])
    return RequestContext(own_id, system, list(response_messages(response)), usage, _metadata(message_list, response))


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= 200
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64


def _metadata(message_list: MessageList, response: JsonObject) -> dict[str, object]:
    request, record, log = message_list.parents[0], message_list.parents[-1], message_list.log
    log_objects = (object_at(log, "eval"), {"model": object_at(object_at(log, "info"), "agent_info").get("llm")})
    models = (text_at(parent, *MODEL_NAMES) for parent in (*message_list.parents, response, *log_objects))
    tools = next(filter(None, map(_tools, message_list.parents)), [])
    tools = [*tools, *_added_tools(message_list.messages, tools)]
    return {
        "model": next(filter(None, models), ""),
        "tools": carried(tools, 10_000_000),
        "options": _settings(message_list, request, OPTION_CHARS_MAX),
        "record": {} if request is record else _settings(message_list, record, RECORD_CHARS_MAX),
    }


def _settings(message_list: MessageList, parent: JsonObject, chars_max: int) -> JsonObject:
    """Return the fields of an object that are settings and short enough for the metadata."""
    names = [name for name, value in parent.items() if name != message_list.name and name not in CONTENT_NAMES and value is not None]
    return {name: copy for name in names if (copy := carried(parent[name], chars_max)) is not None}


def _tools(parent: JsonObject) -> list[object]:
    return list_at(parent, "tools") or list_at(object_at(parent, "toolConfig"), "tools")


def _added_tools(messages: list[object] | str, tools: list[object]) -> Iterator[object]:
    """Yield the tools that messages add during the conversation, also those that a message names of the tools that wait for a search."""
    for message in messages:
        if isinstance(message, dict) and message.get("type") in ("additional_tools", "mcp_list_tools"):
            yield from list_at(message, "tools")
        for block in objects_at(message, "content") if isinstance(message, dict) else ():
            if block.get("type") == "tool_addition":
                tool = object_at(block, "tool")
                named = [other for other in tools if isinstance(other, dict) and other.get("name") == tool.get("name")]
                yield from [object_at(tool, "definition")] if "definition" in tool else [_undeferred(other) for other in named[:1]]


def _undeferred(tool: JsonObject) -> JsonObject:
    return {name: value for name, value in tool.items() if name != "defer_loading"}


def response_messages(response: JsonObject) -> Iterator[JsonObject]:
    """Yield the messages of a response in any provider's form. Of several choices, only the first is read."""
    for name in ("choices", "candidates"):
        for choice in list_at(response, name)[:1]:
            if isinstance(choice, dict):
                message = object_at(choice, "message") or object_at(choice, "content")
                yield from [{"role": "assistant", **message}] if message else []
                return
    for output in (response.get("output"), response.get("content")):
        if isinstance(output, list) and output:
            if any(is_message(member) for member in output):
                yield from (member for member in output if isinstance(member, dict))
            else:
                yield {"role": "assistant", "content": output}
            return
    if message := object_at(response, "message") or object_at(object_at(response, "output"), "message"):
        yield {"role": "assistant", **message}
    elif response.get("role") == "assistant":
        yield response
