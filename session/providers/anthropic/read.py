"""Read Anthropic's messages as a session: the inverse of `write.py`, and the entrance for histories that began at Anthropic.

What the converter adds is removed: preamble, closing lines, answers to interrupted calls, cache marks. The line about removed items becomes
`Session.removed`. Blocks that a session has no words for (tools that run at Anthropic, citations) are carried unchanged and sent back
unchanged. A `Compaction` carries a compaction block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any, Literal

from session.errors import FormatError, short
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Part, Text
from session.providers import additions
from session.providers.native_compaction import replaced_ids, with_compactions
from session.providers.parsing import Placed, SessionBuilder, expect_list, expect_object, expect_text, refuse
from session.providers.pieces import Call, Thought
from session.sanitize import clean_json, json_text
from session.session import Session
from session.usage import Usage

from .blocks import CARRIED, is_server_call, is_server_result
from .parse import last_prompt, parse_block

_PLAIN = frozenset({"type", "text"})
_PART_TYPES = ("text", "image", "document")
_TYPES = frozenset((*_PART_TYPES, "thinking", "redacted_thinking", "tool_use", "tool_result")) | frozenset(
    ("search_result", "container_upload", "compaction", "fallback", "mcp_tool_listing")
)
"""The types of blocks, besides calls and results of tools that run at Anthropic: those are known by the ends of their names."""
_OTHER_FORMATS = {
    "Session.from_converse": {"text", "image", "document", "toolUse", "toolResult", "reasoningContent", "cachePoint", "citationsContent"},
    "Session.from_google": {"functionCall", "function_call", "functionResponse", "function_response", "inlineData", "inline_data"},
    "Session.from_openai": {"image_url", "input_audio", "file", "refusal", "tool_calls"},
    "Session.from_openai_responses": {"input_text", "output_text", "input_image", "input_file"},
}
"""By reader, the types and the fields of blocks by which its format is recognized."""
_CARRIED_TEXT_MAX = 4_000
"""Characters of a carried block that its message repeats, for readers and token counters."""


def from_anthropic(messages: object, system: object = None, *, is_answer: bool = False) -> Session:
    """Return the session of these messages. Ids name places ("m0", "m0.1"; "s" for the system prompt), times are 0.

        session = from_anthropic(messages, system)
        session = from_anthropic([*messages, client.messages.create(…)])

    Args:
        messages: Messages as dicts or as SDK objects. The usage of a response is kept with its first item.
        system: The system prompt: None, a text, or text blocks.
        is_answer: True for an answer of the API itself: types of blocks that are newer than this library are carried unchanged.

    Raises:
        FormatError: A value is not in the documented shape, or the type of a block is unknown; `.where` names its place. If the block is
            of another provider, the error names the reader for it.
    """
    reader = _AnthropicReader(is_answer=is_answer)
    placed = [(where, _fields(message, where)) for where, message in expect_list(messages, "messages")]
    if system is not None:
        reader.read_system("s", _texts(system, "system"))
    for index, (where, message) in enumerate(placed):
        role = message.get("role")
        if role == "system":
            reader.read_system(f"m{index}", _texts(message.get("content", []), f"{where}.content"))
        elif role in ("user", "assistant"):
            next_role = placed[index + 1][1].get("role") if index + 1 < len(placed) else None
            is_after_response = index > 0 and placed[index - 1][1].get("role") == "assistant"
            is_before_response = next_role == "assistant"
            reader.read_message(index, role, message, where, is_after_response=is_after_response, is_before_response=is_before_response)
        else:
            raise FormatError(f"{where}.role", f"{short(role)} is neither user nor assistant")
    return reader.builder.finish()


def _fields(value: object, where: str) -> dict[str, Any]:
    """Return the fields of an object without nulls and cache marks."""
    return {
        key if isinstance(key, str) else short(key): member
        for key, member in expect_object(value, where).items()
        if member is not None and key != "cache_control"
    }


def _texts(content: object, where: str) -> Iterator[str]:
    for place, block in _blocks(content, where):
        yield expect_text(block.get("text"), f"{place}.text")


def _blocks(content: object, where: str) -> Placed:
    """Return the blocks of a content. A plain text counts as one block."""
    if isinstance(content, str):
        return [(where, {"type": "text", "text": content})]
    return [
        (place, {"type": "text", "text": block} if isinstance(block, str) else _fields(block, place))
        for place, block in expect_list(content, where)
    ]


class _AnthropicReader:
    """Reads the messages in order."""

    def __init__(self, *, is_answer: bool) -> None:
        self.builder = SessionBuilder()
        self._is_answer = is_answer
        self._role: Literal["user", "assistant"] = "user"
        self._parts: list[Part] = []  # of the message that is being read, since its last item
        self._is_list = True  # False for a message whose content is one text: the converter writes lists
        self._usage: Usage | None = None

    def read_system(self, place: str, texts: Iterator[str]) -> None:
        self.builder.begin(place)
        for text in texts:
            self.builder.add(Message("system", text, **self.builder.fields()))

    def read_message(
        self,
        index: int,
        role: Literal["user", "assistant"],
        message: dict[str, Any],
        where: str,
        *,
        is_after_response: bool,
        is_before_response: bool,
    ) -> None:
        """Add the items of one message: a `Message` for each run of texts and media, an item for every other block."""
        if "tool_calls" in message:
            raise _unknown("tool_calls", where)
        blocks = [placed for placed in _blocks(message.get("content", []), f"{where}.content") if not _is_failed_compaction(placed[1])]
        for place, block in blocks:
            _check_type(block, place, allow_new=self._is_answer)
        self.builder.begin(f"m{index}", is_response=role == "assistant")
        self._role, self._is_list = role, not isinstance(message.get("content"), str)
        self._usage = None
        if "usage" in message:
            has_compaction = any(block.get("type") == "compaction" for _, block in blocks)
            self._usage = _usage(message["usage"], f"{where}.usage", with_compaction=has_compaction)
        if role == "user" and self._is_list and (index == 0 or is_after_response):
            blocks = self.builder.without_addition(blocks, _PLAIN, is_opening=index == 0, is_before_response=is_before_response)
        next_block, group_ends = 0, _group_ends(blocks, role)
        for position, (place, block) in enumerate(blocks):
            if position < next_block:
                continue
            if _is_foreign(block, role):
                next_block = group_ends[position] + 1
                self._carry(blocks[position:next_block])
            else:
                self._read_block(block, place)
        self._end_message()

    def _carry(self, group: Placed) -> None:
        """Add a message that carries blocks unchanged."""
        self._end_message()
        carried = [clean_json(block, place) for place, block in group]
        extra = {CARRIED: carried}
        if group[0][1].get("type") == "compaction":  # A9
            replaces = replaced_ids(self.builder.session.items)
            self._add(Compaction(carried[0]["content"], replaces, extra=extra, **self.builder.fields()))
            return
        texts = [Text(_carried_text(block, group[0][0])) for block in carried]
        self._add(Message(self._role, texts, extra=extra, **self.builder.fields()))

    def _read_block(self, block: dict[str, Any], where: str) -> None:
        """Add a block that a session has words for."""
        piece = None if block["type"] == "tool_result" else parse_block(block, where, refuse)
        if isinstance(piece, Part):
            self._parts.append(piece)
            return
        self._end_message()
        if isinstance(piece, Thought):
            self._add(Reasoning(piece.text, piece.signature, piece.data, **self.builder.fields()))
        elif isinstance(piece, Call):
            arguments = json_text(dict(expect_object(piece.arguments, f"{where}.input")), f"{where}.input")
            self._add(FunctionCall(piece.name, arguments, piece.id, **self.builder.fields()))
        else:
            self._read_result(block, where)

    def _read_result(self, block: dict[str, Any], where: str) -> None:
        """Add a tool result, unless it is the converter's answer to an interrupted call."""
        call_id = expect_text(block.get("tool_use_id"), f"{where}.tool_use_id")
        content = _blocks(block.get("content", []), f"{where}.content")
        is_error = block.get("is_error", False)
        if is_error is True and len(content) == 1 and not isinstance(block["content"], str):  # the converter writes lists
            place, only_block = content[0]
            if only_block == {"type": "text", "text": additions.INTERRUPTED}:
                return
            content = [(place, _unescaped(only_block, additions.INTERRUPTED))]
        parts = [_result_part(inner, place) for place, inner in content]
        if not isinstance(is_error, bool):
            raise FormatError(f"{where}.is_error", f"{short(is_error)} is neither true nor false")
        tool = self.builder.tool_names.get(call_id, "")
        self._add(FunctionCallOutput(tool, parts, call_id, is_error=is_error, **self.builder.fields()))

    def _end_message(self) -> None:
        """Add a message with the parts since the last item."""
        if self._parts:
            message = Message(self._role, self._parts, **self.builder.fields())
            if self._role == "user" and self._is_list:
                self.builder.add_user_message(message)
            else:
                self._add(message)
            self._parts = []

    def _add(self, item: Item) -> None:
        self.builder.add(item if self._usage is None else replace(item, usage=self._usage))
        self._usage = None


def _group_ends(blocks: Placed, role: str) -> list[int]:
    """Return, for each block, the index of the last block that must be carried with it.

    A server tool's call goes with its result and with everything between them, other calls and their results included. Any other
    block stands alone, and so does a call if a session has words for one of the blocks in between. O(n).
    """
    results = {_hashable(block.get("tool_use_id")): at for at, (_, block) in enumerate(blocks) if is_server_result(block)}
    ends = list(range(len(blocks)))
    for first in range(len(blocks) - 1, -1, -1):
        block = blocks[first][1]
        if is_server_call(block):
            last = max(first, results.get(_hashable(block.get("id")), first))
            at = first + 1
            while at <= last:  # the end of a later block is known: jump over its group
                last = max(last, ends[at])
                at = ends[at] + 1
            ends[first] = last
    barriers = list(accumulate((not (_is_foreign(block, role) or block.get("type") == "text") for _, block in blocks), initial=0))
    return [last if barriers[first] == barriers[last + 1] else first for first, last in enumerate(ends)]


def _check_type(block: dict[str, Any], where: str, *, allow_new: bool) -> None:
    """Raise FormatError for a block of another provider, and for an unknown type unless `allow_new`."""
    kind = block.get("type")
    if not isinstance(kind, str):
        raise _unknown(next(iter(block), ""), where)
    if not (allow_new or kind in _TYPES or is_server_call(block) or is_server_result(block)):
        raise _unknown(kind, where)


def _unknown(kind: str, where: str) -> FormatError:
    reader = next((name for name, kinds in _OTHER_FORMATS.items() if kind in kinds), None)
    remedy = f"read these messages with {reader}" if reader else "convert the block to a text, or leave it out"
    return FormatError(where, f"{short(kind)} is no type of Anthropic's blocks; {remedy}")


def _is_failed_compaction(block: Mapping[str, Any]) -> bool:
    """True for a compaction that produced no summary. The API ignores such a block (A9)."""
    return block.get("type") == "compaction" and not (isinstance(block.get("content"), str) and block["content"].strip())


def _unescaped(block: dict[str, Any], addition: str) -> dict[str, Any]:
    """Return the block with the text that `additions.escaped` was given."""
    text = block.get("text")
    return {**block, "text": additions.unescaped(text, addition)} if isinstance(text, str) else block


def _hashable(call_id: object) -> str | None:
    return call_id if isinstance(call_id, str) else None


def _is_foreign(block: Mapping[str, Any], role: str) -> bool:
    """True if a session has no words for the block: server tools, texts with citations, future types."""
    kind = block.get("type")
    if kind == "text":
        return role == "assistant" and not block.keys() <= _PLAIN
    return kind not in ("image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result")


def _result_part(block: dict[str, Any], where: str) -> Part:
    """Return the part of a tool result that a block holds. A block without a part is shown as a text."""
    _check_type(block, where, allow_new=True)
    piece = parse_block(block, where, refuse) if block.get("type") in _PART_TYPES else None
    return piece if isinstance(piece, Part) else Text(_carried_text(clean_json(block, where), where))


def _carried_text(block: dict[str, Any], where: str) -> str:
    """Return the text that stands for a carried block: its own text, else the block as JSON."""
    for key in ("text", "content"):
        if isinstance(block.get(key), str):
            return str(block[key])
    return json_text(block, where)[:_CARRIED_TEXT_MAX]


def _usage(value: object, where: str, *, with_compaction: bool) -> Usage:
    usage = _fields(value, where)
    answer = Usage(
        input_tokens=usage.get("input_tokens", 0),
        cache_read_tokens=usage.get("cache_read_input_tokens", 0),
        cache_write_tokens=usage.get("cache_creation_input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        last_prompt=last_prompt(usage),
    )
    return with_compactions(answer, usage) if with_compaction else answer
