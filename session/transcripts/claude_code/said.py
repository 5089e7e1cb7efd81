"""The `message` of a user or assistant record, turned into items. Which record it is, and where it belongs, is in `lines.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from session.errors import FormatError
from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.parts import Part, Text
from session.transcripts.blocks import is_call, is_result, part_of, parts_of
from session.transcripts.values import REDACTED, JsonObject, count_at, json_text, text_at
from session.usage import Usage

from .entry import name
from .injected import memory_path, source_of

UNKNOWN_TOOL = "unknown"
"""The name of an output whose call is not in the file."""


class _Base(TypedDict):
    id: str
    created_at: float
    agent_id: str | None


@dataclass(slots=True)
class Writer:
    """Makes the items of one record.

    Attributes:
        base: The id of the first.
        time: Unix seconds, for all of them.
        agent: The agent they belong to.
        response: The answer of the model that the record is part of, or an empty text.
        calls: By the ids of the calls read so far: the tool, and the response that made the call.
        items: What was made.
        notes: A sentence for each thing left out.
    """

    base: str
    time: float
    agent: str | None
    response: str
    calls: dict[str, tuple[str, str]]
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def answer(self, content: object, source: str | None) -> None:
        """What the model said.

        Args:
            content: A text, or a list of blocks.
            source: Where the text is from, where the model did not write it.
        """
        for place, block in enumerate(content if isinstance(content, list) else [content]):
            kind = block.get("type") if isinstance(block, dict) else "text"
            if not isinstance(block, dict):
                self._text(block, source)
            elif kind == "text":
                self._text(block.get("text"), source)
            elif kind == "thinking":
                self._thought(block)
            elif kind == "redacted_thinking":
                self.items.append(Reasoning(data=text_at(block, "data"), **self._base()))
            elif is_call(kind):
                self._call(block, str(kind), place)
            elif is_result(kind):
                self.output(block, place)
            elif (part := part_of(block, self.notes)) is not None:
                self.items.append(Message("assistant", (part,), **self._base()))

    def output(self, block: JsonObject, place: int) -> None:
        """What a tool answered."""
        call_id = text_at(block, "tool_use_id") or f"{self.base}-call-{place}"
        parts = parts_of(block.get("content"), self.notes)
        tool, _ = self.calls.get(call_id, (UNKNOWN_TOOL, ""))
        self.items.append(FunctionCallOutput(tool, parts, call_id, is_error=block.get("is_error") is True, **self._base()))

    def said(self, parts: list[Part], source: str | None) -> bool:
        """What stands in the user's role; True where some of it is the user's own.

        Args:
            parts: The content.
            source: What it is about, where the tool is known to have written all of it.
        """
        typed = False
        run: list[Part] = []
        about = source
        for part in parts:
            found = source or (source_of(part.text) if isinstance(part, Text) else None)
            if run and found != about:
                typed |= self._user(run, about)
                run = []
            about = found
            run.append(part)
        return (self._user(run, about) if run else False) or typed

    def context(self, parts: tuple[Part, ...], source: str, path: str | None = None) -> None:
        """Something the tool shows to the model."""
        if path is None and source == "memory":
            path = next((found for part in parts if isinstance(part, Text) and (found := memory_path(part.text))), None)
        extra = {"source": source, "path": path} if path else {"source": source}
        self.items.append(Message("user", parts, category=MessageCategory.CONTEXT, extra=extra, **self._base()))

    def user(self, parts: tuple[Part, ...], source: str | None = None) -> None:
        """What a user asked for."""
        self.items.append(Message("user", parts, extra={"source": source} if source else {}, **self._base()))

    def system(self, parts: tuple[Part, ...]) -> None:
        """The system prompt."""
        self.items.append(Message("system", parts, **self._base()))

    def _user(self, run: list[Part], source: str | None) -> bool:
        if source is None:
            self.user(tuple(run))
            return True
        self.context(tuple(run), source)
        return False

    def _text(self, text: object, source: str | None) -> None:
        if isinstance(text, str) and text:
            self.items.append(Message("assistant", text, extra={"source": source} if source else {}, **self._base()))
        else:
            self.notes.append("left out an empty text")

    def _thought(self, block: JsonObject) -> None:
        text, signature = text_at(block, "thinking"), text_at(block, "signature")
        if text or signature:
            self.items.append(Reasoning(text, signature or None, **self._base()))
        else:
            self.notes.append("left out an empty thought")

    def _call(self, block: JsonObject, kind: str, place: int) -> None:
        call_id = text_at(block, "id")
        if call_id in self.calls and self.calls[call_id][1] == self.response and REDACTED not in call_id:
            self.notes.append(f"a copy of the call {call_id}")
            return
        call_id = call_id or f"{self.base}-call-{place}"
        tool = text_at(block, "name") or UNKNOWN_TOOL
        self.calls[call_id] = tool, self.response
        given = block.get("input")
        arguments = given if isinstance(given, str) else json_text({} if given is None else given)
        metadata: Mapping[str, str] = {} if kind == "tool_use" else {"type": kind}
        self.items.append(FunctionCall(tool, arguments, call_id, metadata=metadata, **self._base()))

    def _base(self) -> _Base:
        return {"id": name(self.base, len(self.items)), "created_at": self.time, "agent_id": self.agent}


def usage_of(message: JsonObject, notes: list[str]) -> Usage | None:
    """Return what the message reports of its request, or None.

    Args:
        message: Of the model.
        notes: Gets a sentence if the report is damaged.
    """
    reported = message.get("usage")
    if not isinstance(reported, dict):
        return None
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    try:
        return Usage(*(count_at(reported, name) for name in names))
    except FormatError as error:
        notes.append(f"left out the usage ({error}): it is damaged")
        return None
