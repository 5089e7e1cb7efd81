"""The events of OpenHands: actions and observations, and the model's responses that the actions came from."""

from __future__ import annotations

from session.items import Compaction, FunctionCall, Item
from session.units import is_answer

from .draft import Draft, Record
from .feeding import UNKNOWN_TOOL
from .forgetting import Standing
from .usages import usage_of
from .values import JsonObject, carried, json_text, list_at, object_at, seconds, text_at
from .writer import Writer

_SILENT = frozenset({"change_agent_state", "agent_state_changed", "recall", "null", "loading", "stats"})
"""Actions and observations of the tool's own, which the model is not shown."""
_ABOUT = frozenset(
    {"action", "is_confirmed", "action_risk", "keep_prompt", "kernel_init_code", "id", "timestamp", "source", "cause", "message"}
)
"""What the older kind of event has beside the arguments of its action."""
_SAYING = frozenset({"message", "finish", "system", "condensation", "think"})


def is_event(value: JsonObject) -> bool:
    """Whether the object is an event: an action with arguments, or an observation with extras."""
    if isinstance(value.get("action"), str):
        return _is_flat(value) or (isinstance(value.get("args"), dict) and ("source" in value or "message" in value))
    return isinstance(value.get("observation"), str) and ("extras" in value or "content" in value)


def _is_flat(value: JsonObject) -> bool:
    """Whether the action is of the older kind, which has its arguments beside it, and no source."""
    return "args" not in value and ("is_confirmed" in value or "wait_for_response" in value or ("thought" in value and "outputs" in value))


class Events:
    """Reads the events of one history, in order."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.writer = Writer(draft)
        self._by_event: dict[int, tuple[Item, ...]] = {}
        self._standing = Standing[int]()
        self._responses: dict[str, int] = {}
        self._called: dict[int, str] = {}  # by the event's id: the call of an action that no response tells of
        self._last_call = ""
        self._users_turn = True  # where messages do not say whose they are

    def take(self, _: Draft, record: Record, event: JsonObject) -> None:
        """Reads one event."""
        before = len(record.items)
        self.writer.clock.at(seconds(event.get("timestamp")))
        if isinstance(event.get("action"), str):
            flat = {name: value for name, value in event.items() if name not in _ABOUT}
            self._action(record, event, str(event["action"]), flat if _is_flat(event) else object_at(event, "args"))
        elif isinstance(event.get("observation"), str):
            self._observation(record, event, str(event["observation"]))
        else:
            self.draft.damage(record, "neither an action nor an observation")
        if (number := _number(event.get("id"))) is not None:
            self._by_event[number] = tuple(record.items[before:])
            self._standing.add(number, [item.id for item in record.items[before:]])

    def _action(self, record: Record, event: JsonObject, action: str, args: JsonObject) -> None:
        told = object_at(event, "tool_call_metadata")
        response = object_at(told, "model_response")
        if action in _SILENT:
            record.skip(f"the tool's own {action.replace('_', ' ')}")
        elif action == "system":
            self.writer.write(record, {"role": "system", "content": text_at(args, "content")})
            if (tools := carried(list_at(args, "tools"), 1_000_000)) and "tools" not in self.draft.metadata:
                self.draft.metadata["tools"] = tools
        elif action == "condensation":
            self._condensation(record, args)
        elif event.get("source", "user" if action == "message" and self._users_turn else "agent") == "user":
            self._user(record, event, action, args)
            self._users_turn = False
        elif response:
            self._response(record, response)
        elif told:
            self._call(record, event, text_at(told, "function_name") or action, args, text_at(told, "tool_call_id"))
        elif action in _SAYING:
            words = text_at(args, "content", "thought", "final_thought") or text_at(event, "message")
            self.writer.write(record, {"role": "assistant", "content": words})
            self._users_turn = True
        else:
            self._call(record, event, action, args, "")

    def _user(self, record: Record, event: JsonObject, action: str, args: JsonObject) -> None:
        if action == "message":
            words = text_at(args, "content") or text_at(event, "message")
            images: list[JsonObject] = [
                {"type": "image_url", "image_url": url} for url in (list_at(args, "image_urls") or list_at(args, "images_urls"))
            ]
            self.writer.write(record, {"role": "user", "content": [{"type": "text", "text": words}, *images] if images else words})
        else:
            words = text_at(args, "command", "code", "content") or json_text(args)
            self.writer.write(record, {"role": "user", "content": words}, source=f"user {action}")

    def _response(self, record: Record, response: JsonObject) -> None:
        """What the model said. Each action that came of it repeats it: the first one's record has all of it."""
        own_id = text_at(response, "id") or f"event {record.place}"
        if (first := self._responses.get(own_id)) is not None:
            record.merge(f"the response is in record {first}")
            return
        self._responses[own_id] = record.place
        choice = next((one for one in list_at(response, "choices") if isinstance(one, dict)), {})
        said = self.writer.write(record, {**object_at(choice, "message"), "role": "assistant"}, response=own_id)
        if said:
            self.draft.report(own_id, usage_of(response.get("usage")))
        if model := text_at(response, "model"):
            self.draft.metadata.setdefault("model", model)

    def _call(self, record: Record, event: JsonObject, action: str, args: JsonObject, call_id: str) -> None:
        """An action without the response it came from: what the model wrote is rebuilt from it."""
        number = _number(event.get("id"))
        call_id = call_id or f"event-{record.place if number is None else number}.{len(record.items)}"
        given = {name: value for name, value in args.items() if name not in ("thought", "hidden", "confirmation_state", "blocking")}
        calls = [{"id": call_id, "name": action, "arguments": given}]
        self.writer.write(record, {"role": "assistant", "content": text_at(args, "thought") or None, "tool_calls": calls})
        if number is not None:
            self._called[number] = call_id
        self._last_call = call_id

    def _observation(self, record: Record, event: JsonObject, observation: str) -> None:
        if observation in _SILENT:
            record.skip(f"the tool's own {observation.replace('_', ' ')}")
            return
        told = object_at(event, "tool_call_metadata")
        content = _shown(event, observation)
        cause = _number(event.get("cause"))
        caused = self._by_event.get(cause, ()) if cause is not None else ()
        call_id = text_at(told, "tool_call_id") or (self._called.get(cause, "") if cause is not None else self._last_call)
        if not call_id and not told and not any(is_answer(item) for item in caused):
            self.writer.write(record, {"role": "user", "content": content}, source=f"{observation} observation")
            return
        if not told and not call_id:
            call_id = next((item.call_id for item in caused if isinstance(item, FunctionCall)), "")
        self._last_call = ""
        failed = observation == "error" or event.get("success") is False
        name = text_at(told, "function_name") or UNKNOWN_TOOL
        self.writer.write(record, {"role": "tool", "tool_call_id": call_id, "name": name, "content": content, "is_error": failed})

    def _condensation(self, record: Record, args: JsonObject) -> None:
        start, end = _number(args.get("forgotten_events_start_id")), _number(args.get("forgotten_events_end_id"))
        if start is not None and end is not None:
            replaced = self._standing.take_range(start, end)
        else:
            replaced = self._standing.take(one for one in map(_number, list_at(args, "forgotten_event_ids")) if one is not None)
        summary = text_at(args, "summary")
        if not replaced and not summary:
            record.skip("a condensation of nothing")
            return
        item_id = self.draft.new_id("", record)
        self.draft.put(record, Compaction(summary, replaced, id=item_id, created_at=self.writer.clock.now))


def _shown(event: JsonObject, observation: str) -> str:
    """What the model is shown of an observation."""
    extras = object_at(event, "extras")
    content = text_at(event, "content")
    if observation == "edit":
        return text_at(extras, "formatted_output_and_error") or content
    told = object_at(extras, "metadata")
    return f"{text_at(told, 'prefix')}{content}{text_at(told, 'suffix')}" if observation == "run" else content


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
