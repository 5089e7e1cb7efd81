"""Turn the `message` of a user or assistant record into items. `line_reader.py` decides what a record is and where it belongs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from session.errors import FormatError
from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.parts import Part, Text
from session.providers.pieces import Call, Thought
from session.transcripts.block_parser import is_result, parts_of, piece_of, text_or_json
from session.transcripts.call_ids import UNKNOWN_TOOL
from session.transcripts.values import REDACTED, JsonObject, count_at, objects_at, text_at
from session.usage import Usage

from .entry import item_id_at
from .injected_text import memory_path, source_of


class _ItemFields(TypedDict):
    id: str
    created_at: float
    agent_id: str | None


@dataclass(slots=True)
class ItemWriter:
    """Makes the items of one record.

    Attributes:
        base: The id of the first item.
        time: Unix seconds, for all items.
        agent: The agent that the items belong to.
        response: The response that the record is part of, or an empty text.
        calls: For each call read so far, by its id: the tool, and the response that made the call.
        items: The items so far.
        notes: A sentence for each thing left out.
    """

    base: str
    time: float
    agent: str | None
    response: str
    calls: dict[str, tuple[str, str]]
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_response(self, content: object, source: str | None) -> None:
        """Add the items of the model's message.

        Args:
            content: A text, or a list of blocks.
            source: The author of the text if it is not the model, else None.
        """
        for place, block in enumerate(content if isinstance(content, list) else [content]):
            if isinstance(block, dict) and is_result(block.get("type")):
                self.add_result(block, place)
                continue
            for piece in piece_of(block, self.notes):
                if isinstance(piece, Text):
                    self._add_text(piece.text, source)
                elif isinstance(piece, Thought):
                    self._add_thought(piece)
                elif isinstance(piece, Call):
                    self._add_call(piece, place)
                elif isinstance(piece, Part):
                    self.items.append(Message("assistant", (piece,), **self._fields()))

    def add_result(self, block: JsonObject, place: int) -> None:
        """Add a tool result, which is the block at this place in its message. Unknown blocks in its content are left out.

        `extra["loaded_tools"]` is the number of tools whose names it has: the provider adds their definitions, which the log lacks.
        """
        call_id = text_at(block, "tool_use_id") or f"{self.base}-call-{place}"
        parts = parts_of(block.get("content"), self.notes)
        tool, _ = self.calls.get(call_id, (UNKNOWN_TOOL, ""))
        loaded = sum(text_at(part, "type") == "tool_reference" for part in objects_at(block, "content"))
        extra = {"loaded_tools": loaded} if loaded else {}
        self.items.append(FunctionCallOutput(tool, parts, call_id, is_error=block.get("is_error") is True, extra=extra, **self._fields()))

    def add_user_parts(self, parts: list[Part], source: str | None) -> bool:
        """Add the messages of the user's role. Return True if the user wrote some of it.

        Args:
            parts: The content.
            source: The subject of the whole content if the tool wrote it; None to judge each text by its own words.
        """
        is_typed = False
        run: list[Part] = []
        run_source = source
        for part in parts:
            part_source = source or (source_of(part.text) if isinstance(part, Text) else None)
            if run and part_source != run_source:
                is_typed |= self._add_run(run, run_source)
                run = []
            run_source = part_source
            run.append(part)
        return (self._add_run(run, run_source) if run else False) or is_typed

    def add_context(self, parts: tuple[Part, ...], source: str, path: str | None = None) -> None:
        """Add a context message: something that the tool showed to the model."""
        if path is None and source == "memory":
            path = next((path for part in parts if isinstance(part, Text) and (path := memory_path(part.text))), None)
        extra = {"source": source, "path": path} if path else {"source": source}
        self.items.append(Message("user", parts, category=MessageCategory.CONTEXT, extra=extra, **self._fields()))

    def add_user(self, parts: tuple[Part, ...], source: str | None = None) -> None:
        """Add a message of the user."""
        self.items.append(Message("user", parts, extra={"source": source} if source else {}, **self._fields()))

    def add_system(self, parts: tuple[Part, ...]) -> None:
        """Add the system prompt."""
        self.items.append(Message("system", parts, **self._fields()))

    def _add_run(self, run: list[Part], source: str | None) -> bool:
        if source is None:
            self.add_user(tuple(run))
            return True
        self.add_context(tuple(run), source)
        return False

    def _add_text(self, text: str, source: str | None) -> None:
        if text:
            self.items.append(Message("assistant", text, extra={"source": source} if source else {}, **self._fields()))
        else:
            self.notes.append("left out an empty text")

    def _add_thought(self, thought: Thought) -> None:
        if thought.text or thought.signature or thought.data is not None:
            extra = {"provider": thought.provider} if thought.provider else {}
            self.items.append(Reasoning(thought.text, thought.signature, thought.data, extra=extra, **self._fields()))
        else:
            self.notes.append("left out an empty thought")

    def _add_call(self, call: Call, place: int) -> None:
        if call.id in self.calls and self.calls[call.id][1] == self.response and REDACTED not in call.id:
            self.notes.append(f"a copy of the call {call.id}")
            return
        call_id = call.id or f"{self.base}-call-{place}"
        self.calls[call_id] = call.name, self.response
        arguments = text_or_json(call.arguments)
        self.items.append(FunctionCall(call.name, arguments, call_id, metadata=call.metadata, **self._fields()))

    def _fields(self) -> _ItemFields:
        return {"id": item_id_at(self.base, len(self.items)), "created_at": self.time, "agent_id": self.agent}


def usage_of(message: JsonObject, notes: list[str]) -> Usage | None:
    """Return the reported usage of the message's request, or None.

    Args:
        message: A message of the model.
        notes: Gets a sentence if the report is damaged.
    """
    report = message.get("usage")
    if not isinstance(report, dict):
        return None
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    try:
        return Usage(*(count_at(report, name) for name in names))
    except FormatError as error:
        notes.append(f"left out the usage ({error}): it is damaged")
        return None
