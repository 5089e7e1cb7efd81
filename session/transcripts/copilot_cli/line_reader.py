"""Reads the events of a Copilot CLI log into the session that each belongs to. Events that the model saw are read in `event.py`."""

from __future__ import annotations

from session.transcripts.draft import Draft
from session.transcripts.record import Record
from session.transcripts.source import Source
from session.transcripts.values import JsonObject, count_at, id_at, json_text, object_at, seconds, text_at

from .event import Event, Thread

NAME = "copilot_cli"

COUNT_NAMES = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
"""Names of a model's totals at the end of a session."""
SHARED_METADATA = ("session_id", "model", "cwd", "version")
"""Metadata of the main session that its sub-agents' sessions repeat."""

_REPEATS = {
    "tool.execution_start": "the call is in the assistant's message",
    "assistant.reasoning": "the reasoning is in the assistant's message",
    "assistant.message_delta": "the text is in the assistant's message",
    "assistant.reasoning_delta": "the reasoning is in the assistant's message",
}
"""Events that repeat another one, and the reason to skip them."""
_SCREEN = frozenset(
    (
        *("abort", "command", "elicitation", "exit_plan_mode", "external_tool", "hook", "pending_messages", "permission", "session"),
        *("assistant.intent", "assistant.streaming_delta", "assistant.turn_end", "assistant.turn_start", "subagent", "user_input"),
        *("tool.execution_partial_result", "tool.execution_progress"),
    )
)
"""Events for the tool or the screen, and families of them."""


class CopilotLineReader:
    """Reads the events of one file.

    Attributes:
        main: The main session.
        threads: All sessions by the call that started them; the main one by an empty text.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._agent_names: dict[str, str] = {}  # by the call that started the agent
        self.main = Thread(Draft(NAME, source, source.path.stem))
        self.threads: dict[str, Thread] = {"": self.main}
        self._thread_of_draft = {id(self.main.draft): self.main}

    def draft_for(self, value: JsonObject) -> Draft:
        """Return the draft of the session that an event belongs to."""
        agent_id = text_at(object_at(value, "data"), "parentToolCallId")
        if agent_id not in self.threads:
            shared = {name: value for name, value in self.main.draft.metadata.items() if name in SHARED_METADATA}
            metadata = {**shared, "agent_id": agent_id, "sidechain": True, "agent": self._agent_names.get(agent_id)}
            draft = Draft(NAME, self._source, f"{self.main.draft.id}/{agent_id}", metadata)
            self.threads[agent_id] = Thread(draft)
            self._thread_of_draft[id(draft)] = self.threads[agent_id]
        return self.threads[agent_id].draft

    def read_event(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Read one event."""
        thread = self._thread_of_draft[id(draft)]
        kind, data = text_at(value, "type"), value.get("data")
        thread.clock.at(seconds(value.get("timestamp")))
        if not kind or not isinstance(data, dict):
            draft.damage(record, "its data is not an object" if kind else "a JSON object without a type")
            return
        event_id = id_at(value, "id")
        thread.marks[event_id] = draft.mark()
        event = Event(thread, record, event_id, data)
        match kind:
            case "system.message":
                event.put_system_prompt()
            case "user.message":
                event.put_prompt()
            case "assistant.message":
                event.put_response()
            case "tool.execution_complete":
                event.put_output()
            case "system.notification":
                event.put_context(text_at(data, "content"), "system notification")
            case "tool.user_requested":
                thread.user_calls[text_at(data, "toolCallId")] = json_text(data.get("arguments"))
                record.merge("a command of the user, which is part of its output's item")
            case "assistant.usage":
                event.report_usage()
            case "session.compaction_complete":
                event.put_compaction()
            case "session.snapshot_rewind":
                event.rewind()
            case "session.truncation":
                count = count_at(data, "messagesRemovedDuringTruncation")
                draft.warn(record, f"from here on the model no longer saw {count} older messages; the session has them all")
                record.skip("removal of the oldest messages from the model's view")
            case _:
                self._read_note(draft, record, kind, data)

    def _read_note(self, draft: Draft, record: Record, kind: str, data: JsonObject) -> None:
        """Read an event that is metadata of the session, or not meant for the model."""
        if kind in ("session.start", "session.resume"):
            draft.id = text_at(data, "sessionId") or draft.id
            context = object_at(data, "context")
            draft.describe(
                session_id=text_at(data, "sessionId"),
                version=text_at(data, "copilotVersion"),
                model=text_at(data, "selectedModel"),
                cwd=text_at(context, "cwd"),
                git_branch=text_at(context, "branch"),
            )
        elif kind == "session.model_change":
            draft.describe(model=text_at(data, "newModel"))
        elif kind == "session.shutdown":
            totals = {
                model: {name: count_at(usage, name) for name in COUNT_NAMES if name in usage}
                for model, metrics in object_at(data, "modelMetrics").items()
                if isinstance(metrics, dict) and (usage := object_at(metrics, "usage"))
            }
            draft.describe(reported_usage=totals, tool_tokens=count_at(data, "toolDefinitionsTokens") or None)
        elif kind == "subagent.started":
            self._agent_names[text_at(data, "toolCallId")] = text_at(data, "agentName")
        elif kind == "tool.execution_start":
            self._thread_of_draft[id(draft)].tools[text_at(data, "toolCallId")] = text_at(data, "toolName")
        if kind in _REPEATS:
            record.merge(_REPEATS[kind])
        else:
            is_known = kind in _SCREEN or kind.partition(".")[0] in _SCREEN
            record.skip(f"{'an event for the tool or the screen:' if is_known else 'unknown event'} {kind}"[:100])
