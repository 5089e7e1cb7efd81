"""Context that Claude Code adds to a conversation, and how it is distinguished from text that the user typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from session import Image, Message, MessageCategory, Text
from session.transcripts import read_transcript
from tests.support.claude_lines import Json, Log, call, image, records_of, result, shape, text

CONTEXT, DIALOG = MessageCategory.CONTEXT, MessageCategory.DIALOG


@pytest.fixture
def log() -> Log:
    return Log()


# The user's role


@pytest.mark.parametrize(
    ("content", "fields", "source"),
    [
        ("<local-command-stdout>Bye</local-command-stdout>", {}, "local command"),
        ("<bash-input>ls</bash-input>", {}, "shell command"),
        ("[Request interrupted by user for tool use]", {}, "interruption"),
        ("<task-notification>\n<task-id>1</task-id></task-notification>", {}, "task notification"),
        ("anything", {"origin": {"kind": "task-notification"}}, "task notification"),
        ("<system-reminder>be kind</system-reminder>", {}, "system reminder"),
        ("Continue from where you left off.", {"isMeta": True}, "meta"),
        ("Base directory for this skill: /s", {"isMeta": True, "sourceToolUseID": "t"}, "skill"),
    ],
)
def test_text_of_the_tool_in_the_users_role_is_context(log: Log, tmp_path: Path, content: str, fields: Json, source: str) -> None:
    log.user("look")
    log.user(content, **fields)
    item = read_transcript(log.write(tmp_path)).items[1]
    assert isinstance(item, Message)
    assert (item.role, item.category, item.extra) == ("user", CONTEXT, {"source": source})


@pytest.mark.parametrize("content", ["hello", "look at <system-reminder>", "<system-reminder>x</system-reminder> and do it", "<b>bold</b>"])
def test_text_typed_by_the_user_is_dialog(log: Log, tmp_path: Path, content: str) -> None:
    log.user(content)
    assert read_transcript(log.write(tmp_path)).items[0].category is DIALOG


def test_an_ide_note_before_a_prompt_is_context_and_the_prompt_is_dialog(log: Log, tmp_path: Path) -> None:
    log.user([text("<ide_selection>line 5</ide_selection>"), text("explain"), image()])
    note, prompt = read_transcript(log.write(tmp_path)).items
    assert (note.category, note.extra) == (CONTEXT, {"source": "ide"})
    assert prompt.category is DIALOG
    assert len(prompt.content) == 2  # type: ignore[union-attr]


def test_a_slash_command_and_its_expansion_are_dialog(log: Log, tmp_path: Path) -> None:
    log.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    log.user([text("Review the change.")], isMeta=True)
    session = read_transcript(log.write(tmp_path))
    assert [(item.category, item.extra["source"]) for item in session.items] == [(DIALOG, "slash command")] * 2


def test_a_command_that_the_tool_runs_itself_is_context(log: Log, tmp_path: Path) -> None:
    log.user("<local-command-caveat>Caveat: do not respond</local-command-caveat>", isMeta=True)
    log.user("<command-name>/clear</command-name>")
    log.user("<local-command-stdout></local-command-stdout>")
    log.user("<command-name>/review</command-name>")
    session = read_transcript(log.write(tmp_path))
    assert [item.category for item in session.items] == [CONTEXT, CONTEXT, CONTEXT, DIALOG]
    assert session.turn_count() == 1


def test_memory_in_a_reminder_names_its_file(log: Log, tmp_path: Path) -> None:
    log.user("look")
    reminder = "<system-reminder>\nContents of /p/CLAUDE.md (project instructions):\n\nUse tabs.\n</system-reminder>"
    log.user([text(reminder)], isMeta=True)
    assert read_transcript(log.write(tmp_path)).items[1].extra == {"source": "memory", "path": "/p/CLAUDE.md"}


# Attachments


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("nested_memory", {"path": "/p/CLAUDE.md", "displayPath": "CLAUDE.md", "content": {"content": "Use tabs."}}, "Use tabs."),
        ("skill_listing", {"content": "- golang: Go"}, "golang"),
        ("hook_additional_context", {"content": ["note one", "note two"]}, "note one\nnote two"),
        ("hook_success", {"hookEvent": "SessionStart", "content": "ready"}, "ready"),
        ("deferred_tools_delta", {"addedLines": ["CronCreate"], "removedNames": []}, "CronCreate"),
        ("mcp_instructions_delta", {"addedBlocks": ["## docs\nAsk it."]}, "Ask it."),
        ("agent_listing_delta", {"addedLines": ["- scout: looks"]}, "scout"),
        ("task_reminder", {"content": [{"subject": "write", "status": "pending"}]}, "pending: write"),
        ("edited_text_file", {"filename": "a.py", "snippet": "1 x"}, "a.py\n1 x"),
        ("file", {"filename": "a.py", "content": {"type": "text", "file": {"filePath": "a.py", "content": "x = 1"}}}, "x = 1"),
        ("diagnostics", {"files": [{"uri": "a.py", "diagnostics": [{"message": "odd", "severity": "Error"}]}]}, "Error: odd"),
        ("relevant_memories", {"memories": [{"path": "/m.md", "content": "likes tea"}]}, "likes tea"),
        ("queued_command", {"prompt": "<task-notification>", "commandMode": "task-notification"}, "<task-notification>"),
    ],
)
def test_attachments_that_the_model_sees_are_context(log: Log, tmp_path: Path, kind: str, fields: Json, words: str) -> None:
    log.user("look")
    log.attachment(kind, **fields)
    item = read_transcript(log.write(tmp_path)).items[1]
    assert isinstance(item, Message)
    assert (item.role, item.category, item.extra["source"]) == ("user", CONTEXT, kind)
    assert words in item.text
    assert item.extra.get("path") == (fields.get("path") or fields.get("filename") or ("/m.md" if "memories" in fields else None))


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        ("hook_success", {"hookEvent": "PostToolUse", "content": "busy"}, "output of this hook is for the user"),
        ("hook_success", {"hookEvent": "SessionStart", "content": ""}, "its text is not in the file"),
        ("hook_system_message", {"content": "hi"}, "a note for the user"),
        ("command_permissions", {"allowedTools": []}, "permissions, for the tool"),
        ("task_reminder", {"content": []}, "its text is not in the file"),
        ("crystal_ball", {"content": "soon"}, "unknown attachment type 'crystal_ball'"),
    ],
)
def test_attachments_that_the_model_never_sees_have_a_reason(log: Log, tmp_path: Path, kind: str, fields: Json, reason: str) -> None:
    log.user("look")
    log.attachment(kind, **fields)
    path = log.write(tmp_path)
    assert len(read_transcript(path).items) == 1
    assert (records_of(path)[1].fate, records_of(path)[1].reason) == ("not context", reason)


def test_an_attached_image_is_an_image(log: Log, tmp_path: Path) -> None:
    log.user("look")
    image_file = {"type": "image", "file": {"base64": image()["source"]["data"], "type": "image/png"}}
    log.attachment("file", filename="a.png", content=image_file)
    parts = read_transcript(log.write(tmp_path)).items[1].content  # type: ignore[union-attr]
    assert [type(part) for part in parts] == [Text, Image]


def test_a_prompt_typed_while_the_model_works_is_dialog(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", call("a"))
    log.user([result("a")])
    log.attachment("queued_command", prompt="and there", commandMode="prompt")
    session = read_transcript(log.write(tmp_path))
    assert shape(session)[-1] == "user:and there"
    assert session.turn_count() == 2


@pytest.mark.parametrize("attached", [None, "before", "after"])
def test_a_prompt_from_the_queue_appears_once(log: Log, tmp_path: Path, attached: str | None) -> None:
    log.user("look")
    log.answer("m1", call("a"))
    log.add("queue-operation", operation="enqueue", content="and there", uuid=..., parentUuid=...)
    log.user([result("a")])
    if attached == "before":
        log.attachment("queued_command", prompt="and there", commandMode="prompt")
    log.add("queue-operation", operation="remove", uuid=..., parentUuid=...)
    if attached == "after":
        log.attachment("queued_command", prompt="and there", commandMode="prompt")
    log.answer("m2", text("both"))
    assert shape(read_transcript(log.write(tmp_path))) == ["user:look", "call:a", "output:a", "user:and there", "assistant:both"]


def queue(log: Log, operation: str, **fields: str) -> None:
    log.add("queue-operation", operation=operation, uuid=..., parentUuid=..., **fields)


@pytest.mark.parametrize("queued", [["first", '{"task_id": "x"}'], ['{"task_id": "x"}', "first"]])
def test_a_dequeued_prompt_with_a_turn_of_its_own_appears_once(log: Log, tmp_path: Path, queued: list[str]) -> None:
    log.user("look")
    log.answer("m1", text("yes"))
    for words in queued:
        queue(log, "enqueue", content=words)
    queue(log, "dequeue")
    log.user("first")
    log.answer("m2", call("a"))
    log.user([result("a")])
    queue(log, "remove")
    session = read_transcript(log.write(tmp_path))
    assert shape(session) == ["user:look", "assistant:yes", "user:first", "call:a", "output:a"]


@pytest.mark.parametrize("operation", ["dequeue", "popAll"])
def test_an_edited_queued_prompt_appears_as_it_was_sent(log: Log, tmp_path: Path, operation: str) -> None:
    log.user("look")
    queue(log, "enqueue", content="frist")
    queue(log, operation)
    log.user("first")
    log.answer("m2", call("a"))
    log.user([result("a")])
    queue(log, "remove")
    assert shape(read_transcript(log.write(tmp_path))) == ["user:look", "user:first", "call:a", "output:a"]


def test_an_attachment_removes_its_prompt_from_the_queue(log: Log, tmp_path: Path) -> None:
    log.user("look")
    queue(log, "enqueue", content="and there")
    for name in ("a", "b"):
        log.answer(f"m-{name}", call(name))
        log.user([result(name)])
        if name == "a":
            log.attachment("queued_command", prompt="and there")
    queue(log, "remove")
    assert shape(read_transcript(log.write(tmp_path))).count("user:and there") == 1


def test_a_prompt_removed_between_turns_is_dropped(log: Log, tmp_path: Path) -> None:
    log.user("look")
    queue(log, "enqueue", content="and there")
    log.answer("m1", text("seen"))
    queue(log, "remove")
    assert shape(read_transcript(log.write(tmp_path))) == ["user:look", "assistant:seen"]


def test_a_queued_prompt_may_repeat_an_earlier_one(log: Log, tmp_path: Path) -> None:
    log.user("go on")
    log.answer("m1", call("a"))
    queue(log, "enqueue", content="go on")
    log.user([result("a")])
    queue(log, "remove")
    assert shape(read_transcript(log.write(tmp_path))) == ["user:go on", "call:a", "output:a", "user:go on"]
