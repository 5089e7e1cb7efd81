"""What ways back are given: JSON values, or objects of an SDK that can turn themselves into such. Looked at one level at a time.

Nothing here knows a format. What is of the wrong kind is a `FormatError` that names the place.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from session.door import clean_json
from session.errors import FormatError, short
from session.items import Item
from session.session import Session
from session.stack import with_room
from session.units import is_answer


class Named(TypedDict):
    """What every item made here is given."""

    id: str
    created_at: float


def an_object(value: object, where: str) -> Mapping[str, Any]:
    """The value as a mapping: itself, or what its `model_dump` says.

    Raises:
        FormatError: It is neither.
    """
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        dumped = dump(mode="json", exclude_none=True)
        if isinstance(dumped, Mapping):
            return dumped
    raise FormatError(where, f"{short(value)} where an object is expected")


def a_list(value: object, where: str) -> Iterator[tuple[str, object]]:
    """Each member with its place.

    Raises:
        FormatError: It is no list.
    """
    if not isinstance(value, list | tuple):
        raise FormatError(where, f"{short(value)} where a list is expected")
    for place, member in enumerate(value):
        yield f"{where}[{place}]", member


def a_text(value: object, where: str) -> str:
    """The value, which is a text.

    Raises:
        FormatError: It is none.
    """
    if not isinstance(value, str):
        raise FormatError(where, f"{short(value)} where a text is expected")
    return value


def some_bytes(value: object, where: str) -> bytes:
    """The bytes that a text of base64 stands for, in either alphabet; bytes are themselves.

    Raises:
        FormatError: It is no base64.
    """
    if isinstance(value, bytes):
        return value
    text = a_text(value, where)
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise FormatError(where, f"{short(text)} is not base64") from None


def as_json(value: object, where: str) -> str:
    """The value as a JSON text.

    Raises:
        FormatError: It is no JSON, or nested too deep.
    """
    data = clean_json(value, where)
    return with_room(lambda: json.dumps(data, ensure_ascii=False))


class Retold:
    """A session that grows from what a provider was told. Ids are made from places, and times are 0: formats have neither.

    Attributes:
        session: The items so far.
    """

    def __init__(self) -> None:
        self.session = Session()
        self._breaks: set[str] = set()
        self._begins = False
        self._place = ""
        self._made = 0

    def at(self, place: str, *, response: bool = False) -> None:
        """From here on items come from this place: a message, or a content.

        Args:
            place: What their ids begin with.
            response: Whether it is the model's: a response of its own.
        """
        self._place, self._made, self._begins = place, 0, response

    def name(self) -> Named:
        """The id and the time of the next item: "m3" for the first of its place, then "m3.1"."""
        self._made += 1
        return {"id": self._place if self._made == 1 else f"{self._place}.{self._made - 1}", "created_at": 0.0}

    def add(self, item: Item) -> None:
        """Appends the item."""
        if is_answer(item):
            if self._begins and self.session.items and is_answer(self.session.items[-1]):
                self._breaks.add(item.id)
            self._begins = False
        self.session.append(item)

    def done(self) -> Session:
        """The session, which knows which answers stand apart."""
        self.session.restore_seams(frozenset(self._breaks), 0)
        return self.session
