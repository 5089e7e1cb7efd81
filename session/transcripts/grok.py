"""Reads Grok's `chat_history.jsonl`: one record per message, with its role as `type`. It holds no usage.

`system`, `user`, `assistant{content, tool_calls[{id, name, arguments}], model_id}`, `tool_result{tool_call_id, content}` and
`reasoning`, an item of the Responses API. `backend_tool_call` is a search on the provider's side, whose result is not in the log.
"""

from __future__ import annotations

from .account import TranscriptAccount
from .message_logs import MessageLog
from .places import Place
from .source import Source
from .values import JsonObject, objects_at, text_at

NAME = "grok"
PLACES = (Place("~/.grok", "sessions/**/chat_history.jsonl"),)
ROLES = {"system": "system", "user": "user", "assistant": "assistant", "tool_result": "tool"}
KNOWN = {"backend_tool_call": "a call on the provider's side, without its result"}
MARKS = ("model_fingerprint", "model_id", "synthetic_reason", "prompt_index")
"""Fields that only Grok's messages have."""


def claims(value: object) -> bool:
    """Return True if the value is a message of Grok."""
    return isinstance(value, dict) and text_at(value, "type") in ROLES and "role" not in value and any(mark in value for mark in MARKS)


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have files of their own
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    return MessageLog(NAME, claims, _message_of, KNOWN, _describe, _source_of).read(source)


def _message_of(value: JsonObject) -> JsonObject | None:
    kind = text_at(value, "type")
    if kind == "reasoning":
        return value
    if kind not in ROLES:
        return None
    names = ("name", "arguments")
    calls = [{"id": call.get("id"), "function": {name: call.get(name) for name in names}} for call in objects_at(value, "tool_calls")]
    fields: JsonObject = {name: value[name] for name in ("content", "tool_call_id", "timestamp") if name in value}
    return {"role": ROLES[kind], **fields, **({"tool_calls": calls} if calls else {})}


def _describe(value: JsonObject) -> dict[str, str]:
    return {"model": text_at(value, "model_id")}


def _source_of(value: JsonObject) -> str | None:
    return text_at(value, "synthetic_reason") or None
