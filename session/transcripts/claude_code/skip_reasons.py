"""Types of lines that the model never sees, with the reason. A type that is in neither table is reported as unknown."""

from __future__ import annotations

LINE_TYPES = {
    "agent-color": "a display setting",
    "agent-name": "a name for the user",
    "agent-setting": "a setting of the tool",
    "ai-title": "a title for the user",
    "attribution-snapshot": "the tool's record of who wrote which code",
    "content-replacement": "content that the tool keeps on disk",
    "custom-title": "a title for the user",
    "file-history-snapshot": "a backup of files, for undoing edits",
    "last-prompt": "a copy of a prompt, for the list of sessions",
    "mode": "a setting of the tool",
    "permission-mode": "a setting of the tool",
    "pr-link": "a link for the user",
    "progress": "progress of a tool or hook, for the screen",
    "queue-operation": "a queued prompt, which has a line of its own",
    "result": "statistics of a finished run",
    "speculation-accept": "a speculative result of the tool",
    "summary": "a title for the list of sessions",
    "tag": "a label for the user",
    "task-summary": "a note for the user",
    "worktree-state": "a setting of the tool",
}

SYSTEM_SUBTYPES = {
    "agents_killed": "a note for the user",
    "api_error": "an API error, after which the tool sent the request again",
    "api_metrics": "statistics for the user",
    "away_summary": "a note for the user",
    "bridge_status": "a note for the user",
    "compact_boundary": "the boundary of a compaction whose summary is missing",
    "informational": "a note for the user",
    "init": "the settings of the tool",
    "memory_saved": "a note for the user",
    "microcompact_boundary": "the place where the tool cleared old results",
    "permission_retry": "a note for the user",
    "scheduled_task_fire": "a note for the user",
    "stop_hook_summary": "a note for the user",
    "turn_duration": "a duration, for the user",
}

API_ERROR = "an API error, shown only to the user"


def skip_reason(kind: str, subtype: str) -> str:
    """Return the reason why the model does not see a line of this type and subtype."""
    if kind == "system":
        return SYSTEM_SUBTYPES.get(subtype) or f"unknown system subtype {subtype!r}"[:100]
    return LINE_TYPES.get(kind) or f"unknown type {kind!r}"[:100]
