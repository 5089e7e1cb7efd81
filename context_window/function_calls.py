"""Chat Completions as they were before tools: a `function_call` in place of `tool_calls`, answered by a message of the role `function`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.items import FunctionCallOutput, Item
from session.transcripts.values import text_at

from .gateway.openai_chat import ChatAdapter
from .gateway.wire_format import MessageFormat

Json = dict[str, Any]
CALL = "function_call"


class FunctionCallAdapter(ChatAdapter):
    """Messages of both forms. The old one is read as if its calls had ids: one is made at a time, and found by its name."""

    def items(self, message: Json, ids: Iterator[str]) -> list[Item]:
        """Return the items of a message."""
        return super().items(_with_id(message), ids)

    def partial_copy(self, message: Json, items: Sequence[Item], visible: Sequence[Item | None]) -> Json | None:
        """Return a copy that shows the visible items, or None if nothing is left."""
        named = _with_id(message)
        copy = super().partial_copy(named, items, visible)
        if copy is None or named is message:
            return copy
        copy.pop("tool_call_id", None)
        calls = copy.pop("tool_calls", None)
        return {**copy, CALL: calls[0]["function"]} if calls else copy

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:
        """Return a message with the output of an interrupted call."""
        if is_function_call(message):
            return {"role": "function", "name": output.name, "content": output.text}
        return super().result_message(output, message)


class FunctionCallFormat(MessageFormat):
    """Messages of which one has the old form."""

    adapter: ClassVar[FunctionCallAdapter] = FunctionCallAdapter()


def is_function_call(message: Json) -> bool:
    """True for an answer that calls in the old form. Clients write the field as null beside `tool_calls`."""
    return isinstance(message.get(CALL), dict) and not message.get("tool_calls")


def _with_id(message: Json) -> Json:
    if is_function_call(message):
        fields = {name: value for name, value in message.items() if name != CALL}
        return {**fields, "tool_calls": [{"id": _id_of(message[CALL]), "type": "function", "function": message[CALL]}]}
    return {**message, "tool_call_id": _id_of(message)} if message.get("role") == "function" else message


def _id_of(fields: Json) -> str:
    return f"function {text_at(fields, 'name')}"
