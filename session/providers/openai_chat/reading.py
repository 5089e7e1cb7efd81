"""What the ways back from both OpenAI APIs share: a payload looked into place by place, and a log made of it.

Ids and times are made of places, so that equal payloads give equal items: `m3` is the first item of the fourth message, `m3.1`
the next of it; the times count the items from 0.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from session.door import clean_json
from session.errors import FormatError, short
from session.items import FunctionCall, FunctionCallOutput, ItemBase
from session.parts import Detail, Document, Image, Part
from session.session import Session
from session.units import is_answer

from .pieces import DETAILS, title_of

AnyItem = TypeVar("AnyItem", bound=ItemBase)


class Place:
    """One object of a payload, and where it stands there."""

    __slots__ = ("data", "where")

    def __init__(self, data: object, where: str) -> None:
        """
        Args:
            data: A mapping, or an object of the SDK that can give one.
            where: Its place, for errors.

        Raises:
            FormatError: It is neither.
        """
        dump = getattr(data, "model_dump", None)
        if not isinstance(data, Mapping) and callable(dump):
            data = dump(exclude_none=True)
        if not isinstance(data, Mapping):
            raise FormatError(where, f"{short(data)} where an object is expected")
        self.data: Mapping[str, Any] = data
        self.where = where

    def wrong(self, name: str, problem: str) -> FormatError:
        """The error that something is wrong with this field."""
        return FormatError(f"{self.where}.{name}" if name else self.where, problem)

    def text(self, name: str) -> str:
        """The text of a field that must be one.

        Raises:
            FormatError: It is none.
        """
        found = self.data.get(name)
        if not isinstance(found, str):
            raise self.wrong(name, "missing" if name not in self.data else f"{short(found)} is not a text")
        return found

    def text_or_none(self, name: str) -> str | None:
        """The text of a field that may be missing or null.

        Raises:
            FormatError: It is something else.
        """
        return None if self.data.get(name) is None else self.text(name)

    def inner(self, name: str) -> Place:
        """The object in a field.

        Raises:
            FormatError: It is none.
        """
        return Place(self.data.get(name), f"{self.where}.{name}")

    def each(self, name: str) -> Iterator[Place]:
        """The objects of a list in a field; none where it is missing or null.

        Raises:
            FormatError: It is no list, or of something else.
        """
        found = self.data.get(name)
        if found is None:
            return
        if not isinstance(found, list | tuple):
            raise self.wrong(name, f"{short(found)} where a list is expected")
        for place, one in enumerate(found):
            yield Place(one, f"{self.where}.{name}[{place}]")

    def carried(self, known: frozenset[str]) -> dict[str, Any]:
        """The fields that are not among these, to be carried along; those that say nothing are left out.

        Raises:
            FormatError: One cannot be saved as JSON.
        """
        return clean_json(  # type: ignore[no-any-return]
            {key: value for key, value in self.data.items() if key not in known and value not in (None, [], {})}, self.where
        )


def places(given: object, name: str, others: tuple[str, ...] = ()) -> list[Place]:
    """The objects of a payload: of a list, or of the list under `name` (or one of `others`) in a whole request.

    Raises:
        FormatError: It is neither.
    """
    if not isinstance(given, list | tuple | Mapping) and callable(getattr(given, "model_dump", None)):
        given = Place(given, name).data
    where = name
    if isinstance(given, Mapping):
        where = next((one for one in (name, *others) if one in given), name)
        given = given.get(where)
    if not isinstance(given, list | tuple):
        raise FormatError(where, f"{short(given)} where a list is expected; pass the list, or a request with `{name}`")
    return [Place(one, f"{where}[{place}]") for place, one in enumerate(given)]


class Log:
    """A session under construction."""

    def __init__(self) -> None:
        self._items: list[ItemBase] = []
        self._breaks: set[str] = set()
        self._seam = False
        self._place = 0
        self._count = 0
        self._names: dict[str, str] = {}

    def begin(self, place: int) -> None:
        """From here on, items are of the message at this place."""
        self._place, self._count = place, 0

    def seam(self) -> None:
        """Whatever the model says next, it is another response than what it said last."""
        self._seam = True

    def common(self) -> dict[str, Any]:
        """The id and the time of the next item."""
        name = f"m{self._place}.{self._count}" if self._count else f"m{self._place}"
        return {"id": name, "created_at": float(len(self._items))}

    def put(self, item: AnyItem) -> AnyItem:
        """Adds an item made with `common`."""
        if is_answer(item):  # type: ignore[arg-type]
            if self._seam and self._items and is_answer(self._items[-1]):  # type: ignore[arg-type]
                self._breaks.add(item.id)
            self._seam = False
        if isinstance(item, FunctionCall):
            self._names[item.call_id] = item.name
        self._items.append(item)
        self._count += 1
        return item

    def answer(self, call_id: str, output: list[Part], extra: Mapping[str, Any]) -> FunctionCallOutput:
        """Adds the output of a call, under the name of its call."""
        return self.put(FunctionCallOutput(self._names.get(call_id, ""), output, call_id, extra=extra, **self.common()))

    def session(self) -> Session:
        """The session."""
        session = Session(self._items)  # type: ignore[arg-type]
        session.restore_seams(frozenset(self._breaks), 0)
        return session


def image_at(place: Place, url: str | None, file_id: str | None) -> Image:
    """The image of an address, a data URL, or a file's id.

    Raises:
        FormatError: There is none of them, or `detail` is none.
    """
    detail = place.text_or_none("detail")
    if detail is not None and detail not in DETAILS:
        raise place.wrong("detail", f"{short(detail)} is none of {', '.join(DETAILS)}")
    found: Detail | None = next((one for one in DETAILS if one == detail), None)
    if url is None:
        if file_id is None:
            raise place.wrong("", "an image without its source")
        return Image(file_id=file_id, detail=found)
    inline = unpacked(url)
    if inline is None:
        return Image(url=url, detail=found)
    return Image(data=inline[0], media_type=inline[1] or None, detail=found)


def document_at(place: Place, data: str | None, url: str | None, file_id: str | None) -> Document:
    """The document of a data URL, an address, or a file's id.

    Raises:
        FormatError: There is none of them, or the data is no base64.
    """
    name = place.text_or_none("filename")
    if data is not None and data[:4].lower() == "http":  # some that speak this format take an address here
        data, url = None, data
    if data is not None:
        inline = unpacked(data) or unpacked(f"data:application/pdf;base64,{data}")
        if inline is None:
            raise place.wrong("file_data", "not base64")
        return Document(data=inline[0], media_type=inline[1] or None, title=title_of(name, inline[1]))
    if url is not None:
        return Document(url=url, title=name)
    if file_id is None:
        raise place.wrong("", "a file without its source")
    return Document(file_id=file_id, title=name)


def unpacked(url: str) -> tuple[bytes, str] | None:
    """The bytes and the media type of a base64 data URL; None where it is another URL, or holds nothing that can be read."""
    head, comma, body = url.partition(",")
    if not comma or head[:5].lower() != "data:" or not head.lower().endswith(";base64"):
        return None
    try:
        data = base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return (data, head[5:-7]) if data else None
