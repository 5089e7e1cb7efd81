"""Write a session as messages for OpenAI's Chat Completions API. Rules O1 to O3 are in docs/provider-rules.md; the validator in `rules.py`
is independent of this file.

Sent but not in the log: the line about removed items, before the first message that is no system prompt; `additions.INTERRUPTED` for every
call without an output; `additions.CLOSING` where a request would have ended in the assistant's turn; notes for content that cannot be sent.
An image or file in an output becomes `ELSEWHERE`, and follows after the response's outputs in a user message that begins with `ATTACHED`
(O2).

A handoff is sent as a note in the user's voice (`additions.handoff_note`). The instructions of a config update are sent as a system
message after those at the beginning.

In the log but not sent: reasoning, replaced instructions, outputs without a call, messages without parts, blank summaries. The error
mark of an output is not sent either: the API has no field for it, and the text says it.

Blank texts are sent: the API takes them. A message holds its texts before its calls, so their order within the response is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message
from session.parts import Document, Image, Text
from session.providers import additions
from session.providers.additions import ATTACHED, ELSEWHERE
from session.providers.conversation import Response, Step, WireIds, append_message, close_answer, dialogue_of, open_conversation, safe
from session.session import Session

from .content import UNSAFE, WireFile, WireImage, WirePart, WireSound, WireText, arguments_text, media_in, wire_parts, wire_texts

Json: TypeAlias = dict[str, Any]

ID_LENGTH = 40
"""Maximum characters of a call id."""
NAME_LENGTH = 64
CALLS_MAX = 128
"""Maximum calls in a message (O2). More calls of a response go into another message, after the results of the first."""

REFUSAL = "refusal"
"""In `extra` of an assistant message: its text is a refusal, for which the API has a part type."""
NAME = "openai_name"
"""In `extra` of a message: the name of the speaker. An assistant's name is not sent back."""
CUSTOM = ("openai_type", "custom_tool_call")
"""In `metadata` of a call: its tool takes a text instead of JSON."""


def to_openai_chat(session: Session, *, reasoning_model: bool = False) -> list[Any]:
    """Return the session as `messages` for `client.chat.completions.create`. The session does not change.

        client.chat.completions.create(model=…, messages=to_openai_chat(session))

    Args:
        session: A log or a view.
        reasoning_model: True for a model that takes `developer` messages instead of `system` messages (O3).
    """
    dialogue = dialogue_of(session, system_in_place=True)
    messages: list[Json] = []
    ids = WireIds(UNSAFE, ID_LENGTH)
    for step in dialogue.steps:
        _write(step, messages, ids, reasoning_model=reasoning_model)
    if dialogue.is_request:
        close_answer(messages, _closing())
    open_conversation(messages, {"role": "user", "content": dialogue.removed_line})
    return messages


def _write(step: Step, messages: list[Json], ids: WireIds, *, reasoning_model: bool) -> None:
    """Append the next step to the messages."""
    if isinstance(step, Response):
        if step.resumes:
            close_answer(messages, _closing())
        messages.extend(_response(step, ids))
    elif isinstance(step, Compaction):
        if step.summary.strip():
            summary = Text(additions.summary_text(step.summary))
            messages.append({"role": "user", "content": _content(_text_parts(wire_texts([summary])))})
    elif step.content:
        message = _message(step, reasoning_model=reasoning_model)
        if messages and messages[-1]["role"] == "tool":
            _escape_attached(message)
        append_message(messages, message)


def _closing() -> Json:
    return {"role": "user", "content": additions.CLOSING}


def media_places(session: Session) -> dict[tuple[int, ...], Image | Document]:
    """Return the images and documents that `to_openai_chat` sends, by their places in its messages: (message, part)."""
    return media_in((message.get("content") for message in to_openai_chat(session)), session, _part)


def _message(message: Message, *, reasoning_model: bool) -> Json:
    role = "developer" if message.role == "system" and reasoning_model else message.role
    parts = [_part(part) for part in wire_parts(message.content)] if role == "user" else _text_parts(wire_texts(message.content))
    wire_message: Json = {"role": role, "content": _content(parts)}
    name = message.extra.get(NAME)
    if role != "assistant" and isinstance(name, str) and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        wire_message["name"] = name
    return wire_message


def _response(response: Response, ids: WireIds) -> Iterator[Json]:
    """Yield the messages of a response: its texts and calls, then the results, then the images and files of the results."""
    content = [part for item in response.items if isinstance(item, Message) for part in _assistant_parts(item)]
    calls = [(call, ids.take(call.call_id)) for call in response.calls]
    if not calls:
        if content:
            yield {"role": "assistant", "content": _content(content)}
        return
    for first in range(0, len(calls), CALLS_MAX):
        batch = calls[first : first + CALLS_MAX]
        yield {
            "role": "assistant",
            "content": _content(content) if content else None,
            "tool_calls": [_tool_call(call, wire_id) for call, wire_id in batch],
        }
        content = []
        results = [_result(response.outputs.get(call.id)) for call, _ in batch]
        media = [part for result in results for part in result or [] if part["type"] != "text"]
        for (_, wire_id), result in zip(batch, results, strict=True):
            yield {"role": "tool", "tool_call_id": wire_id, "content": _tool_content(result, has_attached_media=bool(media))}
        if media:
            yield {"role": "user", "content": [*_text_parts([ATTACHED]), *media]}


def _assistant_parts(message: Message) -> list[Json]:
    if message.extra.get(REFUSAL) is True:
        return [{"type": "refusal", "refusal": text} for text in wire_texts(message.content)]
    return _text_parts(wire_texts(message.content))


def _tool_call(call: FunctionCall, wire_id: str) -> Json:
    name = safe(call.name, UNSAFE, NAME_LENGTH, "tool")
    if call.metadata.get(CUSTOM[0]) == CUSTOM[1]:
        text = arguments_text(call.arguments) if call.arguments.strip() else call.arguments
        return {"id": wire_id, "type": "custom", "custom": {"name": name, "input": text}}
    return {"id": wire_id, "type": "function", "function": {"name": name, "arguments": arguments_text(call.arguments)}}


def _result(output: FunctionCallOutput | None) -> list[Json] | None:
    """Return the parts of an output, images and files included; None for a call without an output."""
    return None if output is None else [_part(part) for part in wire_parts(output.output)]


def _tool_content(parts: list[Json] | None, *, has_attached_media: bool) -> str | list[Json]:
    """Return the content of a tool message. `has_attached_media`: a user message with media follows this run of tool messages."""
    if parts is None:
        return additions.INTERRUPTED
    escape = (ELSEWHERE,) if has_attached_media else ()
    content = _content(_text_parts(additions.escaped(part["text"], *escape) if part["type"] == "text" else ELSEWHERE for part in parts))
    return additions.escaped(content, additions.INTERRUPTED) if isinstance(content, str) else content


def _escape_attached(message: Json) -> None:
    """Change the user's text right after tool messages so that it cannot be taken for `ATTACHED`."""
    content = message["content"]
    if message["role"] == "user" and isinstance(content, list) and content[0]["type"] == "text":
        content[0]["text"] = additions.escaped(content[0]["text"], ATTACHED)


def _content(parts: list[Json]) -> str | list[Json]:
    """Return a single text as a string, anything else as a list of parts, nothing as a blank string."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _text_parts(texts: Iterable[str]) -> list[Json]:
    return [{"type": "text", "text": text} for text in texts]


def _part(part: WirePart) -> Json:
    if isinstance(part, WireText):
        return {"type": "text", "text": part.text}
    if isinstance(part, WireImage):
        if part.url is None:  # this API takes no image by id
            return {"type": "text", "text": "[image not shown]"}
        return {"type": "image_url", "image_url": {"url": part.url, **({"detail": part.detail} if part.detail else {})}}
    if isinstance(part, WireSound):
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
    return _file(part)


def _file(file: WireFile) -> Json:
    if file.data is not None and file.media_type == "application/pdf":
        return {"type": "file", "file": {"file_data": file.data, "filename": file.name}}
    if file.file_id is not None:
        return {"type": "file", "file": {"file_id": file.file_id}}
    return {"type": "text", "text": file.replacement}  # this API fetches no files, and reads PDFs only
