"""Reads the lines of a Codex log into a draft. The contents of messages and outputs are read in `content.py`."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from session.items import FunctionCall, FunctionCallOutput, Message, Reasoning, Role
from session.parts import Part, Text
from session.transcripts.block_parser import text_or_json
from session.transcripts.call_ids import UNKNOWN_TOOL, CallIds
from session.transcripts.draft import Draft
from session.transcripts.openai_fields import call_metadata, phase_extra
from session.transcripts.record import Record
from session.transcripts.record_feed import EMPTY
from session.transcripts.values import Clock, JsonObject, carried, count_at, id_at, json_text, object_at, objects_at, seconds, text_at

from .compaction import CompactionReader
from .content import parts_of, picture_of, source_of, thought_of, usage_of

PROVIDER = {"provider": "openai"}

_REPEATS = {
    "user_message": "the prompt has a response item of its own",
    "agent_message": "the text has a response item of its own",
    "agent_reasoning": "the reasoning has a response item of its own",
    "agent_reasoning_raw_content": "the reasoning has a response item of its own",
}
"""Events that repeat a response item, and the reason to skip them."""

_TOOL_PROGRESS = "progress of a tool, for the screen; its output has a response item of its own"

WINDOW = "model_context_window"
"""Field of two events: the tokens of the window that Codex fills, which is a little less than the model's."""

_ROLES: dict[str, Role] = {"assistant": "assistant", "system": "system", "developer": "developer"}


def _functions(payload: JsonObject) -> list[JsonObject]:
    """Return the functions that a client has added, in OpenAI's form, without the namespaces that they are in."""
    added = objects_at(payload, "dynamic_tools")
    return [
        {
            "type": "function",
            "name": text_at(tool, "name"),
            "description": text_at(tool, "description"),
            "parameters": tool["inputSchema"],
            "defer_loading": tool.get("deferLoading") is True,
        }
        for tool in (*added, *(tool for group in added for tool in objects_at(group, "tools")))
        if "inputSchema" in tool
    ]


class CodexLineReader:
    """Reads the lines of one file."""

    def __init__(self) -> None:
        self._call_ids = CallIds()
        self._clock = Clock()
        self._turn_marks: list[int] = []  # the end of the draft before each turn
        self._compactions = CompactionReader()
        self._response = ""
        self._is_response_open = False  # whether the next item from the model still belongs to that response
        self._last_report: object = None
        self._has_meta = False

    def read_line(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Read one line."""
        kind, payload = text_at(value, "type"), value.get("payload")
        self._clock.at(seconds(value.get("timestamp")))
        if not isinstance(payload, dict):
            draft.damage(record, "its payload is not an object" if kind else "a JSON object without a type")
        elif kind == "response_item":
            self._read_item(draft, record, payload)
        elif kind == "event_msg":
            self._read_event(draft, record, payload)
        elif kind == "compacted":
            self._end_response()
            turn_count = len(self._turn_marks)
            self._compactions.read_compacted(draft, record, payload, self._clock.now, lambda entry: self._read_item(draft, record, entry))
            del self._turn_marks[turn_count:]  # prompts in the replacement history do not begin turns
        elif kind == "session_meta":
            self._read_meta(draft, record, payload)
        elif kind == "turn_context":
            self._is_response_open = False
            draft.describe(model=text_at(payload, "model"), cwd=text_at(payload, "cwd"))
            record.skip("settings of a turn")
        else:
            record.skip(f"unknown line type {kind!r}"[:100])

    def _read_meta(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        if self._has_meta:
            record.skip("metadata of the session that this one continues")
            return
        self._has_meta = True
        draft.id = text_at(payload, "id") or draft.id
        draft.describe(
            session_id=text_at(payload, "id"),
            cwd=text_at(payload, "cwd"),
            version=text_at(payload, "cli_version"),
            provider=text_at(payload, "model_provider"),
            git_branch=text_at(object_at(payload, "git"), "branch"),
            forked_from=text_at(payload, "forked_from_id"),
            sidechain="subagent" in object_at(payload, "source"),
            tools=carried(_functions(payload), 1_000_000),
        )
        instructions = payload.get("base_instructions")
        text = text_at(instructions, "text") if isinstance(instructions, dict) else instructions
        if isinstance(text, str) and text:
            draft.put(record, Message("system", text, id=draft.new_id("", record), created_at=self._clock.now))
        else:
            record.skip("session metadata")

    def _read_item(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        """Read a response item, which was sent to the model or came from it."""
        kind = text_at(payload, "type")
        reasons: list[str] = []
        item_count = len(record.items)
        match kind:
            case "message":
                self._read_message(draft, record, payload, reasons)
            case "reasoning":
                self._read_reasoning(draft, record, payload)
            case "function_call":
                self._put_call(draft, record, payload, text_at(payload, "name"), payload.get("arguments"))
            case "custom_tool_call":
                self._put_call(draft, record, payload, text_at(payload, "name"), text_at(payload, "input"))
            case "local_shell_call":
                self._put_call(draft, record, payload, "local_shell", payload.get("action"))
            case "tool_search_call":
                self._put_call(draft, record, payload, "tool_search", payload.get("arguments"))
            case "function_call_output" | "custom_tool_call_output":
                self._put_output(draft, record, payload, parts_of(payload.get("output"), reasons))
            case "tool_search_output":
                self._put_output(draft, record, payload, (Text(json_text(payload.get("tools"))),))
            case "web_search_call" | "image_generation_call":
                self._read_provider_tool(draft, record, payload, reasons)
            case "compaction" | "compaction_summary":
                self._compactions.put_compaction(draft, record, "", payload, {}, self._clock.now)
            case _:
                record.skip("a snapshot for undoing edits" if kind == "ghost_snapshot" else f"unknown response item {kind!r}"[:100])
        draft.add_reasons(record, reasons)
        self._compactions.remember(draft, payload, record.items[item_count:])

    def _read_message(self, draft: Draft, record: Record, payload: JsonObject, reasons: list[str]) -> None:
        role, parts = text_at(payload, "role"), parts_of(payload.get("content"), reasons)
        if role == "user":
            self._is_response_open = False
            self._read_prompt(draft, record, payload, parts)
        elif role in _ROLES and parts:
            response = self._open_response(record) if role == "assistant" else ""
            self._is_response_open = role == "assistant"
            extra = phase_extra(text_at(payload, "phase"))
            draft.put(record, Message(_ROLES[role], parts, extra=extra, **self._fields(draft, record, payload)), response)
        else:
            record.skip(f"a message with unknown role {role!r}"[:100] if parts else EMPTY)

    def _read_prompt(self, draft: Draft, record: Record, payload: JsonObject, parts: tuple[Part, ...]) -> None:
        """Put a user message. Text that Codex added becomes a message of its own."""
        runs = [(source, list(run)) for source, run in groupby(parts, source_of)]
        if any(source is None for source, _ in runs):
            self._turn_marks.append(draft.mark())
        for source, run in runs:
            draft.put_user(record, run, id_at(payload, "id"), self._clock.now, source)

    def _read_reasoning(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        text, data = thought_of(payload), id_at(payload, "encrypted_content")
        response = self._open_response(record)
        if text or data:
            draft.put(record, Reasoning(text, data=data or None, extra=PROVIDER, **self._fields(draft, record, payload)), response)
        else:
            record.skip("reasoning whose content is not in the log")

    def _put_call(self, draft: Draft, record: Record, payload: JsonObject, name: str, arguments: object) -> str:
        """Put a call, and return its call id."""
        fields = self._fields(draft, record, payload)
        call_id = self._call_ids.add_call(text_at(payload, "call_id", "id"), name, fields["id"])
        metadata = call_metadata(text_at(payload, "type"), text_at(payload, "namespace"))
        item = FunctionCall(name or UNKNOWN_TOOL, text_or_json(arguments), call_id, metadata=metadata, **fields)
        draft.put(record, item, self._open_response(record))
        return call_id

    def _put_output(self, draft: Draft, record: Record, payload: JsonObject, parts: tuple[Part, ...]) -> None:
        self._is_response_open = False
        call = self._call_ids.add_result(text_at(payload, "call_id", "id"), record)
        if call is None:
            return
        call_id, name = call
        is_error = object_at(payload, "output").get("success") is False
        draft.put(record, FunctionCallOutput(name, parts, call_id, is_error=is_error, **self._fields(draft, record, payload)))

    def _read_provider_tool(self, draft: Draft, record: Record, payload: JsonObject, reasons: list[str]) -> None:
        """Put the call and output of a tool that the provider ran during the response, which continues after it."""
        kind, status, item_id = text_at(payload, "type"), text_at(payload, "status"), id_at(payload, "id")
        name = kind.removesuffix("_call")
        arguments = payload.get("action") if name == "web_search" else {"prompt": text_at(payload, "revised_prompt")}
        call_id = self._put_call(draft, record, {"type": kind, "id": item_id}, name, arguments)
        parts = picture_of(payload, reasons) if name == "image_generation" else ()
        self._call_ids.add_result(item_id, record)
        fields = self._fields(draft, record, {})
        draft.put(record, FunctionCallOutput(name, parts or (Text(status),), call_id, is_error=status == "failed", **fields))

    def _read_event(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        kind = text_at(payload, "type")
        if window := count_at(payload, WINDOW) or count_at(object_at(payload, "info"), WINDOW):
            draft.describe(context_window={"tokens": window, "evidence": "stated"})
        if kind == "token_count":
            self._read_usage(draft, record, payload)
        elif kind == "thread_rolled_back":
            self._roll_back(draft, record, count_at(payload, "num_turns"))
        elif kind in _REPEATS:
            record.merge(_REPEATS[kind])
        elif kind.endswith(("_begin", "_end")):
            record.merge(_TOOL_PROGRESS)
        else:
            record.skip(f"an event for the screen: {kind}"[:100])

    def _read_usage(self, draft: Draft, record: Record, payload: JsonObject) -> None:
        """Report the usage of the previous response. The log may repeat it."""
        info = payload.get("info")
        if not isinstance(info, dict):
            record.skip("only rate limits")
        elif info.get("total_token_usage", info) == self._last_report:
            record.merge("a repeated usage report")
        else:
            self._last_report = info.get("total_token_usage", info)
            usage = usage_of(object_at(info, "last_token_usage"))
            if self._response and usage:
                draft.report(self._response, usage)
                record.merge("the usage of the previous response")
            else:
                record.skip("the usage of a request whose response is not in the log")
            self._end_response()

    def _roll_back(self, draft: Draft, record: Record, count: int) -> None:
        """Remove the last `count` turns."""
        turn_marks = self._turn_marks[-count:] if count else []
        if turn_marks:
            del self._turn_marks[-count:]
            draft.undo(turn_marks[0], f"rolled back on line {record.number}")
        self._end_response()
        record.skip(f"the user took back the last {count} turns")

    def _open_response(self, record: Record) -> str:
        """Return the response that the model is giving, which begins here if none is open."""
        if not self._is_response_open or not self._response:
            self._response, self._is_response_open = f"L{record.number}", True
        return self._response

    def _end_response(self) -> None:
        self._response, self._is_response_open = "", False

    def _fields(self, draft: Draft, record: Record, payload: JsonObject) -> dict[str, Any]:
        """Return the id and time of the next item."""
        return {"id": draft.new_id(id_at(payload, "id"), record), "created_at": self._clock.now}
