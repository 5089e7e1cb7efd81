"""Giving back what was taken out: by the id that its placeholder names, to a caller or, as a tool, to the model itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from session.errors import short
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, parts_of_item
from session.parts import Document, Image, Part, Text
from session.session import Session

from .errors import BudgetError, RecallError
from .trimming.placeholders import MARK, TAKEN, is_alias, shown_id

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


_NOT_HERE = (
    "its content was taken out, and this session does not know the log it is a view of (saved, copied or forked): recall it from the log"
)


def recall(session: Session, id: str) -> Item | Image | Document:
    """What the log holds under this id: an item as it was, or, for an id with `#` and a number, an image or document of it.

    Where one item's id is another's with `#` and the number of an image or document, it names both. Then this gives neither, since it
    cannot know which is meant, and the tool of `recall_tool` gives the content of both.

    Args:
        session: The log, or a view of it.
        id: The id that a placeholder names, or any item's.

    Raises:
        RecallError: Nothing has this id, or two things have; or the session is a view whose log is not at hand.
        BudgetError: The session is none, or the id is no text.
    """
    found = _under(session, id)
    if len(found) > 1:
        holder = short(id.rpartition("#")[0])
        kind = "a document" if isinstance(found[1], Document) else "an image"
        problem = (
            f"an item has it, and {kind} of item {holder}; recall {holder} to get that {kind.split()[1]}, or ask get_by_id for the item"
        )
        raise RecallError(id, problem)
    return found[0]


def _under(session: Session, id: str) -> list[Item | Image | Document]:
    """All that has this id: an item, an image or document, or both.

    Raises:
        RecallError: Nothing has, or its content is not at hand.
        BudgetError: As in `recall`.
    """
    if not isinstance(session, Session):
        raise BudgetError("session", type(session), "pass the Session that it was taken out of, or a view of that")
    if not isinstance(id, str):
        raise BudgetError("id", type(id), "pass the recall id that a placeholder names, which is a text")
    found = [one for one in (_item(session, id), _medium(session, id)) if one is not None]
    if not found:
        raise RecallError(id, "nothing in the session has it; placeholders name the ids there are")
    return found


def _item(session: Session, id: str) -> Item | None:
    found = _original(session, _item_id(session, id))
    if found is not None and _is_taken(found):
        raise RecallError(id, _NOT_HERE)
    return found


def _medium(session: Session, id: str) -> Image | Document | None:
    item_id, mark, place = id.rpartition("#")
    if not (mark and place.isascii() and place.isdecimal() and len(place) < 10 and str(int(place)) == place):
        return None
    item = _original(session, _item_id(session, item_id))
    if item is not None and _is_taken(item):  # its parts may stand elsewhere than they did
        raise RecallError(id, _NOT_HERE)
    parts = () if item is None else parts_of_item(item)
    part = parts[int(place)] if int(place) < len(parts) else None
    return part if isinstance(part, Image | Document) else None


def _item_id(session: Session, shown: str) -> str:
    """Return the id of the item that placeholders show like this; any other text as it is."""
    source: Session | None = session if is_alias(shown) else None
    while source is not None:
        for item in source.items:
            if shown_id(item.id) == shown:
                return item.id
        source = source.origin
    return shown


def _original(session: Session, id: str) -> Item | None:
    """The item as the first of the sessions has it that this one is a view of."""
    source: Session | None = session
    found = None
    while source is not None:
        found = source.get_by_id(id) or found
        source = source.origin
    return found


def _is_taken(item: Item) -> bool:
    return item.extra.get(MARK) in TAKEN


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

        Raises:
            BudgetError: The session is none.
        """
        try:
            values = json.loads(arguments) if isinstance(arguments, str) else arguments
            id = values["id"]
            id = str(id) if isinstance(id, int) else id  # a model may take the quotes off
        except (ValueError, KeyError, TypeError, RecursionError):
            id = None
        if not isinstance(id, str):
            return Recalled((Text('Pass {"id": "…"} with the recall id that a placeholder names.'),), is_error=True)
        try:
            return Recalled(tuple(part for one in _under(session, id) for part in content_of(one)))
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
    if not isinstance(provider, str) or provider not in forms:
        raise BudgetError("provider", provider, f"pass one of {', '.join(forms)}")
    return RecallTool(forms[provider])


def content_of(found: Item | Image | Document) -> tuple[Part, ...]:
    """The content of what was recalled, as parts of an answer."""
    match found:
        case Image() | Document():
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
