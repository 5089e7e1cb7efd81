"""Passes the records of a file to a reader, one by one. What a record means is up to the reader of each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias

from session.items import AgentConfigUpdate, Compaction, FunctionCall, Item, Reasoning, parts_of_item
from session.json_strings import json_value
from session.parts import Document, Text

from .account import ITEM, NOT_CONTEXT
from .draft import Draft
from .record import Record
from .source import Line
from .values import JsonObject

ReadRecord: TypeAlias = Callable[[Draft, Record, JsonObject], None]
"""Reads one JSON object into the draft and sets its fate in the record."""

EMPTY = "empty"
"""Reason for a record without any content."""
LACKING = ("empty", "without", "not captured", "not in the file")
"""Words in the reasons of all readers for a text that is missing. It may stand in a field that they do not know."""
PROSE_MIN = 12
"""Characters of a text that is not taken for a name or a number."""
ASIDE = {
    "claude_code": frozenset({"attachment.command", "attachment.stdout", "planContent", "rawContent", "toolUseResult"}),
    "cline": frozenset({"metadata.summary"}),
    "copilot_cli": frozenset({"detailedContent", "intentionSummary", "toolTitle", "transformedContent"}),
    "gemini_cli": frozenset({"toolCalls.description", "resultDisplay"}),
    "hermes": frozenset({"codex_reasoning_items"}),
    "kimi": frozenset({"display", "event.description", "summary"}),
    "opencode": frozenset({"state.metadata"}),
    "openhands": frozenset({"extras", "translated_ipython_code", "observation.command"}),
    "pi": frozenset({"details"}),
    "swe_agent": frozenset({"action", "thought"}),
}
"""By format, fields that repeat what another one says, or that only the tool sees: a name, or that of the object's field and its own."""


def feed_lines(
    lines: Iterable[Line], draft: Draft, read_record: ReadRecord, *, draft_for: Callable[[JsonObject], Draft] | None = None
) -> None:
    """Pass each JSON object of a file of lines to the reader. A damaged line is skipped.

    Args:
        lines: The lines of the file.
        draft: The session that they belong to.
        read_record: The reader.
        draft_for: Returns the session that an object belongs to, for files that hold several.
    """
    for line in lines:
        for value in line.values:
            owner = draft_for(value) if draft_for is not None and isinstance(value, dict) else draft
            feed(owner, owner.record(line.number), value, read_record)
        record_unread(line, draft)


def feed_entries(entries: Iterable[object], draft: Draft, read_record: ReadRecord, *, first: int = 1) -> None:
    """Pass each entry of a list in a document to the reader. A damaged entry is skipped.

    Args:
        entries: The list.
        draft: The session that they belong to.
        read_record: The reader.
        first: The first entry's number.
    """
    for number, value in enumerate(entries, first):
        feed(draft, draft.record(number), value, read_record)


def feed(draft: Draft, record: Record, value: object, read_record: ReadRecord) -> None:
    """Pass one value to the reader if it is a JSON object."""
    known, start = len(record.reasons), len(record.items)
    if not isinstance(value, dict):
        draft.damage(record, "not a JSON object")
        record.weigh(text_size(value), known)
        return
    with draft.guard(record):
        read_record(draft, record, value)
    if not record.items and not record.reasons:
        record.skip(EMPTY)
    new = Record(record.number, record.fate, record.reasons[known:], record.items[start:])  # a line may hold many values
    record.weigh(text_size(value), known, unread_size(value, new, draft.format, draft.known))


def skip_strangers(record: Record, value: JsonObject, *names: str) -> None:
    """Give the record a reason if a field that should be a list of objects is anything else, or has other members: they are not read."""
    for name in names:
        members = value.get(name) or []
        if not isinstance(members, list) or not all(isinstance(member, dict) for member in members):
            record.skip(f"left out what is of unknown form in {name!r}")


def unread_size(value: object, record: Record, form: str, known: set[int]) -> int:
    """Return the bytes of prose in a record that are in no item so far, unless a reason says why they are not.

    Args:
        value: The record.
        record: What was made of it.
        form: Name of the format.
        known: Hashes of the prose in the items of earlier records. That of this record is added.
    """
    read = prose_of(list(texts_in(record.items)), frozenset())
    known |= set(map(hash, read))
    if record.fate not in (ITEM, NOT_CONTEXT) or not all(any(word in reason for word in LACKING) for reason in record.reasons):
        return 0
    told = prose_of(value, ASIDE.get(form, frozenset()))
    return max(0, sum(size_of(text) for text in told - read if hash(text) not in known) - sum(map(size_of, read - told)))


def prose_of(value: object, aside: frozenset[str]) -> set[str]:
    """Return the texts of several words in a JSON value.

    Args:
        value: The value.
        aside: Fields to leave out, each by its name or by the name of its object's field and its own.
    """
    found: set[str] = set()
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        match waiting.pop():
            case owner, str() as text if len(text) >= PROSE_MIN:
                if (inner := _json_in(text)) is not None:
                    waiting.append((owner, inner))
                elif " " in text or "\n" in text:
                    found.add(text)
            case owner, dict() as fields:
                waiting += [(name, member) for name, member in fields.items() if not {name, f"{owner}.{name}"} & aside]
            case owner, list() as values:
                waiting += [(owner, member) for member in values]
    return found


def _json_in(text: str) -> object:
    """Return the list or object that a text holds; None if it holds neither."""
    with suppress(ValueError, RecursionError):
        return json_value(text) if text[0] in "{[" else None
    return None


def texts_in(items: Iterable[Item]) -> Iterator[str]:
    """Yield all texts of items that stand for a text of the record."""
    for item in items:
        for part in parts_of_item(item):
            yield (part.text or part.title or "") if isinstance(part, Document) else part.text if isinstance(part, Text) else ""
        match item:
            case Reasoning():
                yield item.text
                yield item.data or ""
            case FunctionCall():
                yield item.arguments
            case Compaction():
                yield item.summary
            case AgentConfigUpdate():
                yield item.instructions or ""


def size_of(text: str) -> int:
    """Return the bytes of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def text_size(value: object) -> int:
    """Return the bytes of all texts in a JSON value, however deep."""
    size, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                size += size_of(text)
            case dict() as fields:
                waiting += fields.values()
            case list() as values:
                waiting += values
    return size


def record_unread(line: Line, draft: Draft) -> None:
    """Record the part of a line that no reader gets: damage, or nothing because the line is blank."""
    if line.problem:
        draft.damage(draft.record(line.number), line.problem)
    elif not line.values:
        draft.record(line.number).skip("blank line")
