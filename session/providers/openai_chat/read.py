"""Chat Completions messages as a session: the way back from `write.py`, and in from whatever else speaks this format.

What the way there added is taken out again, known by its exact text and its place: the output of an interrupted call; the user
message that shows what a tool's output may not hold, which goes back into the output. A summary stays the user's text: whoever
wrote it, it is nobody's order. Not on the wire, so not to be had back: reasoning, which outputs were errors, names of tools whose
call is missing, where a response's texts stood among its calls. Fields that the API ignores or others add are kept in
`extra["openai_fields"]` and not sent again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from session.errors import short
from session.items import FunctionCall, Message, Reasoning, Role
from session.parts import Document, Part, Text
from session.providers import additions
from session.providers.additions import ATTACHED, ELSEWHERE
from session.session import Session

from .pieces import SOUNDS
from .reading import Log, Place, document_at, image_at, places
from .write import CUSTOM, NAME, REFUSAL

FIELDS = "openai_fields"
_KNOWN = frozenset({"role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning"})
_MEDIA_TYPES = {name: media_type for media_type, name in reversed(SOUNDS.items())}


def from_openai_chat(messages: object) -> Session:
    """The session that these messages are: items in order, with ids made of their places.

        session = from_openai_chat(messages)

    Args:
        messages: The list, of mappings or of the SDK's own objects; or a whole request that holds it.

    Raises:
        FormatError: It is none; `.where` names the place.
    """
    listed = places(messages, "messages")
    log = Log()
    place = 0
    while place < len(listed):
        log.begin(place)
        if listed[place].data.get("role") == "tool":
            place += _read_results(log, listed, place)
        else:
            _read(log, listed[place], after_results=place > 0 and listed[place - 1].data.get("role") == "tool")
            place += 1
    return log.session()


def _read(log: Log, message: Place, *, after_results: bool) -> None:
    role = message.text("role")
    if role in ("system", "developer", "user"):
        extra = _extra(message)
        if (name := message.text_or_none("name")) is not None:
            extra[NAME] = name
        spoken: Role = "system" if role == "system" else "developer" if role == "developer" else "user"
        parts = _parts(message)
        if after_results and role == "user" and not isinstance(message.data.get("content"), str) and parts and isinstance(parts[0], Text):
            parts[0] = Text(additions.unescaped(parts[0].text, ATTACHED))
        log.put(Message(spoken, parts, extra=extra, **log.common()))
    elif role == "assistant":
        _read_answer(log, message)
    elif role == "function":  # outdated, as its call is: one call at a time, known by its name
        log.answer(f"function {message.text('name')}", _parts(message), _extra(message))
    else:
        raise message.wrong("role", f"{short(role)} is none of system, developer, user, assistant, tool")


def _read_answer(log: Log, message: Place) -> None:
    log.seam()
    extra = _extra(message)
    for name in ("reasoning_content", "reasoning"):  # of servers that speak this format; OpenAI's own shows no reasoning here
        if isinstance(thought := message.data.get(name), str) and thought:
            log.put(Reasoning(thought, extra={"provider": "openai"}, **log.common()))
            break
    if (name_of := message.text_or_none("name")) is not None:
        extra[NAME] = name_of
    said: list[Part] = []
    for part, refused in _answer_parts(message):
        if refused:
            extra = _say(log, said, extra)
            extra = _say(log, [part], {**extra, REFUSAL: True})
            said = []
        else:
            said.append(part)
    extra = _say(log, said, extra)
    if not any(message.data.get(name) for name in ("tool_calls", "function_call")) and extra:
        log.put(Message("assistant", (), extra=extra, **log.common()))  # says nothing, but carries something
    for call in message.each("tool_calls"):
        _read_call(log, call, extra)
        extra = {}
    if message.data.get("function_call") is not None:
        call = message.inner("function_call")
        name = call.text("name")
        log.put(FunctionCall(name, call.text("arguments"), f"function {name}", extra=extra, **log.common()))


def _say(log: Log, said: list[Part], extra: dict[str, Any]) -> dict[str, Any]:
    """Adds a message of what was said; what `extra` is left for the next item."""
    if not said:
        return {key: value for key, value in extra.items() if key != REFUSAL}
    log.put(Message("assistant", said, extra=extra, **log.common()))
    return {}


def _answer_parts(message: Place) -> Iterator[tuple[Part, bool]]:
    """What the assistant said, each part with whether it is a refusal."""
    content = message.data.get("content")
    if isinstance(content, str):
        yield Text(content), False
    else:
        for part in message.each("content"):
            refused = part.data.get("type") == "refusal"
            yield (Text(part.text("refusal")) if refused else _part(part)), refused
    if (refusal := message.text_or_none("refusal")) is not None:
        yield Text(refusal), True


def _read_call(log: Log, call: Place, extra: dict[str, Any]) -> None:
    kind = call.data.get("type", "function")
    if kind == "custom":
        custom = call.inner("custom")
        metadata = {CUSTOM[0]: CUSTOM[1]}
        log.put(FunctionCall(custom.text("name"), custom.text("input"), call.text("id"), metadata=metadata, extra=extra, **log.common()))
    elif kind == "function":
        function = call.inner("function")
        arguments = function.text_or_none("arguments") or ""
        log.put(FunctionCall(function.text("name"), arguments, call.text("id"), extra=extra, **log.common()))
    else:
        raise call.wrong("type", f"{short(kind)} is none of function, custom")


def _read_results(log: Log, listed: list[Place], first: int) -> int:
    """Reads a run of tool messages, and the user message that shows what they may not hold. How many messages that was."""
    run = list(takewhile(lambda message: message.data.get("role") == "tool", listed[first:]))
    outputs = [_parts(message) for message in run]
    shown = _shown(listed[first + len(run)]) if first + len(run) < len(listed) else []
    wanted = sum(part == Text(ELSEWHERE) for output in outputs for part in output)
    fits = bool(shown) and len(shown) == wanted
    back = iter(shown)
    for place, (message, output) in enumerate(zip(run, outputs, strict=True), first):
        log.begin(place)
        call_id = message.text("tool_call_id")
        if (content := message.data.get("content")) == additions.INTERRUPTED:
            continue
        if isinstance(content, str):
            output = [Text(additions.unescaped(content, additions.INTERRUPTED))]  # noqa: PLW2901
        log.answer(call_id, _put_back(output, back) if fits else output, _extra(message))
    log.seam()
    return len(run) + fits


def _put_back(output: list[Part], shown: Iterator[Part]) -> list[Part]:
    """Return the output with its media, which a user message shows, where the way there took them out."""
    return [
        part if not isinstance(part, Text) else next(shown) if part.text == ELSEWHERE else Text(additions.unescaped(part.text, ELSEWHERE))
        for part in output
    ]


def _shown(message: Place) -> list[Part]:
    """The images and files of a message that our way there made of a tool's outputs; none where it is another."""
    if message.data.get("role") != "user" or message.data.keys() - {"role", "content"}:
        return []
    content = message.data.get("content")
    if not isinstance(content, list) or not content or content[0] != {"type": "text", "text": ATTACHED}:
        return []
    parts = _parts(message)[1:]
    return [] if any(isinstance(part, Text) for part in parts) else parts


def _parts(message: Place) -> list[Part]:
    content = message.data.get("content")
    if isinstance(content, str):
        return [Text(content)]
    if content is not None and not isinstance(content, list | tuple):
        raise message.wrong("content", f"{short(content)} is neither a text nor a list of parts")
    return [_part(part) for part in message.each("content")]


def _part(part: Place) -> Part:
    kind = part.data.get("type")
    if kind == "text":
        return Text(part.text("text"))
    if kind == "image_url":
        if isinstance(url := part.data.get("image_url"), str):
            return image_at(part, url, None)
        image = part.inner("image_url")
        return image_at(image, image.text("url"), None)
    if kind == "file":
        file = part.inner("file")
        return document_at(file, file.text_or_none("file_data"), None, file.text_or_none("file_id"))
    if kind == "document_url":  # of others that speak this format
        url = part.text("document_url")
        return document_at(part, url, None, None) if url[:5].lower() == "data:" else document_at(part, None, url, None)
    if kind == "input_audio":
        return _sound(part.inner("input_audio"))
    raise part.wrong("type", f"{short(kind)} is no type of part that can be read")


def _sound(sound: Place) -> Document:
    encoded, name = sound.text("data"), sound.text("format")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise sound.wrong("data", "not base64") from None
    return Document(data=data, media_type=_MEDIA_TYPES.get(name, f"audio/{name}"))


def _extra(message: Place) -> dict[str, Any]:
    fields = message.carried(_KNOWN)
    return {FIELDS: fields} if fields else {}
