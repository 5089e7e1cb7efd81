"""Passes the records of a file to a reader, one by one. What a record means is up to the reader of each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from .draft import Draft
from .record import Record
from .source import Line
from .values import JsonObject

ReadRecord: TypeAlias = Callable[[Draft, Record, JsonObject], None]
"""Reads one JSON object into the draft and sets its fate in the record."""

EMPTY = "empty"
"""Reason for a record without any content."""


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
    known = len(record.reasons)
    if not isinstance(value, dict):
        draft.damage(record, "not a JSON object")
        record.weigh(text_size(value), known)
        return
    with draft.guard(record):
        read_record(draft, record, value)
    if not record.items and not record.reasons:
        record.skip(EMPTY)
    record.weigh(text_size(value), known)


def skip_strangers(record: Record, value: JsonObject, *names: str) -> None:
    """Give the record a reason if a field that should be a list of objects is anything else, or has other members: they are not read."""
    for name in names:
        members = value.get(name) or []
        if not isinstance(members, list) or not all(isinstance(member, dict) for member in members):
            record.skip(f"left out what is of unknown form in {name!r}")


def text_size(value: object) -> int:
    """Return the bytes of all texts in a JSON value, however deep."""
    size, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                size += len(text.encode("utf-8", "surrogatepass"))
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
