"""A session as JSON values and back, version 1:

    {"version": 1, "id": …, "metadata": {…}, "items": [{"type": "message", "id": …, "created_at": …, …}, …]}

Each item and part has the fields of its class. Fields at their default are left out, bytes are base64. `breaks` and `settled…`
appear only in saved views. The values of fields are checked by the classes themselves. `chat_context.py` reads another library's format.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import MISSING, fields, replace
from typing import Any, NamedTuple, NoReturn, TypeVar, get_args

from .chat_context import is_chat_context, item_values, without_repeated_id
from .errors import DuplicateItemError, FormatError, short
from .files import Folder
from .images import image_size
from .items import Item, ItemBase, category_of
from .parts import Document, Image, Part, Text
from .sanitize import MAX_COUNT, clean_json, place_name
from .session_log import SessionLog, fill, recorded_total
from .usage import Usage

LogT = TypeVar("LogT", bound=SessionLog)

VERSION = 1
KEYS = frozenset({"version", "id", "metadata", "items", "breaks", "ends", "settled", "settled_tokens"})

_ITEMS: dict[str, type[Item]] = {kind.type: kind for kind in get_args(Item)}
_PARTS: dict[str, type[Part]] = {"text": Text, "image": Image, "document": Document}
_PART_NAMES: dict[type, str] = {kind: name for name, kind in _PARTS.items()}


class _Fields(NamedTuple):
    """The fields of a saved object of a class. `defaults` has each with the value at which it is left out; MISSING if it is always saved.

    `required` are those that a saved object must have.
    """

    defaults: tuple[tuple[str, object], ...]
    names: frozenset[str]
    required: tuple[str, ...]

    @classmethod
    def of(cls, kind: type[Any]) -> _Fields:
        defaults = [(spec.name, {} if spec.default_factory is dict else spec.default) for spec in fields(kind) if spec.compare]
        return cls(tuple(defaults), frozenset(dict(defaults)), tuple(name for name, default in defaults if default is MISSING))


_FIELDS: dict[type, _Fields] = {kind: _Fields.of(kind) for kind in (*_ITEMS.values(), *_PARTS.values(), Usage)}


# To JSON values


def session_to_dict(session: SessionLog) -> dict[str, Any]:
    """Return the session as JSON values. Raises FormatError if `metadata` or an item's `extra` holds a value that JSON cannot."""
    items = []
    for position, item in enumerate(session.items):
        try:
            items.append(item_to_dict(item))
        except FormatError as error:
            _raise_at(f"items[{position}]", error)
    data: dict[str, Any] = {"version": VERSION, "id": session.id, "metadata": clean_json(session.metadata, "metadata"), "items": items}
    if session.response_breaks:
        data["breaks"] = [item.id for item in session.items if item.id in session.response_breaks]
    if ends := [item.id for item in session.items if item.id in session.request_ends]:
        data["ends"] = ends
    if session.settled:
        data["settled"] = session.settled
    if (tokens := recorded_total(session)) is not None:
        data["settled_tokens"] = tokens
    return data


def item_to_dict(item: ItemBase) -> dict[str, Any]:
    """Return the item as JSON values. Raises FormatError if its `extra` or `metadata` holds a value that JSON cannot."""
    data: dict[str, Any] = {"type": item.type}
    for name, default in _FIELDS[type(item)].defaults:
        value = getattr(item, name)
        if name == "category":
            if value is not item._default_category():
                data["category"] = value.value
        elif value != default:
            write = _WRITERS.get(name)
            data[name] = write(value) if write else value
    # Copied, so that the saved data does not give access to a frozen item; and checked, in case somebody changed the mapping.
    for name in ("extra", "metadata"):
        if name in data:
            data[name] = clean_json(data[name], f"{type(item).__name__}.{name}")
    return data


def _parts_to_dicts(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    return [{"type": _PART_NAMES[type(part)], **_fields_to_dict(part)} for part in parts]


def _fields_to_dict(value: Part | Usage) -> dict[str, Any]:
    data = {}
    for name, default in _FIELDS[type(value)].defaults:
        field = getattr(value, name)
        if field != default:
            data[name] = base64.b64encode(field).decode("ascii") if isinstance(field, bytes) else field
    return data


_WRITERS: dict[str, Callable[[Any], object]] = {
    "content": _parts_to_dicts,
    "output": _parts_to_dicts,
    "usage": _fields_to_dict,
    "tools": list,
    "replaces": list,
}
"""Converters for the fields whose values are not JSON values."""


# From JSON values


def session_from_dict(kind: type[LogT], data: object, read_files_below: str | os.PathLike[str] | None = None) -> LogT:
    """Return the session that these JSON values describe. Opens no file, except below a folder that the caller passes.

    Images saved with only a path are read from their file if it is in that folder (relative paths are resolved against it): see
    `session.files.Folder`. Unreadable ones keep only their path. Raises FormatError if the values are not a session, damaged, or of an
    unknown version, or the folder does not exist.
    """
    with nullcontext() if read_files_below is None else Folder(read_files_below) as folder:
        return session_from_values(kind, data, folder)


def session_from_values(kind: type[LogT], data: object, folder: Folder | None) -> LogT:
    """Do the same as `session_from_dict` with a folder that is already open. None opens no file."""
    top = _mapping(data, "session")
    if is_chat_context(top):
        return _from_chat_context(kind, _list(top["items"], "items"), folder)
    version = top.get("version")
    if version != VERSION or type(version) is not int:
        raise FormatError("version", f"{short(version)} is not a version this release reads; it reads {VERSION}")
    if unknown := [name for name in top if name not in KEYS]:
        raise FormatError(place_name(unknown[0]), "unknown field")
    items = _list(top.get("items", MISSING), "items")
    session_id = top.get("id")
    if not isinstance(session_id, str) or not session_id:
        raise FormatError("id", f"{short(session_id)} is not a session's id")
    metadata = _mapping(top.get("metadata", {}), "metadata")
    try:
        session = kind(id=session_id, metadata=metadata)
    except FormatError as error:
        _raise_at("", error)
    read: list[Item] = []
    try:
        for index, values in enumerate(items):
            read.append(item_from_dict(values, f"items[{index}]", folder))
    finally:  # of two errors, that of the earlier item is raised
        _append(session, read)
    session.restore_seams(
        _item_ids(top.get("breaks", []), "breaks", session),
        _whole(top.get("settled", 0), "settled", len(items), "items"),
        None if top.get("settled_tokens") is None else _whole(top["settled_tokens"], "settled_tokens", MAX_COUNT, "tokens"),
        _item_ids(top.get("ends", []), "ends", session),
    )
    return session


def _append(session: SessionLog, items: list[Item]) -> None:
    try:
        fill(session, items)
    except DuplicateItemError as error:
        raise FormatError(f"items[{len(session.items)}].id", str(error)) from None


def _from_chat_context(kind: type[LogT], items: list[Any], folder: Folder | None) -> LogT:
    session = kind()
    ids: dict[str, Mapping[str, Any]] = {}
    for index, data in enumerate(items):
        where = f"items[{index}]"
        item_kind = _kind(_ITEMS, _mapping(data, where), where)
        values = without_repeated_id(item_values(data, _FIELDS[item_kind].names | {"type"}, where), ids)
        if values is not None:
            session.append(item_from_dict(values, where, folder))
    return session


def _item_ids(data: object, name: str, session: SessionLog) -> frozenset[str]:
    item_ids = _list(data, name)
    for index, item_id in enumerate(item_ids):
        if not isinstance(item_id, str) or session.position(item_id) is None:
            raise FormatError(f"{name}[{index}]", f"{short(item_id)} is the id of no item")
    return frozenset(item_ids)


def _whole(data: object, where: str, most: int, unit: str) -> int:
    if type(data) is not int or not 0 <= data <= most:
        raise FormatError(where, f"{short(data)} is not a number of {unit} from 0 to {most}")
    return data


def item_from_dict(data: object, where: str = "item", folder: Folder | None = None) -> Item:
    """Return the item that these JSON values describe. Raises FormatError, whose `.where` begins with `where`, if they are none.

    Images saved with only a path are read from the folder; None opens no file.
    """
    values = dict(_mapping(data, where))
    kind = _kind(_ITEMS, values, where)
    del values["type"]
    for name in ("id", "created_at"):
        if name not in values:
            raise FormatError(f"{where}.{name}", "missing")
    if "category" in values:
        values["category"] = category_of(values["category"], f"{where}.category")
    if "usage" in values:
        values["usage"] = _build(Usage, _mapping(values["usage"], f"{where}.usage"), f"{where}.usage")
    for name in ("content", "output"):
        if name in values:
            parts = _list(values[name], f"{where}.{name}")
            values[name] = [_part(part, f"{where}.{name}[{index}]", folder) for index, part in enumerate(parts)]
    item: Item = _build(kind, values, where)
    return item


def _part(data: object, where: str, folder: Folder | None) -> Part:
    values = dict(_mapping(data, where))
    kind = _kind(_PARTS, values, where)
    del values["type"]
    if isinstance(values.get("data"), str):
        try:
            values["data"] = base64.b64decode(values["data"], validate=True)
        except (binascii.Error, ValueError):
            raise FormatError(f"{where}.data", "not base64") from None
    # A saved session may come from anywhere: a path in it is opened only if it is in the folder that the caller passed.
    part: Part = _build(kind, values, where, **({"open_path": False} if kind is Image else {}))
    if folder is not None and isinstance(part, Image) and part.path is not None and part.data is None:
        image_bytes = folder.read_image(part.path)
        if image_bytes is not None:
            width, height = image_size(image_bytes) or (part.width, part.height)
            part = replace(part, data=image_bytes, width=width, height=height)
    return part


def _build(kind: type[Any], values: Mapping[str, Any], where: str, **options: bool) -> Any:
    """Return `kind(**values, **options)`. Errors name the place in the data."""
    spec = _FIELDS[kind]
    if not spec.names.issuperset(values):
        raise FormatError(f"{where}.{place_name(next(name for name in values if name not in spec.names))}", "unknown field")
    for name in spec.required:
        if name not in values:
            raise FormatError(f"{where}.{name}", "missing")
    try:
        return kind(**values, **options)
    except FormatError as error:
        _raise_at(where, error)


def _raise_at(where: str, error: FormatError) -> NoReturn:
    """Raise a class's error with its place in the data: `items[3].id` for `Message.id`."""
    _, dot, inside = error.where.partition(".")
    raise FormatError(f"{where}{dot}{inside}" if where else inside, error.problem) from None


def _kind(kinds: dict[str, type[Any]], values: Mapping[str, Any], where: str) -> type[Any]:
    name = values.get("type", MISSING)
    if name is MISSING:
        raise FormatError(f"{where}.type", "missing")
    if not isinstance(name, str) or name not in kinds:
        raise FormatError(f"{where}.type", f"{short(name)} is none of {', '.join(kinds)}")
    return kinds[name]


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) and not isinstance(value, Mapping):  # the first test takes a tenth of the time of the second
        raise FormatError(where, f"expected an object, got {short(value)}")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(where, "missing" if value is MISSING else f"expected a list, got {short(value)}")
    return value
