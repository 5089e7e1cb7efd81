"""Lines that the model never sees, and why. A line type that is in no table here is reported as unknown, by its name."""

from __future__ import annotations

LINES = {
    "agent-color": "a setting of the display",
    "agent-name": "a name for the user",
    "agent-setting": "a setting of the tool",
    "ai-title": "a title for the user",
    "attribution-snapshot": "what the tool knows of who wrote what",
    "content-replacement": "what the tool keeps on disk",
    "custom-title": "a title for the user",
    "file-history-snapshot": "a backup of files, for undoing edits",
    "last-prompt": "a copy of a prompt, for the list of sessions",
    "mode": "a setting of the tool",
    "permission-mode": "a setting of the tool",
    "pr-link": "a link for the user",
    "progress": "what a tool or hook showed while it ran",
    "queue-operation": "a prompt on its way; its own line brings it",
    "result": "the figures of a finished run",
    "speculation-accept": "what the tool guessed ahead",
    "summary": "a title for the list of sessions",
    "tag": "a label for the user",
    "task-summary": "a note for the user",
    "worktree-state": "a setting of the tool",
}

SYSTEM = {
    "agents_killed": "a note for the user",
    "api_error": "an API error, which the tool answered by asking again",
    "api_metrics": "figures for the user",
    "away_summary": "a note for the user",
    "bridge_status": "a note for the user",
    "compact_boundary": "the place of a compaction whose summary is missing",
    "informational": "a note for the user",
    "init": "the settings of the tool",
    "memory_saved": "a note for the user",
    "microcompact_boundary": "the place where the tool cleared old results",
    "permission_retry": "a note for the user",
    "scheduled_task_fire": "a note for the user",
    "stop_hook_summary": "a note for the user",
    "turn_duration": "a figure for the user",
}

API_ERROR = "an API error, shown to the user only"
EMPTY = "there is nothing in it"


def reason_for(kind: str, subtype: str) -> str:
    """Why the model does not see a line of this type and subtype."""
    if kind == "system":
        return SYSTEM.get(subtype) or f"unknown system subtype {subtype!r}"[:100]
    return LINES.get(kind) or f"unknown type {kind!r}"[:100]
