"""A session as JSON values and back, version 1:

    {"version": 1, "id": …, "metadata": {…}, "items": [{"type": "message", "id": …, "created_at": …, …}, …]}

Each item and part has the fields of its class; what is at its default is left out, bytes are base64. `breaks` and
`settled…` stand in saved views only. What a field may hold is checked by the classes themselves.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, NamedTuple, NoReturn, get_args

from .door import MAX_COUNT, clean_json, place_name
from .errors import DuplicateItemError, FormatError, short
from .files import Folder, opened_folder
from .images import image_size
from .items import Item, ItemBase, MessageCategory
from .parts import Document, Image, Part, Text
from .session import Session
from .usage import Usage

VERSION = 1
KEYS = frozenset({"version", "id", "metadata", "items", "breaks", "settled", "settled_tokens"})

_ITEMS: dict[str, type[Item]] = {kind.type: kind for kind in get_args(Item)}
_PARTS: dict[str, type[Part]] = {"text": Text, "image": Image, "document": Document}
_PART_NAMES: dict[type, str] = {kind: name for name, kind in _PARTS.items()}


class _Shape(NamedTuple):
    """What a saved object of a class has.

    Attributes:
        defaults: Its fields, each with the value that is left out when saving; MISSING where it is always saved.
        names: Its fields.
        needed: Those that a saved object must have.
    """

    defaults: tuple[tuple[str, object], ...]
    names: frozenset[str]
    needed: tuple[str, ...]

    @classmethod
    def of(cls, kind: type[Any]) -> _Shape:
        found = [(one.name, {} if one.default_factory is dict else one.default) for one in fields(kind) if one.compare]
        return cls(tuple(found), frozenset(dict(found)), tuple(name for name, default in found if default is MISSING))


_SHAPES: dict[type, _Shape] = {kind: _Shape.of(kind) for kind in (*_ITEMS.values(), *_PARTS.values(), Usage)}


# To JSON values


def session_to_dict(session: Session) -> dict[str, Any]:
    """The session as JSON values.

    Raises:
        FormatError: `metadata` or an item's `extra` was given a value that JSON cannot hold.
    """
    items = []
    for place, item in enumerate(session.items):
        try:
            items.append(item_to_dict(item))
        except FormatError as error:
            _raise_at(f"items[{place}]", error)
    data: dict[str, Any] = {"version": VERSION, "id": session.id, "metadata": clean_json(session.metadata, "metadata"), "items": items}
    if session.response_breaks:
        data["breaks"] = [item.id for item in session.items if item.id in session.response_breaks]
    if session.settled:
        data["settled"] = session.settled
    if session.settled_tokens is not None:
        data["settled_tokens"] = session.settled_tokens
    return data


def item_to_dict(item: ItemBase) -> dict[str, Any]:
    """The item as JSON values.

    Raises:
        FormatError: Its `extra` or `metadata` was given a value that JSON cannot hold.
    """
    data: dict[str, Any] = {"type": item.type}
    for name, default in _SHAPES[type(item)].defaults:
        value = getattr(item, name)
        if name == "category":
            if value is not item._default_category():
                data["category"] = value.value
        elif value != default:
            write = _WRITERS.get(name)
            data[name] = write(value) if write else value
    # Copied, so that nobody reaches into a frozen item through what was saved; and checked, in case somebody did before.
    for name in ("extra", "metadata"):
        if name in data:
            data[name] = clean_json(data[name], f"{type(item).__name__}.{name}")
    return data


def _written_parts(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    return [{"type": _PART_NAMES[type(part)], **_written(part)} for part in parts]


def _written(value: Part | Usage) -> dict[str, Any]:
    data = {}
    for name, default in _SHAPES[type(value)].defaults:
        found = getattr(value, name)
        if found != default:
            data[name] = base64.b64encode(found).decode("ascii") if isinstance(found, bytes) else found
    return data


_WRITERS: dict[str, Callable[[Any], object]] = {
    "content": _written_parts,
    "output": _written_parts,
    "usage": _written,
    "tools": list,
    "replaces": list,
}
"""By field, those whose values are not JSON's."""


# From JSON values


def session_from_dict(data: object, read_files_below: str | os.PathLike[str] | None = None) -> Session:
    """The session that these JSON values are. No file that they name is opened, unless it lies in a folder that the caller names.

    Args:
        data: The values.
        read_files_below: A folder. Images of which the values hold nothing but a path that lies in it, once relative paths are
            resolved against it, are read from their files: see `session.files.Folder`. Those that cannot be read stay references.

    Raises:
        FormatError: The values are none, damaged, or of an unknown version; or there is no such folder.
    """
    with opened_folder(read_files_below) as folder:
        return session_from_values(data, folder)


def session_from_values(data: object, folder: Folder | None) -> Session:
    """As `session_from_dict`, for a folder that is open.

    Raises:
        FormatError: The values are none, damaged, or of an unknown version.
    """
    top = _mapping(data, "session")
    version = top.get("version")
    if version != VERSION or type(version) is not int:
        raise FormatError("version", f"{short(version)} is not a version this release reads; it reads {VERSION}")
    if others := [name for name in top if name not in KEYS]:
        raise FormatError(place_name(others[0]), "unknown field")
    listed = _list(top.get("items", MISSING), "items")
    given_id = top.get("id")
    if not isinstance(given_id, str) or not given_id:
        raise FormatError("id", f"{short(given_id)} is not a session's id")
    metadata = _mapping(top.get("metadata", {}), "metadata")
    try:
        session = Session(id=given_id, metadata=metadata)
    except FormatError as error:
        _raise_at("", error)
    for place, one in enumerate(listed):
        item = item_from_dict(one, f"items[{place}]", folder)
        try:
            session.append(item)
        except DuplicateItemError as error:
            raise FormatError(f"items[{place}].id", str(error)) from None
    session.restore_seams(
        _breaks(top.get("breaks", []), session),
        _whole(top.get("settled", 0), "settled", len(listed), "items"),
        None if top.get("settled_tokens") is None else _whole(top["settled_tokens"], "settled_tokens", MAX_COUNT, "tokens"),
    )
    return session


def _breaks(data: object, session: Session) -> frozenset[str]:
    listed = _list(data, "breaks")
    for place, item_id in enumerate(listed):
        if not isinstance(item_id, str) or session.position(item_id) is None:
            raise FormatError(f"breaks[{place}]", f"{short(item_id)} is the id of no item")
    return frozenset(listed)


def _whole(data: object, where: str, most: int, unit: str) -> int:
    if type(data) is not int or not 0 <= data <= most:
        raise FormatError(where, f"{short(data)} is not a number of {unit} from 0 to {most}")
    return data


def item_from_dict(data: object, where: str = "item", folder: Folder | None = None) -> Item:
    """The item that these JSON values are.

    Args:
        data: The values.
        where: What an error calls them.
        folder: Where images of which there is nothing but a path are read from; None opens no file.

    Raises:
        FormatError: They are none; `.where` begins with `where`.
    """
    values = dict(_mapping(data, where))
    kind = _kind(_ITEMS, values, where)
    del values["type"]
    for name in ("id", "created_at"):
        if name not in values:
            raise FormatError(f"{where}.{name}", "missing")
    if "category" in values:
        values["category"] = _category(values["category"], f"{where}.category")
    if "usage" in values:
        values["usage"] = _build(Usage, _mapping(values["usage"], f"{where}.usage"), f"{where}.usage")
    for name in ("content", "output"):
        if name in values:
            listed = _list(values[name], f"{where}.{name}")
            values[name] = [_part(part, f"{where}.{name}[{place}]", folder) for place, part in enumerate(listed)]
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
    # A saved session may come from anywhere: a path in it is not opened, unless it lies in the folder that the caller named.
    part: Part = _build(kind, values, where, **({"open_path": False} if kind is Image else {}))
    if folder is not None and isinstance(part, Image) and part.path is not None and part.data is None:
        image_bytes = folder.read_image(part.path)
        if image_bytes is not None:
            width, height = image_size(image_bytes) or (part.width, part.height)
            part = replace(part, data=image_bytes, width=width, height=height)
    return part


def _build(kind: type[Any], values: Mapping[str, Any], where: str, **options: bool) -> Any:
    """`kind(**values, **options)`, with every fault named by its place in the data."""
    shape = _SHAPES[kind]
    if not shape.names.issuperset(values):
        raise FormatError(f"{where}.{place_name(next(name for name in values if name not in shape.names))}", "unknown field")
    for name in shape.needed:
        if name not in values:
            raise FormatError(f"{where}.{name}", "missing")
    try:
        return kind(**values, **options)
    except FormatError as error:
        _raise_at(where, error)


def _raise_at(where: str, error: FormatError) -> NoReturn:
    """Raises the error of a class, named by its place in the data: `items[3].id` for `Message.id`."""
    _, dot, inside = error.where.partition(".")
    raise FormatError(f"{where}{dot}{inside}" if where else inside, error.problem) from None


def _kind(kinds: dict[str, type[Any]], values: Mapping[str, Any], where: str) -> type[Any]:
    name = values.get("type", MISSING)
    if name is MISSING:
        raise FormatError(f"{where}.type", "missing")
    if not isinstance(name, str) or name not in kinds:
        raise FormatError(f"{where}.type", f"{short(name)} is none of {', '.join(kinds)}")
    return kinds[name]


def _category(name: object, where: str) -> MessageCategory:
    category = next((one for one in MessageCategory if isinstance(name, str) and one.value == name), None)
    if category is None:  # not asked of the enum: its error would show the value, however deep it is
        raise FormatError(where, f"{short(name)} is none of {', '.join(one.value for one in MessageCategory)}")
    return category


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FormatError(where, f"{short(value)} where an object is expected")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(where, "missing" if value is MISSING else f"{short(value)} where a list is expected")
    return value
