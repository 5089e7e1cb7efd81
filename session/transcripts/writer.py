"""Messages of any provider's style, written into a draft as items. What stands in their contents, `pieces.py` knows; where the
messages come from and what surrounds them is each format's own business.
"""

from __future__ import annotations

from typing import Any, cast

from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning, Role
from session.parts import Document, Image, Part, Text
from session.units import is_answer

from .draft import Draft, Record
from .feeding import EMPTY, UNKNOWN_TOOL, Calls
from .openai_words import CUSTOM_CALL, NAME, phase_extra
from .pieces import Call, Piece, Result, Thought, arguments_text, pieces_of, shown_parts
from .responses import is_item, pieces_of_item
from .thoughts import thoughts_of
from .usages import usage_of
from .values import Clock, JsonObject, id_at, list_at, moment, object_at, text_at

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
"""The roles that sources write, and ours for them; a tool's messages become outputs."""


def is_message(value: object) -> bool:
    """Whether the value can be a message: an object with a role we know and something said, or an item of the Responses API."""
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
        clock: The time of what was written last.
        joined: Whether the assistant's messages that follow each other are one answer, as in the Responses API.
    """

    def __init__(self, draft: Draft, *, joined: bool = False) -> None:
        self.draft = draft
        self.joined = joined
        self.calls = Calls()
        self.clock = Clock()
        self._run = ""  # names the answer that items without a message of their own belong to

    def write(self, record: Record, message: JsonObject, *, response: str = "", source: str | None = None) -> str:
        """The name of the answer that the message is part of, or an empty text; the message is in the draft then.

        Args:
            record: Where it stands; it is told what became of the message.
            message: As it stands there.
            response: What all messages of one answer of the model share; each is an answer of its own where not given.
            source: What a message in the user's role is about, where the tool is known to have written it.

        Raises:
            FormatError: A value in it cannot be kept.
        """
        role = ROLES.get(text_at(message, "role"), "") or ("assistant" if is_item(message) else "")
        own_item = is_item(message)
        if not role:
            self.draft.damage(record, "a message without a role that is known")
            return ""
        time = self.clock.at(moment(message.get("timestamp")), moment(message.get("created_at")), moment(message.get("ts")))
        notes: list[str] = []
        found = pieces_of_item(message, notes) if own_item else self._pieces(role, message, notes)
        if role != "assistant" or text_at(message, "type").endswith("_output"):
            self._run = ""
        answer = response or (self._answer(record) if own_item or self.joined else _place(record))
        made = self._items(
            record, role, found, _Base(id_at(message, "id") if role != "tool" else "", time, source, _carried(role, message))
        )
        said = False
        for item in made:
            own = is_answer(item)
            self.draft.put(record, item, answer if own else "")
            said = said or own
        if said:
            self.draft.report(answer, usage_of(message.get("usage")))
        for note in notes:
            if note.endswith("damaged"):
                self.draft.warn(record, note)
        record.reasons += notes
        if not made and not record.reasons:
            record.skip(EMPTY)
        return answer if said else ""

    def _answer(self, record: Record) -> str:
        """Items of the Responses API that follow each other are one answer: nothing else says which belong together."""
        self._run = self._run or _place(record)
        return self._run

    def _pieces(self, role: str, message: JsonObject, notes: list[str]) -> list[Piece]:
        content = message.get("parts") if "parts" in message else message.get("content")
        if role == "tool":
            if isinstance(content, list) and any(isinstance(block, dict) and block.get("type") == "tool_result" for block in content):
                return pieces_of(content, notes)
            failed = message.get("error")
            parts = shown_parts(content, notes)
            if not parts and isinstance(failed, dict):
                parts = (Text(text_at(failed, "message")),)
            several = [one for one in list_at(message, "tool_call_ids") if isinstance(one, str)]
            own_id = id_at(message, "tool_call_id", "call_id", "tool_use_id", "id") or "".join(several[:1])
            is_error = message.get("is_error") is True or bool(failed)
            return [Result(own_id, parts, is_error, text_at(message, "name", "function", "tool_name"))]
        found: list[Piece] = list(thoughts_of(message)) if role == "assistant" else []
        found += [piece for piece in pieces_of(content, notes) if not (isinstance(piece, Text) and not piece.text and role == "assistant")]
        if role != "assistant":
            return found
        for given in list_at(message, "tool_calls"):
            found += self._called(given, notes)
        if legacy := object_at(message, "function_call"):
            found.append(Call("", text_at(legacy, "name") or UNKNOWN_TOOL, arguments_text(legacy.get("arguments"))))
        if not found and content == "":
            found.append(Text(""))
        return found

    def _called(self, given: object, notes: list[str]) -> list[Piece]:
        if not isinstance(given, dict):
            notes.append("a call that is no object is damaged")
            return []
        for name in ("function", "custom"):
            if isinstance(function := given.get(name), dict):
                arguments = function.get("arguments") if name == "function" else function.get("input")
                metadata = {} if name == "function" else CUSTOM_CALL
                return [Call(id_at(given, "id"), text_at(function, "name") or UNKNOWN_TOOL, arguments_text(arguments), metadata)]
        name = text_at(given, "name", "function") or UNKNOWN_TOOL
        return [Call(id_at(given, "id", "call_id"), name, arguments_text(given.get("arguments", given.get("args"))))]

    def _items(self, record: Record, role: str, found: list[Piece], base: _Base) -> list[Item]:
        made: list[Item] = []
        waiting: list[Part] = []

        def flush() -> None:
            if waiting:
                made.append(self._message(role, tuple(waiting), base.fields(self._id(record, base.id))))
                waiting.clear()

        for piece in found:
            if isinstance(piece, Text | Image | Document):
                waiting.append(piece)
                continue
            flush()
            fields = base.fields(self._id(record, base.id), plain=True)
            if isinstance(piece, Thought):
                extra = {"provider": piece.provider} if piece.provider else {}
                made.append(Reasoning(piece.text, piece.signature, piece.data, **{**fields, "extra": extra}))
            elif isinstance(piece, Call):
                call_id = self.calls.made(piece.id, piece.name, fields["id"])
                made.append(FunctionCall(piece.name, piece.arguments, call_id, metadata=piece.metadata, **fields))
            elif (known := self.calls.answered(piece.call_id, record, piece.name)) is not None:
                call_id, tool = known
                made.append(FunctionCallOutput(tool, piece.parts, call_id, is_error=piece.is_error, **fields))
        flush()
        return made

    def _message(self, role: str, parts: tuple[Part, ...], fields: dict[str, Any]) -> Message:
        category = fields.pop("category", None)
        if category is None or role != "user":
            return Message(cast("Role", role if role != "tool" else "user"), parts, **fields)
        return Message("user", parts, category=category, **fields)

    def _id(self, record: Record, wanted: str) -> str:
        return self.draft.new_id(wanted, record)


def _place(record: Record) -> str:
    return f"{record.place}.{len(record.items)}"


def _carried(role: str, message: JsonObject) -> dict[str, str]:
    """What else the message says of itself."""
    name = text_at(message, "name")
    return {**({NAME: name} if name else {}), **(phase_extra(text_at(message, "phase")) if role == "assistant" else {})}


class _Base:
    """What the items of one message share."""

    def __init__(self, own_id: str, time: float, source: str | None, extra: dict[str, str]) -> None:
        self.id = own_id
        self.time = time
        self.source = source
        self.extra = extra

    def fields(self, item_id: str, *, plain: bool = False) -> dict[str, Any]:
        """The fields of the next item; `plain` for all but messages."""
        fields: dict[str, Any] = {"id": item_id, "created_at": self.time}
        if plain:
            return fields
        extra = dict(self.extra)
        if self.source is not None:
            extra["source"] = self.source
            fields["category"] = MessageCategory.CONTEXT
        return {**fields, "extra": extra}
