"""What stands around a list of messages: the system prompt, the tools, the answer, the usage, ids and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from session.transcripts.usages import Counts, usage_of
from session.transcripts.values import JsonObject, carried, list_at, object_at, text_at
from session.transcripts.writer import is_message

from .find import ENVELOPES, Found

SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction", "system_prompt")
ANSWERS = ("response", "output", "completion", "reply")
"""Where the record of a request has the answer."""
OWN_IDS = ("session_id", "sessionId", "conversation_id", "id", "sample_id", "task_id", "instance_id")
MODELS = ("model", "model_name", "modelId", "model_id")
SAID = frozenset({*SYSTEM, *ANSWERS, *ENVELOPES, "messages", "contents", "tools", "toolConfig", "input", "attachments", "events"})
"""What is no setting: it is in the session, or too much for its metadata."""
MOST, MOST_RECORD = 20_000, 2_000
"""Characters of JSON that one setting of the request, and one value beside it, may have to be carried in the metadata."""


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around one list.

    Attributes:
        own_id: The id that the source has for it, or an empty text.
        system: The system prompt that stands beside the messages; None where there is none.
        answer: The messages of the answer.
        answered: Whether the log has an object for the answer.
        usage: What the provider reported.
        metadata: `model`, `tools` (their definitions), `options` (the request's other settings), `record` (what stands beside it).
    """

    own_id: str
    system: object
    answer: list[JsonObject]
    answered: bool
    usage: Counts | None
    metadata: dict[str, object]


def around(found: Found) -> Around:
    """What stands around a list of messages."""
    if not found.around:
        return Around("", None, [], answered=False, usage=None, metadata={})
    request, record = found.around[0], found.around[-1]
    response = next((one for holder in found.around for name in ANSWERS if (one := object_at(holder, name))), {})
    response = response or (record if "choices" in record or "candidates" in record else {})
    said = [response.get("usage"), response.get("usageMetadata"), *(holder.get("usage") for holder in reversed(found.around))]
    usage = next(filter(None, map(usage_of, said)), None)
    answer = list(_answer(response))
    own_id = next((str(holder[name]) for name in OWN_IDS for holder in found.around if _is_id(holder.get(name))), "")
    system = next((request[name] for name in SYSTEM if request.get(name)), None)
    if isinstance(system, dict):
        system = system.get("parts", [system])
    return Around(own_id, system, answer, bool(response), usage, _metadata(found, request, record, response))


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= 200
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64


def _metadata(found: Found, request: JsonObject, record: JsonObject, response: JsonObject) -> dict[str, object]:
    metadata: dict[str, object] = {}
    whole = (object_at(found.log, "eval"), {"model": object_at(object_at(found.log, "info"), "agent_info").get("llm")})
    model = next((one for holder in (*found.around, response, *whole) if (one := text_at(holder, *MODELS))), "")
    if model:
        metadata["model"] = model
    tools = [*next(filter(None, map(_tools, found.around)), []), *_added(found.messages)]
    if tools and (kept := carried(tools, 10_000_000)) is not None:
        metadata["tools"] = kept
    left = {name: kept for name, value in request.items() if (kept := _setting(found, name, value, MOST)) is not None}
    if request is record:
        return {**metadata, "options": left} if left else metadata
    beside = {name: kept for name, value in record.items() if (kept := _setting(found, name, value, MOST_RECORD)) is not None}
    return {**metadata, **({"options": left} if left else {}), **({"record": beside} if beside else {})}


def _setting(found: Found, name: str, value: object, most: int) -> object:
    return None if name == found.name or name in SAID or value is None else carried(value, most)


def _tools(holder: JsonObject) -> list[object]:
    return list_at(holder, "tools") or list_at(object_at(holder, "toolConfig"), "tools")


def _added(messages: list[object] | str) -> Iterator[object]:
    """Tools that a message adds on the way."""
    for message in messages:
        if isinstance(message, dict) and message.get("type") in ("additional_tools", "mcp_list_tools"):
            yield from list_at(message, "tools")


def _answer(response: JsonObject) -> Iterator[JsonObject]:
    """The messages of an answer, in whichever provider's form it is; of several choices, the first."""
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
    if isinstance(message := object_at(response, "message") or object_at(object_at(response, "output"), "message"), dict) and message:
        yield {"role": "assistant", **message}
    elif response.get("role") == "assistant":
        yield response
