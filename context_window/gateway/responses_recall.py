"""Recalls in OpenAI's Responses API.

Reasoning must be followed by the item that followed it when it was made (docs/provider-rules.md, R2). Reasoning right before a hidden call
is hidden with it, so a reasoning item waits until the next item begins, and what comes between them waits behind it. Later items of that
answer get ids that the provider does not know: by its own ids it would miss the reasoning. Later reasoning of that answer is hidden, too,
since it would miss an item by its own id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, ClassVar

from session.providers.stream_pieces import FINAL_EVENTS
from session.transcripts.values import text_at

from ..recall import NAME, Provider
from .events import StreamEvent, event_of
from .joined_answer import NO_TEXT, AnswerCall, JoinedAnswer, Result, total_usage
from .wire_format import Json, objects

_CALLS = frozenset({"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"})
"""Types of items that the client answers."""


class ResponsesJoinedAnswer(JoinedAnswer):
    """A response that the provider does not store: one that it stores could be continued by its id, without the recalls' results."""

    provider: ClassVar[Provider] = "openai-responses"

    def __init__(self) -> None:
        super().__init__()
        self._indices: dict[Any, int] = {}  # index for the client, by index in the round
        self._next = self._number = 0
        self._head: Json = {}
        self._waiting: list[StreamEvent] = []  # events of reasoning items and what comes after, until the next item begins
        self._reasoning: set[Any] = set()  # their indices in the round
        self._is_unlinked = False

    @classmethod
    def with_tool(cls, body: Json, definition: Json) -> Json | None:
        """Return the request with the recall tool."""
        tools = objects(body.get("tools"))
        if not tools or body.get("store") is not False or NAME in [tool.get("name") for tool in tools]:
            return None
        return {**body, "tools": [*tools, definition]}

    def calls(self, answer: Json) -> list[AnswerCall]:
        """Return the calls of the client's tools and of the recall tool."""
        return [AnswerCall(text_at(item, "name"), text_at(item, "arguments")) for item in _output(answer) if item.get("type") in _CALLS]

    def is_cut_off(self, answer: Json) -> bool:
        """True unless the status is `completed`."""
        return answer.get("status") != "completed"

    def follow_up(self, body: Json, answer: Json, results: Sequence[Result]) -> Json:
        """Return the request with the answer and the results. Reasoning that cannot be sent is left out."""
        items = _output(answer)
        if any(item.get("type") == "reasoning" and not item.get("encrypted_content") for item in items):
            items = [{name: value for name, value in item.items() if name != "id"} for item in items if item.get("type") != "reasoning"]
        call_ids = [item.get("call_id") for item in items if item.get("type") in _CALLS]
        outputs = [{"type": "function_call_output", "call_id": id, "output": text} for id, (text, _) in zip(call_ids, results, strict=True)]
        return {**body, "input": [*body["input"], *items, *outputs]}

    def joined(self, answers: Sequence[Json]) -> Json:
        """Return one response."""
        output = [item for answer in answers for item in _visible_items(_output(answer))]
        output = output or [_no_text(text_at(answers[0], "id"))]
        output_fields = ["output_tokens", "output_tokens_details"]
        usage = total_usage([answer.get("usage") for answer in answers], output_fields, "total_tokens")
        head: Json = {name: answers[0][name] for name in ("id", "created_at") if name in answers[0]}
        return {**answers[-1], **head, "output": output, **({"usage": usage} if usage else {})}

    def whole(self, events: Sequence[Json]) -> Json | None:
        """Return the response in the last event, with the items that were streamed; None without it."""
        answer = next((event.get("response") for event in reversed(events) if event.get("type") in FINAL_EVENTS), None)
        if not isinstance(answer, dict):
            return None
        done = {event.get("output_index"): event.get("item") for event in events if event.get("type") == "response.output_item.done"}
        items = [item for _, item in sorted(done.items(), key=lambda pair: str(pair[0]).zfill(9)) if isinstance(item, dict)]
        return {**answer, "output": _output(answer) or items}

    def visible(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Yield an event of a visible item with its index in the joined response."""
        data = event.data or {}
        kind, index = text_at(data, "type"), data.get("output_index")
        is_known = index in self._indices or index in self._reasoning
        if kind in FINAL_EVENTS:
            if not self._hides:
                yield from self._release()
            yield from self._ending(event) if self._hides else (self._numbered(event),)
        elif kind == "response.output_item.added":
            yield from self._item(event, data.get("item"), index)
        elif index in self._reasoning or (self._waiting and not self._hides):
            self._waiting.append(event)
        elif index is not None:
            if is_known or not self._hides:  # an item that never began is passed on as it is
                yield self._numbered(event)
        elif kind in ("response.created", "response.in_progress", "response.queued"):
            if not self._answers:
                response = data.get("response")
                self._head = {"id": response.get("id")} if isinstance(response, dict) else {}
                yield self._numbered(event)
        else:
            yield self._numbered(event)

    def _item(self, event: StreamEvent, item: object, index: object) -> Iterator[StreamEvent]:
        """Begin an item."""
        fields = item if isinstance(item, dict) else {}
        if fields.get("type") == "reasoning":
            if not self._is_unlinked:
                self._reasoning.add(index)
                self._waiting.append(event)
        elif _is_recall(fields):
            others = [each for each in self._waiting if not self._is_reasoning(each)]
            self._hides = True
            self._is_unlinked = self._is_unlinked or len(others) < len(self._waiting)
            self._waiting = []
            yield from map(self._numbered, others)
        else:
            yield from self._release()
            self._indices[index] = self._next
            self._next += 1
            yield self._numbered(event)

    def _release(self) -> Iterator[StreamEvent]:
        """Yield the events that have waited, unless the hidden call has made them invalid."""
        delayed, self._waiting = self._waiting, []
        for event in delayed:
            index = (event.data or {}).get("output_index")
            if index in self._reasoning and index not in self._indices:
                self._indices[index] = self._next
                self._next += 1
            yield self._numbered(event)
        self._reasoning -= self._indices.keys()

    def waiting(self) -> Iterator[StreamEvent]:
        """Yield what waits for the next item, unless a hidden call has made it invalid."""
        if not self._hides:
            yield from self._release()

    def _ending(self, event: StreamEvent) -> Iterator[StreamEvent]:
        if self._waiting and not self._hides:
            self._waiting.append(event)
        else:
            yield from super()._ending(event)

    def _is_reasoning(self, event: StreamEvent) -> bool:
        return (event.data or {}).get("output_index") in self._reasoning

    def _numbered(self, event: StreamEvent) -> StreamEvent:
        """Return an event with its number in the client's stream, and its item's index and id there; as it is if nothing is hidden."""
        data = dict(event.data or {})
        if not self._hides or event.data is None:
            number = data.get("sequence_number")
            self._number = number + 1 if isinstance(number, int) else self._number
            return event
        if "sequence_number" in data:
            self._number = self._number or data["sequence_number"]  # the client's numbers begin as the upstream's do
            data["sequence_number"] = self._number
        self._number += 1
        if "output_index" in data:
            data["output_index"] = self._indices[data["output_index"]]
            if self._is_unlinked:
                data |= {name: _new_id(data[name]) for name in ("item_id",) if isinstance(data.get(name), str)}
                data |= {name: _unlinked(data[name]) for name in ("item",) if isinstance(data.get(name), dict)}
        return event if data == event.data else event.with_data(data)

    def last_events(self, held: Sequence[StreamEvent], answer: Json) -> Iterator[StreamEvent]:
        """Yield a message if nothing else is left, and the end with the joined response."""
        if self._next == 0:
            [message] = answer["output"]
            [part] = message["content"]
            where = {"output_index": 0, "item_id": message["id"], "content_index": 0}
            yield self._own("response.output_item.added", output_index=0, item={**message, "content": []})
            yield self._own("response.content_part.added", **where, part={**part, "text": ""})
            yield self._own("response.output_text.delta", **where, delta=NO_TEXT, logprobs=[])
            yield self._own("response.output_text.done", **where, text=NO_TEXT, logprobs=[])
            yield self._own("response.content_part.done", **where, part=part)
            yield self._own("response.output_item.done", output_index=0, item=message)
        for event in held:
            yield event if event.data is None else self._numbered(event.with_data({**event.data, "response": answer}))

    def begin_round(self) -> None:
        """Forget the items of the round."""
        self._indices, self._reasoning, self._waiting, self._is_unlinked = {}, set(), [], False

    def error_event(self, error: Json) -> StreamEvent:
        """Return an event of type `error`. Clients read its fields next to the type or in `error`."""
        fields = error.get("error")
        event_fields = fields if isinstance(fields, dict) else {}
        return event_of({**event_fields, "type": "error", "sequence_number": self._number, "error": event_fields}, "error")

    def _own(self, kind: str, **fields: Any) -> StreamEvent:
        event = event_of({"type": kind, **fields, "sequence_number": self._number}, kind)
        self._number += 1
        return event


def _output(answer: Json) -> list[Json]:
    return objects(answer.get("output")) or []


def _is_recall(item: Json) -> bool:
    return item.get("type") == "function_call" and item.get("name") == NAME


def _visible_items(items: Sequence[Json]) -> Iterator[Json]:
    """Yield an answer's items without recalls, and without items that are invalid without them."""
    pending: list[Json] = []
    is_unlinked = False
    for item in items:
        if item.get("type") == "reasoning":
            pending += [] if is_unlinked else [item]
        elif _is_recall(item):
            is_unlinked = is_unlinked or bool(pending)
            pending = []
        else:
            yield from (_unlinked(each) if is_unlinked else each for each in [*pending, item])
            pending = []


def _unlinked(item: Json) -> Json:
    """Return the item with another id. Reasoning keeps its own, which its encrypted content holds, too."""
    id = item.get("id")
    return {**item, "id": _new_id(id)} if isinstance(id, str) and item.get("type") != "reasoning" else item


def _new_id(id: str) -> str:
    """Return another id of the same kind: the API checks how an id begins."""
    return id if id.startswith("rs_") else f"{id.partition('_')[0]}_{sha256(id.encode()).hexdigest()[:48]}"


def _no_text(response_id: str) -> Json:
    """Return the message of an otherwise empty response."""
    part = {"type": "output_text", "text": NO_TEXT, "annotations": []}
    return {"type": "message", "id": _new_id(f"msg_{response_id}"), "role": "assistant", "status": "completed", "content": [part]}
