"""Giving back what was taken out: by the id that its placeholder names, to a caller or, as a tool, to the model itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Image, Part, Text
from session.session import Session

from .errors import BudgetError, RecallError
from .trimming.placeholders import MARK

Provider: TypeAlias = Literal["anthropic", "openai", "openai-responses", "google"]

NAME = "recall"
DESCRIPTION = (
    "Gives back content that was taken out of this conversation to save space. Placeholders such as "
    "[Read output taken out: 5,120 characters; recall id 3fa9c1] name the id. Ask only for what you need now: it takes space again."
)
_SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "string", "description": "The recall id that a placeholder names."}},
    "required": ["id"],
}


def recall(session: Session, id: str) -> Item | Image:
    """What the log holds under this id: an item as it was, or, for an id with `#` and a number, an image of it.

    Args:
        session: The log, or a view of it.
        id: The id that a placeholder names, or any item's.

    Raises:
        RecallError: There is no such item, or the session is a view whose log is not at hand.
    """
    source: Session | None = session
    found = None
    while source is not None:
        found = source.get_by_id(id) or found
        source = source.origin
    if found is None:
        return _recall_image(session, id)
    if MARK in found.extra:
        raise RecallError(id, "its content is not in this session, a view that was saved without its log; recall it from the log")
    return found


def _recall_image(session: Session, id: str) -> Image:
    item_id, mark, place = id.rpartition("#")
    if mark and place.isascii() and place.isdecimal() and len(place) < 10:
        item = recall(session, item_id)
        parts = item.content if isinstance(item, Message) else item.output if isinstance(item, FunctionCallOutput) else ()
        if int(place) < len(parts) and isinstance(image := parts[int(place)], Image):
            return image
    raise RecallError(id, "nothing in the session has it; placeholders name the ids there are")


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a call of the recall tool: what `add_function_output` takes.

    Attributes:
        output: The parts to answer with.
        is_error: Whether there was nothing to give back.
    """

    output: tuple[Part, ...]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class RecallTool:
    """The tool with which a model gets back what was taken out.

        tool = manager.recall_tool("anthropic")
        client.messages.create(…, tools=[*tools, tool.definition])
        answer = tool.handle(session, call.arguments)
        session.add_function_output(call.name, answer.output, call.call_id, answer.is_error)

    Attributes:
        definition: The tool in the provider's form.
    """

    definition: dict[str, Any]

    def handle(self, session: Session, arguments: str | Mapping[str, Any]) -> Recalled:
        """What the model asked for; for ids that are not there, an error that it can read.

        Args:
            session: The log, not the view that was sent.
            arguments: The call's arguments: a JSON text, or the mapping it stands for.
        """
        try:
            values = json.loads(arguments) if isinstance(arguments, str) else arguments
            id = values["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return Recalled((Text('Pass {"id": "…"} with the recall id that a placeholder names.'),), is_error=True)
        try:
            return Recalled(content_of(recall(session, str(id))))
        except RecallError as error:
            return Recalled((Text(str(error)),), is_error=True)


def recall_tool(provider: Provider) -> RecallTool:
    """The tool in one provider's form.

    Raises:
        BudgetError: The provider is not known.
    """
    flat = {"name": NAME, "description": DESCRIPTION}
    forms: dict[str, dict[str, Any]] = {
        "anthropic": {**flat, "input_schema": _SCHEMA},
        "openai": {"type": "function", "function": {**flat, "parameters": _SCHEMA}},
        "openai-responses": {"type": "function", **flat, "parameters": _SCHEMA},
        "google": {"function_declarations": [{**flat, "parameters": _SCHEMA}]},
    }
    if provider not in forms:
        raise BudgetError("provider", provider, f"pass one of {', '.join(forms)}")
    return RecallTool(forms[provider])


def content_of(found: Item | Image) -> tuple[Part, ...]:
    """The content of what was recalled, as parts of an answer."""
    match found:
        case Image():
            return (found,)
        case Message():
            return found.content
        case FunctionCallOutput():
            return found.output
        case FunctionCall():
            return (Text(f"{found.name}({found.arguments})"),)
        case Reasoning():
            return (Text(found.text),)
        case Compaction():
            return (Text(found.summary),)
        case _:
            return (Text(found.type.replace("_", " ")),)
