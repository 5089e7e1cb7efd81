"""The events of a Copilot CLI log, one after the other, each put into its session. What the model was shown is in `event.py`."""

from __future__ import annotations

from session.transcripts.draft import Draft, Record
from session.transcripts.source import Source
from session.transcripts.values import JsonObject, count_at, id_at, json_text, object_at, seconds, text_at

from .event import Event, Thread

NAME = "copilot_cli"

COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
"""Of each model's sums at the end of a session."""

_SHOWN_ELSEWHERE = {
    "tool.execution_start": "the call is in the assistant's message",
    "assistant.reasoning": "the thought is in the assistant's message",
    "assistant.message_delta": "the text is in the assistant's message",
    "assistant.reasoning_delta": "the thought is in the assistant's message",
}


class Log:
    """Reads the events of one file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._agents: dict[str, str] = {}
        self.main = Thread(Draft(NAME, source, source.path.stem))
        self.threads: dict[str, Thread] = {"": self.main}
        self._of_draft = {id(self.main.draft): self.main}

    def home(self, value: JsonObject) -> Draft:
        """The session that an event belongs to."""
        data = object_at(value, "data")
        agent = text_at(data, "parentToolCallId")
        if agent not in self.threads:
            told = {"agent_id": agent, "sidechain": True, **({"agent": name} if (name := self._agents.get(agent)) else {})}
            draft = Draft(NAME, self._source, f"{self.main.draft.id}/{agent}", {**self._about(), **told})
            self.threads[agent] = Thread(draft)
            self._of_draft[id(draft)] = self.threads[agent]
        return self.threads[agent].draft

    def _about(self) -> JsonObject:
        return {name: value for name, value in self.main.draft.metadata.items() if name in ("session_id", "model", "cwd", "version")}

    def take(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Reads one event."""
        thread = self._of_draft[id(draft)]
        kind, data = text_at(value, "type"), value.get("data")
        thread.clock.at(seconds(value.get("timestamp")))
        if not kind or not isinstance(data, dict):
            draft.damage(record, "its data is no object" if kind else "a JSON object without a type")
            return
        own_id = id_at(value, "id")
        thread.marks[own_id] = draft.mark()
        event = Event(thread, record, own_id, data)
        match kind:
            case "system.message":
                event.system()
            case "user.message":
                event.user()
            case "assistant.message":
                event.answer()
            case "tool.execution_complete":
                event.output()
            case "system.notification":
                event.context(text_at(data, "content"), "system notification")
            case "tool.user_requested":
                thread.requested[text_at(data, "toolCallId")] = json_text(data.get("arguments"))
                record.merge("its output says what the user ran")
            case "assistant.usage":
                event.usage()
            case "session.compaction_complete":
                event.compaction()
            case "session.snapshot_rewind":
                event.rewind()
            case "session.truncation":
                removed = count_at(data, "messagesRemovedDuringTruncation")
                draft.warn(record, f"from here on the model saw {removed} older messages no more; they are all here")
                record.skip("the oldest messages were taken out of the model's view")
            case _:
                self._note(draft, record, kind, data)

    def _note(self, draft: Draft, record: Record, kind: str, data: JsonObject) -> None:
        """What is known of the session, or no business of the model's."""
        about = draft.metadata
        if kind in ("session.start", "session.resume"):
            if found := text_at(data, "sessionId"):
                draft.id = about["session_id"] = found
            told = {
                "version": text_at(data, "copilotVersion"),
                "model": text_at(data, "selectedModel"),
                "cwd": text_at(object_at(data, "context"), "cwd"),
                "git_branch": text_at(object_at(data, "context"), "branch"),
            }
            about |= {name: found for name, found in told.items() if found}
        elif kind == "session.model_change" and (model := text_at(data, "newModel")):
            about["model"] = model
        elif kind == "session.shutdown":
            sums = {
                model: {name: count_at(usage, name) for name in COUNTS if name in usage}
                for model, found in object_at(data, "modelMetrics").items()
                if isinstance(found, dict) and (usage := object_at(found, "usage"))
            }
            if sums:
                about["reported_usage"] = sums
        elif kind == "subagent.started":
            self._agents[text_at(data, "toolCallId")] = text_at(data, "agentName")
        elif kind == "tool.execution_start":
            self._of_draft[id(draft)].tools[text_at(data, "toolCallId")] = text_at(data, "toolName")
        if kind in _SHOWN_ELSEWHERE:
            record.merge(_SHOWN_ELSEWHERE[kind])
        else:
            record.skip(f"an event for the tool or the screen: {kind}"[:100])
