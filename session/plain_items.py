"""Builds the plain items of a saved session, which nearly all are, in less than a third of the time that the checks of their classes take.

An item is plain if it has no field but its class's own, its id and its time, and at most one part, a text. Data is not trusted: values that
are not exactly those of a plain item give None, and the classes decide (`serial.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple

from .items import MEMO, ROLES, FunctionCall, FunctionCallOutput, Item, Message, Setter, field_setters
from .parts import Part, Text
from .sanitize import clean

_new = object.__new__


class _Plan(NamedTuple):
    """How to build the plain items of a class.

    Attributes:
        kind: The class.
        own: Setters of the fields whose values each item has, in the order in which these are passed.
        equal: Setters of the fields in which all of them are equal, with the value.
        dicts: Setters of the fields that are an empty dict of the item's own.
    """

    kind: type[Item]
    own: tuple[Setter, ...]
    equal: tuple[tuple[Setter, object], ...]
    dicts: tuple[Setter, ...]

    @classmethod
    def of(cls, template: Item, *names: str) -> _Plan:
        """Return the plan for items that have the template's values but in the named fields."""
        kind: object = type(template)
        setters = {**field_setters(kind), "memo": MEMO}
        others = {name: getattr(template, name) for name in setters if name not in names}
        return cls(
            type(template),
            tuple(setters[name] for name in names),
            tuple((setters[name], value) for name, value in others.items() if value != {}),
            tuple(setters[name] for name, value in others.items() if value == {}),
        )


_MESSAGES: dict[str, _Plan] = {role: _Plan.of(Message(role, ""), "id", "created_at", "content") for role in ROLES}
_CALL = _Plan.of(FunctionCall("", "", ""), "id", "created_at", "name", "arguments", "call_id")
_OUTPUT = _Plan.of(FunctionCallOutput("", "", ""), "id", "created_at", "output", "name", "call_id")
_set_text = field_setters(Text)["text"]

_message_values = itemgetter("id", "created_at", "content", "role")
_call_values = itemgetter("id", "created_at", "name", "arguments", "call_id")
_output_values = itemgetter("id", "created_at", "output", "name", "call_id")


def plain_item(values: object) -> Item | None:
    """Return the item that these JSON values describe; None if they are not those of a plain item."""
    if type(values) is not dict:
        return None
    kind = values.get("type")
    try:
        if kind == "function_call_output":
            return _output(values)
        if kind == "function_call":
            return _call(values)
        return _message(values) if kind == "message" else None
    except KeyError:  # a field is missing
        return None


def _message(values: dict[str, Any]) -> Item | None:
    item_id, created_at, content, role = _message_values(values)
    parts = _parts(content)
    if len(values) != 5 or type(role) is not str or parts is None or not _is_head(item_id, created_at):
        return None
    return _built(_MESSAGES[role], (item_id, created_at, parts))


def _call(values: dict[str, Any]) -> Item | None:
    own = item_id, created_at, name, arguments, call_id = _call_values(values)
    if len(values) != 6 or not (_is_clean(name) and _is_clean(arguments) and _is_clean(call_id) and _is_head(item_id, created_at)):
        return None
    return _built(_CALL, own)


def _output(values: dict[str, Any]) -> Item | None:
    item_id, created_at, output, name, call_id = _output_values(values)
    parts = _parts(output)
    if len(values) != 6 or parts is None or not (_is_clean(name) and _is_clean(call_id) and _is_head(item_id, created_at)):
        return None
    return _built(_OUTPUT, (item_id, created_at, parts, name, call_id))


def _built(plan: _Plan, values: Sequence[object]) -> Item:
    """Return an item with these values in its own fields, which must be clean."""
    kind, own, equal, dicts = plan
    item = _new(kind)
    for set_field, value in zip(own, values, strict=True):
        set_field(item, value)
    for set_field, value in equal:
        set_field(item, value)
    for set_field in dicts:
        set_field(item, {})
    return item


def _is_head(item_id: object, created_at: object) -> bool:
    """True if these are an id and a time."""
    return _is_clean(item_id) and item_id != "" and type(created_at) is float and isfinite(created_at)


def _parts(values: object) -> tuple[Part, ...] | None:
    """Return no part or a text; None for anything else."""
    if type(values) is not list or len(values) > 1:
        return None
    if not values:
        return ()
    part = values[0]
    if type(part) is not dict or len(part) != 2 or part.get("type") != "text" or not _is_clean(part.get("text")):
        return None
    text = _new(Text)
    _set_text(text, part["text"])
    return (text,)


def _is_clean(text: object) -> bool:
    return type(text) is str and (text.isascii() or clean(text) is text)
