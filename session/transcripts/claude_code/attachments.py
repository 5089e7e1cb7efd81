"""What `attachment` lines show to the model, as text; and which show it nothing.

The file holds an attachment's data, not the words around it, so the words here are ours and the sizes nearly right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from session.parts import Part, Text
from session.transcripts.blocks import image_of, parts_of
from session.transcripts.values import JsonObject, count_at, list_at, object_at, text_at


@dataclass(frozen=True, slots=True)
class Shown:
    """What an attachment shows.

    Attributes:
        parts: Its content.
        typed: True if it is what the user typed while the model was at work.
        path: The file it is from, where it is from one.
    """

    parts: tuple[Part, ...]
    typed: bool = False
    path: str | None = None


NEVER = {
    "already_read_file": "the file is in the context already",
    "command_permissions": "permissions are for the tool",
    "dynamic_skill": "it only makes a skill known to the tool",
    "edited_image_file": "a note for the user",
    "hook_cancelled": "a note for the user",
    "hook_error_during_execution": "a note for the user",
    "hook_non_blocking_error": "a note for the user",
    "hook_permission_decision": "permissions are for the tool",
    "hook_system_message": "a note for the user",
    "structured_output": "a result for the caller",
}
"""Attachments that the model is not shown, and why."""

HOOKS_SHOWN = ("SessionStart", "UserPromptSubmit")
"""The hooks whose plain output is context; that of others is for the user."""


def shown(attachment: JsonObject, notes: list[str]) -> Shown | str:
    """What the attachment shows to the model, or why it shows nothing."""
    kind = text_at(attachment, "type")
    if kind in NEVER:
        return NEVER[kind]
    if kind == "hook_success" and text_at(attachment, "hookEvent") not in HOOKS_SHOWN:
        return "the output of this hook is for the user"
    if kind in ("file", "queued_command"):
        found = (_file if kind == "file" else _queued)(attachment, notes)
    elif kind in _SPECIAL:
        found = _SPECIAL[kind](attachment)
    elif kind in _FIELDS:
        found = Shown(_joined(attachment, _FIELDS[kind]), path=text_at(attachment, "filename", "path", "planFilePath") or None)
    else:
        return f"unknown attachment type {kind!r}"[:100]
    if any(not isinstance(part, Text) or part.text.strip() for part in found.parts):
        return found
    return "the file holds no text of it"


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
"""Attachments whose texts lie openly in them, and the fields they lie in."""


def _joined(attachment: JsonObject, fields: tuple[str, ...]) -> tuple[Part, ...]:
    return (Text("\n".join(text for name in fields for text in _texts(attachment.get(name)))),)


def _texts(value: object) -> list[str]:
    """The texts in a value: itself, its members, or the telling fields of its members."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list):
        return [text for member in value for text in _texts(member)]
    if isinstance(value, dict):
        line = ": ".join(found for name in ("status", "from", "name", "path") if (found := text_at(value, name)))
        body = text_at(value, "subject", "content", "text", "description", "additionalContext")
        return [f"{line}\n{body}" if "\n" in body else f"{line}: {body}" if line and body else line or body]
    return []


def _nested_memory(attachment: JsonObject) -> Shown:
    held = object_at(attachment, "content")
    name, text = text_at(attachment, "displayPath", "path"), text_at(held, "content")
    return Shown((Text(f"Contents of {name}:\n\n{text}" if text else ""),), path=text_at(attachment, "path") or name or None)


def _memories(attachment: JsonObject) -> Shown:
    found = [one for one in list_at(attachment, "memories") if isinstance(one, dict)]
    texts = [f"Contents of {text_at(one, 'path')}:\n\n{text_at(one, 'content')}" for one in found]
    return Shown((Text("\n\n".join(texts)),), path=text_at(found[0], "path") if len(found) == 1 else None)


def _file(attachment: JsonObject, notes: list[str]) -> Shown:
    content = object_at(attachment, "content")
    held = object_at(content, "file")
    path = text_at(attachment, "filename", "displayPath") or text_at(held, "filePath")
    title = Text(f"Contents of {path}:")
    if content.get("type") == "image":
        image = image_of(held.get("base64"), text_at(held, "type"), notes)
        return Shown((title, image) if image else (), path=path or None)
    text = text_at(held, "content") or "\n".join(_texts(held.get("cells"))) or text_at(attachment, "content")
    return Shown((Text(f"{title.text}\n\n{text}" if text else ""),), path=path or None)


def _file_again(attachment: JsonObject) -> Shown:
    path = text_at(attachment, "filename", "displayPath", "path")
    return Shown((Text(f"{path} was shown before; read it again where its content is needed." if path else ""),), path=path or None)


def _selection(attachment: JsonObject) -> Shown:
    path = text_at(attachment, "filename", "displayPath")
    lines = f"{count_at(attachment, 'lineStart')} to {count_at(attachment, 'lineEnd')}"
    return Shown((Text(f"Lines {lines} of {path} are selected:\n{text_at(attachment, 'content')}"),), path=path or None)


def _queued(attachment: JsonObject, notes: list[str]) -> Shown:
    typed = text_at(attachment, "commandMode") in ("", "prompt")
    return Shown(parts_of(attachment.get("prompt"), notes), typed=typed)


def _blocked(attachment: JsonObject) -> Shown:
    error = attachment.get("blockingError")
    text = text_at(error, "blockingError") if isinstance(error, dict) else error if isinstance(error, str) else ""
    return Shown((Text(f"{text_at(attachment, 'hookName')}: {text}" if text else ""),))


def _diagnostics(attachment: JsonObject) -> Shown:
    lines = []
    for file in list_at(attachment, "files"):
        if isinstance(file, dict):
            lines.append(text_at(file, "uri"))
            found = [one for one in list_at(file, "diagnostics") if isinstance(one, dict)]
            lines += [f"  {text_at(one, 'severity')}: {text_at(one, 'message')}" for one in found]
    return Shown((Text("\n".join(lines)),))


def _resource(attachment: JsonObject) -> Shown:
    found = [one for one in list_at(object_at(attachment, "content"), "contents") if isinstance(one, dict)]
    texts = [text for one in found if (text := text_at(one, "text"))]
    return Shown((Text("\n".join(texts)),), path=text_at(attachment, "uri") or None)


_SPECIAL: dict[str, Callable[[JsonObject], Shown]] = {
    "compact_file_reference": _file_again,
    "diagnostics": _diagnostics,
    "hook_blocking_error": _blocked,
    "mcp_resource": _resource,
    "nested_memory": _nested_memory,
    "pdf_reference": _file_again,
    "relevant_memories": _memories,
    "selected_lines_in_ide": _selection,
}
