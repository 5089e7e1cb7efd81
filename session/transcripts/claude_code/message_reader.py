"""Turn the `message` of a user or assistant record into items, and an `attachment` into the text that it shows to the model.

`line_reader.py` decides what a record is and where it belongs. The file has an attachment's data but not the wording around it. The
wording here is ours, so sizes are only approximate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

from session.errors import FormatError
from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.parts import Part, Text
from session.providers.anthropic.blocks import ran_result
from session.providers.anthropic.parse import last_prompt
from session.providers.pieces import Call, Thought
from session.transcripts.block_parser import is_result, parts_of, piece_of, server_result_parts, text_or_json
from session.transcripts.call_ids import UNKNOWN_TOOL
from session.transcripts.media import bytes_of, media_part
from session.transcripts.values import REDACTED, JsonObject, count_at, object_at, objects_at, text_at
from session.usage import Usage

from .context_command import context_usage, stated_tools
from .entry import item_id_at, memory_path, source_of


class _ClaudeItemFields(TypedDict):
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
        reasons: A sentence for each omitted thing.
    """

    base: str
    time: float
    agent: str | None
    response: str
    calls: dict[str, tuple[str, str]]
    items: list[Item] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add_response(self, content: object, source: str | None) -> None:
        """Add the items of the model's message.

        Args:
            content: A text, or a list of blocks.
            source: The author of the text if it is not the model, else None.
        """
        for index, block in enumerate(content if isinstance(content, list) else [content]):
            if isinstance(block, dict) and is_result(block.get("type")):
                self.add_result(block, index)
                continue
            for piece in piece_of(block, self.reasons):
                if isinstance(piece, Text):
                    self._add_text(piece.text, source)
                elif isinstance(piece, Thought):
                    self._add_thought(piece)
                elif isinstance(piece, Call):
                    self._add_call(piece, index)
                elif isinstance(piece, Part):
                    self.items.append(Message("assistant", (piece,), **self._fields()))

    def add_result(self, block: JsonObject, index: int) -> None:
        """Add a tool result, which is the block at this index of its message. Unknown blocks in its content are left out.

        `extra["loaded_tools"]` is the number of tools whose names it has: the provider adds their definitions, which the log lacks.
        """
        call_id = text_at(block, "tool_use_id") or f"{self.base}-call-{index}"
        parts = server_result_parts(block.get("content"), self.reasons)
        tool, _ = self.calls.get(call_id, (UNKNOWN_TOOL, ""))
        loaded = sum(text_at(part, "type") == "tool_reference" for part in objects_at(block, "content"))
        extra = ran_result(block, parts) | ({"loaded_tools": loaded} if loaded else {})
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
        """Add a context message: something that the tool showed to the model.

        `extra["context_usage"]` has the figures of an output of `/context`, `extra["tool_tokens"]` those of the definitions of MCP tools.
        """
        if path is None and source == "memory":
            path = next((path for part in parts if isinstance(part, Text) and (path := memory_path(part.text))), None)
        extra: JsonObject = {"source": source, "path": path} if path else {"source": source}
        output = "".join(part.text for part in parts if isinstance(part, Text)) if source == "local command" else ""
        if output and (stated := context_usage(output)):
            tools = stated_tools(output)
            extra |= {"context_usage": stated, **({"tool_tokens": tools} if tools else {})}
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
            self.reasons.append("left out an empty text")

    def _add_thought(self, thought: Thought) -> None:
        if thought.text or thought.signature or thought.data is not None:
            extra = {"provider": thought.provider} if thought.provider else {}
            self.items.append(Reasoning(thought.text, thought.signature, thought.data, extra=extra, **self._fields()))
        else:
            self.reasons.append("left out an empty thought")

    def _add_call(self, call: Call, index: int) -> None:
        if call.id in self.calls and self.calls[call.id][1] == self.response and REDACTED not in call.id:
            self.reasons.append(f"a copy of the call {call.id}")
            return
        call_id = call.id or f"{self.base}-call-{index}"
        self.calls[call_id] = call.name, self.response
        arguments = text_or_json(call.arguments)
        self.items.append(FunctionCall(call.name, arguments, call_id, metadata=call.metadata, **self._fields()))

    def _fields(self) -> _ClaudeItemFields:
        return {"id": item_id_at(self.base, len(self.items)), "created_at": self.time, "agent_id": self.agent}


def usage_of(message: JsonObject, reasons: list[str]) -> Usage | None:
    """Return the reported usage of the message's request, or None.

    Args:
        message: A message of the model.
        reasons: Gets a sentence if the report is damaged.
    """
    report = message.get("usage")
    if not isinstance(report, dict):
        return None
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    try:
        counted, read, written, answered = (count_at(report, name) for name in names)
        return Usage(counted, read, written, answered, last_prompt=last_prompt(report))
    except FormatError as error:
        reasons.append(f"left out the usage ({error}): it is damaged")
        return None


@dataclass(frozen=True, slots=True)
class AttachmentContent:
    """The part of an attachment that the model sees.

    Attributes:
        parts: Its content.
        is_prompt: True if the user typed it while the model was working.
        path: The file that it is from, or None.
    """

    parts: tuple[Part, ...]
    is_prompt: bool = False
    path: str | None = None


HIDDEN = {
    "already_read_file": "the file is already in the context",
    "command_permissions": "permissions, for the tool",
    "dynamic_skill": "a skill made known to the tool",
    "edited_image_file": "a note for the user",
    "hook_cancelled": "a note for the user",
    "hook_error_during_execution": "a note for the user",
    "hook_non_blocking_error": "a note for the user",
    "hook_permission_decision": "permissions, for the tool",
    "hook_system_message": "a note for the user",
    "structured_output": "a result for the calling program",
}
"""Types of attachments that the model never sees, with the reason."""

CONTEXT_HOOKS = ("SessionStart", "UserPromptSubmit")
"""Hooks whose plain output goes to the model; that of other hooks is for the user."""


def read_attachment(attachment: JsonObject, reasons: list[str]) -> AttachmentContent | str:
    """Return what the model sees of the attachment, or the reason why it sees nothing.

    Args:
        attachment: The attachment.
        reasons: Gets a sentence for everything that is left out.
    """
    kind = text_at(attachment, "type")
    if kind in HIDDEN:
        return HIDDEN[kind]
    if kind == "hook_success" and text_at(attachment, "hookEvent") not in CONTEXT_HOOKS:
        return "output of this hook is for the user"
    if kind in ("file", "queued_command"):
        content = (_file if kind == "file" else _queued)(attachment, reasons)
    elif kind in _READERS:
        content = _READERS[kind](attachment)
    elif kind in _FIELDS:
        path = text_at(attachment, "filename", "path", "planFilePath")
        content = AttachmentContent(_joined(attachment, _FIELDS[kind]), path=path or None)
    else:
        return f"unknown attachment type {kind!r}"[:100]
    if any(not isinstance(part, Text) or part.text.strip() for part in content.parts):
        return content
    return "its text is not in the file"


_FIELDS: dict[str, tuple[str, ...]] = {
    "agent_listing_delta": ("addedLines", "removedTypes"),
    "async_hook_response": ("response", "content"),
    "auto_mode": ("content",),
    "auto_mode_exit": ("content",),
    "critical_system_reminder": ("content",),
    "date_change": ("newDate",),
    "deferred_tools_delta": ("addedLines", "removedNames"),
    "directory": ("path", "content"),
    "edited_text_file": ("filename", "snippet"),
    "hook_additional_context": ("content",),
    "hook_stopped_continuation": ("message",),
    "hook_success": ("content",),
    "invoked_skills": ("skills",),
    "mcp_instructions_delta": ("addedBlocks", "removedNames"),
    "opened_file_in_ide": ("filename",),
    "output_style": ("style",),
    "plan_file_reference": ("planFilePath", "planContent"),
    "plan_mode": ("content",),
    "plan_mode_exit": ("content",),
    "plan_mode_reentry": ("content",),
    "skill_discovery": ("skills",),
    "skill_listing": ("content",),
    "task_reminder": ("content",),
    "task_status": ("description", "status", "deltaSummary"),
    "teammate_mailbox": ("messages",),
    "todo": ("content",),
    "todo_reminder": ("content",),
}
"""Types of attachments that are plain texts, with the names of their text fields."""


def _joined(attachment: JsonObject, fields: tuple[str, ...]) -> tuple[Part, ...]:
    return (Text("\n".join(text for name in fields for text in _texts(attachment.get(name)))),)


def _texts(value: object) -> list[str]:
    """Return the texts in a value: itself, its members, or the informative fields of its members."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list):
        return [text for member in value for text in _texts(member)]
    if isinstance(value, dict):
        title = ": ".join(text for name in ("status", "from", "name", "path") if (text := text_at(value, name)))
        body = text_at(value, "subject", "content", "text", "description", "additionalContext")
        return [f"{title}\n{body}" if "\n" in body else f"{title}: {body}" if title and body else title or body]
    return []


def _text_content(text: str, path: str = "") -> AttachmentContent:
    return AttachmentContent((Text(text),), path=path or None)


def _nested_memory(attachment: JsonObject) -> AttachmentContent:
    name, text = text_at(attachment, "displayPath", "path"), text_at(object_at(attachment, "content"), "content")
    return _text_content(f"Contents of {name}:\n\n{text}" if text else "", text_at(attachment, "path") or name)


def _memories(attachment: JsonObject) -> AttachmentContent:
    memories = objects_at(attachment, "memories")
    texts = [f"Contents of {text_at(memory, 'path')}:\n\n{text_at(memory, 'content')}" for memory in memories]
    return _text_content("\n\n".join(texts), text_at(memories[0], "path") if len(memories) == 1 else "")


def _file(attachment: JsonObject, reasons: list[str]) -> AttachmentContent:
    content = object_at(attachment, "content")
    file = object_at(content, "file")
    path = text_at(attachment, "filename", "displayPath") or text_at(file, "filePath")
    title = f"Contents of {path}:"
    if content.get("type") == "image":
        image = media_part(bytes_of(file.get("base64")), text_at(file, "type"), reasons, kind="image")
        return AttachmentContent((Text(title), image) if image else (), path=path or None)
    text = text_at(file, "content") or "\n".join(_texts(file.get("cells"))) or text_at(attachment, "content")
    return _text_content(f"{title}\n\n{text}" if text else "", path)


def _file_reference(attachment: JsonObject) -> AttachmentContent:
    path = text_at(attachment, "filename", "displayPath", "path")
    return _text_content(f"{path} was shown before; read it again where its content is needed." if path else "", path)


def _selection(attachment: JsonObject) -> AttachmentContent:
    path = text_at(attachment, "filename", "displayPath")
    lines = f"{count_at(attachment, 'lineStart')} to {count_at(attachment, 'lineEnd')}"
    return _text_content(f"Lines {lines} of {path} are selected:\n{text_at(attachment, 'content')}", path)


def _queued(attachment: JsonObject, reasons: list[str]) -> AttachmentContent:
    is_prompt = text_at(attachment, "commandMode") in ("", "prompt")
    return AttachmentContent(parts_of(attachment.get("prompt"), reasons), is_prompt=is_prompt)


def _hook_error(attachment: JsonObject) -> AttachmentContent:
    error = attachment.get("blockingError")
    text = text_at(error, "blockingError") if isinstance(error, dict) else error if isinstance(error, str) else ""
    return _text_content(f"{text_at(attachment, 'hookName')}: {text}" if text else "")


def _diagnostics(attachment: JsonObject) -> AttachmentContent:
    lines = []
    for file in objects_at(attachment, "files"):
        lines.append(text_at(file, "uri"))
        lines += [f"  {text_at(problem, 'severity')}: {text_at(problem, 'message')}" for problem in objects_at(file, "diagnostics")]
    return _text_content("\n".join(lines))


def _resource(attachment: JsonObject) -> AttachmentContent:
    texts = [text for content in objects_at(object_at(attachment, "content"), "contents") if (text := text_at(content, "text"))]
    return _text_content("\n".join(texts), text_at(attachment, "uri"))


_READERS: dict[str, Callable[[JsonObject], AttachmentContent]] = {
    "compact_file_reference": _file_reference,
    "diagnostics": _diagnostics,
    "hook_blocking_error": _hook_error,
    "mcp_resource": _resource,
    "nested_memory": _nested_memory,
    "pdf_reference": _file_reference,
    "relevant_memories": _memories,
    "selected_lines_in_ide": _selection,
}
