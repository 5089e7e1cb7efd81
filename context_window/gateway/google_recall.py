"""Recalls in Google's generateContent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.providers.google.signatures import DUMMY
from session.providers.stream_pieces import joined_contents
from session.transcripts.values import object_at, text_at

from ..recall import NAME, Provider
from .events import StreamEvent
from .joined_answer import NO_TEXT, AnswerCall, JoinedAnswer, Result, first_choice, total_usage
from .wire_format import Json, objects

_DECLARATIONS = ("functionDeclarations", "function_declarations")


class GoogleJoinedAnswer(JoinedAnswer):
    """A response with one candidate. The first call after a hidden one gets the dummy signature if the hidden call has had the real one."""

    provider: ClassVar[Provider] = "google"

    def __init__(self) -> None:
        super().__init__()
        self._head: Json = {}
        self._signs = _Signer()
        self._has_content = False

    @classmethod
    def with_tool(cls, body: Json, definition: Json) -> Json | None:
        """Return the request with the recall tool among the functions of the client: function declarations stand in one tool."""
        tools = objects(body.get("tools")) or []
        declared = [(index, key) for index, tool in enumerate(tools) for key in _DECLARATIONS if objects(tool.get(key))]
        names = [function.get("name") for index, key in declared for function in tools[index][key]]
        config = body.get("generationConfig") or body.get("generation_config") or {}
        if not declared or NAME in names or config.get("candidateCount", config.get("candidate_count")) not in (None, 1):
            return None
        index, key = declared[-1]
        [function] = definition["function_declarations"]
        tool = {**tools[index], key: [*tools[index][key], function]}
        return {**body, "tools": [*tools[:index], tool, *tools[index + 1 :]]}

    def calls(self, answer: Json) -> list[AnswerCall]:
        """Return the function calls."""
        return [AnswerCall(text_at(call, "name"), call.get("args") or {}) for call in _calls(answer)]

    def is_cut_off(self, answer: Json) -> bool:
        """True unless the finish reason is `STOP`."""
        return first_choice(answer.get("candidates")).get("finishReason") != "STOP"

    def follow_up(self, body: Json, answer: Json, results: Sequence[Result]) -> Json:
        """Return the request with the answer and the results."""
        outputs = [
            {
                "functionResponse": {
                    **({"id": call["id"]} if "id" in call else {}),
                    "name": NAME,
                    "response": {"error" if is_error else "output": text},
                }
            }
            for call, (text, is_error) in zip(_calls(answer), results, strict=True)
        ]
        contents = [{"role": "model", "parts": _parts(answer)}, {"role": "user", "parts": outputs}]
        return {**body, "contents": [*body["contents"], *contents]}

    def joined(self, answers: Sequence[Json]) -> Json:
        """Return one response."""
        parts: list[Json] = []
        for answer in answers:
            signer = _Signer()
            parts += [visible for part in _parts(answer) if (visible := signer.visible(part)) is not None]
        if all(part.get("thought") for part in parts):
            parts.append({"text": NO_TEXT})
        candidate = {**first_choice(answers[-1].get("candidates")), "content": {"role": "model", "parts": parts}}
        usage = total_usage(
            [answer.get("usageMetadata") for answer in answers], ["candidatesTokenCount", "thoughtsTokenCount"], "totalTokenCount"
        )
        head = {name: answers[0][name] for name in ("responseId",) if name in answers[0]}
        return {**answers[-1], **head, "candidates": [candidate], **({"usageMetadata": usage} if usage else {})}

    def whole(self, events: Sequence[Json]) -> Json | None:
        """Return the response; None without a finish reason."""
        answer = joined_contents(events)
        return answer if first_choice(answer["candidates"]).get("finishReason") or not answer["candidates"] else None

    def visible(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Yield a chunk without recalls. The first chunk's id is every chunk's."""
        chunk = event.data or {}
        if not self._answers and not self._head:
            self._head = {name: chunk[name] for name in ("responseId",) if name in chunk}
        candidate = first_choice(chunk.get("candidates"))
        parts = _parts(chunk)
        visible_parts = [part for each in parts if (part := self._signs.visible(each)) is not None]
        self._hides = self._hides or self._signs.hides
        self._has_content = self._has_content or any(not part.get("thought") and part != {"text": ""} for part in visible_parts)
        if not self._hides:
            yield event
            return
        rest = {name: value for name, value in candidate.items() if name != "content"}
        if visible_parts:
            begun = {name: value for name, value in rest.items() if name != "finishReason"}
            yield event.with_data({**chunk, **self._head, "candidates": [{**begun, "content": {"role": "model", "parts": visible_parts}}]})
        if candidate.get("finishReason") or not candidate:
            self._last.append(event)

    def last_events(self, held: Sequence[StreamEvent], answer: Json) -> Iterator[StreamEvent]:
        """Yield the end, with a text if nothing else is left, and the joined usage."""
        for event in held:
            chunk = {**(event.data or {}), **self._head}
            if "usageMetadata" in answer:
                chunk["usageMetadata"] = answer["usageMetadata"]
            if chunk.get("candidates"):
                text = "" if self._has_content else NO_TEXT
                self._has_content = True
                chunk["candidates"] = [{**first_choice(chunk["candidates"]), "content": {"role": "model", "parts": [{"text": text}]}}]
            yield event.with_data(chunk)

    def begin_round(self) -> None:
        """Forget the signature of the round."""
        self._signs = _Signer()


class _Signer:
    """Hides the recalls of one round's parts and signs the next call in their stead.

    Attributes:
        hides: True if a part was hidden.
    """

    def __init__(self) -> None:
        self.hides = False
        self._is_due = False

    def visible(self, part: Json) -> Json | None:
        """Return the part as the client sees it; None for a recall."""
        call = part.get("functionCall")
        if not isinstance(call, dict):
            return part
        if call.get("name") == NAME:
            self.hides = True
            self._is_due = self._is_due or "thoughtSignature" in part
            return None
        if self._is_due:
            self._is_due = False
            return {"thoughtSignature": DUMMY, **part}
        return part


def _parts(answer: Json) -> list[Json]:
    return objects(object_at(first_choice(answer.get("candidates")), "content").get("parts")) or []


def _calls(answer: Json) -> list[Any]:
    return [part["functionCall"] for part in _parts(answer) if isinstance(part.get("functionCall"), dict)]
