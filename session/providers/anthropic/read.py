"""Anthropic's messages as a session: the way back of `write.py`, and a way in for histories that began at Anthropic.

What the converter added is stripped: preamble and answers to interrupted calls; cache marks too. What a session has no words for
(tools that run at Anthropic, citations, compaction blocks) is carried as it came and goes back as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from session.door import clean_json
from session.errors import FormatError, short
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Document, Image, Part, Text
from session.providers import additions
from session.providers.given import Retold, a_list, a_text, an_object, as_json, some_bytes
from session.session import Session
from session.usage import Usage

from .blocks import CARRIED, is_server_call, is_server_result

Given: TypeAlias = list[tuple[str, dict[str, Any]]]
_PLAIN = frozenset({"type", "text"})
_SHOWN = 4_000
"""Characters of a carried block that its message repeats, for those who read or count the session."""


def from_anthropic(messages: object, system: object = None) -> Session:
    """The session that these messages tell. Ids go by place ("m0", "m0.1"; "s" for system), times are 0.

        session = from_anthropic(messages, system)
        session = from_anthropic([*messages, client.messages.create(…)])

    Args:
        messages: Messages as dicts or as objects of the SDK; the usage of an answer is kept with its first item.
        system: The system prompt: None, a text, or text blocks.

    Raises:
        FormatError: Something is no message; `.where` names the place.
    """
    told = _Telling()
    listed = [(where, _fields(message, where)) for where, message in a_list(messages, "messages")]
    if system is not None:
        told.system("s", _texts(system, "system"))
    for place, (where, message) in enumerate(listed):
        role = message.get("role")
        if role == "system":
            told.system(f"m{place}", _texts(message.get("content", []), f"{where}.content"))
        elif role in ("user", "assistant"):
            following = listed[place + 1][1].get("role") if place + 1 < len(listed) else None
            told.message(place, role, message, where, before_answer=following == "assistant")
        else:
            raise FormatError(f"{where}.role", f"{short(role)} is neither user nor assistant")
    return told.out.done()


def _fields(value: object, where: str) -> dict[str, Any]:
    """The fields that are set, cache marks aside."""
    found = an_object(value, where)
    return {
        key if isinstance(key, str) else short(key): member
        for key, member in found.items()
        if member is not None and key != "cache_control"
    }


def _texts(content: object, where: str) -> Iterator[str]:
    for at, block in _blocks(content, where):
        yield a_text(block.get("text"), f"{at}.text")


def _blocks(content: object, where: str) -> Given:
    """The blocks of a content, a text being one."""
    if isinstance(content, str):
        return [(where, {"type": "text", "text": content})]
    return [(at, {"type": "text", "text": block} if isinstance(block, str) else _fields(block, at)) for at, block in a_list(content, where)]


class _Telling:
    """One walk over the messages."""

    def __init__(self) -> None:
        self.out = Retold()
        self._names: dict[str, str] = {}  # of the tools, by call id
        self._role: Literal["user", "assistant"] = "user"
        self._said: list[Part] = []
        self._usage: Usage | None = None

    def system(self, place: str, texts: Iterator[str]) -> None:
        self.out.at(place)
        for text in texts:
            self.out.add(Message("system", text, **self.out.name()))

    def message(self, place: int, role: Literal["user", "assistant"], message: dict[str, Any], where: str, *, before_answer: bool) -> None:
        """The items of one message: a message a run of texts and media, and one for each block of another kind."""
        blocks = _blocks(message.get("content", []), f"{where}.content")
        self.out.at(f"m{place}", response=role == "assistant")
        self._role = role
        self._usage = _usage(message["usage"], f"{where}.usage") if "usage" in message else None
        first = place == 0 and role == "user" and blocks and not isinstance(message["content"], str)  # a converter writes lists
        if first and blocks[0][1] == {"type": "text", "text": additions.PREAMBLE}:
            blocks = blocks[1:]
            if blocks or not before_answer:
                # Something earlier is gone, and nothing else tells so: a compaction without a summary. For such a one nothing
                # is sent but the preamble that was there.
                self._add(Compaction("", **self.out.name()))
        elif first and blocks[0][1].keys() == _PLAIN:
            blocks = [_unescaped(blocks[0], additions.PREAMBLE), *blocks[1:]]
        done, ends = 0, _ends(blocks, role)
        for at, (inner, block) in enumerate(blocks):
            if at >= done:
                done = self._group(blocks, at, ends) or self._one(inner, block, at)
        self._close()

    def _group(self, blocks: Given, first: int, ends: list[int]) -> int:
        """Carries blocks that go together, and says where what follows them begins; 0 where a session has words for the block."""
        where, block = blocks[first]
        if not _is_foreign(block, self._role):
            return 0
        last = ends[first]
        self._close()
        bare = [clean_json(one, at) for at, one in blocks[first : last + 1]]
        extra: dict[str, Any] = {CARRIED: bare}
        if block.get("type") == "compaction":
            extra["summary"] = True  # A9: it is kept, as summaries are; what was before it the API no longer reads
        texts = [Text(_told(one, where)) for one in bare]
        self._add(Message(self._role, texts, extra=extra, **self.out.name()))
        return last + 1

    def _one(self, where: str, block: dict[str, Any], at: int) -> int:
        """Takes one block that a session has words for."""
        kind = block.get("type")
        if kind in ("text", "image", "document"):
            self._said.append(_part(block, where))
            return at + 1
        self._close()
        if kind == "thinking":
            signature = a_text(block.get("signature", ""), f"{where}.signature") or None
            self._add(Reasoning(a_text(block.get("thinking", ""), f"{where}.thinking"), signature, **self.out.name()))
        elif kind == "redacted_thinking":
            self._add(Reasoning(data=a_text(block.get("data"), f"{where}.data"), **self.out.name()))
        elif kind == "tool_use":
            name, call_id = a_text(block.get("name"), f"{where}.name"), a_text(block.get("id"), f"{where}.id")
            self._names[call_id] = name
            self._add(FunctionCall(name, as_json(_input(block, where), f"{where}.input"), call_id, **self.out.name()))
        else:
            self._output(block, where)
        return at + 1

    def _output(self, block: dict[str, Any], where: str) -> None:
        """The output; nothing for the answer to an interrupted call, which a converter gave."""
        call_id = a_text(block.get("tool_use_id"), f"{where}.tool_use_id")
        content = _blocks(block.get("content", []), f"{where}.content")
        failed = block.get("is_error", False)
        if failed is True and len(content) == 1 and not isinstance(block["content"], str):  # a converter writes lists
            if content[0][1] == {"type": "text", "text": additions.INTERRUPTED}:
                return
            content = [_unescaped(content[0], additions.INTERRUPTED)]
        parts = [_part(one, at) if _has_words(one) else Text(_told(clean_json(one, at), at)) for at, one in content]
        if not isinstance(failed, bool):
            raise FormatError(f"{where}.is_error", f"{short(failed)} is neither true nor false")
        self._add(FunctionCallOutput(self._names.get(call_id, ""), parts, call_id, is_error=failed, **self.out.name()))

    def _close(self) -> None:
        """A message of what was said since the last item."""
        if self._said:
            self._add(Message(self._role, self._said, **self.out.name()))
            self._said = []

    def _add(self, item: Item) -> None:
        self.out.add(item if self._usage is None else replace(item, usage=self._usage))
        self._usage = None


def _ends(blocks: Given, role: str) -> list[int]:
    """By block, the last of those that go with it: for what a server's tool was asked, its result and all that stands between,
    other calls and their results too; for another block, or where a session has words for one of them, the block itself. O(n).
    """
    results = {_name(block.get("tool_use_id")): at for at, (_, block) in enumerate(blocks) if is_server_result(block)}
    reach = list(range(len(blocks)))
    for first in range(len(blocks) - 1, -1, -1):
        block = blocks[first][1]
        if is_server_call(block):
            last = max(first, results.get(_name(block.get("id")), first))
            at = first + 1
            while at <= last:  # what one behind it reaches is known, and passed over at once
                last = max(last, reach[at])
                at = reach[at] + 1
            reach[first] = last
    own = list(accumulate((not (_is_foreign(block, role) or block.get("type") == "text") for _, block in blocks), initial=0))
    return [last if own[first] == own[last + 1] else first for first, last in enumerate(reach)]


def _unescaped(block: tuple[str, dict[str, Any]], addition: str) -> tuple[str, dict[str, Any]]:
    """The block with its text as it was before `additions.escaped`."""
    where, fields = block
    text = fields.get("text")
    return (where, {**fields, "text": additions.unescaped(text, addition)}) if isinstance(text, str) else block


def _name(given: object) -> str | None:
    return given if isinstance(given, str) else None


def _is_foreign(block: Mapping[str, Any], role: str) -> bool:
    """Whether a session has no words for the block: a tool of the provider's, a text with citations, whatever comes next."""
    kind = block.get("type")
    if kind == "text":
        return role == "assistant" and not block.keys() <= _PLAIN
    return kind not in ("image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result")


def _has_words(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("text", "image", "document")


def _told(block: dict[str, Any], where: str) -> str:
    """What a message says of a block that it carries: its text, else the block as JSON."""
    for key in ("text", "content"):
        if isinstance(block.get(key), str):
            return str(block[key])
    return as_json(block, where)[:_SHOWN]


def _input(block: Mapping[str, Any], where: str) -> dict[str, Any]:
    return dict(an_object(block.get("input", {}), f"{where}.input"))


def _part(block: Mapping[str, Any], where: str) -> Part:
    """A text, an image or a document."""
    if block["type"] == "text":
        return Text(a_text(block.get("text"), f"{where}.text"))
    source = _fields(block.get("source"), f"{where}.source")
    kind, named = source.get("type"), f"{where}.source"
    title: dict[str, Any] = {}
    if "title" in block and block["type"] == "document":
        title["title"] = a_text(block["title"], f"{where}.title")
    if kind == "text" and block["type"] == "document":
        return Document(text=a_text(source.get("data"), f"{named}.data"), media_type="text/plain", **title)
    if kind == "content" and block["type"] == "document":
        inner = _blocks(source.get("content"), f"{named}.content")
        texts = [a_text(one.get("text"), f"{at}.text") for at, one in inner if one.get("type") == "text"]
        return Document(text="\n".join(texts), **title)
    given: dict[str, Any]
    if kind == "base64":
        given = {
            "data": some_bytes(source.get("data"), f"{named}.data"),
            "media_type": a_text(source.get("media_type"), f"{named}.media_type"),
        }
    elif kind == "url":
        given = {"url": a_text(source.get("url"), f"{named}.url")}
    elif kind == "file":
        given = {"file_id": a_text(source.get("file_id"), f"{named}.file_id")}
    else:
        raise FormatError(f"{named}.type", f"{short(kind)} is no source of {block['type']}s")
    return Image(**given) if block["type"] == "image" else Document(**given, **title)


def _usage(given: object, where: str) -> Usage:
    usage = _fields(given, where)
    return Usage(
        input_tokens=usage.get("input_tokens", 0),
        cache_read_tokens=usage.get("cache_read_input_tokens", 0),
        cache_write_tokens=usage.get("cache_creation_input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
    )
