"""Write messages of any provider's style into a draft, as items. `block_parser.py` parses their contents. Each format knows where its
messages come from and what surrounds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning, Role
from session.parts import Part, Text
from session.providers.openai_chat.write import NAME
from session.providers.pieces import Call, Piece, Result, Thought
from session.units import is_answer

from .block_parser import pieces_of, result_parts, text_or_json
from .call_ids import UNKNOWN_TOOL, CallIds
from .draft import Draft
from .openai_fields import CUSTOM_CALL, phase_extra
from .reasoning import thoughts_of
from .record import Record
from .record_feed import EMPTY
from .responses import is_item, pieces_of_item
from .usage import usage_of
from .values import REDACTED, Clock, JsonObject, id_at, list_at, moment, object_at, text_at

ROLES: dict[str, str] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""Our role for each role in the sources. Messages of a tool become outputs."""


def is_message(value: object) -> bool:
    """True if the value can be a message: an object with a known role and a content, or an item of the Responses API."""
    if not isinstance(value, dict):
        return False
    role = value.get("role")
    if isinstance(role, str) and role in ROLES:
        return any(name in value for name in ("content", "tool_calls", "parts", "function_call"))
    return is_item(value)


class Writer:
    """Writes messages into a draft, one by one.

    Attributes:
        draft: The session that grows.
        calls: The ids of its calls.
        clock: The time of the last message.
        joined: True if consecutive messages of the assistant form one response, as in the Responses API.
    """

    def __init__(self, draft: Draft, *, joined: bool = False) -> None:
        self.draft = draft
        self.joined = joined
        self.calls = CallIds()
        self.clock = Clock()
        self._run = ""  # the response of consecutive Responses API items

    def write(self, record: Record, message: JsonObject, *, response: str = "", source: str | None = None) -> str:
        """Add a message to the draft. Return the name of the response that it is part of, or an empty text.

        Args:
            record: The record of the message; it gets the reasons.
            message: The message as the file has it.
            response: A name that all messages of one response share. Without it, each message is a response of its own.
            source: The subject of a message in the user's role that the tool wrote.

        Raises:
            FormatError: A value cannot be kept in a session.
        """
        is_responses_item = is_item(message)
        role = ROLES.get(text_at(message, "role"), "") or ("assistant" if is_responses_item else "")
        if not role:
            self.draft.damage(record, "a message without a role that is known")
            return ""
        time = self.clock.at(moment(message.get("timestamp")), moment(message.get("created_at")), moment(message.get("ts")))
        reasons: list[str] = []
        pieces = pieces_of_item(message, reasons) if is_responses_item else self._pieces(role, message, reasons)
        if role != "assistant" or text_at(message, "type").endswith("_output"):
            self._run = ""
        response = response or (self._current_run(record) if is_responses_item or self.joined else _record_name(record))
        fields = _MessageFields(id_at(message, "id") if role != "tool" else "", time, source, _extra(role, message))
        items = self._items(record, role, pieces, fields)
        has_answer = False
        for item in items:
            self.draft.put(record, item, response if is_answer(item) else "")
            has_answer = has_answer or is_answer(item)
        if has_answer:
            self.draft.report(response, usage_of(message.get("usage")))
        for reason in reasons:
            if reason.endswith("damaged"):
                self.draft.warn(record, reason)
        record.reasons += reasons
        if not items and not record.reasons:
            record.skip(EMPTY)
        return response if has_answer else ""

    def _current_run(self, record: Record) -> str:
        """Return the response that a Responses API item belongs to: consecutive items form one, for nothing else groups them."""
        self._run = self._run or _record_name(record)
        return self._run

    def _pieces(self, role: str, message: JsonObject, reasons: list[str]) -> list[Piece]:
        content = message.get("parts") if "parts" in message else message.get("content")
        if role == "tool":
            return _tool_message(message, content, reasons)
        if role != "assistant":
            return pieces_of(content, reasons)
        pieces: list[Piece] = list(thoughts_of(message))
        pieces += [piece for piece in pieces_of(content, reasons) if not isinstance(piece, Text) or piece.text]
        for call in list_at(message, "tool_calls"):
            pieces += _tool_call(call, reasons)
        if legacy := object_at(message, "function_call"):
            pieces.append(Call("", text_at(legacy, "name") or UNKNOWN_TOOL, legacy.get("arguments")))
        if not pieces and content == "":
            pieces.append(Text(""))
        return pieces

    def _items(self, record: Record, role: str, pieces: list[Piece], fields: _MessageFields) -> list[Item]:
        items: list[Item] = []
        parts: list[Part] = []  # since the last item

        def end_message() -> None:
            if parts:
                items.append(_message(role, tuple(parts), fields.of_message(self._new_id(record, fields.id))))
                parts.clear()

        for piece in pieces:
            if isinstance(piece, Part):
                parts.append(piece)
                continue
            end_message()
            item = self._item(record, piece, fields.of_item(self._new_id(record, fields.id)))
            if item is not None:
                items.append(item)
        end_message()
        return items

    def _item(self, record: Record, piece: Thought | Call | Result, fields: dict[str, Any]) -> Item | None:
        """Return the item of a piece, or None for a second result of the same call."""
        if isinstance(piece, Thought):
            extra = {"provider": piece.provider} if piece.provider else {}
            return Reasoning(piece.text, piece.signature, piece.data, extra=extra, **fields)
        if isinstance(piece, Call):
            call_id = self.calls.add_call(_usable_id(piece.id), piece.name, fields["id"])
            return FunctionCall(piece.name, text_or_json(piece.arguments), call_id, metadata=piece.metadata, **fields)
        answered_call = self.calls.add_result(_usable_id(piece.call_id), record, piece.name)
        if answered_call is None:
            return None
        call_id, tool = answered_call
        return FunctionCallOutput(tool, piece.parts, call_id, is_error=piece.is_error, extra=piece.extra, **fields)

    def _new_id(self, record: Record, preferred: str) -> str:
        return self.draft.new_id(preferred, record)


def _tool_message(message: JsonObject, content: object, reasons: list[str]) -> list[Piece]:
    """Return the results in a tool's message."""
    if isinstance(content, list) and any(isinstance(block, dict) and block.get("type") == "tool_result" for block in content):
        return pieces_of(content, reasons)
    error = message.get("error")
    parts = result_parts(content, reasons)
    if not parts and isinstance(error, dict):
        parts = (Text(text_at(error, "message")),)
    call_ids = [call_id for call_id in list_at(message, "tool_call_ids") if isinstance(call_id, str)]
    call_id = id_at(message, "tool_call_id", "call_id", "tool_use_id", "id") or "".join(call_ids[:1])
    is_error = message.get("is_error") is True or bool(error)
    return [Result(call_id, parts, is_error, text_at(message, "name", "function", "tool_name"))]


def _tool_call(call: object, reasons: list[str]) -> list[Piece]:
    """Return the call in an entry of `tool_calls`."""
    if not isinstance(call, dict):
        reasons.append("a call that is no object is damaged")
        return []
    for kind, key in (("function", "arguments"), ("custom", "input")):
        if isinstance(function := call.get(kind), dict):
            metadata = {} if kind == "function" else CUSTOM_CALL
            return [Call(id_at(call, "id"), text_at(function, "name") or UNKNOWN_TOOL, function.get(key), metadata)]
    name = text_at(call, "name", "function") or UNKNOWN_TOOL
    return [Call(id_at(call, "id", "call_id"), name, call.get("arguments", call.get("args")))]


def _message(role: str, parts: tuple[Part, ...], fields: dict[str, Any]) -> Message:
    category = fields.pop("category", None)
    if category is None or role != "user":
        return Message(cast("Role", role if role != "tool" else "user"), parts, **fields)
    return Message("user", parts, category=category, **fields)


def _usable_id(call_id: str) -> str:
    """Return the id, or an empty text if a scrubber of secrets blacked it out: such ids are all alike."""
    return "" if REDACTED in call_id else call_id


def _record_name(record: Record) -> str:
    return f"{record.number}.{len(record.items)}"


def _extra(role: str, message: JsonObject) -> dict[str, str]:
    """Return the speaker's name and the phase of a message, under the names of the converters."""
    name = text_at(message, "name")
    return {**({NAME: name} if name else {}), **(phase_extra(text_at(message, "phase")) if role == "assistant" else {})}


@dataclass(frozen=True, slots=True)
class _MessageFields:
    """The fields that the items of one message share."""

    id: str
    time: float
    source: str | None
    extra: dict[str, str]

    def of_item(self, item_id: str) -> dict[str, Any]:
        """Return the fields of a thought, a call or an output."""
        return {"id": item_id, "created_at": self.time}

    def of_message(self, item_id: str) -> dict[str, Any]:
        """Return the fields of a message."""
        fields = {**self.of_item(item_id), "extra": dict(self.extra)}
        if self.source is not None:
            fields["extra"]["source"] = self.source
            fields["category"] = MessageCategory.CONTEXT
        return fields
