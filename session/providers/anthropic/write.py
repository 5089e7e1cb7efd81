"""Write a session as messages for Anthropic's Messages API. Rules A1 to A9 are in docs/provider-rules.md; the validator in `rules.py` is
independent of this file.

Sent but not in the log: `additions.PREAMBLE` or the line about removed items at the beginning, `additions.CLOSING` where a request would
have ended in the assistant's turn, `additions.USAGE_NOTE` where the window was filling up, `additions.INTERRUPTED` for every call without
an output, notes for images and documents that cannot be sent.

A handoff is sent as a note in the user's voice (`additions.handoff_note`). The instructions of a config update are sent in the system
prompt.

In the log but not sent: replaced instructions, outputs without a call, blank texts, reasoning that Anthropic did not sign.

A summary of role assistant is sent as the assistant's text, but as the user's if a request ended right after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from session.items import Compaction, FunctionCall, Message, Reasoning
from session.parts import Document, Image
from session.providers import additions
from session.providers.conversation import (
    Response,
    Step,
    WireIds,
    append_blocks,
    append_closing,
    arguments_object,
    blocks_in_order,
    dialogue_of,
    escape_first,
    safe,
)
from session.session import Session

from .blocks import Album, Block, carried, plain, ran_at_provider, text_block

PROVIDER = "anthropic"
"""The `extra["provider"]` of Anthropic's reasoning. Reasoning without the key is Anthropic's too."""
UNSAFE = r"[^a-zA-Z0-9_-]"
ID_LENGTH = 64
NAME_LENGTH = 128


class AnthropicMessages(NamedTuple):
    """The arguments `messages` and `system` of `client.messages.create`.

    Attributes:
        messages: Messages of user and assistant in turn: JSON objects, each with a list of blocks as its content.
        system: One text, or text blocks for several texts and for cache marks. An empty list if there is no system prompt: the API takes
            that, but refuses null.

    The objects are typed Any: the client has a type of message for each of its endpoints, and type checkers accept these for all of them.
    """

    messages: list[Any]
    system: str | list[Any]


def to_anthropic(session: Session, *, caching: bool = False) -> AnthropicMessages:
    """Return the session as Anthropic's messages and system prompt. The session does not change.

        messages, system = to_anthropic(session)
        client.messages.create(model=…, max_tokens=…, messages=messages, system=system)

    `messages` is empty if the session holds only system messages and blank texts.

    Args:
        session: A log or a view.
        caching: True to set at most four prompt cache marks (see `_StepWriter.marks`): at the end of the system prompt, the last stable
            item, the previous request and this request. The first mark covers the tools too, which come before the system prompt.
    """
    if caching:
        return to_marked_anthropic(session)[0]
    messages, system, _ = _written(session)
    return AnthropicMessages(messages, system[0]["text"] if len(system) == 1 else system)


def to_marked_anthropic(session: Session) -> tuple[AnthropicMessages, list[Block]]:
    """Return the messages with cache marks, and the marked blocks among them, in order."""
    messages, system, writer = _written(session)
    marks = {id(block) for block in writer.marks() if block is not None}
    marked = [block for message in messages for block in message["content"] if id(block) in marks]
    for block in [*system[-1:], *marked]:
        block["cache_control"] = {"type": "ephemeral"}
    return AnthropicMessages(messages, system), marked


def media_places(session: Session) -> dict[tuple[int, ...], Image | Document]:
    """Return the images and documents that `to_anthropic` sends for a session, by their places in its messages.

    A place is (message, block), or (message, tool result, block in it), each counted from 0. Media sent as notes are left out.
    """
    messages, _, writer = _written(session)
    sent = writer.album.sent()
    places: dict[tuple[int, ...], Image | Document] = {}
    for number, message in enumerate(messages):
        for index, block in enumerate(message["content"]):
            inner = block.get("content", ()) if block["type"] == "tool_result" else ()
            blocks = [((number, index), block), *(((number, index, at), part) for at, part in enumerate(inner))]
            places |= {place: sent[id(part)] for place, part in blocks if id(part) in sent}
    return places


def _written(session: Session) -> tuple[list[Block], list[Block], _StepWriter]:
    """Return the messages without marks, the blocks of the system prompt, and the writer that wrote the messages."""
    dialogue = dialogue_of(session)
    writer = _StepWriter(dialogue.opening)
    for number, step in enumerate(dialogue.steps, 1):
        writer.write(step)
        if number == dialogue.settled_steps:
            writer.stable = writer.end
    messages = writer.messages
    if messages and messages[0]["role"] == "assistant":  # A1: the user's first text was blank
        messages.insert(0, {"role": "user", "content": [text_block(additions.PREAMBLE)]})
    elif messages and dialogue.opening is None:
        escape_first(messages, "content")
    writer.end_request(is_request=dialogue.is_request)
    writer.album.fit()
    return messages, [block for message in dialogue.system for block in plain(message.content)], writer


class _StepWriter:
    """Writes steps as messages.

    Attributes:
        messages: The messages so far.
        album: Their images and documents.
        stable: The last block whose trimming is final, if the session is a view.
    """

    def __init__(self, opening: str | None) -> None:
        self.messages: list[Block] = []
        self.album = Album()
        self.stable: Block | None = None
        self._turn: Block | None = None  # the end of the last user message before the model answered
        self._previous: Block | None = None  # the end of the previous request
        self._has_user_message = False  # since the last response
        self._ids = WireIds(UNSAFE, ID_LENGTH)
        self._is_answered = False  # all that the last response called ran at Anthropic
        self._summaries = 0  # number of blocks at the end that are summaries of role assistant
        if opening is not None:
            append_blocks(self.messages, "user", "content", [text_block(opening)])

    @property
    def end(self) -> Block | None:
        """The last block; None if there is none."""
        return self.messages[-1]["content"][-1] if self.messages else None

    def marks(self) -> tuple[Block | None, ...]:
        """Return the blocks to mark, besides the end of the system prompt: at most three (A7). No message ends in thinking (A4).

        1. The last stable item: of a view that was continued as a log, its end, which stays until the next trim. Otherwise the beginning
           of the turn: provisional decisions of a view end there, and a retry of the turn shares everything up to it. Both stay as the
           turn goes on, while 2 and 3 move with each step.
        2. The end of the previous request: this request reads the cache up to there.
        3. The end of this request: the next one will read the cache up to there.
        """
        return self.stable or self._turn, self._previous, self.end

    def write(self, step: Step) -> None:
        """Write the next step."""
        if isinstance(step, Response):
            self._write_response(step)
            return
        end, messages = self.end, self.messages
        summary: list[Block] = []
        if isinstance(step, Compaction):
            if blocks := carried(step):
                append_blocks(messages, "assistant", "content", blocks)
            elif step.summary.strip():
                append_blocks(messages, "user", "content", [text_block(additions.summary_text(step.summary))])
        elif step.role == "user":
            self._has_user_message = True
            append_blocks(messages, "user", "content", carried(step) or list(self.album.blocks(step.content)))
        elif carried_blocks := carried(step):
            append_blocks(messages, "assistant", "content", carried_blocks)
        else:
            append_blocks(messages, "assistant", "content", summary := list(plain(step.content)))
        if self.end is not end:
            self._summaries = self._summaries + len(summary) if summary else 0

    def _write_response(self, response: Response) -> None:
        self.end_request(is_request=response.resumes)  # the model was called here
        end, messages = self.end, self.messages
        self._previous = end
        self._turn = end if self._has_user_message else self._turn
        self._has_user_message = False
        ran = {call.id: blocks for call in response.calls if (blocks := ran_at_provider(call, response.outputs.get(call.id)))}
        wire_ids = {call.id: self._ids.take(call.call_id) for call in response.calls if call.id not in ran}
        append_blocks(messages, "assistant", "content", _response(response, wire_ids, ran))
        # A2, A3: all results of a response come first in the very next message. They also end the assistant's message: the
        # next response is a separate step, even if nothing is between the two.
        own = [call for call in response.calls if call.id in wire_ids]
        self._is_answered = bool(ran) and not own
        append_blocks(messages, "user", "content", [_result(response, call, wire_ids[call.id], self.album) for call in own])

    def end_request(self, *, is_request: bool) -> None:
        """Give the messages the form that they had in a request that ended here.

        A longer prompt must extend the shorter one, because thinking is bound to the conversation before it (A5). Where no request ended,
        the model's text stays unchanged.

        1. The summaries at the end become the user's: a request ends in a user message (A1), and with thinking enabled, a turn that calls
           tools begins with thinking (A4).
        2. The last text of the assistant loses its trailing whitespace (A6).
        3. If the assistant still comes last, a user message with `additions.CLOSING` follows (A1). Not if the log ended in a response: that
           is no request. Nor after a compaction block, or an answer whose tools ran at Anthropic: the model continues after it (A9).
        """
        messages = self.messages
        if self._summaries:
            content = messages[-1]["content"]
            summaries = content[-self._summaries :]
            del content[-self._summaries :]
            if not content:
                messages.pop()
            append_blocks(messages, "user", "content", summaries)
            self._summaries = 0
        if not messages:
            return
        last = messages[-1]["content"][-1]
        if messages[-1]["role"] == "assistant" and last["type"] == "text":
            last["text"] = last["text"].rstrip()
        if is_request and last["type"] != "compaction" and not self._is_answered:
            append_closing(messages, "content", text_block(additions.CLOSING))


def _response(response: Response, wire_ids: Mapping[str, str], ran: Mapping[str, list[Block]]) -> list[Block]:
    """Return the blocks of a response in the order the model made them, without trailing thinking (A4)."""

    def write(item: Message | FunctionCall) -> list[Block]:
        if isinstance(item, FunctionCall):
            return ran.get(item.id) or [_tool_use(item, wire_ids[item.id])]
        return carried(item) or list(plain(item.content))

    return blocks_in_order(response, _thinking, write)


def _thinking(item: Reasoning) -> list[Block]:
    """Return the unchanged reasoning (A4), or nothing: the API refuses thinking that is unsigned, changed, or of another provider."""
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
    # An error holds only text and may not be empty. Any other result may be empty.
    content = list(plain(output.output)) or [text_block(additions.FAILED)] if output.is_error else list(album.blocks(output.output))
    if output.is_error and len(content) == 1:
        content[0]["text"] = additions.escaped(content[0]["text"], additions.INTERRUPTED)
    if content:
        result["content"] = content
    if output.is_error:
        result["is_error"] = True
    return result
