"""Check the values of a payload one level at a time: JSON values, or SDK objects with a `model_dump` method.

Nothing here knows a format. A value of the wrong kind goes to a `Report`, with its place. Strict converters use the default, `refuse`,
which raises. Lenient readers collect the problems and go on with the empty value that each function then returns.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias, TypedDict

from session.errors import FormatError, short
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message
from session.parts import Part, Text
from session.providers import additions
from session.removed import Removed
from session.session import Session
from session.session_log import USAGE_NOTED_AFTER
from session.units import is_answer

Report: TypeAlias = Callable[[str, str], object]
"""Receives the place of a problem and its description."""

Placed: TypeAlias = list[tuple[str, dict[str, Any]]]
"""The pieces of a message as a payload has them, each with its place in it."""

_STANDARD_ALPHABET = str.maketrans("-_", "+/")


class ItemFields(TypedDict):
    """The constructor arguments that all items share."""

    id: str
    created_at: float


def refuse(where: str, problem: str) -> None:
    """Raise the problem as a `FormatError`."""
    raise FormatError(where, problem)


def expect_object(value: object, where: str, report: Report = refuse) -> Mapping[str, Any]:
    """Return a mapping, or the fields of an SDK object without nulls; report anything else."""
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        try:
            fields = dump(mode="json", exclude_none=True, warnings=False)  # SDK types are looser than the values that servers send
        except TypeError:  # an object of its own with a `model_dump`
            fields = dump()
        if isinstance(fields, Mapping):
            return fields
    report(where, f"{short(value)} where an object is expected")
    return {}


def expect_list(value: object, where: str, report: Report = refuse) -> Iterator[tuple[str, object]]:
    """Yield the place and the value of each member of a list; report anything else."""
    if isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield f"{where}[{index}]", member
    else:
        report(where, f"{short(value)} where a list is expected")


def expect_text(value: object, where: str, report: Report = refuse) -> str:
    """Return a string; report anything else."""
    if isinstance(value, str):
        return value
    report(where, f"{short(value)} where a text is expected")
    return ""


def expect_base64(value: object, where: str, report: Report = refuse) -> bytes:
    """Return the bytes that a base64 string encodes, or bytes as they are; report anything else, line breaks included."""
    if isinstance(value, bytes):
        return value
    text = expect_text(value, where, report)
    data = decode_base64(text)
    if data is None or any(map(str.isspace, text)):
        report(where, f"{short(text)} is not base64")
    return data or b""


def decode_base64(text: str) -> bytes | None:
    """Return the bytes that a string encodes, or None if it is not base64.

    The standard and the URL alphabet are accepted, as are line breaks and missing padding.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    joined = "".join(text.split()).translate(_STANDARD_ALPHABET)
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def with_unique_call_ids(items: Sequence[Item]) -> list[Item]:
    """Return the items, with repeated or empty call ids replaced: else an output could answer the wrong call."""
    used_ids: set[str] = set()
    unique_items: list[Item] = []
    for item in items:
        if isinstance(item, FunctionCall):
            candidates = chain([item.call_id], (f"{item.call_id or 'call'}_{number}" for number in range(2, len(items) + 3)))
            call_id = next(candidate for candidate in candidates if candidate and candidate not in used_ids)
            used_ids.add(call_id)
            unique_items.append(item if call_id == item.call_id else replace(item, call_id=call_id))
        else:
            unique_items.append(item)
    return unique_items


class SessionBuilder:
    """A session that grows as a payload is read. Payloads have no ids: the ids of the items name places in the payload.

    Attributes:
        session: The items so far.
        tool_names: The tools of the calls so far, by call id.
    """

    def __init__(self, *, count_items_as_time: bool = False) -> None:
        """Set each `created_at` to the number of items before it, or all to 0."""
        self.session = Session()
        self.tool_names: dict[str, str] = {}
        self._count_items_as_time = count_items_as_time
        self._response_breaks: set[str] = set()
        self._starts_response = False
        self._is_answer_due = False
        self._place = ""
        self._ids_at_place = 0

    def begin(self, place: str, *, is_response: bool = False) -> None:
        """Start a message or a content whose items have ids such as "m3". A message of the model starts a new response."""
        self._place, self._ids_at_place = place, 0
        self._starts_response |= is_response

    def fields(self) -> ItemFields:
        """Return the id and the time of the next item. Ids are "m3" for the first item of its message, then "m3.1", …"""
        self._ids_at_place += 1
        item_id = self._place if self._ids_at_place == 1 else f"{self._place}.{self._ids_at_place - 1}"
        return {"id": item_id, "created_at": float(len(self.session.items)) if self._count_items_as_time else 0.0}

    def add(self, item: Item) -> None:
        """Append an item."""
        if self._is_answer_due:
            self._is_answer_due = False
            if not is_answer(item):
                self.add(Message("assistant", (), **self.fields()))
        if is_answer(item):
            if self._starts_response and self.session.items and is_answer(self.session.items[-1]):
                self._response_breaks.add(item.id)
            self._starts_response = False
        if isinstance(item, FunctionCall):
            self.tool_names[item.call_id] = item.name
        self.session.append(item)

    def add_user_message(self, message: Message) -> None:
        """Append a message of the user without the converter's line about usage, which becomes `Session.usage_noted_after`.

        The log must not end in a response before the line, and has one after it: else a compaction without a summary, or an empty
        message of the model, stands for what the request had and a log has not.
        """
        parts = list(message.content)
        if Text(additions.USAGE_NOTE) not in parts:
            texts = [Text(additions.unescaped(part.text, additions.USAGE_NOTE)) if isinstance(part, Text) else part for part in parts]
            self.add(replace(message, content=tuple(texts)))
            return
        index = parts.index(Text(additions.USAGE_NOTE))
        if index:
            self.add_user_message(replace(message, content=tuple(parts[:index])))
        if not self.session.items or is_answer(self.session.items[-1]):
            self.end_response()
            self.add(Compaction("", **self.fields()))
        self.session.metadata[USAGE_NOTED_AFTER] = self.session.items[-1].id
        self._is_answer_due = True
        if index + 1 < len(parts):
            fields = self.fields() if index else {"id": message.id, "created_at": message.created_at}
            self.add_user_message(replace(message, content=tuple(parts[index + 1 :]), **fields))

    def add_output(self, call_id: str, output: Iterable[Part], *, is_error: bool = False, extra: Mapping[str, Any] | None = None) -> None:
        """Append the output of a call, under the name of the call's tool."""
        tool = self.tool_names.get(call_id, "")
        self.add(FunctionCallOutput(tool, output, call_id, is_error=is_error, extra=extra or {}, **self.fields()))

    def read_removed(self, text: object) -> bool:
        """Take a text as the line about removed items if it is one. Return True if it is."""
        removed = Removed.from_line(text) if isinstance(text, str) else None
        if removed is not None:
            self.session.metadata.update(removed.to_metadata())
        return removed is not None

    def read_opening(self, text: str) -> None:
        """Take the user's first text: it is the line about removed items, or a message."""
        if not self.read_removed(text):
            self.add_user_message(Message("user", additions.unescaped(text, at_opening=True), **self.fields()))

    def without_addition(self, placed: Placed, plain: frozenset[str], *, is_opening: bool, is_before_response: bool) -> Placed:
        """Return the pieces of a user's message without the text that a converter puts before them, in formats whose roles alternate.

        At the opening that is the preamble or the line about removed items, after a response the closing line. A compaction without a
        summary takes its place: it stands for what is missing at the beginning, and after a response the log gets the line again. If the
        user speaks right after the closing line, the response to it had nothing to send: an empty message stands for it.

        `plain` are the fields of a piece that is a text.
        """
        if not placed or placed[0][1].keys() != plain or not isinstance(text := placed[0][1]["text"], str):
            return placed
        addition, rest = additions.PREAMBLE if is_opening else additions.CLOSING, placed[1:]
        if is_opening and self.read_removed(text):
            if not rest and not is_before_response:  # something without content was sent as this line alone
                self.add(Compaction("", **self.fields()))
            return rest
        if text == addition:
            if rest or not is_opening or not is_before_response:  # else only the preamble was sent
                self.add(Compaction("", **self.fields()))
            if rest and not is_opening:
                self.add(Message("assistant", (), **self.fields()))
            return rest
        return [(placed[0][0], {**placed[0][1], "text": additions.unescaped(text, addition, at_opening=is_opening)}), *rest]

    def end_response(self) -> None:
        """Make the next item of the model start a new response."""
        self._starts_response = True

    def finish(self) -> Session:
        """Return the session, with the boundaries between consecutive responses restored."""
        self.session.restore_seams(frozenset(self._response_breaks), 0)
        return self.session
