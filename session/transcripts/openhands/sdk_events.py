"""Reads the events of OpenHands' agent SDK, which have a `kind`."""

from __future__ import annotations

from session.transcripts.draft import Draft
from session.transcripts.record import Record
from session.transcripts.usage import usage_of
from session.transcripts.values import JsonObject, carried, id_at, json_text, list_at, object_at, seconds, text_at
from session.transcripts.writer import Writer

from .condensation import EventItems, put_condensation

_KINDS = (
    *("MessageEvent", "SystemPromptEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "UserRejectObservation"),
    *("Condensation", "CondensationRequest", "CondensationSummaryEvent", "ConversationStateUpdateEvent", "PauseEvent", "TokenEvent"),
)


def is_event(value: JsonObject) -> bool:
    """Return True if the object is such an event."""
    kind = value.get("kind")
    return isinstance(kind, str) and "source" in value and (kind in _KINDS or ("timestamp" in value and kind.endswith("Event")))


class OpenHandsSdkReader:
    """Reads the events of one conversation, in order."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._writer = Writer(draft)
        self._event_items = EventItems[str]()
        self._begun_responses: set[str] = set()  # responses whose reasoning and text are written

    def read_event(self, _: Draft, record: Record, event: JsonObject) -> None:
        """Read one event."""
        item_count = len(record.items)
        self._writer.clock.at(seconds(event.get("timestamp")))
        kind = text_at(event, "kind")
        match kind:
            case "SystemPromptEvent":
                self._writer.write(record, {"role": "system", "content": [event.get("system_prompt")]})
                if tools := carried(list_at(event, "tools"), 1_000_000):
                    self._draft.metadata.setdefault("tools", tools)
            case "MessageEvent":
                self._read_message(record, event)
            case "ActionEvent":
                self._read_action(record, event)
            case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
                self._read_observation(record, event, kind)
            case "Condensation":
                replaces = self._event_items.take(name for name in list_at(event, "forgotten_event_ids") if isinstance(name, str))
                summary, time = text_at(event, "summary"), self._writer.clock.now
                put_condensation(self._draft, record, summary, replaces, id_at(event, "id"), time)
            case "ConversationStateUpdateEvent":
                self._read_state(record, event)
            case _:
                record.skip(f"{'an event that the model never sees:' if kind in _KINDS else 'an unknown event:'} {kind or 'of no kind'}")
        self._event_items.add(id_at(event, "id"), [item.id for item in record.items[item_count:]])

    def _read_message(self, record: Record, event: JsonObject) -> None:
        message = object_at(event, "llm_message") or {"role": event.get("source"), "content": event.get("content")}
        response = text_at(event, "llm_response_id") if text_at(message, "role") == "assistant" else ""
        self._writer.write(record, {**message, "id": id_at(event, "id")}, response=response)
        for block in list_at(event, "extended_content"):
            self._writer.write(record, {"role": "user", "content": [block]}, source="extension")

    def _read_action(self, record: Record, event: JsonObject) -> None:
        """Write the call of an action. The first action of a response also has its reasoning and text."""
        response = text_at(event, "llm_response_id") or f"event {record.number}"
        call = object_at(event, "tool_call")
        function = object_at(call, "function")
        name = text_at(call, "name") or text_at(event, "tool_name") or text_at(function, "name")
        arguments = call.get("arguments", function.get("arguments", object_at(event, "action")))
        message: JsonObject = {
            "role": "assistant",
            "id": id_at(event, "id"),
            "tool_calls": [{"id": text_at(event, "tool_call_id") or id_at(call, "id"), "name": name, "arguments": arguments}],
        }
        if response not in self._begun_responses:
            self._begun_responses.add(response)
            message |= {field: event.get(field) for field in ("thinking_blocks", "reasoning_content")} | {"content": event.get("thought")}
        self._writer.write(record, message, response=response)

    def _read_observation(self, record: Record, event: JsonObject, kind: str) -> None:
        observation = object_at(event, "observation")
        content = observation.get("content", observation.get("output"))
        if content is None:
            content = text_at(event, "error", "rejection_reason")
            content = content or (json_text(event["observation"]) if event.get("observation") else "")
        message: JsonObject = {
            "role": "tool",
            "tool_call_id": event.get("tool_call_id"),
            "name": event.get("tool_name"),
            "content": content,
            "is_error": observation.get("is_error") is True or kind != "ObservationEvent",
        }
        self._writer.write(record, message)

    def _read_state(self, record: Record, event: JsonObject) -> None:
        record.skip("internal state of the tool")
        metrics = object_at(object_at(object_at(event, "value"), "usage_to_metrics"), "default")
        self._draft.describe(model=text_at(metrics, "model_name"))
        self._draft.report("", usage_of(metrics.get("accumulated_token_usage")))
