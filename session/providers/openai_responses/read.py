"""Read items of the Responses API as a session: the inverse of `write.py`, and the entrance for the API's responses.

The converter's answer to an interrupted call and its closing line are recognized by their exact text and removed. The line about removed
items becomes `Session.removed`. A summary stays a text of the user. The format has no place for error marks of outputs, the names of tools
whose call is missing, and the boundary between two responses without an output between them; these are lost. Items that a session has no
kind for, future types included, are carried as described in `item_kinds.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from session.errors import short
from session.items import Compaction, FunctionCall, Message, Reasoning, Role
from session.parts import Part, Text
from session.providers import additions
from session.providers.conversation import is_user_text, opening_index
from session.providers.native_compaction import SEALED, replaced_ids
from session.providers.openai_chat.parse import PayloadObject, parse_document, parse_image, payload_objects
from session.providers.openai_chat.read import read_closing
from session.providers.parsing import SessionBuilder
from session.providers.pieces import OPENAI
from session.sanitize import clean_json
from session.session import Session

from .item_kinds import (
    FIELDS,
    FROM_CLIENT,
    ID,
    ITEM,
    OUTPUTS,
    PAIRS,
    PHASE,
    PROVIDER,
    SUMMARY,
    TYPE,
    call_arguments,
    call_name,
    json_text,
    output_parts,
    runs_at_provider,
)

REFUSAL = "refusal"
_MESSAGE_FIELDS = frozenset({"type", "id", "role", "content", "status", "phase"})
_PART_FIELDS = frozenset({"type", "text", "refusal", "image_url", "file_id", "file_url", "file_data", "filename", "detail"})
_CALL_FIELDS = frozenset({"type", "id", "call_id", "name", "arguments", "input", "status"})
_OUTPUT_FIELDS = frozenset({"type", "id", "call_id", "name", "output", "status"})
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}


def from_openai_responses(items: object) -> Session:
    """Return the session of these items, in order. Ids name places ("m0", "m0.1").

        session = from_openai_responses(response.output)

    Args:
        items: A list of mappings or of SDK objects; a whole request or response that holds the list; or the plain text that `input`
            may be. The `instructions` of a request become a system message at the beginning.

    Raises:
        FormatError: A value is not in the documented shape; `.where` names its place.
    """
    builder = SessionBuilder(count_items_as_time=True)
    builder.begin("m0")
    request = PayloadObject(items, "input").data if isinstance(items, Mapping) or hasattr(items, "model_dump") else {}
    if isinstance(instructions := request.get("instructions"), str) and instructions and "output" not in request:
        builder.add(Message("system", instructions, id="instructions", created_at=builder.fields()["created_at"]))
    if isinstance(text := request.get("input", items), str):
        builder.add(Message("user", text, **builder.fields()))
        return builder.finish()
    listed = payload_objects(request or items, "input", ("output",))
    opening = opening_index([item.data for item in listed])
    for index, item in enumerate(listed):
        builder.begin(f"m{index}")
        if index == opening and is_user_text(item.data):
            builder.read_opening(item.data["content"])
            continue
        if index and listed[index - 1].data.get("role") == "assistant" and item.data.get("role") == "user":
            content = item.data.get("content")
            if content == additions.CLOSING:
                read_closing(builder, listed[index + 1 : index + 2])
                continue
            if isinstance(content, str):
                item = PayloadObject({**item.data, "content": additions.unescaped(content, additions.CLOSING)}, item.where)  # noqa: PLW2901
        kind = item.data.get("type")
        if kind is None and "role" in item.data:
            kind = "message"
        if not isinstance(kind, str):
            raise item.error("type", "missing" if kind is None else f"{short(kind)} is not a text")
        _READERS.get(kind, _read_other)(builder, item)
    return builder.finish()


def _read_message(builder: SessionBuilder, message: PayloadObject) -> None:
    role = _ROLES.get(role_name := message.text("role"))
    if role is None:
        raise message.error("role", f"{short(role_name)} is none of {', '.join(_ROLES)}")
    extra: dict[str, Any] = {}
    if (item_id := message.text_or_none("id")) is not None:
        extra[ID] = item_id
    if (phase := message.text_or_none("phase")) is not None:
        extra[PHASE] = phase
    if fields := message.fields_except(_MESSAGE_FIELDS):
        extra[FIELDS] = fields
    is_cut = message.data.get("status") == "incomplete"
    if isinstance(content := message.data.get("content"), str):
        _add_message(builder, Message(role, content, interrupted=is_cut, extra=extra, **builder.fields()))
        return
    parts: list[tuple[bool, Part]] = []  # each with True for a refusal
    for part in message.each("content"):
        is_refusal = part.data.get("type") == "refusal"
        parts.append((is_refusal, Text(part.text("refusal")) if is_refusal else _part(part)))
        if fields := part.fields_except(_PART_FIELDS):
            extra.setdefault(FIELDS, {}).setdefault("content", []).append(fields)
    runs = [(is_refusal, [part for _, part in run]) for is_refusal, run in groupby(parts, itemgetter(0))]
    for is_refusal, run_parts in runs or [(False, [])]:
        refusal_mark = {REFUSAL: True} if is_refusal else {}
        _add_message(builder, Message(role, run_parts, interrupted=is_cut, extra={**extra, **refusal_mark}, **builder.fields()))


def _add_message(builder: SessionBuilder, message: Message) -> None:
    if message.role == "user":
        builder.add_user_message(message)
    else:
        builder.add(message)


def _read_call(builder: SessionBuilder, call: PayloadObject) -> None:
    is_custom = call.data["type"] == "custom_tool_call"
    metadata: dict[str, Any] = {TYPE: "custom_tool_call"} if is_custom else {}
    if (item_id := call.text_or_none("id")) is not None:
        metadata[ID] = item_id
    if fields := call.fields_except(_CALL_FIELDS):
        metadata[FIELDS] = fields
    arguments = call.text("input" if is_custom else "arguments")
    builder.add(FunctionCall(call.text("name"), arguments, call.text("call_id"), metadata=metadata, **builder.fields()))


def _read_output(builder: SessionBuilder, output: PayloadObject) -> None:
    parts: list[Part] = []
    if isinstance(text := output.data.get("output"), str):
        parts = [Text(additions.unescaped(text, additions.INTERRUPTED))]
    elif text is not None:
        parts = [_part(part) for part in output.each("output")]
    call_id = output.text("call_id")
    if text == additions.INTERRUPTED:
        builder.end_response()
        return
    fields = output.fields_except(_OUTPUT_FIELDS)
    builder.add_output(call_id, parts, extra={FIELDS: fields} if fields else {})


def _read_reasoning(builder: SessionBuilder, item: PayloadObject) -> None:
    summary = [part.text("text") for part in item.each("summary")]
    content = [part.text("text") for part in item.each("content")]
    text = "\n\n".join(summary or content)
    extra: dict[str, Any] = {PROVIDER: OPENAI}
    if (item_id := item.text_or_none("id")) is not None:
        extra[ID] = item_id
    if summary != ([text] if text else []):
        extra[SUMMARY] = summary
    builder.add(Reasoning(text, data=item.text_or_none("encrypted_content"), extra=extra, **builder.fields()))


def _read_compaction(builder: SessionBuilder, item: PayloadObject) -> None:
    extra = {PROVIDER: OPENAI, ITEM: _json_copy(item)}
    builder.add(Compaction(SEALED, replaced_ids(builder.session.items), extra=extra, **builder.fields()))


def _read_other(builder: SessionBuilder, item: PayloadObject) -> None:
    """Add an item of another type: a client's call or its output, a message for the provider, or a call that the provider ran."""
    original = _json_copy(item)
    kind: str = original["type"]
    if kind in PAIRS and not runs_at_provider(original):
        call_id = item.text(PAIRS[kind].key)
        builder.add(FunctionCall(call_name(original), call_arguments(original), call_id, metadata={ITEM: original}, **builder.fields()))
    elif kind in OUTPUTS and not runs_at_provider(original):
        key = OUTPUTS[kind].output_key
        call_id = item.text(key if key in original else "call_id")
        builder.add_output(call_id, output_parts(original), extra={ITEM: original})
    elif kind in FROM_CLIENT:
        builder.add(Message("system", (), extra={ITEM: original}, **builder.fields()))
    else:
        builder.add(Reasoning(data=json_text(original), extra={PROVIDER: OPENAI, TYPE: kind}, **builder.fields()))


_READERS: dict[str, Callable[[SessionBuilder, PayloadObject], None]] = {
    "message": _read_message,
    "function_call": _read_call,
    "custom_tool_call": _read_call,
    "function_call_output": _read_output,
    "custom_tool_call_output": _read_output,
    "reasoning": _read_reasoning,
    "compaction": _read_compaction,
}


def _json_copy(item: PayloadObject) -> dict[str, Any]:
    return clean_json(item.data, item.where)  # type: ignore[no-any-return]


def _part(part: PayloadObject) -> Part:
    kind = part.data.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text"):
        return Text(part.text("text"))
    if kind == "input_image":
        image = part if part.data.get("detail") != "auto" else PayloadObject({**part.data, "detail": None}, part.where)
        return parse_image(image, image.text_or_none("image_url"), image.text_or_none("file_id"))
    if kind == "input_file":
        return parse_document(part, *(part.text_or_none(name) for name in ("file_data", "file_url", "file_id")))
    raise part.error("type", f"{short(kind)} is no type of part that can be read")
