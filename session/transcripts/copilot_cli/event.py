"""Events of a Copilot CLI log that the model was shown or that came from it, turned into items."""

from __future__ import annotations

from dataclasses import dataclass, field

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, MessageCategory, Reasoning, Role
from session.parts import Part, Text
from session.transcripts.blocks import image_of
from session.transcripts.draft import Draft, Record
from session.transcripts.feeding import Calls
from session.transcripts.openai_words import phase_extra
from session.transcripts.replacing import Keeps
from session.transcripts.usages import Counts
from session.transcripts.values import Clock, JsonObject, count_at, id_at, json_text, list_at, object_at, text_at


@dataclass(slots=True)
class Thread:
    """What is known of one session while it is read.

    Attributes:
        draft: The session.
        marks: By an event's id: where the draft stood before it.
        requested: Calls that the user made, not the model: by id, what was asked for.
        tools: The tools that calls are of, by id, as their executions say.
        response: What the model's last answer is known by.
    """

    draft: Draft
    calls: Calls = field(default_factory=Calls)
    clock: Clock = field(default_factory=Clock)
    marks: dict[str, int] = field(default_factory=dict)
    requested: dict[str, str] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    response: str = ""


@dataclass(slots=True)
class Event:
    """One event that the model was shown, or that came from it."""

    thread: Thread
    record: Record
    id: str
    data: JsonObject

    @property
    def draft(self) -> Draft:
        """The session that the event belongs to."""
        return self.thread.draft

    def system(self) -> None:
        """The system prompt."""
        role, text = text_at(self.data, "role"), text_at(self.data, "content")
        if text:
            kept: Role = "developer" if role == "developer" else "system"
            self.draft.put(self.record, Message(kept, text, id=self._id(), created_at=self._time))

    def user(self) -> None:
        """What the user said, and what the tool wrote around it."""
        said, shown = text_at(self.data, "content"), text_at(self.data, "transformedContent")
        notes: list[str] = []
        media = self._attachments(notes)
        source = text_at(self.data, "source")
        if source and source != "user":
            self.context(shown or said, source)
            said = shown = ""
        before, found, after = shown.partition(said) if said else ("", "", "")
        own: tuple[Part, ...] = (*((Text(said if found else shown or said),) if said or shown else ()), *media)
        self.context((before if found else "").strip(), "prompt frame")
        if own:
            self.draft.put(self.record, Message("user", own, id=self._id(), created_at=self._time))
        self.context((after if found else "").strip(), "prompt frame")
        for note in notes:
            self.record.skip(note)

    def _attachments(self, notes: list[str]) -> list[Part]:
        found: list[Part] = []
        for one in list_at(self.data, "attachments"):
            kind = text_at(one, "type") if isinstance(one, dict) else ""
            media_type = text_at(one, "mimeType") if isinstance(one, dict) else ""
            if isinstance(one, dict) and kind == "blob" and media_type.startswith("image/"):
                part = image_of(one.get("data"), media_type, notes)
                found += [part] if part is not None else []
            else:
                notes.append(f"left out an attachment of type {kind!r}, which the log does not hold"[:100])
        return found

    def context(self, text: str, source: str) -> None:
        """What the tool wrote in the user's role."""
        if text:
            item = Message("user", text, category=MessageCategory.CONTEXT, extra={"source": source}, id=self._id(), created_at=self._time)
            self.draft.put(self.record, item)

    def answer(self) -> None:
        """What the model said: its thought, its text, its calls."""
        data = self.data
        model, text = text_at(data, "model"), text_at(data, "content")
        if model:
            self.draft.metadata["model"] = model
        self.thread.response = response = id_at(data, "apiCallId", "messageId") or self.id or f"L{self.record.place}"
        if (thought := self._thought(model)) is not None:
            self.draft.put(self.record, thought, response)
        if text:
            extra = phase_extra(text_at(data, "phase"))
            self.draft.put(self.record, Message("assistant", text, extra=extra, id=self._id(), created_at=self._time), response)
        for request in list_at(data, "toolRequests"):
            if not isinstance(request, dict):
                self.draft.damage(self.record, "a tool request is no object")
                continue
            tool, given, item_id = text_at(request, "name") or "unknown", request.get("arguments"), self._id()
            call_id = self.thread.calls.made(text_at(request, "toolCallId"), tool, item_id)
            arguments = given if isinstance(given, str) else json_text({} if given is None else given)
            self.draft.put(self.record, FunctionCall(tool, arguments, call_id, id=item_id, created_at=self._time), response)
        if output := count_at(data, "outputTokens"):
            self.draft.report(response, Counts(output_tokens=output))

    def _thought(self, model: str) -> Reasoning | None:
        text, sealed = text_at(self.data, "reasoningText"), id_at(self.data, "encryptedContent", "reasoningOpaque")
        if not (text or sealed):
            return None
        if model.startswith("claude"):
            return Reasoning(text, sealed or None, id=self._id(), created_at=self._time)
        extra = {"provider": "google" if model.startswith("gemini") else "openai"}
        return Reasoning(text, data=sealed or None, extra=extra, id=self._id(), created_at=self._time)

    def output(self) -> None:
        """What a tool answered."""
        data, given = self.data, text_at(self.data, "toolCallId")
        result, error = object_at(data, "result"), object_at(data, "error")
        failed = data.get("success") is False
        text = text_at(result, "content") or text_at(error, "message")
        if given in self.thread.requested:
            asked = self.thread.requested.pop(given)
            self.context(f"{self.thread.tools.get(given, 'tool')} {asked}\n{text}", "shell command")
            return
        found = self.thread.calls.answered(given, self.record, self.thread.tools.get(given, ""))
        if found is None:
            return
        call_id, tool = found
        notes: list[str] = []
        parts: list[Part] = [Text(text)] if text else []
        for one in list_at(result, "contents"):
            if isinstance(one, dict) and one.get("type") == "image":
                picture = image_of(one.get("data"), text_at(one, "mimeType"), notes)
                parts += [picture] if picture is not None else []
        item = FunctionCallOutput(tool, parts, call_id, is_error=failed, id=self._id(), created_at=self._time)
        self.draft.put(self.record, item)
        for note in notes:
            self.draft.damage(self.record, note)

    def usage(self) -> None:
        """What the provider reported for an answer."""
        response = id_at(self.data, "apiCallId") or self.thread.response
        read, wrote = count_at(self.data, "cacheReadTokens"), count_at(self.data, "cacheWriteTokens")
        whole = count_at(self.data, "inputTokens")
        if response:
            fresh = whole - read - wrote if whole >= read + wrote else whole
            self.draft.report(response, Counts(fresh, read, wrote, count_at(self.data, "outputTokens")))
        self.record.merge("the usage of an answer")

    def compaction(self) -> None:
        """From here on the model saw a summary."""
        summary = text_at(self.data, "summaryContent")
        if self.data.get("success") is False or not summary:
            self.record.skip("a compaction that failed, or whose summary is not in the log")
            return
        extra: dict[str, object] = {"source": "compaction"}
        if before := count_at(self.data, "preCompactionTokens"):
            extra["pre_tokens"] = before
        item = Compaction(summary, extra=extra, id=self._id(), created_at=self._time)
        self.draft.compact(self.record, item, Keeps(self.draft.mark()))

    def rewind(self) -> None:
        """The user went back: an event, and all after it, did not happen."""
        mark = self.thread.marks.get(text_at(self.data, "upToEventId"))
        if mark is not None:
            self.draft.undo(mark, f"rewound on line {self.record.place}")
        self.record.skip("the user went back to an earlier place")

    def _id(self) -> str:
        return self.draft.new_id(self.id, self.record)

    @property
    def _time(self) -> float:
        return self.thread.clock.now
