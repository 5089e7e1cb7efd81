"""Reads the events of OpenHands: actions, observations, and the model responses from which the actions came."""

from __future__ import annotations

from session.items import FunctionCall, Item
from session.transcripts.call_ids import UNKNOWN_TOOL
from session.transcripts.draft import Draft
from session.transcripts.record import Record
from session.transcripts.usage import usage_of
from session.transcripts.values import JsonObject, carried, json_text, list_at, object_at, objects_at, seconds, text_at
from session.transcripts.writer import Writer
from session.units import is_answer

from .condensation import EventItems, put_condensation

_HIDDEN = frozenset({"change_agent_state", "agent_state_changed", "recall", "null", "loading", "stats"})
"""Internal actions and observations, which the model never sees."""
_EVENT_FIELDS = frozenset(
    {"action", "is_confirmed", "action_risk", "keep_prompt", "kernel_init_code", "id", "timestamp", "source", "cause", "message"}
)
"""Fields of the older kind of event that are not arguments of its action."""
_MESSAGE_ACTIONS = frozenset({"message", "finish", "system", "condensation", "think"})
"""Actions that are text and not a tool call."""


def is_event(value: JsonObject) -> bool:
    """Return True if the object is an event: an action with arguments, or an observation with extras."""
    if isinstance(value.get("action"), str):
        return _is_flat(value) or (isinstance(value.get("args"), dict) and ("source" in value or "message" in value))
    return isinstance(value.get("observation"), str) and ("extras" in value or "content" in value)


def _is_flat(value: JsonObject) -> bool:
    """Return True for the older kind of action, which has no source and has its arguments among its own fields."""
    return "args" not in value and ("is_confirmed" in value or "wait_for_response" in value or ("thought" in value and "outputs" in value))


class OpenHandsEventReader:
    """Reads the events of one history, in order."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._writer = Writer(draft)
        self._items_of_event: dict[int, tuple[Item, ...]] = {}
        self._event_items = EventItems[int]()
        self._response_numbers: dict[str, int] = {}  # by response id: the record with the whole response
        self._call_of_event: dict[int, str] = {}  # by event id: the call id of an action without a logged response
        self._last_call_id = ""
        self._is_users_turn = True  # decides who wrote a message without a source

    def read_event(self, _: Draft, record: Record, event: JsonObject) -> None:
        """Read one event."""
        item_count = len(record.items)
        self._writer.clock.at(seconds(event.get("timestamp")))
        if isinstance(event.get("action"), str):
            flat_args = {name: value for name, value in event.items() if name not in _EVENT_FIELDS}
            self._read_action(record, event, str(event["action"]), flat_args if _is_flat(event) else object_at(event, "args"))
        elif isinstance(event.get("observation"), str):
            self._read_observation(record, event, str(event["observation"]))
        else:
            self._draft.damage(record, "neither an action nor an observation")
        if (event_id := _event_id(event.get("id"))) is not None:
            items = record.items[item_count:]
            self._items_of_event[event_id] = tuple(items)
            self._event_items.add(event_id, [item.id for item in items])

    def _read_action(self, record: Record, event: JsonObject, action: str, args: JsonObject) -> None:
        metadata = object_at(event, "tool_call_metadata")
        response = object_at(metadata, "model_response")
        if action in _HIDDEN:
            record.skip(f"internal event of the tool: {action.replace('_', ' ')}")
        elif action == "system":
            self._writer.write(record, {"role": "system", "content": text_at(args, "content")})
            if (tools := carried(list_at(args, "tools"), 1_000_000)) and "tools" not in self._draft.metadata:
                self._draft.metadata["tools"] = tools
        elif action == "condensation":
            self._read_condensation(record, args)
        elif event.get("source", "user" if action == "message" and self._is_users_turn else "agent") == "user":
            self._read_user_action(record, event, action, args)
            self._is_users_turn = False
        elif response:
            self._read_response(record, response)
        elif metadata:
            self._write_call(record, event, text_at(metadata, "function_name") or action, args, text_at(metadata, "tool_call_id"))
        elif action in _MESSAGE_ACTIONS:
            text = text_at(args, "content", "thought", "final_thought") or text_at(event, "message")
            self._writer.write(record, {"role": "assistant", "content": text})
            self._is_users_turn = True
        else:
            self._write_call(record, event, action, args, "")

    def _read_user_action(self, record: Record, event: JsonObject, action: str, args: JsonObject) -> None:
        if action == "message":
            text = text_at(args, "content") or text_at(event, "message")
            images: list[JsonObject] = [
                {"type": "image_url", "image_url": url} for url in (list_at(args, "image_urls") or list_at(args, "images_urls"))
            ]
            self._writer.write(record, {"role": "user", "content": [{"type": "text", "text": text}, *images] if images else text})
        else:
            text = text_at(args, "command", "code", "content") or json_text(args)
            self._writer.write(record, {"role": "user", "content": text}, source=f"user {action}")

    def _read_response(self, record: Record, response: JsonObject) -> None:
        """Write a model response. Each action that came from it repeats it; the first one's record has all of it."""
        response_id = text_at(response, "id") or f"event {record.number}"
        if (response_number := self._response_numbers.get(response_id)) is not None:
            record.merge(f"record {response_number} has the response")
            return
        self._response_numbers[response_id] = record.number
        choice = next(iter(objects_at(response, "choices")), {})
        if self._writer.write(record, {**object_at(choice, "message"), "role": "assistant"}, response=response_id):
            self._draft.report(response_id, usage_of(response.get("usage")))
        if model := text_at(response, "model"):
            self._draft.metadata.setdefault("model", model)

    def _write_call(self, record: Record, event: JsonObject, action: str, args: JsonObject, call_id: str) -> None:
        """Write the call of an action whose response is not in the log, rebuilt from the action."""
        event_id = _event_id(event.get("id"))
        call_id = call_id or f"event-{record.number if event_id is None else event_id}.{len(record.items)}"
        hidden = ("thought", "hidden", "confirmation_state", "blocking")
        arguments = {name: value for name, value in args.items() if name not in hidden}
        calls = [{"id": call_id, "name": action, "arguments": arguments}]
        self._writer.write(record, {"role": "assistant", "content": text_at(args, "thought") or None, "tool_calls": calls})
        if event_id is not None:
            self._call_of_event[event_id] = call_id
        self._last_call_id = call_id

    def _read_observation(self, record: Record, event: JsonObject, observation: str) -> None:
        if observation in _HIDDEN:
            record.skip(f"internal event of the tool: {observation.replace('_', ' ')}")
            return
        metadata = object_at(event, "tool_call_metadata")
        content = _observation_text(event, observation)
        if observation == "edit" and content != event.get("content"):
            record.skip("the difference that the edit made, for the screen")
        cause = _event_id(event.get("cause"))
        cause_items = self._items_of_event.get(cause, ()) if cause is not None else ()
        call_id = text_at(metadata, "tool_call_id") or (self._call_of_event.get(cause, "") if cause is not None else self._last_call_id)
        if not call_id and not metadata and not any(is_answer(item) for item in cause_items):
            self._writer.write(record, {"role": "user", "content": content}, source=f"{observation} observation")
            return
        if not metadata and not call_id:
            call_id = next((item.call_id for item in cause_items if isinstance(item, FunctionCall)), "")
        self._last_call_id = ""
        is_error = observation == "error" or event.get("success") is False
        name = text_at(metadata, "function_name") or UNKNOWN_TOOL
        self._writer.write(record, {"role": "tool", "tool_call_id": call_id, "name": name, "content": content, "is_error": is_error})

    def _read_condensation(self, record: Record, args: JsonObject) -> None:
        start, end = _event_id(args.get("forgotten_events_start_id")), _event_id(args.get("forgotten_events_end_id"))
        if start is not None and end is not None:
            replaces = self._event_items.take_range(start, end)
        else:
            event_ids = map(_event_id, list_at(args, "forgotten_event_ids"))
            replaces = self._event_items.take(event_id for event_id in event_ids if event_id is not None)
        put_condensation(self._draft, record, text_at(args, "summary"), replaces, "", self._writer.clock.now)


def _observation_text(event: JsonObject, observation: str) -> str:
    """Return an observation's text as the model sees it."""
    extras = object_at(event, "extras")
    content = text_at(event, "content")
    if observation == "edit":
        return text_at(extras, "formatted_output_and_error") or content
    metadata = object_at(extras, "metadata")
    return f"{text_at(metadata, 'prefix')}{content}{text_at(metadata, 'suffix')}" if observation == "run" else content


def _event_id(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
