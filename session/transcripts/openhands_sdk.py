"""The events of OpenHands' agent SDK, which name their kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from session.items import Compaction

from .draft import Draft, Record
from .forgetting import Standing
from .usages import usage_of
from .values import JsonObject, carried, id_at, json_text, list_at, object_at, seconds, text_at
from .writer import Writer

Take: TypeAlias = Callable[[Draft, Record, JsonObject], None]

_KINDS = (
    *("MessageEvent", "SystemPromptEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "UserRejectObservation"),
    *("Condensation", "CondensationRequest", "CondensationSummaryEvent", "ConversationStateUpdateEvent", "PauseEvent", "TokenEvent"),
)


def is_event(value: JsonObject) -> bool:
    """Whether the object is such an event."""
    kind = value.get("kind")
    return isinstance(kind, str) and "source" in value and (kind in _KINDS or ("timestamp" in value and kind.endswith("Event")))


class Events:
    """Reads the events of one conversation, in order."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.writer = Writer(draft)
        self._standing = Standing[str]()
        self._spoken: set[str] = set()  # responses whose reasoning and text are written

    def take(self, _: Draft, record: Record, event: JsonObject) -> None:
        """Reads one event."""
        before = len(record.items)
        self.writer.clock.at(seconds(event.get("timestamp")))
        kind = text_at(event, "kind")
        match kind:
            case "SystemPromptEvent":
                self.writer.write(record, {"role": "system", "content": [event.get("system_prompt")]})
                if tools := carried(list_at(event, "tools"), 1_000_000):
                    self.draft.metadata.setdefault("tools", tools)
            case "MessageEvent":
                self._message(record, event)
            case "ActionEvent":
                self._action(record, event)
            case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
                self._output(record, event, kind)
            case "Condensation":
                self._condensation(record, event)
            case "ConversationStateUpdateEvent":
                self._state(record, event)
            case _:
                record.skip(f"a {kind or 'nameless event'}, which the model is not shown")
        self._standing.add(id_at(event, "id"), [item.id for item in record.items[before:]])

    def _message(self, record: Record, event: JsonObject) -> None:
        message = object_at(event, "llm_message") or {"role": event.get("source"), "content": event.get("content")}
        role = text_at(message, "role")
        self.writer.write(
            record, {**message, "id": id_at(event, "id")}, response=text_at(event, "llm_response_id") if role == "assistant" else ""
        )
        for extended in list_at(event, "extended_content"):
            self.writer.write(record, {"role": "user", "content": [extended]}, source="extension")

    def _action(self, record: Record, event: JsonObject) -> None:
        response = text_at(event, "llm_response_id") or f"event {record.place}"
        call = object_at(event, "tool_call")
        name = text_at(call, "name") or text_at(event, "tool_name") or text_at(object_at(call, "function"), "name")
        arguments = call.get("arguments", object_at(call, "function").get("arguments", object_at(event, "action")))
        message: JsonObject = {
            "role": "assistant",
            "id": id_at(event, "id"),
            "tool_calls": [{"id": text_at(event, "tool_call_id") or id_at(call, "id"), "name": name, "arguments": arguments}],
        }
        if response not in self._spoken:
            self._spoken.add(response)
            message |= {name: event.get(name) for name in ("thinking_blocks", "reasoning_content")} | {"content": event.get("thought")}
        self.writer.write(record, message, response=response)

    def _output(self, record: Record, event: JsonObject, kind: str) -> None:
        observation = event.get("observation")
        held = observation if isinstance(observation, dict) else {}
        content = held.get("content", held.get("output"))
        if content is None:
            content = text_at(event, "error", "rejection_reason") or (json_text(observation) if observation else "")
        failed = held.get("is_error") is True or kind != "ObservationEvent"
        self.writer.write(
            record,
            {
                "role": "tool",
                "tool_call_id": event.get("tool_call_id"),
                "name": event.get("tool_name"),
                "content": content,
                "is_error": failed,
            },
        )

    def _condensation(self, record: Record, event: JsonObject) -> None:
        replaced = self._standing.take(name for name in list_at(event, "forgotten_event_ids") if isinstance(name, str))
        summary = text_at(event, "summary")
        if not replaced and not summary:
            record.skip("a condensation of nothing")
            return
        item_id = self.draft.new_id(id_at(event, "id"), record)
        self.draft.put(record, Compaction(summary, replaced, id=item_id, created_at=self.writer.clock.now))

    def _state(self, record: Record, event: JsonObject) -> None:
        record.skip("the tool's own state")
        metrics = object_at(object_at(object_at(event, "value"), "usage_to_metrics"), "default")
        if model := text_at(metrics, "model_name"):
            self.draft.metadata["model"] = model
        self.draft.report("", usage_of(metrics.get("accumulated_token_usage")))
