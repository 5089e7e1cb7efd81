"""A session as messages for OpenAI's Chat Completions API. The rules it keeps are cited as O1 to O3 (docs/provider-rules.md); the
validator in `rules.py` knows nothing of this file.

What is on the wire and not in the log: `additions.INTERRUPTED` for every call without an output; where an output holds images or
files, `ELSEWHERE` in their place and, after the response's outputs, a user message of `ATTACHED` and what they are (O2); notes
for what cannot be sent. What is in the log and not on the wire: reasoning, handoffs, config updates, outputs without a call,
messages without any part, blank summaries, and that an output is an error: the API has no word for it, and its text says so.

Blank texts are sent: the API takes them. Where the texts of a response stood among its calls is lost: a message has first the
one, then the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message
from session.parts import Text
from session.providers import additions
from session.providers.additions import ATTACHED, ELSEWHERE
from session.providers.calls import CallIds, safe
from session.providers.steps import Response, conversation
from session.session import Session

from .pieces import UNSAFE, File, Picture, Piece, Said, Sound, arguments_text, pieces, texts

Json: TypeAlias = dict[str, Any]

ID_LENGTH = 40
"""Characters of a call's id."""
NAME_LENGTH = 64
CALLS = 128
"""Calls a message may hold (O2). The rest of a response's calls are in a message of their own, behind the results of the first."""

REFUSAL = "refusal"
"""In `extra` of an assistant's message: its text is a refusal, for which the API has a part of its own."""
NAME = "openai_name"
"""In `extra` of a message: the name of who speaks. An assistant's is not sent again."""
CUSTOM = ("openai_type", "custom_tool_call")
"""In `metadata` of a call: the tool takes a text and not JSON."""


def to_openai_chat(session: Session, *, reasoning_model: bool = False) -> list[Json]:
    """The session as `messages` for `client.chat.completions.create`. The session is left as it is.

        client.chat.completions.create(model=…, messages=to_openai_chat(session))

    Args:
        session: A log or a view.
        reasoning_model: Whether the model is one that takes `developer` messages where others take `system` (O3).
    """
    messages: list[Json] = []
    ids = CallIds(UNSAFE, ID_LENGTH)
    for step in conversation(session, system_in_place=True).steps:
        if isinstance(step, Response):
            messages.extend(_response(step, ids))
        elif isinstance(step, Compaction):
            if step.summary.strip():
                messages.append({"role": "user", "content": _content(_spoken(texts([Text(additions.SUMMARY_HEADER + step.summary)])))})
        elif step.content:
            message = _message(step, reasoning_model=reasoning_model)
            if messages and messages[-1]["role"] == "tool":
                _escape_attached(message)
            messages.append(message)
    return messages


def _message(message: Message, *, reasoning_model: bool) -> Json:
    role = "developer" if message.role == "system" and reasoning_model else message.role
    parts = [_part(piece) for piece in pieces(message.content)] if role == "user" else _spoken(texts(message.content))
    said: Json = {"role": role, "content": _content(parts)}
    name = message.extra.get(NAME)
    if role != "assistant" and isinstance(name, str) and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        said["name"] = name
    return said


def _response(response: Response, ids: CallIds) -> Iterator[Json]:
    """The messages of a response: what the assistant said and called, then what the tools answered, then what those showed."""
    content = [part for item in response.items if isinstance(item, Message) for part in _answer(item)]
    calls = [(call, ids.take(call.call_id)) for call in response.calls]
    if not calls:
        if content:
            yield {"role": "assistant", "content": _content(content)}
        return
    for first in range(0, len(calls), CALLS):
        batch = calls[first : first + CALLS]
        yield {
            "role": "assistant",
            "content": _content(content) if content else None,
            "tool_calls": [_tool_call(call, wire_id) for call, wire_id in batch],
        }
        content = []
        results = [_result(response.outputs.get(call.id)) for call, _ in batch]
        shown = [part for result in results for part in result or [] if part["type"] != "text"]
        for (_, wire_id), result in zip(batch, results, strict=True):
            yield {"role": "tool", "tool_call_id": wire_id, "content": _tool_content(result, any_shown=bool(shown))}
        if shown:
            yield {"role": "user", "content": [*_spoken([ATTACHED]), *shown]}


def _answer(message: Message) -> list[Json]:
    if message.extra.get(REFUSAL) is True:
        return [{"type": "refusal", "refusal": text} for text in texts(message.content)]
    return _spoken(texts(message.content))


def _tool_call(call: FunctionCall, wire_id: str) -> Json:
    name = safe(call.name, UNSAFE, NAME_LENGTH, "tool")
    if call.metadata.get(CUSTOM[0]) == CUSTOM[1]:
        given = call.arguments if call.arguments.strip() == "" else arguments_text(call.arguments)
        return {"id": wire_id, "type": "custom", "custom": {"name": name, "input": given}}
    return {"id": wire_id, "type": "function", "function": {"name": name, "arguments": arguments_text(call.arguments)}}


def _result(output: FunctionCallOutput | None) -> list[Json] | None:
    """Return the parts of an output, media among them; None for a call without an output."""
    return None if output is None else [_part(piece) for piece in pieces(output.output)]


def _tool_content(parts: list[Json] | None, *, any_shown: bool) -> str | list[Json]:
    """Return the content of a tool message. `any_shown`: a user message with media follows this run of tool messages."""
    if parts is None:
        return additions.INTERRUPTED
    escape = (ELSEWHERE,) if any_shown else ()
    content = _content(_spoken(additions.escaped(part["text"], *escape) if part["type"] == "text" else ELSEWHERE for part in parts))
    return additions.escaped(content, additions.INTERRUPTED) if isinstance(content, str) else content


def _escape_attached(message: Json) -> None:
    """Make sure that what the user says right after tool messages is not taken for the media of their outputs."""
    content = message["content"]
    if message["role"] == "user" and isinstance(content, list) and content[0]["type"] == "text":
        content[0]["text"] = additions.escaped(content[0]["text"], ATTACHED)


def _content(parts: list[Json]) -> str | list[Json]:
    """One text as a text, all else as a list of parts; nothing as a blank text."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _spoken(said: Iterable[str]) -> list[Json]:
    return [{"type": "text", "text": text} for text in said]


def _part(piece: Piece) -> Json:
    if isinstance(piece, Said):
        return {"type": "text", "text": piece.text}
    if isinstance(piece, Picture):
        if piece.url is None:  # this API knows no images by id
            return {"type": "text", "text": "[image not shown]"}
        return {"type": "image_url", "image_url": {"url": piece.url, **({"detail": piece.detail} if piece.detail else {})}}
    if isinstance(piece, Sound):
        return {"type": "input_audio", "input_audio": {"data": piece.data, "format": piece.format}}
    return _file(piece)


def _file(file: File) -> Json:
    if file.data is not None and file.media_type == "application/pdf":
        return {"type": "file", "file": {"file_data": file.data, "filename": file.name}}
    if file.file_id is not None:
        return {"type": "file", "file": {"file_id": file.file_id}}
    return {"type": "text", "text": file.instead}  # this API fetches no files, and reads no others
