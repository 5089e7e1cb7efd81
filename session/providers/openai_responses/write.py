"""Write a session as input items for OpenAI's Responses API. Rules R1 and R2 are in docs/provider-rules.md; the validator in `rules.py`
is independent of this file.

Sent but not in the log: the line about removed items, before the first message that is no system prompt; `additions.INTERRUPTED` for every
call without an output; `additions.CLOSING` where a request would have ended in the assistant's turn; notes for content that cannot be sent.

A handoff is sent as a note in the user's voice (`additions.handoff_note`). The instructions of a config update are sent as a system
message after those at the beginning.

In the log but not sent: replaced instructions, outputs without a call, messages without parts, blank summaries, other providers'
reasoning. The error mark of an output is not sent either: the API has no field for it, and the text says it.

Reasoning is sent with its encrypted content and its id. Without the content it is only a reference, which fails unless the response was
stored. It is sent only before an item of its own response (R2).

The ids of messages and calls are never sent. An id makes the API look for the reasoning that came with the item (R2), which a trim may have
dropped. Requests without these ids are accepted either way.

A call that the provider ran is sent unchanged, or not at all if the reasoning before it cannot be sent: it has no other form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from session.items import FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Document, Image, Text
from session.providers import additions
from session.providers.conversation import (
    Response,
    Step,
    WireIds,
    append_message,
    close_answer,
    copied,
    dialogue_of,
    open_conversation,
    safe,
)
from session.providers.media import base64_problem, unusable
from session.providers.openai_chat.content import (
    UNSAFE,
    WireFile,
    WireImage,
    WirePart,
    WireText,
    arguments_text,
    media_in,
    wire_parts,
    wire_texts,
)
from session.providers.pieces import OPENAI
from session.session import Session
from session.stack import with_room

from .item_kinds import (
    CALL_FIELDS,
    FIELDS,
    ID,
    ITEM,
    PAIRS,
    PHASE,
    PROVIDER,
    SUMMARY,
    TYPE,
    call_arguments,
    output_parts,
)

Json: TypeAlias = dict[str, Any]

ID_LENGTH = 64
"""Maximum characters of a call id and of an item id."""
NAME_LENGTH = 128
REASONING_ID = re.compile(r"rs[a-zA-Z0-9_-]{0,62}")


def to_openai_responses(session: Session) -> list[Any]:
    """Return the session as `input` for `client.responses.create`. The session does not change.

        client.responses.create(model=…, input=to_openai_responses(session))

    Args:
        session: A log or a view.
    """
    dialogue = dialogue_of(session, system_in_place=True)
    items: list[Json] = []
    ids, sent_ids = WireIds(UNSAFE, ID_LENGTH), set[str]()
    for step in dialogue.steps:
        _write(step, items, ids, sent_ids)
    if dialogue.is_request:
        close_answer(items, _closing())
    open_conversation(items, {"type": "message", "role": "user", "content": dialogue.removed_line})
    return items


def _write(step: Step, items: list[Json], ids: WireIds, sent_ids: set[str]) -> None:
    """Append the next step to the items. The API refuses an id of its own that is sent twice: `sent_ids` holds those that were sent."""
    if isinstance(step, Response):
        if step.resumes:
            close_answer(items, _closing())
        wire_ids = {call.id: ids.take(call.call_id) for call in step.calls}
        paired = {call.id: pair for call in step.calls if (pair := _pair(call, step.outputs.get(call.id), wire_ids[call.id]))}
        items.extend(_response(step, wire_ids, paired, sent_ids))
        # R1: outputs follow the response, in the order of the calls.
        items.extend(paired[call.id][1] if call.id in paired else _output(step, call, wire_ids[call.id]) for call in step.calls)
    elif isinstance(step, Message):
        for message in _message(step, sent_ids):
            append_message(items, message)
    elif (item := _carried(step.extra)) is not None:
        items.extend(_unless_sent([item], sent_ids))
    elif step.summary.strip():
        summary = Text(additions.summary_text(step.summary))
        items.append(_input_message("user", [_part(part) for part in wire_parts([summary])]))


def media_places(session: Session) -> dict[tuple[int, ...], Image | Document]:
    """Return the images and documents that `to_openai_responses` sends, by their places in its items: (item, part of content or output)."""
    return media_in((item.get("content", item.get("output")) for item in to_openai_responses(session)), session, _part)


def _closing() -> Json:
    return _input_message("user", [{"type": "input_text", "text": additions.CLOSING}])


def _unless_sent(items: list[Json], sent_ids: set[str]) -> list[Json]:
    """Return the items, or nothing if the provider's id of one was sent before. Remember their ids."""
    ids = [item["id"] for item in items if isinstance(item.get("id"), str)]
    if not sent_ids.isdisjoint(ids):
        return []
    sent_ids.update(ids)
    return items


def _message(message: Message, sent_ids: set[str]) -> Iterator[Json]:
    if not message.content:
        if message.role != "assistant" and (item := _carried(message.extra)) is not None:
            yield from _unless_sent([item], sent_ids)
    elif message.role == "assistant":
        yield from _assistant_messages(message)
    elif message.role == "user":
        yield _input_message(message.role, [_part(part) for part in wire_parts(message.content)])
    else:
        yield _input_message(message.role, [{"type": "input_text", "text": text} for text in wire_texts(message.content)])


def _input_message(role: str, content: list[Json]) -> Json:
    return {"type": "message", "role": role, "content": _content(content)}


def _assistant_messages(message: Message) -> Iterator[Json]:
    """Yield a message for each text of the assistant: only a message with an id may hold several."""
    phase = message.extra.get(PHASE)
    for text in wire_texts(message.content):
        wire_message: Json = {"type": "message", "role": "assistant", "content": text}
        yield {**wire_message, "phase": phase} if phase in ("commentary", "final_answer") else wire_message


def _response(response: Response, wire_ids: Mapping[str, str], paired: dict[str, tuple[Json, Json]], sent_ids: set[str]) -> Iterator[Json]:
    """Yield the items of a response in the order the model made them, without their outputs.

    A pair that cannot be sent after all is removed from `paired`.
    """
    pending: list[Json] = []  # R2: reasoning that is sent once an item follows it
    is_reasoning_missing = False  # reasoning right before this item cannot be sent
    for item in response.items:
        wire_items: list[Json] = []
        if isinstance(item, FunctionCall):
            if item.id in paired and (is_reasoning_missing or not _unless_sent(list(paired[item.id]), sent_ids)):
                del paired[item.id]
            wire_items = [paired[item.id][0] if item.id in paired else _call(item, wire_ids[item.id])]
        elif isinstance(item, Message):
            wire_items = list(_assistant_messages(item))
        elif item.extra.get(PROVIDER) != OPENAI:
            continue
        elif TYPE not in item.extra:
            thought = _reasoning(item, sent_ids)
            is_reasoning_missing = is_reasoning_missing or thought is None
            pending.extend([thought] if thought else [])
        elif not is_reasoning_missing and (provider_call := _provider_call(item)) is not None:
            wire_items = _unless_sent([provider_call], sent_ids)
        if not wire_items and TYPE in item.extra:
            pending = []  # the item that this reasoning precedes cannot be sent
        if wire_items:
            yield from pending
            yield from wire_items
            pending, is_reasoning_missing = [], False


def _reasoning(item: Reasoning, sent_ids: set[str]) -> Json | None:
    """Return the reasoning item, or None if its encrypted content is missing."""
    if not item.data:
        return None
    summary = item.extra.get(SUMMARY)
    if not isinstance(summary, list) or not all(isinstance(text, str) for text in summary):
        summary = [item.text] if item.text else []
    thought: Json = {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in summary]}
    thought["encrypted_content"] = item.data
    item_id = item.extra.get(ID)
    if isinstance(item_id, str) and REASONING_ID.fullmatch(item_id) and item_id not in sent_ids:
        sent_ids.add(item_id)
        thought["id"] = item_id
    return thought


def _provider_call(item: Reasoning) -> Json | None:
    """Return the original item of a call that the provider ran, or None if the item or the image that it made is damaged."""
    try:
        original = with_room(lambda: json.loads(item.data or ""))
    except (ValueError, RecursionError):
        return None
    if not isinstance(original, dict) or original.get("type") != item.extra.get(TYPE):
        return None
    image = original.get("result") if original["type"] == "image_generation_call" else None
    return original if base64_problem(image, "image/png") is None else None  # the bytes of a JPEG overrule this label


def _carried(extra: Mapping[str, Any]) -> Json | None:
    item = extra.get(ITEM)
    return copied(item) if isinstance(item, dict) and isinstance(item.get("type"), str) else None


def _call(call: FunctionCall, wire_id: str) -> Json:
    name = safe(call.name, UNSAFE, NAME_LENGTH, "tool")
    if call.metadata.get(TYPE) == "custom_tool_call":
        text = arguments_text(call.arguments) if call.arguments.strip() else call.arguments
        item: Json = {"type": "custom_tool_call", "call_id": wire_id, "name": name, "input": text}
    else:
        item = {"type": "function_call", "call_id": wire_id, "name": name, "arguments": arguments_text(call.arguments)}
    return {**item, **_call_fields(call.metadata)}


def _call_fields(metadata: Mapping[str, Any]) -> Json:
    fields = metadata.get(FIELDS)
    return {key: copied(fields[key]) for key in CALL_FIELDS if key in fields} if isinstance(fields, dict) else {}


def _output(response: Response, call: FunctionCall, wire_id: str) -> Json:
    is_custom = call.metadata.get(TYPE) == "custom_tool_call"
    item: Json = {"type": "custom_tool_call_output" if is_custom else "function_call_output", "call_id": wire_id}
    output = response.outputs.get(call.id)
    if output is None:
        return {**item, "output": additions.INTERRUPTED}
    content = _content([_part(part) for part in wire_parts(output.output)])
    return {**item, "output": additions.escaped(content, additions.INTERRUPTED) if isinstance(content, str) else content}


def _pair(call: FunctionCall, output: FunctionCallOutput | None, wire_id: str) -> tuple[Json, Json] | None:
    """Return the original items of a call of a special type and its answer, or None if they must be sent as a function call.

    That is so if either was changed since (cleared, truncated, interrupted) or the answer shows a damaged image.
    """
    item = _carried(call.metadata)
    answer = None if output is None else _carried(output.extra)
    if item is None or answer is None or output is None or item["type"] not in PAIRS:
        return None
    pair = PAIRS[item["type"]]
    if answer["type"] != pair.output or call.arguments != call_arguments(item) or output.output != output_parts(answer):
        return None
    if any(isinstance(part, Image) and unusable(part) is not None for part in output.output):
        return None
    return {**item, pair.key: wire_id}, {**answer, pair.output_key: wire_id}


def _content(parts: list[Json]) -> str | list[Json]:
    """Return a single text as a string, anything else as a list of parts, nothing as a blank string."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "input_text" else parts


def _part(part: WirePart) -> Json:
    if isinstance(part, WireText):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, WireImage):
        source = {"image_url": part.url} if part.url is not None else {"file_id": part.file_id}
        return {"type": "input_image", **source, "detail": part.detail or "auto"}
    if isinstance(part, WireFile):
        return _file(part)
    return {"type": "input_text", "text": part.replacement}


def _file(file: WireFile) -> Json:
    if file.data is not None:
        return {"type": "input_file", "file_data": file.data, "filename": file.name}
    return {"type": "input_file", **({"file_url": file.url} if file.url is not None else {"file_id": file.file_id})}
