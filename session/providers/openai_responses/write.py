"""A session as input items for OpenAI's Responses API. The rules it keeps are cited as R1 and R2 (docs/provider-rules.md); the validator in
`rules.py` knows nothing of this file.

What is on the wire and not in the log: `additions.INTERRUPTED` for every call without an output, notes for what cannot be sent.
What is in the log and not on the wire: handoffs, config updates, outputs without a call, messages without any part, blank
summaries, that an output is an error (the API has no word for it, and its text says so), and other providers' reasoning.

Reasoning goes with its encrypted content, for without that it is only a reference, which fails unless the response was stored; and
only before an item of its own response (R2). It keeps its id. The ids of messages and calls are never sent: an id makes the API
look for the reasoning that item came with (R2), which a trim may have taken; without one, requests are taken either way. Calls
that the provider carried out have no other form: they go as they came, or not at all where the reasoning before them cannot go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from session.items import FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Image, Text
from session.providers import additions
from session.providers.calls import CallIds, safe
from session.providers.media import coded_problem, unusable
from session.providers.openai_chat.pieces import UNSAFE, File, Picture, Piece, Said, arguments_text, pieces, texts
from session.providers.steps import Response, conversation
from session.session import Session
from session.stack import with_room

from .kinds import CALL_FIELDS, FIELDS, ID, ITEM, OURS, PAIRS, PHASE, PROVIDER, SUMMARY, TYPE, call_arguments, output_parts

Json: TypeAlias = dict[str, Any]

ID_LENGTH = 64
"""Characters of a call's id, and of an item's."""
NAME_LENGTH = 128
REASONING_ID = re.compile(r"rs[a-zA-Z0-9_-]{0,62}")


def to_openai_responses(session: Session) -> list[Json]:
    """The session as `input` for `client.responses.create`. The session is left as it is.

        client.responses.create(model=…, input=to_openai_responses(session))

    Args:
        session: A log or a view.
    """
    items: list[Json] = []
    ids = CallIds(UNSAFE, ID_LENGTH)
    sent: set[str] = set()  # the provider's ids so far: one twice is refused
    for step in conversation(session, system_in_place=True).steps:
        if isinstance(step, Response):
            wire_ids = {call.id: ids.take(call.call_id) for call in step.calls}
            paired = {call.id: pair for call in step.calls if (pair := _pair(call, step.outputs.get(call.id), wire_ids[call.id]))}
            items.extend(_answer(step, wire_ids, paired, sent))
            # R1: right behind the response, in the order of the calls.
            items.extend(paired[call.id][1] if call.id in paired else _output(step, call, wire_ids[call.id]) for call in step.calls)
        elif isinstance(step, Message):
            items.extend(_message(step, sent))
        elif (item := _carried(step.extra)) is not None:
            items.extend(_fresh([item], sent))
        elif step.summary.strip():
            summary = Text(additions.SUMMARY_HEADER + step.summary)
            items.append(_said("user", [_part(piece) for piece in pieces([summary])]))
    return items


def _fresh(items: list[Json], sent: set[str]) -> list[Json]:
    """The items as they came; none where the provider's id of one was sent before."""
    ids = [item["id"] for item in items if isinstance(item.get("id"), str)]
    if not sent.isdisjoint(ids):
        return []
    sent.update(ids)
    return items


def _message(message: Message, sent: set[str]) -> Iterator[Json]:
    if not message.content:
        if message.role != "assistant" and (item := _carried(message.extra)) is not None:
            yield from _fresh([item], sent)
    elif message.role == "assistant":
        yield from _spoken(message)
    elif message.role == "user":
        yield _said(message.role, [_part(piece) for piece in pieces(message.content)])
    else:
        yield _said(message.role, [{"type": "input_text", "text": text} for text in texts(message.content)])


def _said(role: str, content: list[Json]) -> Json:
    return {"type": "message", "role": role, "content": _content(content)}


def _spoken(message: Message) -> Iterator[Json]:
    """What the assistant said: a message a text, for only a message with an id may hold several."""
    phase = message.extra.get(PHASE)
    for text in texts(message.content):
        said: Json = {"type": "message", "role": "assistant", "content": text}
        yield {**said, "phase": phase} if phase in ("commentary", "final_answer") else said


def _answer(response: Response, wire_ids: Mapping[str, str], paired: dict[str, tuple[Json, Json]], sent: set[str]) -> Iterator[Json]:
    """The items of a response, in the order the model made them, without their outputs.

    What cannot go as a pair after all is taken out of `paired`.
    """
    waiting: list[Json] = []  # R2: reasoning is sent when something follows it
    lost = False  # reasoning right before this place cannot be sent
    for item in response.items:
        said: list[Json] = []
        if isinstance(item, FunctionCall):
            if item.id in paired and (lost or not _fresh(list(paired[item.id]), sent)):
                del paired[item.id]
            said = [paired[item.id][0] if item.id in paired else _call(item, wire_ids[item.id])]
        elif isinstance(item, Message):
            said = list(_spoken(item))
        elif item.extra.get(PROVIDER) != OURS:
            continue
        elif TYPE not in item.extra:
            thought = _reasoning(item, sent)
            lost = lost or thought is None
            waiting.extend([thought] if thought else [])
        elif not lost and (hosted := _hosted(item)) is not None:
            said = _fresh([hosted], sent)
        if not said and TYPE in item.extra:
            waiting = []  # what it came before cannot be sent
        if said:
            yield from waiting
            yield from said
            waiting, lost = [], False


def _reasoning(item: Reasoning, sent: set[str]) -> Json | None:
    """Reasoning as it came, or None where it is not to be had whole."""
    if not item.data:
        return None
    listed = item.extra.get(SUMMARY)
    summary = listed if isinstance(listed, list) and all(isinstance(text, str) for text in listed) else [item.text] if item.text else []
    thought: Json = {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in summary]}
    thought["encrypted_content"] = item.data
    item_id = item.extra.get(ID)
    if isinstance(item_id, str) and REASONING_ID.fullmatch(item_id) and item_id not in sent:
        sent.add(item_id)
        thought["id"] = item_id
    return thought


def _hosted(item: Reasoning) -> Json | None:
    """The call that the provider carried out, as it came; None where the item, or an image that it made, is damaged."""
    try:
        found = with_room(lambda: json.loads(item.data or ""))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("type") != item.extra.get(TYPE):
        return None
    made = found.get("result") if found["type"] == "image_generation_call" else None
    return found if coded_problem(made, "image/png") is None else None  # a JPEG's bytes are believed before this label


def _carried(extra: Mapping[str, Any]) -> Json | None:
    item = extra.get(ITEM)
    return dict(item) if isinstance(item, dict) and isinstance(item.get("type"), str) else None


def _call(call: FunctionCall, wire_id: str) -> Json:
    name = safe(call.name, UNSAFE, NAME_LENGTH, "tool")
    if call.metadata.get(TYPE) == "custom_tool_call":
        given = arguments_text(call.arguments) if call.arguments.strip() else call.arguments
        item: Json = {"type": "custom_tool_call", "call_id": wire_id, "name": name, "input": given}
    else:
        item = {"type": "function_call", "call_id": wire_id, "name": name, "arguments": arguments_text(call.arguments)}
    return {**item, **_call_fields(call.metadata)}


def _call_fields(carried: Mapping[str, Any]) -> Json:
    fields = carried.get(FIELDS)
    return {key: fields[key] for key in CALL_FIELDS if key in fields} if isinstance(fields, dict) else {}


def _output(response: Response, call: FunctionCall, wire_id: str) -> Json:
    custom = call.metadata.get(TYPE) == "custom_tool_call"
    item: Json = {"type": "custom_tool_call_output" if custom else "function_call_output", "call_id": wire_id}
    output = response.outputs.get(call.id)
    if output is None:
        return {**item, "output": additions.INTERRUPTED}
    content = _content([_part(piece) for piece in pieces(output.output)])
    return {**item, "output": additions.escaped(content, additions.INTERRUPTED) if isinstance(content, str) else content}


def _pair(call: FunctionCall, output: FunctionCallOutput | None, wire_id: str) -> tuple[Json, Json] | None:
    """A call of a type of its own and its answer, both as they came. None where either was changed since (cleared, cut,
    interrupted) or shows a damaged image: then they are sent as a function's."""
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


def _content(parts: Iterable[Json]) -> str | list[Json]:
    """One text as a text, all else as a list of parts; nothing as a blank text."""
    listed = list(parts)
    if not listed:
        return ""
    return listed[0]["text"] if len(listed) == 1 and listed[0]["type"] == "input_text" else listed


def _part(piece: Piece) -> Json:
    if isinstance(piece, Said):
        return {"type": "input_text", "text": piece.text}
    if isinstance(piece, Picture):
        source = {"image_url": piece.url} if piece.url is not None else {"file_id": piece.file_id}
        return {"type": "input_image", **source, "detail": piece.detail or "auto"}
    if isinstance(piece, File):
        return _file(piece)
    return {"type": "input_text", "text": piece.instead}


def _file(file: File) -> Json:
    if file.data is not None:
        return {"type": "input_file", "file_data": file.data, "filename": file.name}
    return {"type": "input_file", **({"file_url": file.url} if file.url is not None else {"file_id": file.file_id})}
