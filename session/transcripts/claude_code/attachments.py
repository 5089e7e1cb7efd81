"""Reads `attachment` lines: the text that each shows to the model, or why it shows none.

The file has an attachment's data but not the wording around it. The wording here is ours, so sizes are only approximate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from session.parts import Part, Text
from session.transcripts.block_parser import parts_of
from session.transcripts.media import bytes_of, media_part
from session.transcripts.values import JsonObject, count_at, object_at, objects_at, text_at


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


def read_attachment(attachment: JsonObject, notes: list[str]) -> AttachmentContent | str:
    """Return what the model sees of the attachment, or the reason why it sees nothing.

    Args:
        attachment: The attachment.
        notes: Gets a sentence for everything that is left out.
    """
    kind = text_at(attachment, "type")
    if kind in HIDDEN:
        return HIDDEN[kind]
    if kind == "hook_success" and text_at(attachment, "hookEvent") not in CONTEXT_HOOKS:
        return "output of this hook is for the user"
    if kind in ("file", "queued_command"):
        content = (_file if kind == "file" else _queued)(attachment, notes)
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


def _file(attachment: JsonObject, notes: list[str]) -> AttachmentContent:
    content = object_at(attachment, "content")
    file = object_at(content, "file")
    path = text_at(attachment, "filename", "displayPath") or text_at(file, "filePath")
    title = f"Contents of {path}:"
    if content.get("type") == "image":
        image = media_part(bytes_of(file.get("base64")), text_at(file, "type"), notes, kind="image")
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


def _queued(attachment: JsonObject, notes: list[str]) -> AttachmentContent:
    is_prompt = text_at(attachment, "commandMode") in ("", "prompt")
    return AttachmentContent(parts_of(attachment.get("prompt"), notes), is_prompt=is_prompt)


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
