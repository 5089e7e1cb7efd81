"""A session as messages for Anthropic's Messages API. The rules it keeps are cited as A1 to A9 (VALIDITY.md); the validator
in `rules.py` knows nothing of this file.

What is on the wire and not in the log: `additions.PREAMBLE` at the head, `additions.INTERRUPTED` for every call without an
output, notes for images and documents that cannot be sent. What is in the log and not on the wire: handoffs, config updates,
outputs without a call, blank texts, reasoning that Anthropic did not sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from session.items import Compaction, FunctionCall, Reasoning
from session.parts import Document, Image, Part
from session.providers import additions
from session.providers.calls import CallIds, arguments_object, safe
from session.providers.media import Inline, Link, Note, Upload, document_source, image_source, note
from session.providers.shrinking import within
from session.providers.steps import Response, conversation
from session.session import Session

Block: TypeAlias = dict[str, Any]

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_SIDE, IMAGE_ENCODED = 8_000, 10 * 1024 * 1024
"""What an image may have: pixels a side, characters of base64 (A8). Where it exceeds them, it is made smaller."""
UNSAFE = r"[^a-zA-Z0-9_-]"
ID_LENGTH = 64
NAME_LENGTH = 128
TITLE_LENGTH = 500


class AnthropicMessages(NamedTuple):
    """What `client.messages.create(messages=…, system=…)` takes.

    Attributes:
        messages: User and assistant in turn; the content is always a list of blocks.
        system: None, one text, or text blocks (several texts, or with a cache mark).
    """

    messages: list[dict[str, Any]]
    system: str | list[dict[str, Any]] | None


def to_anthropic(session: Session, *, caching: bool = False) -> AnthropicMessages:
    """The session as Anthropic's messages and system prompt. The session is left as it is.

        messages, system = to_anthropic(session)
        client.messages.create(model=…, max_tokens=…, messages=messages, system=system or anthropic.omit)

    An empty `messages` means that nothing but system messages and blank texts was said yet.

    Args:
        session: A log or a view.
        caching: Whether to mark what the prompt cache is to keep: the system prompt, the end of the previous request,
            the end of this one.
    """
    told = conversation(session)
    messages: list[dict[str, Any]] = []
    if told.preamble:
        _add(messages, "user", [_text(additions.PREAMBLE)])
    ids = CallIds(UNSAFE, ID_LENGTH)
    for step in told.steps:
        if isinstance(step, Response):
            _close(messages)  # the model was called here
            wire_ids = {call.id: ids.take(call.call_id) for call in step.calls}
            _add(messages, "assistant", list(_answer(step, wire_ids)))
            # A2, A3: all results of a response are in the very next message and come first there. They end the assistant's
            # message too: the next response is another step, even where nothing stood between the two.
            _add(messages, "user", [_result(step, call, wire_ids[call.id]) for call in step.calls])
        elif isinstance(step, Compaction):
            _add(messages, "user", [_text(additions.SUMMARY_HEADER + step.summary)] if step.summary.strip() else [])
        elif step.role == "user":
            _add(messages, "user", list(_rich(step.content)))
        else:
            _add(messages, "assistant", list(_plain(step.content)))
    if messages and messages[0]["role"] == "assistant":  # A1, where `preamble_due` does not see it: the user's first text is blank
        messages.insert(0, {"role": "user", "content": [_text(additions.PREAMBLE)]})
    _close(messages)
    system = [block for message in told.system for block in _plain(message.content)]
    if caching:
        _mark(messages, system)
        return AnthropicMessages(messages, system or None)
    return AnthropicMessages(messages, system[0]["text"] if len(system) == 1 else system or None)


def _add(messages: list[dict[str, Any]], role: Literal["user", "assistant"], blocks: list[Block]) -> None:
    """Appends blocks; to the last message where that has the same role (A1), and none where there are none (A6)."""
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(blocks)
    else:
        messages.append({"role": role, "content": blocks})


def _close(messages: list[dict[str, Any]]) -> None:
    """Takes trailing whitespace off an assistant's last text (A6) where a request ends in it.

    Also where the log goes on since: the longer prompt is to extend the shorter. Where no request ended, the text stays as the
    model said it, for later thinking is bound to it (A5).
    """
    if messages and messages[-1]["role"] == "assistant" and (last := messages[-1]["content"][-1])["type"] == "text":
        last["text"] = last["text"].rstrip()


def _answer(response: Response, wire_ids: dict[str, str]) -> Iterator[Block]:
    """The blocks of a response, in the order the model said them (A4)."""
    waiting: list[Block] = []  # A4: thinking is sent when something follows it, for it may not be the end
    for item in response.items:
        if isinstance(item, Reasoning):
            waiting.extend(_thinking(item))
            continue
        said = [_tool_use(item, wire_ids[item.id])] if isinstance(item, FunctionCall) else list(_plain(item.content))
        if said:
            yield from waiting
            yield from said
            waiting = []


def _thinking(item: Reasoning) -> list[Block]:
    """The reasoning exactly as it came (A4), or nothing: unsigned thinking is refused, changed thinking too."""
    if item.signature:
        return [{"type": "thinking", "thinking": item.text, "signature": item.signature}]
    return [{"type": "redacted_thinking", "data": item.data}] if item.data else []


def _tool_use(call: FunctionCall, wire_id: str) -> Block:
    name = safe(call.name, UNSAFE, NAME_LENGTH, "tool")
    return {"type": "tool_use", "id": wire_id, "name": name, "input": arguments_object(call.arguments)}  # A9


def _result(response: Response, call: FunctionCall, wire_id: str) -> Block:
    result: Block = {"type": "tool_result", "tool_use_id": wire_id}
    output = response.outputs.get(call.id)
    if output is None:
        return {**result, "content": [_text(additions.INTERRUPTED)], "is_error": True}
    # An error holds text only, and may not be empty; any other result may.
    content = list(_plain(output.output)) or [_text(additions.FAILED)] if output.is_error else list(_rich(output.output))
    if content:
        result["content"] = content
    if output.is_error:
        result["is_error"] = True
    return result


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _plain(parts: Iterable[Part]) -> Iterator[Block]:
    """Text blocks, for where the API takes nothing else; blank ones are left out (A6)."""
    for part in parts:
        text = note(part).text if isinstance(part, Image) or part.text is None else part.text
        if text.strip():
            yield _text(text)


def _rich(parts: Iterable[Part]) -> Iterator[Block]:
    """Blocks for where the API takes images and documents too; blank texts are left out (A6)."""
    for part in parts:
        if isinstance(part, Image):
            yield _image(part)
        elif isinstance(part, Document):
            if part.text is None or part.text.strip():
                yield _document(part)
        elif part.text.strip():
            yield _text(part.text)


def _image(image: Image) -> Block:
    source = image_source(image)
    if isinstance(source, Inline) and source.media_type not in IMAGE_TYPES:  # A8
        source = Note(f"[image of unknown format: {source.media_type}]" if source.media_type else "[image of unknown format]")
    if isinstance(source, Inline):
        source = within(source, side=IMAGE_SIDE, encoded=IMAGE_ENCODED)  # A8
    if isinstance(source, Note):
        return _text(source.text)
    if isinstance(source, Inline):
        return {"type": "image", "source": {"type": "base64", "media_type": source.media_type, "data": source.base64}}
    return {"type": "image", "source": _reference(source)}


def _document(document: Document) -> Block:
    source = document_source(document)
    if isinstance(source, Inline):
        if source.media_type == "application/pdf":
            wire = {"type": "base64", "media_type": "application/pdf", "data": source.base64}
        elif (text := _decoded(source)) is not None and text.strip():
            wire = {"type": "text", "media_type": "text/plain", "data": text}
        else:
            return _text(note(document).text)
    elif isinstance(source, Note):
        return _text(source.text)
    else:
        wire = _reference(source)
    block: Block = {"type": "document", "source": wire}
    if document.title and document.title.strip():
        block["title"] = document.title[:TITLE_LENGTH]
    return block


def _decoded(source: Inline) -> str | None:
    """The text of a document that is text: declared as one, or valid UTF-8 all the same; else None."""
    if source.media_type is not None and source.media_type.startswith("text/"):
        return source.data.decode("utf-8", "replace")
    try:
        return source.data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _reference(source: Link | Upload) -> Block:
    if isinstance(source, Link):
        return {"type": "url", "url": source.url}
    return {"type": "file", "file_id": source.file_id}


def _mark(messages: list[dict[str, Any]], system: list[Block]) -> None:
    """Sets up to three cache marks (A7): the last system block, the end of the user message before the last message (where the
    previous request ended), the end of the last message."""
    previous = next((message for message in reversed(messages[:-1]) if message["role"] == "user"), None)
    ends = [system, previous["content"] if previous else [], messages[-1]["content"] if messages else []]
    for blocks in ends:
        if blocks:  # no message ends in thinking, which could carry no mark (A4)
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
