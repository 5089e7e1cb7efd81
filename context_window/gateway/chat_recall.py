"""Recalls in OpenAI's Chat Completions API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.providers.stream_pieces import joined_completion
from session.transcripts.values import object_at, objects_at, text_at

from ..recall import NAME, Provider
from .events import StreamEvent
from .joined_answer import NO_TEXT, AnswerCall, JoinedAnswer, Result, first_choice, total_usage
from .wire_format import Json, objects

_BETWEEN = "\n\n"
"""Stands between the texts of two rounds, which become one text."""


class ChatJoinedAnswer(JoinedAnswer):
    """A completion with one choice."""

    provider: ClassVar[Provider] = "openai"

    def __init__(self) -> None:
        super().__init__()
        self._indices: dict[Any, int | None] = {}  # index for the client by index in the round; None for a hidden call
        self._next = 0
        self._head: Json = {}
        self._has_text = self._is_text_due = False

    @classmethod
    def with_tool(cls, body: Json, definition: Json) -> Json | None:
        """Return the request with the recall tool. One for several choices cannot have it."""
        tools = objects(body.get("tools"))
        if not tools or body.get("n") not in (None, 1) or NAME in map(_name, tools):
            return None
        return {**body, "tools": [*tools, definition]}

    def calls(self, answer: Json) -> list[AnswerCall]:
        """Return the message's tool calls."""
        return [
            AnswerCall(_name(call), text_at(object_at(call, "function"), "arguments"))
            for call in objects_at(_message(answer), "tool_calls")
        ]

    def is_cut_off(self, answer: Json) -> bool:
        """True if the finish reason is a limit or a filter. Some servers say `stop` for calls."""
        return first_choice(answer.get("choices")).get("finish_reason") not in ("tool_calls", "function_call", "stop", None)

    def follow_up(self, body: Json, answer: Json, results: Sequence[Result]) -> Json:
        """Return the request with the answer and the results."""
        message = _message(answer)
        fields = {name: message[name] for name in ("role", "content", "tool_calls", "reasoning_content") if name in message}
        outputs = [
            {"role": "tool", "tool_call_id": call.get("id"), "content": text}
            for call, (text, _) in zip(objects_at(message, "tool_calls"), results, strict=True)
        ]
        return {**body, "messages": [*body["messages"], {"role": "assistant", **fields}, *outputs]}

    def joined(self, answers: Sequence[Json]) -> Json:
        """Return one completion."""
        messages = [_message(answer) for answer in answers]
        calls = [call for message in messages for call in objects_at(message, "tool_calls") if _name(call) != NAME]
        content = _BETWEEN.join(message["content"] for message in messages if message.get("content")) or None
        message = {**messages[-1], "content": content if content or calls else NO_TEXT}
        message.pop("tool_calls", None)
        if calls:
            message["tool_calls"] = calls
        choice = {**first_choice(answers[-1].get("choices")), "message": message}
        if choice.get("finish_reason") == "tool_calls" and not calls:
            choice["finish_reason"] = "stop"
        usage = _usage(answers)
        return {**answers[-1], "id": answers[0].get("id"), "choices": [choice], **({"usage": usage} if usage else {})}

    def whole(self, events: Sequence[Json]) -> Json | None:
        """Return the completion; None without its finish reason."""
        answer = joined_completion(events)
        return answer if answer["choices"][0]["finish_reason"] else None

    def visible(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Yield a chunk without pieces of hidden calls. The first chunk's id is every chunk's."""
        chunk = event.data or {}
        if not self._answers and not self._head:
            self._head = {name: chunk[name] for name in ("id", "created") if name in chunk}
        choice = first_choice(chunk.get("choices"))
        delta: Json = choice.get("delta") or {}
        new_delta = self._visible_delta(delta)
        if not self._hides:  # all is passed on as it came
            yield event
        elif choice.get("finish_reason") or not choice:
            if self._hides and choice and new_delta:  # its text and calls do not wait
                yield event.with_data({**chunk, **self._head, "choices": [{**choice, "delta": new_delta, "finish_reason": None}]})
                event = event.with_data({**chunk, "choices": [{**choice, "delta": {}}]})
            yield from self._ending(event)
        elif new_delta is delta and not self._answers:
            yield event
        elif new_delta:
            yield event.with_data({**chunk, **self._head, "choices": [{**choice, "delta": new_delta}]})

    def _visible_delta(self, delta: Json) -> Json:
        """Return the delta without pieces of hidden calls; the same object if nothing changes."""
        result = {name: value for name, value in delta.items() if name != "role"} if self._answers else dict(delta)
        if isinstance(delta.get("tool_calls"), list):
            visible = [
                moved for number, piece in enumerate(delta["tool_calls"]) if (moved := self._visible_piece(piece, number)) is not None
            ]
            result["tool_calls"] = visible
            if not visible:
                del result["tool_calls"]
        if text := result.get("content"):
            result["content"] = (_BETWEEN if self._is_text_due else "") + text
            self._has_text, self._is_text_due = True, False
        if self._hides and not any(value for name, value in result.items() if name != "role"):
            return {}
        return delta if result == delta else result

    def _visible_piece(self, piece: Json, number: int) -> Json | None:
        index = piece.get("index", number)
        if index not in self._indices:
            is_hidden = _name(piece) == NAME
            self._hides = self._hides or is_hidden
            self._indices[index] = None if is_hidden else self._next
            self._next += not is_hidden
        new = self._indices[index]
        return None if new is None else piece if new == index else {**piece, "index": new}

    def last_events(self, held: Sequence[StreamEvent], answer: Json) -> Iterator[StreamEvent]:
        """Yield a text if nothing else is left, and the end with the joined finish reason and usage."""
        [choice] = answer["choices"]
        for event in held:
            chunk = event.data
            if chunk is None:
                yield event
                continue
            chunk = {**chunk, **self._head}
            if chunk.get("usage") and "usage" in answer:
                chunk["usage"] = answer["usage"]
            if choice_of_client := first_choice(chunk.get("choices")):
                if choice["message"]["content"] == NO_TEXT:
                    yield event.with_data(
                        {**chunk, "choices": [{**choice_of_client, "delta": {"content": NO_TEXT}, "finish_reason": None}]}
                    )
                chunk["choices"] = [{**choice_of_client, "delta": {}, "finish_reason": choice["finish_reason"]}]
            yield event.with_data(chunk)

    def begin_round(self) -> None:
        """Forget the indices of the round."""
        self._indices, self._is_text_due = {}, self._has_text


def _message(answer: Json) -> Json:
    return object_at(first_choice(answer.get("choices")), "message")


def _name(tool: object) -> str:
    """Return the name of a tool or of a call."""
    fields = (tool.get("function") or tool.get("custom") or tool) if isinstance(tool, dict) else {}
    return text_at(fields, "name")


def _usage(answers: Sequence[Json]) -> Json:
    output_fields = ["completion_tokens", "completion_tokens_details"]
    return total_usage([answer.get("usage") for answer in answers], output_fields, "total_tokens")
