"""The lines of a Codex log, one after the other, put into a draft. Contents are read in `content.py`."""

from __future__ import annotations

from session.items import FunctionCall, FunctionCallOutput, Message, MessageCategory, Reasoning, Role
from session.parts import Part, Text
from session.transcripts.draft import Draft, Record
from session.transcripts.feeding import EMPTY, Calls
from session.transcripts.openai_words import call_metadata, phase_extra
from session.transcripts.values import Clock, JsonObject, count_at, id_at, json_text, object_at, seconds, text_at

from .compaction import Copies
from .content import parts_of, picture_of, source_of, thought_of, usage_of

PROVIDER = {"provider": "openai"}

_REPEATED = {
    "user_message": "the prompt is a response item of its own",
    "agent_message": "the text is a response item of its own",
    "agent_reasoning": "the thought is a response item of its own",
    "agent_reasoning_raw_content": "the thought is a response item of its own",
}
"""Events that say again what a response item says."""

_ENDED = "what the tool did, for the screen: the output is a response item of its own"


class Log:
    """Reads the lines of one file."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._clock = Clock()
        self._turns: list[int] = []  # marks of the draft: where a user's messages begin turns
        self._copies = Copies()
        self._response = ""
        self._open = False  # whether what the model says next is still of that response
        self._reported: object = None
        self._met = False

    def take(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Reads one line."""
        kind, payload = text_at(value, "type"), value.get("payload")
        self._clock.at(seconds(value.get("timestamp")))
        if not isinstance(payload, dict):
            draft.damage(record, "its payload is no object" if kind else "a JSON object without a type")
        elif kind == "response_item":
            self._item(draft, record, payload)
        elif kind == "event_msg":
            self._event(draft, record, payload)
        elif kind == "compacted":
            self._response, self._open = "", False
            turns = len(self._turns)
            self._copies.compacted(draft, record, payload, self._clock.now, lambda entry: self._item(draft, record, entry))
            del self._turns[turns:]  # what the replacement history repeats begins no turn
        elif kind == "session_meta":
            self._meta(draft, record, payload)
        elif kind == "turn_context":
            self._open = False
            for name in ("model", "cwd"):
                if found := text_at(payload, name):
                    draft.metadata[name] = found
            record.skip("settings of a turn")
        else:
            record.skip(f"unknown line type {kind!r}"[:100])

    def _meta(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        if self._met:
            record.skip("what is known of the session that this one goes on from")
            return
        self._met = True
        draft.id = text_at(payload, "id") or draft.id
        told = {
            "session_id": text_at(payload, "id"),
            "cwd": text_at(payload, "cwd"),
            "version": text_at(payload, "cli_version"),
            "provider": text_at(payload, "model_provider"),
            "git_branch": text_at(object_at(payload, "git"), "branch"),
            "forked_from": text_at(payload, "forked_from_id"),
        }
        draft.metadata |= {name: found for name, found in told.items() if found}
        if "subagent" in object_at(payload, "source"):
            draft.metadata["sidechain"] = True
        instructions = payload.get("base_instructions")
        text = text_at(instructions, "text") if isinstance(instructions, dict) else instructions
        if isinstance(text, str) and text:
            draft.put(record, Message("system", text, id=draft.new_id("", record), created_at=self._clock.now))
        else:
            record.skip("what is known of the session")

    def _item(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        """A response item: what went to the model, or came from it."""
        kind = text_at(payload, "type")
        notes: list[str] = []
        before = len(record.items)
        match kind:
            case "message":
                self._message(draft, record, payload, notes)
            case "reasoning":
                self._reasoning(draft, record, payload)
            case "function_call":
                self._call(draft, record, payload, text_at(payload, "name"), payload.get("arguments"))
            case "custom_tool_call":
                self._call(draft, record, payload, text_at(payload, "name"), text_at(payload, "input"))
            case "local_shell_call":
                self._call(draft, record, payload, "local_shell", payload.get("action"))
            case "tool_search_call":
                self._call(draft, record, payload, "tool_search", payload.get("arguments"))
            case "function_call_output" | "custom_tool_call_output":
                self._output(draft, record, payload, parts_of(payload.get("output"), notes))
            case "tool_search_output":
                self._output(draft, record, payload, (Text(json_text(payload.get("tools"))),))
            case "web_search_call" | "image_generation_call":
                self._own_tool(draft, record, payload, notes)
            case "compaction" | "compaction_summary":
                self._copies.compact(draft, record, "", payload, {}, self._clock.now)
            case _:
                record.skip("a snapshot for undoing edits" if kind == "ghost_snapshot" else f"unknown response item {kind!r}"[:100])
        for note in notes:
            draft.damage(record, note) if note.endswith("damaged") else record.skip(note)
        self._copies.note(draft, payload, record.items[before:])

    def _message(self, draft: Draft, record: Record, payload: JsonObject, notes: list[str]) -> None:
        role, parts = text_at(payload, "role"), parts_of(payload.get("content"), notes)
        if role == "user":
            self._open = False
            self._user(draft, record, payload, parts)
        elif role in ("assistant", "system", "developer") and parts:
            response = self._answering(record) if role == "assistant" else ""
            self._open = role == "assistant"
            kept: Role = "assistant" if role == "assistant" else "system" if role == "system" else "developer"
            extra = phase_extra(text_at(payload, "phase"))
            item_id = self._id(draft, record, payload)
            draft.put(record, Message(kept, parts, extra=extra, id=item_id, created_at=self._clock.now), response)
        else:
            record.skip(f"a message of unknown role {role!r}"[:100] if parts else EMPTY)

    def _user(self, draft: Draft, record: Record, payload: JsonObject, parts: tuple[Part, ...]) -> None:
        """What stands in the user's role: what the user wrote, and what Codex did, apart."""
        runs: list[tuple[str | None, list[Part]]] = []
        for part in parts:
            source = source_of(part)
            if runs and runs[-1][0] == source:
                runs[-1][1].append(part)
            else:
                runs.append((source, [part]))
        if any(source is None for source, _ in runs):
            self._turns.append(draft.mark())
        for source, run in runs:
            item_id = self._id(draft, record, payload)
            if source is None:
                draft.put(record, Message("user", run, id=item_id, created_at=self._clock.now))
            else:
                context, extra = MessageCategory.CONTEXT, {"source": source}
                draft.put(record, Message("user", run, category=context, extra=extra, id=item_id, created_at=self._clock.now))

    def _reasoning(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        text, sealed = thought_of(payload), id_at(payload, "encrypted_content")
        response = self._answering(record)
        if not (text or sealed):
            record.skip("a thought of which the log holds nothing")
            return
        item_id = self._id(draft, record, payload)
        draft.put(record, Reasoning(text, data=sealed or None, extra=PROVIDER, id=item_id, created_at=self._clock.now), response)

    def _call(self, draft: Draft, record: Record, payload: JsonObject, name: str, given: object) -> str:
        """A call; gives its id."""
        item_id = self._id(draft, record, payload)
        call_id = self._calls.made(text_at(payload, "call_id", "id"), name, item_id)
        arguments = given if isinstance(given, str) else json_text({} if given is None else given)
        metadata = call_metadata(text_at(payload, "type"), text_at(payload, "namespace"))
        item = FunctionCall(name or "unknown", arguments, call_id, metadata=metadata, id=item_id, created_at=self._clock.now)
        draft.put(record, item, self._answering(record))
        return call_id

    def _output(self, draft: Draft, record: Record, payload: JsonObject, parts: tuple[Part, ...]) -> None:
        self._open = False
        found = self._calls.answered(text_at(payload, "call_id", "id"), record)
        if found is None:
            return
        call_id, name = found
        failed = object_at(payload, "output").get("success") is False
        item_id = self._id(draft, record, payload)
        draft.put(record, FunctionCallOutput(name, parts, call_id, is_error=failed, id=item_id, created_at=self._clock.now))

    def _own_tool(self, draft: Draft, record: Record, payload: JsonObject, notes: list[str]) -> None:
        """A tool that the provider ran while the model answered: the response goes on after it."""
        kind, status = text_at(payload, "type"), text_at(payload, "status")
        name = kind.removesuffix("_call")
        given = payload.get("action") if name == "web_search" else {"prompt": text_at(payload, "revised_prompt")}
        call_id = self._call(draft, record, {"type": kind, "id": id_at(payload, "id")}, name, given)
        parts = picture_of(payload, notes) if name == "image_generation" else ()
        self._calls.answered(id_at(payload, "id"), record)
        item_id = draft.new_id("", record)
        output = FunctionCallOutput(
            name, parts or (Text(status),), call_id, is_error=status == "failed", id=item_id, created_at=self._clock.now
        )
        draft.put(record, output)

    def _event(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        kind = text_at(payload, "type")
        if kind == "token_count":
            self._usage(draft, record, payload)
        elif kind == "thread_rolled_back":
            self._roll_back(draft, record, count_at(payload, "num_turns"))
        elif kind in _REPEATED:
            record.merge(_REPEATED[kind])
        elif kind.endswith(("_begin", "_end")):
            record.merge(_ENDED)
        else:
            record.skip(f"an event for the screen: {kind}"[:100])

    def _usage(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        """The usage of the response before, told once or more often."""
        info = payload.get("info")
        if not isinstance(info, dict):
            record.skip("rate limits only")
        elif info.get("total_token_usage", info) == self._reported:
            record.merge("this usage was reported before")
        else:
            self._reported = info.get("total_token_usage", info)
            usage = usage_of(object_at(info, "last_token_usage"))
            if self._response and usage:
                draft.report(self._response, usage)
                record.merge("the usage of the response before it")
            else:
                record.skip("the usage of a request whose answer is not in the log")
            self._response, self._open = "", False

    def _roll_back(self, draft: Draft, record: Record, count: int) -> None:
        gone = self._turns[-count:] if count else []
        if gone:
            del self._turns[-count:]
            draft.undo(gone[0], f"rolled back on line {record.place}")
        self._response, self._open = "", False
        record.skip(f"the user took back the last {count} turns")

    def _answering(self, record: Record) -> str:
        """The response that the model is giving."""
        if not self._open or not self._response:
            self._response, self._open = f"L{record.place}", True
        return self._response

    def _id(self, draft: Draft, record: Record, payload: JsonObject) -> str:
        return draft.new_id(id_at(payload, "id"), record)
