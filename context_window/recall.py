"""Returns content that was taken out of views, by the id in its placeholder: to a caller, or through a tool to the model itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from session.errors import short
from session.identity import digested, is_digest
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, copy_with, parts_of_item
from session.parts import Document, Image, Part, Text
from session.removed import is_short_alias, short_id
from session.session import Session
from session.units import KIND_OUTPUT, Grouping

from .decision.placeholders import MARK, TAKEN, is_alias, shown_id
from .decision.plan import describe
from .decision.tool_rules import RECALL
from .errors import ArgumentError, RecallError
from .recall_pages import Source, found, lines_of, page

Provider: TypeAlias = Literal["anthropic", "openai", "openai-responses", "google"]

LISTED = 50
"""Items that the listing of a range names at once."""
SHOWN_OF_ITEM = 60
"""Characters of an item's text in the listing of a range."""

NAME = RECALL
USAGE = 'Pass {"id": "…"} with the recall id that a placeholder names, or {"query": "…"} with words to find.'
DESCRIPTION = (
    "Gives back content that was taken out of this conversation to save space. Placeholders such as "
    "[Read output taken out: 5,120 characters; recall id 3fa9c1] name the id, and so do the headings of extracts, such as "
    "## Read output 3fa9c1. A call comes with its output. The conversation's first line names the ids of removed items, and for a range "
    "such as 3fa9c1 to 7be02d you get a list of them. Of a long content you get a page: pass from_line, and lines if you need few. A query "
    "finds lines in all that was said so far, with their ids and numbers. Ask only for what you need now: it takes space again."
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "A recall id, or a range of them."},
        "from_line": {"type": "integer", "description": "The first line to show of a long content, from 1."},
        "lines": {"type": "integer", "description": "The number of lines to show; as many as there is room for by default."},
        "query": {"type": "string", "description": "Words to find, or a text as it stands, instead of an id."},
    },
}
PAGE = 20_000
"""Characters of an answer, some 5,000 tokens, unless the window is small."""
PAGE_LEAST = 1_000
REFERENCE = "recalled_characters"
"""Key of an output's `extra` that makes it a reference: the most characters of the answer that views show in its place."""
REFERRED = "[The content that was asked for stood here when the model read it. The call says what it was.]"
"""Text of a reference where no view shows its content: in the log itself, and in what is made of it without a manager."""
LARGEST_COPY = 500
"""Characters of an answer that the log holds itself."""


_NOT_AVAILABLE = (
    "its content was taken out, and this session does not know the log it is a view of (saved, copied or forked): recall it from the log"
)


def recall(session: Session, id: str) -> Item | Image | Document:
    """Return the original of an item by its id, or of an image or document by its item's id, `#` and a number.

    If an item's own id has the form of another item's part, such as `m1#0`, the id is ambiguous. This function then raises; the tool of
    `recall_tool` answers with the content of both.

    Args:
        session: The log, or a view of it.
        id: The id in a placeholder, or any item's id.

    Raises:
        RecallError: Nothing has this id, or two things have it; or the session is a view whose log is not available.
        ArgumentError: The session is not a session, or the id is not a string.
    """
    originals = _originals(session, id)
    if len(originals) > 1:
        holder = short(id.rpartition("#")[0])
        kind = "a document" if isinstance(originals[1], Document) else "an image"
        problem = (
            f"an item has it, and {kind} of item {holder}; recall {holder} to get that {kind.split()[1]}, or ask get_by_id for the item"
        )
        raise RecallError(id, problem)
    return originals[0]


def _originals(session: Session, id: str) -> list[Item | Image | Document]:
    """Return everything with this id: an item, an image or document, or both. Raises as `recall` does."""
    if not isinstance(session, Session):
        raise ArgumentError("session", type(session), "pass the Session whose content was taken out, or a view of it")
    if not isinstance(id, str):
        raise ArgumentError("id", type(id), "pass the recall id from a placeholder, a string")
    originals = [original for original in (_item(session, id), _medium(session, id)) if original is not None]
    if not originals and any(entry.get("id") == id for item in session.items if is_digest(item) for entry in digested(item)):
        raise RecallError(id, _NOT_AVAILABLE)
    if not originals:
        raise RecallError(id, "nothing in the session has it; placeholders name the ids there are")
    return originals


def _item(session: Session, id: str) -> Item | None:
    item = _original(session, _item_id(session, id))
    if item is not None and _is_taken_out(item):
        raise RecallError(id, _NOT_AVAILABLE)
    return item


def _medium(session: Session, id: str) -> Image | Document | None:
    item_id, mark, index = id.rpartition("#")
    if not (mark and index.isascii() and index.isdecimal() and len(index) < 10 and str(int(index)) == index):
        return None
    item = _original(session, _item_id(session, item_id))
    if item is not None and _is_taken_out(item):  # its parts may have moved
        raise RecallError(id, _NOT_AVAILABLE)
    parts = () if item is None else parts_of_item(item)
    part = parts[int(index)] if int(index) < len(parts) else None
    return part if isinstance(part, Image | Document) else None


def _item_id(session: Session, recall_id: str) -> str:
    """Return the id of the item that a placeholder or the line about removed items shows as this one; any other string unchanged."""
    show = shown_id if is_alias(recall_id) else short_id if is_short_alias(recall_id) else None
    source: Session | None = session
    while source is not None and show is not None:
        if show is short_id and source.get_by_id(recall_id) is not None:
            return recall_id
        for item in source.items:
            if show(item.id) == recall_id:
                return item.id
        source = source.origin
    return recall_id


def _original(session: Session, id: str) -> Item | None:
    """Return the item from the oldest session that this one is a view of."""
    source: Session | None = session
    item = None
    while source is not None:
        item = source.get_by_id(id) or item
        source = source.origin
    return item


def _is_taken_out(item: Item) -> bool:
    return item.extra.get(MARK) in TAKEN


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a call of the recall tool, ready for `add_function_output`.

    Attributes:
        output: The parts of the answer.
        is_error: True if nothing could be recalled.
        characters: Most characters of an answer of the tool that made this; 0 if no recall tool did.
    """

    output: tuple[Part, ...]
    is_error: bool = False
    characters: int = 0

    def item_for(self, call: FunctionCall) -> FunctionCallOutput:
        """Return the answer as an item of the log: a reference if it is large, so that the log does not hold its content twice.

        Views show the content itself (`as_shown`).
        """
        is_large = len(self.text) > LARGEST_COPY or not all(isinstance(part, Text) for part in self.output)
        if not (self.characters and is_large) or self.is_error:
            return FunctionCallOutput(call.name, self.output, call.call_id, is_error=self.is_error, agent_id=call.agent_id)
        mark = {REFERENCE: self.characters}
        return FunctionCallOutput(call.name, (Text(REFERRED),), call.call_id, agent_id=call.agent_id, extra=mark)

    @property
    def text(self) -> str:
        """The answer as a text. Images, and documents whose text is not known, are only named."""
        texts = (None if isinstance(part, Image) else part.text for part in self.output)
        named = (f"[{type(part).__name__.lower()}]" for part in self.output)
        return "\n".join(name if text is None else text for text, name in zip(texts, named, strict=True))


@dataclass(frozen=True, slots=True)
class RecallTool:
    """The tool with which a model recalls content that was taken out.

        tool = manager.recall_tool("anthropic")
        client.messages.create(…, tools=[*tools, tool.definition])
        answer = tool.handle(session, call.arguments)
        session.append(answer.item_for(call))

    Attributes:
        definition: The tool in the provider's form, a JSON object. It is typed Any, because each client has a type of its own for it.
        characters: Most characters of an answer. A longer content comes in pages.
    """

    definition: Any
    characters: int = PAGE

    def handle(self, session: Session, arguments: str | Mapping[str, Any]) -> Recalled:
        """Return the requested content, or a list of the items in a range; for an unknown id, an error message for the model.

        A call comes with its output: a digest may show lines of the call alone. Of a content that is too long, or if `from_line` or `lines`
        is given, a page is returned. With `query` instead of an id, the lines of the whole log that match best.

        Args:
            session: The log, not the view that was sent.
            arguments: The call's arguments: JSON text, or the mapping it stands for.

        Raises:
            ArgumentError: The session is not a session.
        """
        try:
            values = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
            id, query, first, count = (values.get(name) for name in ("id", "query", "from_line", "lines"))
            id = str(id) if isinstance(id, int) else id  # a model may omit the quotes
            first, count = (None if value in (None, "", 0) else max(1, int(value)) for value in (first, count))
        except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
            id, query, first, count = None, None, None, None
        if isinstance(query, str) and query.strip() and not id:
            return self._search(session, query)
        if not isinstance(id, str) or not id:
            return Recalled((Text(USAGE),), is_error=True)
        try:
            originals = _originals(session, id)
            outputs = [output for original in originals if isinstance(original, FunctionCall) for output in _outputs_of(session, original)]
            parts = tuple(part for original in [*originals, *outputs] for part in content_of(original))
            lines = lines_of(_texts(parts), self.characters)
            if first is None and count is None and sum(map(len, lines)) + len(lines) <= self.characters:
                return Recalled(parts, characters=self.characters)
            media = tuple(part for part in parts if not isinstance(part, Text)) if first in (None, 1) else ()
            return Recalled((Text(page(lines, first or 1, count, self.characters)), *media), characters=self.characters)
        except RecallError as error:
            if (listing := _listing(session, id)) is not None:
                return Recalled((Text(listing),), characters=self.characters)
            return Recalled((Text(str(error)),), is_error=True)

    def _search(self, session: Session, query: str) -> Recalled:
        items = [item for item in _log_of(session).items if getattr(item, "name", None) != NAME and not _is_taken_out(item)]
        sources = [Source(f"{describe(item)} {shown_id(item.id)}", lines_of(_texts(content_of(item)), self.characters)) for item in items]
        text = found(sources, query, self.characters)
        told = f"None of the {len(items):,} items has {short(query)}." if text is None else text
        return Recalled((Text(told),), is_error=text is None, characters=self.characters)


def as_shown(items: Sequence[Item], index: int) -> Item:
    """Return an item of a log as views show it: what was recalled instead of a reference to it.

    It depends on the items up to the call alone, so the same log always shows the same.
    """
    item = items[index]
    characters = item.extra.get(REFERENCE) if isinstance(item, FunctionCallOutput) and item.name == NAME else None
    if not isinstance(item, FunctionCallOutput) or type(characters) is not int or not 0 < characters <= PAGE:
        return item
    for at in range(index - 1, -1, -1):
        call = items[at]
        if isinstance(call, FunctionCall) and call.call_id == item.call_id:
            answer = RecallTool({}, characters).handle(Session(list(items[:at])), call.arguments)
            return copy_with(item, output=answer.output)
    return item


def _texts(parts: Iterable[Part]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Text)]


def page_of(budget: int) -> int:
    """Return the characters that an answer may have with a budget of so many tokens: about a tenth of it, at most `PAGE`."""
    return min(PAGE, max(PAGE_LEAST, budget * 4 // 10))


def _outputs_of(session: Session, call: FunctionCall) -> list[Item]:
    """Return the output of a call, if the log has one that no view has changed."""
    log, groups = _log_of(session), Grouping()
    for item in log.items:
        groups.feed(item)
        is_answer = groups.kind[-1] == KIND_OUTPUT and log.items[groups.last_answered].id == call.id
        if is_answer and not _is_taken_out(item):
            return [item]
    return []


def _log_of(session: Session) -> Session:
    """Return the oldest session that this one is a view of."""
    log = session
    while log.origin is not None:
        log = log.origin
    return log


def recall_tool(provider: Provider, characters: int = PAGE) -> RecallTool:
    """Return the tool in one provider's form, whose answers have at most so many characters.

    Raises ArgumentError if the provider is not known.
    """
    flat = {"name": NAME, "description": DESCRIPTION}
    forms: dict[str, dict[str, Any]] = {
        "anthropic": {**flat, "input_schema": _SCHEMA},
        "openai": {"type": "function", "function": {**flat, "parameters": _SCHEMA}},
        "openai-responses": {"type": "function", **flat, "parameters": _SCHEMA},
        "google": {"function_declarations": [{**flat, "parameters": _SCHEMA}]},
    }
    if not isinstance(provider, str) or provider not in forms:
        raise ArgumentError("provider", provider, f"pass one of {', '.join(forms)}")
    return RecallTool(forms[provider], characters)


def _listing(session: Session, id: str) -> str | None:
    """Return a list of the items in a range such as `m3 to m212`, one per line; None if the id is no range of the log.

    A line has the item's id, what it is, and the beginning of its text.
    """
    log = _log_of(session)
    first_id, word, last_id = id.partition(" to ")
    first, last = (log.position(_item_id(log, end.strip())) for end in (first_id, last_id))
    if not word or first is None or last is None:
        return None
    items = log.items[min(first, last) : max(first, last) + 1]
    lines = [f"{shown_id(item.id)}: {describe(item)}{_beginning(item)}" for item in items[:LISTED]]
    if len(items) > LISTED:
        lines.append(f"{len(items) - LISTED:,} more: recall {shown_id(items[LISTED].id)} to {shown_id(items[-1].id)}")
    return "\n".join(lines)


def _beginning(item: Item) -> str:
    text = " ".join(" ".join(_texts(content_of(item))).split())
    return f": {text[:SHOWN_OF_ITEM]}{'…' if len(text) > SHOWN_OF_ITEM else ''}" if text else ""


def content_of(original: Item | Image | Document) -> tuple[Part, ...]:
    """Return the content of an item, image or document as parts of an answer."""
    match original:
        case Image() | Document():
            return (original,)
        case Message():
            return original.content
        case FunctionCallOutput():
            return original.output
        case FunctionCall():
            return (Text(f"{original.name}({original.arguments})"),)
        case Reasoning():
            return (Text(original.text),)
        case Compaction():
            return (Text(original.summary),)
        case _:
            return (Text(original.type.replace("_", " ")),)
