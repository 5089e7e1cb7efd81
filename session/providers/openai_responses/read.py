"""Items of the Responses API as a session: the way back from `write.py`, and in from what the API answered.

What the way there added is taken out again: the output of an interrupted call, known by its exact text. A summary stays the user's
text. Not on the wire, so not to be had back: where one response ends and another begins, if no output stands between; which
outputs were errors; names of tools whose call is missing. Items that a session has no kind for are carried as `kinds.py` says, also
those of types that nobody has heard of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from session.door import clean_json
from session.errors import short
from session.items import Compaction, FunctionCall, Message, Reasoning, Role
from session.parts import Part, Text
from session.providers import additions
from session.providers.openai_chat.reading import Log, Place, document_at, image_at, places
from session.session import Session

from .kinds import (
    FIELDS,
    FROM_CLIENT,
    ID,
    ITEM,
    OURS,
    OUTPUTS,
    PAIRS,
    PHASE,
    PROVIDER,
    SUMMARY,
    TYPE,
    call_arguments,
    call_name,
    carried_out,
    json_text,
    output_parts,
)

REFUSAL = "refusal"
_MESSAGE = frozenset({"type", "id", "role", "content", "status", "phase"})
_CALL = frozenset({"type", "id", "call_id", "name", "arguments", "input", "status"})
_OUTPUT = frozenset({"type", "id", "call_id", "name", "output", "status"})
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}


def from_openai_responses(items: object) -> Session:
    """The session that these items are: in order, with ids made of their places.

        session = from_openai_responses(response.output)

    Args:
        items: The list, of mappings or of the SDK's own objects; a whole request, or a response, that holds it; or the one text
            that `input` may be. The `instructions` of a request are a system message at the head.

    Raises:
        FormatError: It is none; `.where` names the place.
    """
    log = Log()
    request = Place(items, "input").data if isinstance(items, Mapping) or hasattr(items, "model_dump") else {}
    if isinstance(instructions := request.get("instructions"), str) and instructions and "output" not in request:
        log.put(Message("system", instructions, id="instructions", created_at=0.0))
    if isinstance(text := request.get("input", items), str):
        log.put(Message("user", text, **log.common()))
        return log.session()
    for place, item in enumerate(places(request or items, "input", ("output",))):
        log.begin(place)
        kind = item.data.get("type")
        if kind is None and "role" in item.data:
            kind = "message"
        if not isinstance(kind, str):
            raise item.wrong("type", "missing" if kind is None else f"{short(kind)} is not a text")
        _READERS.get(kind, _read_other)(log, item)
    return log.session()


def _read_message(log: Log, message: Place) -> None:
    role = _ROLES.get(given := message.text("role"))
    if role is None:
        raise message.wrong("role", f"{short(given)} is none of {', '.join(_ROLES)}")
    extra: dict[str, Any] = {}
    if (item_id := message.text_or_none("id")) is not None:
        extra[ID] = item_id
    if (phase := message.text_or_none("phase")) is not None:
        extra[PHASE] = phase
    if fields := message.carried(_MESSAGE):
        extra[FIELDS] = fields
    cut = message.data.get("status") == "incomplete"
    if isinstance(content := message.data.get("content"), str):
        log.put(Message(role, content, interrupted=cut, extra=extra, **log.common()))
        return
    said: list[tuple[bool, list[Part]]] = []
    for part in message.each("content"):
        refused = part.data.get("type") == "refusal"
        if not said or said[-1][0] != refused:
            said.append((refused, []))
        said[-1][1].append(Text(part.text("refusal")) if refused else _part(part))
        if noted := part.carried(
            frozenset({"type", "text", "refusal", "image_url", "file_id", "file_url", "file_data", "filename", "detail"})
        ):
            extra.setdefault(FIELDS, {}).setdefault("content", []).append(noted)
    for refused, parts in said or [(False, [])]:
        marks = {REFUSAL: True} if refused else {}
        log.put(Message(role, parts, interrupted=cut, extra={**extra, **marks}, **log.common()))


def _read_call(log: Log, call: Place) -> None:
    custom = call.data["type"] == "custom_tool_call"
    metadata: dict[str, Any] = {TYPE: "custom_tool_call"} if custom else {}
    if (item_id := call.text_or_none("id")) is not None:
        metadata[ID] = item_id
    if fields := call.carried(_CALL):
        metadata[FIELDS] = fields
    given = call.text("input" if custom else "arguments")
    log.put(FunctionCall(call.text("name"), given, call.text("call_id"), metadata=metadata, **log.common()))


def _read_output(log: Log, output: Place) -> None:
    parts: list[Part] = []
    if isinstance(text := output.data.get("output"), str):
        parts = [Text(additions.unescaped(text, additions.INTERRUPTED))]
    elif text is not None:
        parts = [_part(part) for part in output.each("output")]
    call_id = output.text("call_id")
    if text == additions.INTERRUPTED:
        log.seam()
        return
    fields = output.carried(_OUTPUT)
    log.answer(call_id, parts, {FIELDS: fields} if fields else {})


def _read_reasoning(log: Log, item: Place) -> None:
    summary = [part.text("text") for part in item.each("summary")]
    content = [part.text("text") for part in item.each("content")]
    text = "\n\n".join(summary or content)
    extra: dict[str, Any] = {PROVIDER: OURS}
    if (item_id := item.text_or_none("id")) is not None:
        extra[ID] = item_id
    if summary != ([text] if text else []):
        extra[SUMMARY] = summary
    log.put(Reasoning(text, data=item.text_or_none("encrypted_content"), extra=extra, **log.common()))


def _read_compaction(log: Log, item: Place) -> None:
    log.put(Compaction("", extra={PROVIDER: OURS, ITEM: _whole(item)}, **log.common()))


def _read_other(log: Log, item: Place) -> None:
    """An item of another type: a client's call or its answer, something for the provider, or what the provider did by itself."""
    whole = _whole(item)
    kind: str = whole["type"]
    if kind in PAIRS and not carried_out(whole):
        call_id = item.text(PAIRS[kind].key)
        log.put(FunctionCall(call_name(whole), call_arguments(whole), call_id, metadata={ITEM: whole}, **log.common()))
    elif kind in OUTPUTS and not carried_out(whole):
        key = OUTPUTS[kind].output_key
        call_id = item.text(key if key in whole else "call_id")
        log.answer(call_id, list(output_parts(whole)), {ITEM: whole})
    elif kind in FROM_CLIENT:
        log.put(Message("system", (), extra={ITEM: whole}, **log.common()))
    else:
        log.put(Reasoning(data=json_text(whole), extra={PROVIDER: OURS, TYPE: kind}, **log.common()))


_READERS: dict[str, Callable[[Log, Place], None]] = {
    "message": _read_message,
    "function_call": _read_call,
    "custom_tool_call": _read_call,
    "function_call_output": _read_output,
    "custom_tool_call_output": _read_output,
    "reasoning": _read_reasoning,
    "compaction": _read_compaction,
}


def _whole(item: Place) -> dict[str, Any]:
    return clean_json(item.data, item.where)  # type: ignore[no-any-return]


def _part(part: Place) -> Part:
    kind = part.data.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text"):
        return Text(part.text("text"))
    if kind == "input_image":
        image = part if part.data.get("detail") != "auto" else Place({**part.data, "detail": None}, part.where)
        return image_at(image, image.text_or_none("image_url"), image.text_or_none("file_id"))
    if kind == "input_file":
        return document_at(part, *(part.text_or_none(name) for name in ("file_data", "file_url", "file_id")))
    raise part.wrong("type", f"{short(kind)} is no type of part that can be read")
