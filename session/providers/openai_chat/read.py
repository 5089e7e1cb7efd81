"""Read Chat Completions messages as a session: the inverse of `write.py`. It also reads other programs' messages in this format.

The converter's additions are recognized by their exact text and place, and removed: the output of an interrupted call, the closing line,
and the user message that shows images of a tool's output, which go back into the output. The line about removed items becomes
`Session.removed`. A summary stays a text of the user, because it cannot be recognized. The format has no place for reasoning, error marks
of outputs, the position of a response's texts among its calls, and the names of tools whose call is missing; these are lost. Unknown fields
are kept in `extra["openai_fields"]` and not sent again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from session.errors import short
from session.items import Compaction, FunctionCall, Message, Reasoning, Role
from session.parts import Document, Part, Text
from session.providers import additions
from session.providers.additions import ATTACHED, ELSEWHERE
from session.providers.conversation import is_user_text, opening_index
from session.providers.parsing import SessionBuilder
from session.providers.pieces import OPENAI
from session.session import Session

from .content import SOUND_FORMATS
from .parse import PayloadObject, parse_document, parse_image, payload_objects
from .write import CUSTOM, NAME, REFUSAL

FIELDS = "openai_fields"
_KNOWN_FIELDS = frozenset(
    {"role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning"}
)
_MEDIA_TYPES = {name: media_type for media_type, name in reversed(SOUND_FORMATS.items())}


def from_openai_chat(messages: object) -> Session:
    """Return the session of these messages. Ids name places ("m0", "m0.1").

        session = from_openai_chat(messages)

    Args:
        messages: A list of mappings or of SDK objects, or a whole request that holds the list.

    Raises:
        FormatError: A value is not in the documented shape; `.where` names its place.
    """
    listed = payload_objects(messages, "messages")
    builder = SessionBuilder(count_items_as_time=True)
    index, opening = 0, opening_index([message.data for message in listed])
    while index < len(listed):
        builder.begin(f"m{index}")
        if listed[index].data.get("role") == "tool":
            index += _read_results(builder, listed, index)
        elif index == opening and is_user_text(listed[index].data):
            builder.read_opening(listed[index].data["content"])
            index += 1
        else:
            before = listed[index - 1].data.get("role") if index else None
            if before == "assistant" and listed[index].data == {"role": "user", "content": additions.CLOSING}:
                read_closing(builder, listed[index + 1 : index + 2])
            else:
                _read_message(builder, listed[index], before)
            index += 1
    return builder.finish()


def read_closing(builder: SessionBuilder, following: Sequence[PayloadObject]) -> None:
    """Read the converter's closing line: a compaction without a summary takes its place.

    The log then does not end in a response there, and gets the line again. If what follows is not the assistant's, the response to the
    line had nothing to send: an empty message stands for it.
    """
    builder.end_response()
    builder.add(Compaction("", **builder.fields()))
    if following and following[0].data.get("role", "assistant") != "assistant":
        builder.add(Message("assistant", (), **builder.fields()))


def _read_message(builder: SessionBuilder, message: PayloadObject, before: object) -> None:
    """Read a message other than a tool's. `before`: the role of the message before it."""
    role = message.text("role")
    if role in ("system", "developer", "user"):
        extra = _extra(message)
        if (name := message.text_or_none("name")) is not None:
            extra[NAME] = name
        item_role: Role = "system" if role == "system" else "developer" if role == "developer" else "user"
        parts = _parts(message)
        is_list = not isinstance(message.data.get("content"), str)
        if before == "tool" and role == "user" and is_list and parts and isinstance(parts[0], Text):
            parts[0] = Text(additions.unescaped(parts[0].text, ATTACHED))
        elif before == "assistant" and role == "user" and not is_list and isinstance(parts[0], Text):
            parts[0] = Text(additions.unescaped(parts[0].text, additions.CLOSING))
        item = Message(item_role, parts, extra=extra, **builder.fields())
        if role == "user":
            builder.add_user_message(item)
        else:
            builder.add(item)
    elif role == "assistant":
        _read_response(builder, message)
    elif role == "function":  # deprecated, like its call: one call at a time, identified by its name
        builder.add_output(f"function {message.text('name')}", _parts(message), extra=_extra(message))
    else:
        raise message.error("role", f"{short(role)} is none of system, developer, user, assistant, tool")


def _read_response(builder: SessionBuilder, message: PayloadObject) -> None:
    builder.end_response()
    extra = _extra(message)
    for field_name in ("reasoning_content", "reasoning"):  # of compatible servers; OpenAI itself shows no reasoning here
        if isinstance(thought := message.data.get(field_name), str) and thought:
            builder.add(Reasoning(thought, extra={"provider": OPENAI}, **builder.fields()))
            break
    if (name := message.text_or_none("name")) is not None:
        extra[NAME] = name
    parts: list[Part] = []
    for part, is_refusal in _response_parts(message):
        if is_refusal:
            extra = _add_assistant_message(builder, parts, extra)
            extra = _add_assistant_message(builder, [part], {**extra, REFUSAL: True})
            parts = []
        else:
            parts.append(part)
    extra = _add_assistant_message(builder, parts, extra)
    if extra and not any(message.data.get(key) for key in ("tool_calls", "function_call")):
        builder.add(Message("assistant", (), extra=extra, **builder.fields()))  # no content, but fields to carry
    for call in message.each("tool_calls"):
        _read_call(builder, call, extra)
        extra = {}
    if message.data.get("function_call") is not None:
        call = message.inner("function_call")
        tool = call.text("name")
        builder.add(FunctionCall(tool, call.text("arguments"), f"function {tool}", extra=extra, **builder.fields()))


def _add_assistant_message(builder: SessionBuilder, parts: list[Part], extra: dict[str, Any]) -> dict[str, Any]:
    """Add a message with these parts, if any. Return the `extra` that the next item must carry."""
    if not parts:
        return {key: value for key, value in extra.items() if key != REFUSAL}
    builder.add(Message("assistant", parts, extra=extra, **builder.fields()))
    return {}


def _response_parts(message: PayloadObject) -> Iterator[tuple[Part, bool]]:
    """Yield the parts of an assistant message, each with True if it is a refusal."""
    content = message.data.get("content")
    if isinstance(content, str):
        yield Text(content), False
    else:
        for part in message.each("content"):
            is_refusal = part.data.get("type") == "refusal"
            yield (Text(part.text("refusal")) if is_refusal else _part(part)), is_refusal
    if (refusal := message.text_or_none("refusal")) is not None:
        yield Text(refusal), True


def _read_call(builder: SessionBuilder, call: PayloadObject, extra: dict[str, Any]) -> None:
    kind = call.data.get("type", "function")
    metadata: dict[str, Any] = {}
    if kind == "custom":
        function = call.inner("custom")
        name, arguments = function.text("name"), function.text("input")
        metadata = {CUSTOM[0]: CUSTOM[1]}
    elif kind == "function":
        function = call.inner("function")
        arguments, name = function.text_or_none("arguments") or "", function.text("name")
    else:
        raise call.error("type", f"{short(kind)} is none of function, custom")
    builder.add(FunctionCall(name, arguments, call.text("id"), metadata=metadata, extra=extra, **builder.fields()))


def _read_results(builder: SessionBuilder, listed: list[PayloadObject], first: int) -> int:
    """Read a run of tool messages, and the user message that shows their media. Return the number of messages read."""
    run = list(takewhile(lambda message: message.data.get("role") == "tool", listed[first:]))
    outputs = [_parts(message) for message in run]
    media = _attached_media(listed[first + len(run)]) if first + len(run) < len(listed) else []
    placeholders = sum(part == Text(ELSEWHERE) for output in outputs for part in output)
    is_ours = bool(media) and len(media) == placeholders
    next_media = iter(media)
    for index, (message, output) in enumerate(zip(run, outputs, strict=True), first):
        builder.begin(f"m{index}")
        call_id = message.text("tool_call_id")
        if (content := message.data.get("content")) == additions.INTERRUPTED:
            continue
        if isinstance(content, str):
            output = [Text(additions.unescaped(content, additions.INTERRUPTED))]  # noqa: PLW2901
        builder.add_output(call_id, _with_media(output, next_media) if is_ours else output, extra=_extra(message))
    builder.end_response()
    return len(run) + is_ours


def _with_media(output: list[Part], media: Iterator[Part]) -> list[Part]:
    """Return an output with its media, which the converter moved to a user message."""
    return [
        part if not isinstance(part, Text) else next(media) if part.text == ELSEWHERE else Text(additions.unescaped(part.text, ELSEWHERE))
        for part in output
    ]


def _attached_media(message: PayloadObject) -> list[Part]:
    """Return the images and files of a user message that the converter made for tool outputs; nothing for other messages."""
    if message.data.get("role") != "user" or message.data.keys() - {"role", "content"}:
        return []
    content = message.data.get("content")
    if not isinstance(content, list) or not content or content[0] != {"type": "text", "text": ATTACHED}:
        return []
    parts = _parts(message)[1:]
    return [] if any(isinstance(part, Text) for part in parts) else parts


def _parts(message: PayloadObject) -> list[Part]:
    content = message.data.get("content")
    if isinstance(content, str):
        return [Text(content)]
    if content is not None and not isinstance(content, list | tuple):
        raise message.error("content", f"{short(content)} is neither a text nor a list of parts")
    return [_part(part) for part in message.each("content")]


def _part(part: PayloadObject) -> Part:
    kind = part.data.get("type")
    if kind == "text":
        return Text(part.text("text"))
    if kind == "image_url":
        if isinstance(url := part.data.get("image_url"), str):
            return parse_image(part, url, None)
        image = part.inner("image_url")
        return parse_image(image, image.text("url"), None)
    if kind == "file":
        file = part.inner("file")
        return parse_document(file, file.text_or_none("file_data"), None, file.text_or_none("file_id"))
    if kind == "document_url":  # of compatible servers
        url = part.text("document_url")
        return parse_document(part, url, None, None) if url[:5].lower() == "data:" else parse_document(part, None, url, None)
    if kind == "input_audio":
        return _sound(part.inner("input_audio"))
    raise part.error("type", f"{short(kind)} is no type of part that can be read")


def _sound(sound: PayloadObject) -> Document:
    encoded, name = sound.text("data"), sound.text("format")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise sound.error("data", "not base64") from None
    return Document(data=data, media_type=_MEDIA_TYPES.get(name, f"audio/{name}"))


def _extra(message: PayloadObject) -> dict[str, Any]:
    fields = message.fields_except(_KNOWN_FIELDS)
    return {FIELDS: fields} if fields else {}
