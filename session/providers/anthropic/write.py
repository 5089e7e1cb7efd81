"""A session as messages for Anthropic's Messages API. The rules it keeps are cited as A1 to A9 (docs/provider-rules.md); the validator
in `rules.py` knows nothing of this file.

What is on the wire and not in the log: `additions.PREAMBLE` at the head, `additions.INTERRUPTED` for every call without an
output, notes for images and documents that cannot be sent. What is in the log and not on the wire: handoffs, config updates,
outputs without a call, blank texts, reasoning that Anthropic did not sign. A summary is the assistant's text, as its role
says, but the user's where a request ended right after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from session.items import Compaction, FunctionCall, Reasoning
from session.parts import Document, Image
from session.providers import additions
from session.providers.calls import CallIds, arguments_object, safe
from session.providers.steps import Response, conversation
from session.session import Session

from .blocks import Album, Block, carried, plain, text_block
from .marks import Marks

PROVIDER = "anthropic"
"""Whose reasoning it is, as `extra["provider"]` says; where that is absent, it is Anthropic's too."""
UNSAFE = r"[^a-zA-Z0-9_-]"
ID_LENGTH = 64
NAME_LENGTH = 128


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
        caching: Whether to mark what the prompt cache is to keep, with at most four marks (see `marks.Marks`): the system
            prompt, the last stable item, the end of the previous request, the end of this one. Tools are no part of a
            session; the mark at the end of system keeps them too, for they come before it.
    """
    return _written(session, caching=caching)[0]


def media_places(session: Session) -> dict[tuple[int, ...], Image | Document]:
    """Return the images and documents that `to_anthropic` sends for a session, by their places in its messages.

    A place is (message, block), or (message, tool result, block in it), each counted from 0. What is sent as a note is left out.
    """
    (messages, _), album = _written(session, caching=False)
    parts = album.parts()
    places: dict[tuple[int, ...], Image | Document] = {}
    for number, message in enumerate(messages):
        for place, block in enumerate(message["content"]):
            inner = block.get("content", ()) if block["type"] == "tool_result" else ()
            blocks = [((number, place), block), *(((number, place, within), part) for within, part in enumerate(inner))]
            places.update((where, parts[id(one)]) for where, one in blocks if id(one) in parts)
    return places


def _written(session: Session, *, caching: bool) -> tuple[AnthropicMessages, Album]:
    told = conversation(session)
    messages: list[dict[str, Any]] = []
    if told.preamble:
        _add(messages, "user", [text_block(additions.PREAMBLE)])
    ids = CallIds(UNSAFE, ID_LENGTH)
    album = Album()
    summed: list[Block] = []  # what summaries of role assistant said, as long as nothing was added since
    marks = Marks({item.id for item in session.items[: session.settled]} if caching else ())
    for step in told.steps:
        marks.before(step, messages)
        if isinstance(step, Response):
            _end_request(messages, summed)  # the model was called here
            wire_ids = {call.id: ids.take(call.call_id) for call in step.calls}
            said = list(_answer(step, wire_ids))
            _add(messages, "assistant", said)
            # A2, A3: all results of a response are in the very next message and come first there. They end the assistant's
            # message too: the next response is another step, even where nothing stood between the two.
            _add(messages, "user", [_result(step, call, wire_ids[call.id], album) for call in step.calls])
        elif isinstance(step, Compaction):
            _add(messages, "user", [text_block(additions.SUMMARY_HEADER + step.summary)] if step.summary.strip() else [])
        elif step.role == "user":
            _add(messages, "user", carried(step) or list(album.rich(step.content)))
        elif found := carried(step):
            _add(messages, "assistant", found)
        else:
            _add(messages, "assistant", blocks := list(plain(step.content)))
            summed += blocks
        if summed and messages[-1]["content"][-1] is not summed[-1]:
            summed = []
        marks.after(step, messages)
    if messages and messages[0]["role"] == "assistant":  # A1, where `preamble_due` does not see it: the user's first text is blank
        messages.insert(0, {"role": "user", "content": [text_block(additions.PREAMBLE)]})
    elif messages and not told.preamble and (first := messages[0]["content"][0])["type"] == "text":
        first["text"] = additions.escaped(first["text"], additions.PREAMBLE)
    _end_request(messages, summed)
    album.fit()
    system = [block for message in told.system for block in plain(message.content)]
    if caching:
        marks.set(messages, system)
        return AnthropicMessages(messages, system or None), album
    return AnthropicMessages(messages, system[0]["text"] if len(system) == 1 else system or None), album


def _add(messages: list[dict[str, Any]], role: Literal["user", "assistant"], blocks: list[Block]) -> None:
    """Appends blocks; to the last message where that has the same role (A1), and none where there are none (A6)."""
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(blocks)
    else:
        messages.append({"role": role, "content": blocks})


def _end_request(messages: list[dict[str, Any]], summed: list[Block]) -> None:
    """Give the messages the form that they had in a request that ended here, wherever the log goes on since.

    The longer prompt is to extend the shorter, for thinking is bound to what came before it (A5). Where no request ended, a text
    stays as the model said it.

    1. Summaries at the end, `summed`, become the user's: a request ends in a user message (A1), and with thinking enabled, a turn
       that calls tools begins with thinking (A4).
    2. An assistant's last text loses its trailing whitespace (A6).
    """
    if summed:
        content = messages[-1]["content"]
        summaries = content[-len(summed) :]
        del content[-len(summed) :]
        if not content:
            messages.pop()
        _add(messages, "user", summaries)
    if messages and messages[-1]["role"] == "assistant" and (last := messages[-1]["content"][-1])["type"] == "text":
        last["text"] = last["text"].rstrip()


def _answer(response: Response, wire_ids: dict[str, str]) -> Iterator[Block]:
    """The blocks of a response, in the order the model said them (A4)."""
    waiting: list[Block] = []  # A4: thinking is sent when something follows it, for it may not be the end
    for item in response.items:
        if isinstance(item, Reasoning):
            waiting.extend(_thinking(item))
            continue
        said = [_tool_use(item, wire_ids[item.id])] if isinstance(item, FunctionCall) else carried(item) or list(plain(item.content))
        if said:
            yield from waiting
            yield from said
            waiting = []


def _thinking(item: Reasoning) -> list[Block]:
    """The reasoning exactly as it came (A4), or nothing: unsigned thinking is refused, changed thinking and that of others too."""
    if item.extra.get("provider", PROVIDER) != PROVIDER:
        return []
    if item.signature:
        return [{"type": "thinking", "thinking": item.text, "signature": item.signature}]
    return [{"type": "redacted_thinking", "data": item.data}] if item.data else []


def _tool_use(call: FunctionCall, wire_id: str) -> Block:
    name = safe(call.name, UNSAFE, NAME_LENGTH, "tool")
    return {"type": "tool_use", "id": wire_id, "name": name, "input": arguments_object(call.arguments)}  # A9


def _result(response: Response, call: FunctionCall, wire_id: str, album: Album) -> Block:
    result: Block = {"type": "tool_result", "tool_use_id": wire_id}
    output = response.outputs.get(call.id)
    if output is None:
        return {**result, "content": [text_block(additions.INTERRUPTED)], "is_error": True}
    # An error holds text only, and may not be empty; any other result may.
    content = list(plain(output.output)) or [text_block(additions.FAILED)] if output.is_error else list(album.rich(output.output))
    if output.is_error and len(content) == 1:
        content[0]["text"] = additions.escaped(content[0]["text"], additions.INTERRUPTED)
    if content:
        result["content"] = content
    if output.is_error:
        result["is_error"] = True
    return result
