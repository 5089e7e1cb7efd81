"""A session as JSON values and back, version 1:

    {"version": 1, "id": …, "metadata": {…}, "items": [{"type": "message", "id": …, "created_at": …, …}, …]}

Each item and part has the fields of its class; what is at its default is left out, bytes are base64. `breaks` and
`settled` stand in saved views only. What a field may hold is checked by the classes themselves.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any

from .errors import DuplicateItemError, FormatError
from .items import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemBase,
    Message,
    MessageCategory,
    Reasoning,
)
from .parts import Document, Image, Part, Text
from .session import Session
from .usage import Usage

VERSION = 1
KEYS = frozenset({"version", "id", "metadata", "items", "breaks", "settled"})

_ITEMS: dict[str, type[Item]] = {
    kind.type: kind for kind in (Message, Reasoning, FunctionCall, FunctionCallOutput, AgentHandoff, AgentConfigUpdate, Compaction)
}
_PARTS: dict[str, type[Part]] = {"text": Text, "image": Image, "document": Document}
_PART_NAMES: dict[type, str] = {kind: name for name, kind in _PARTS.items()}


def session_to_dict(session: Session) -> dict[str, Any]:
    """The session as JSON values."""
    data: dict[str, Any] = {
        "version": VERSION,
        "id": session.id,
        "metadata": session.metadata,
        "items": [item_to_dict(item) for item in session.items],
    }
    if session.response_breaks:
        data["breaks"] = sorted(session.response_breaks)
    if session.settled:
        data["settled"] = session.settled
    return data


def item_to_dict(item: ItemBase) -> dict[str, Any]:
    """The item as JSON values."""
    data: dict[str, Any] = {"type": item.type}
    for one in _fields(type(item)):
        value = getattr(item, one.name)
        if one.name == "category":
            if value is not item._default_category():
                data["category"] = value.value
        elif one.name in ("content", "output"):
            data[one.name] = [{"type": _PART_NAMES[type(part)], **_plain(part)} for part in value]
        elif one.name == "usage":
            if value is not None:
                data["usage"] = _plain(value)
        elif not _is_default(one, value):
            data[one.name] = list(value) if isinstance(value, tuple) else value
    return data


def session_from_dict(data: object) -> Session:
    """The session that these JSON values are.

    Raises:
        FormatError: They are none, damaged, or of an unknown version.
    """
    top = _mapping(data, "session")
    version = top.get("version")
    if version != VERSION or isinstance(version, bool):
        raise FormatError("version", f"{version!r} is not a version this release reads; it reads {VERSION}")
    _no_others(top, KEYS, "session")
    listed = top.get("items")
    if not isinstance(listed, list):
        raise FormatError("items", "not a list" if "items" in top else "missing")
    given_id = top.get("id")
    if not isinstance(given_id, str) or not given_id:
        raise FormatError("id", f"{given_id!r} is not a session's id")
    session = Session(id=given_id, metadata=_mapping(top.get("metadata", {}), "metadata"))
    for place, one in enumerate(listed):
        item = item_from_dict(one, f"items[{place}]")
        try:
            session.append(item)
        except DuplicateItemError as error:
            raise FormatError(f"items[{place}].id", str(error)) from None
    breaks, settled = top.get("breaks", []), top.get("settled", 0)
    if not isinstance(breaks, list) or not all(isinstance(item_id, str) for item_id in breaks):
        raise FormatError("breaks", "not a list of item ids")
    if not isinstance(settled, int) or isinstance(settled, bool) or not 0 <= settled <= len(listed):
        raise FormatError("settled", f"{settled!r} is not a number of items from 0 to {len(listed)}")
    session.restore_seams(frozenset(breaks), settled)
    return session


def item_from_dict(data: object, where: str = "item") -> Item:
    """The item that these JSON values are.

    Raises:
        FormatError: They are none; `.where` begins with `where`.
    """
    given = _mapping(data, where)
    kind = _kind(_ITEMS, given, where)
    known = {one.name for one in _fields(kind)}
    _no_others(given, known | {"type"}, where)
    values = {name: given[name] for name in known if name in given}
    if "id" not in values or "created_at" not in values:
        raise FormatError(f"{where}.{'id' if 'id' not in values else 'created_at'}", "missing")
    if "category" in values:
        values["category"] = _category(values["category"], f"{where}.category")
    if "usage" in values:
        values["usage"] = _build(Usage, _mapping(values["usage"], f"{where}.usage"), f"{where}.usage")
    for name in ("content", "output"):
        if name in values:
            if not isinstance(values[name], list):
                raise FormatError(f"{where}.{name}", "not a list of parts")
            values[name] = [_part(part, f"{where}.{name}[{place}]") for place, part in enumerate(values[name])]
    return _build(kind, values, where)


def _part(data: object, where: str) -> Part:
    given = dict(_mapping(data, where))
    kind = _kind(_PARTS, given, where)
    del given["type"]
    if isinstance(given.get("data"), str):
        try:
            given["data"] = base64.b64decode(given["data"], validate=True)
        except (binascii.Error, ValueError):
            raise FormatError(f"{where}.data", "not base64") from None
    return _build(kind, given, where)


def _build(kind: type[Any], values: Mapping[str, Any], where: str) -> Any:
    """`kind(**values)`, with every fault named by its place in the data."""
    _no_others(values, {one.name for one in _fields(kind)}, where)
    for one in _fields(kind):
        if one.name not in values and one.default is MISSING and one.default_factory is MISSING:
            raise FormatError(f"{where}.{one.name}", "missing")
    try:
        return kind(**values)
    except FormatError as error:
        _, dot, inside = error.where.partition(".")
        raise FormatError(f"{where}{dot}{inside}", error.problem) from None


def _plain(value: Part | Usage) -> dict[str, Any]:
    data = {}
    for one in _fields(type(value)):
        found = getattr(value, one.name)
        if isinstance(found, bytes):
            data[one.name] = base64.b64encode(found).decode("ascii")
        elif not _is_default(one, found):
            data[one.name] = found
    return data


@cache
def _fields(kind: type[Any]) -> tuple[Field[Any], ...]:
    return fields(kind)


def _is_default(one: Field[Any], value: object) -> bool:
    if one.default is not MISSING:
        return bool(value == one.default)
    return one.default_factory is dict and not value


def _kind(kinds: dict[str, type[Any]], given: Mapping[str, Any], where: str) -> type[Any]:
    name = given.get("type")
    if not isinstance(name, str) or name not in kinds:
        raise FormatError(f"{where}.type", f"{name!r} is none of {', '.join(kinds)}" if "type" in given else "missing")
    return kinds[name]


def _category(name: object, where: str) -> MessageCategory:
    try:
        return MessageCategory(name)
    except ValueError:
        raise FormatError(where, f"{name!r} is none of {', '.join(one.value for one in MessageCategory)}") from None


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FormatError(where, f"a {type(value).__name__} where an object is expected")
    return value


def _no_others(given: Mapping[str, Any], known: frozenset[str] | set[str], where: str) -> None:
    if others := [name for name in given if name not in known]:
        raise FormatError(f"{where}.{others[0]}" if where != "session" else str(others[0]), "unknown field")
