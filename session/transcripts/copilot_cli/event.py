"""Events of a Copilot CLI log that the model saw or that came from it, and the items that they become."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Part, Text
from session.transcripts.block_parser import text_or_json
from session.transcripts.call_ids import UNKNOWN_TOOL, CallIds
from session.transcripts.compactions import KeepRule
from session.transcripts.draft import Draft
from session.transcripts.media import bytes_of, media_part
from session.transcripts.openai_fields import phase_extra
from session.transcripts.record import Record
from session.transcripts.usage import Counts
from session.transcripts.values import Clock, JsonObject, count_at, id_at, list_at, object_at, objects_at, text_at


@dataclass(slots=True)
class Thread:
    """One session while it is being read.

    Attributes:
        draft: The session.
        call_ids: Ids of its calls.
        clock: Time of the last event.
        marks: The end of the draft before each event, by event id.
        user_calls: Arguments of the tool calls that the user made, not the model, by call id.
        tools: Names of the tools, by call id, as their executions state them.
        response: Name of the model's last response.
    """

    draft: Draft
    call_ids: CallIds = field(default_factory=CallIds)
    clock: Clock = field(default_factory=Clock)
    marks: dict[str, int] = field(default_factory=dict)
    user_calls: dict[str, str] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    response: str = ""


@dataclass(slots=True)
class Event:
    """One event that the model saw or that came from it. Its methods put it into the draft of its thread."""

    thread: Thread
    record: Record
    id: str
    data: JsonObject

    @property
    def draft(self) -> Draft:
        """The session that the event belongs to."""
        return self.thread.draft

    def put_system_prompt(self) -> None:
        """Put the system prompt."""
        if text := text_at(self.data, "content"):
            is_developer = text_at(self.data, "role") == "developer"
            self.draft.put(self.record, Message("developer" if is_developer else "system", text, **self._fields()))

    def put_prompt(self) -> None:
        """Put the user's message, and around it what the tool added to it."""
        prompt, full_text = text_at(self.data, "content"), text_at(self.data, "transformedContent")
        reasons: list[str] = []
        media = self._attachments(reasons)
        source = text_at(self.data, "source")
        if source and source != "user":
            self.put_context(full_text or prompt, source)
            prompt = full_text = ""
        before, match, after = full_text.partition(prompt) if prompt else ("", "", "")
        texts: tuple[Part, ...] = (Text(prompt if match else full_text or prompt),) if prompt or full_text else ()
        self.put_context(before.strip() if match else "", "prompt frame")
        if texts or media:
            self.draft.put_user(self.record, (*texts, *media), self.id, self.thread.clock.now)
        self.put_context(after.strip(), "prompt frame")
        for reason in reasons:
            self.record.skip(reason)

    def _attachments(self, reasons: list[str]) -> list[Part]:
        media: list[Part] = []
        for attachment in list_at(self.data, "attachments"):
            kind = text_at(attachment, "type") if isinstance(attachment, dict) else ""
            media_type = text_at(attachment, "mimeType") if isinstance(attachment, dict) else ""
            if isinstance(attachment, dict) and kind == "blob" and media_type.startswith("image/"):
                image = media_part(bytes_of(attachment.get("data")), media_type, reasons, kind="image")
                media += [image] if image is not None else []
            else:
                reasons.append(f"left out an attachment of type {kind!r}, whose content is not in the log"[:100])
        return media

    def put_context(self, text: str, source: str) -> None:
        """Put a text that the tool wrote in the user's role, unless it is empty."""
        if text:
            self.draft.put_user(self.record, text, self.id, self.thread.clock.now, source)

    def put_response(self) -> None:
        """Put the model's reasoning, text and calls."""
        data = self.data
        model = text_at(data, "model")
        self.draft.describe(model=model)
        self.thread.response = response = id_at(data, "apiCallId", "messageId") or self.id or f"L{self.record.number}"
        if (reasoning := self._reasoning(model)) is not None:
            self.draft.put(self.record, reasoning, response)
        if text := text_at(data, "content"):
            extra = phase_extra(text_at(data, "phase"))
            self.draft.put(self.record, Message("assistant", text, extra=extra, **self._fields()), response)
        for request in list_at(data, "toolRequests"):
            if not isinstance(request, dict):
                self.draft.damage(self.record, "a tool request that is not an object")
                continue
            tool, fields = text_at(request, "name") or UNKNOWN_TOOL, self._fields()
            call_id = self.thread.call_ids.add_call(text_at(request, "toolCallId"), tool, fields["id"])
            self.draft.put(self.record, FunctionCall(tool, text_or_json(request.get("arguments")), call_id, **fields), response)
        if output := count_at(data, "outputTokens"):
            self.draft.report(response, Counts(output_tokens=output))

    def _reasoning(self, model: str) -> Reasoning | None:
        text, data = text_at(self.data, "reasoningText"), id_at(self.data, "encryptedContent", "reasoningOpaque")
        if not (text or data):
            return None
        if model.startswith("claude"):
            return Reasoning(text, data or None, **self._fields())
        extra = {"provider": "google" if model.startswith("gemini") else "openai"}
        return Reasoning(text, data=data or None, extra=extra, **self._fields())

    def put_output(self) -> None:
        """Put a tool's output."""
        file_call_id = text_at(self.data, "toolCallId")
        result, tool_name = object_at(self.data, "result"), self.thread.tools.get(file_call_id, "")
        text = text_at(result, "content") or text_at(object_at(self.data, "error"), "message")
        if file_call_id in self.thread.user_calls:
            arguments = self.thread.user_calls.pop(file_call_id)
            self.put_context(f"{self.thread.tools.get(file_call_id, 'tool')} {arguments}\n{text}", "shell command")
            return
        call = self.thread.call_ids.add_result(file_call_id, self.record, tool_name)
        if call is None:
            return
        call_id, tool = call
        reasons: list[str] = []
        parts: list[Part] = [Text(text)] if text else []
        for block in objects_at(result, "contents"):
            if block.get("type") == "image":
                image = media_part(bytes_of(block.get("data")), text_at(block, "mimeType"), reasons, kind="image")
                parts += [image] if image is not None else []
        is_error = self.data.get("success") is False
        self.draft.put(self.record, FunctionCallOutput(tool, parts, call_id, is_error=is_error, **self._fields()))
        for reason in reasons:
            self.draft.damage(self.record, reason)

    def report_usage(self) -> None:
        """Report the usage of a response."""
        response = id_at(self.data, "apiCallId") or self.thread.response
        cache_read, cache_write = count_at(self.data, "cacheReadTokens"), count_at(self.data, "cacheWriteTokens")
        total = count_at(self.data, "inputTokens")
        if response:
            uncached = total - cache_read - cache_write if total >= cache_read + cache_write else total
            self.draft.report(response, Counts(uncached, cache_read, cache_write, count_at(self.data, "outputTokens")))
        self.record.merge("the usage of a response")

    def put_compaction(self) -> None:
        """Put a compaction of everything before it."""
        summary = text_at(self.data, "summaryContent")
        if self.data.get("success") is False or not summary:
            self.record.skip("a compaction that failed, or whose summary is not in the log")
            return
        extra: dict[str, object] = {"source": "compaction"}
        if tokens_before := count_at(self.data, "preCompactionTokens"):
            extra["pre_tokens"] = tokens_before
        self.draft.compact(self.record, Compaction(summary, extra=extra, **self._fields()), KeepRule(self.draft.mark()))

    def rewind(self) -> None:
        """Remove the event that the user went back to, and all later ones."""
        mark = self.thread.marks.get(text_at(self.data, "upToEventId"))
        if mark is not None:
            self.draft.undo(mark, f"rewound on line {self.record.number}")
        self.record.skip("the user went back to an earlier event")

    def _fields(self) -> dict[str, Any]:
        """Return the id and time of the next item."""
        return {"id": self.draft.new_id(self.id, self.record), "created_at": self.thread.clock.now}
