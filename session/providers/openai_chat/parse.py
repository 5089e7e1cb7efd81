"""Parse the objects of a payload of either OpenAI API: fields, images and files. Nothing here knows messages or items."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from session.errors import FormatError, short
from session.parts import DETAILS, Detail, Document, Image
from session.sanitize import clean_json

from .content import title_of


class PayloadObject:
    """One object of a payload, with its place for error messages."""

    __slots__ = ("data", "where")

    def __init__(self, data: object, where: str) -> None:
        """Take a mapping, or an SDK object that converts itself to one, at a place in the payload. Raises FormatError if it is neither."""
        dump = getattr(data, "model_dump", None)
        if not isinstance(data, Mapping) and callable(dump):
            data = dump(exclude_none=True)
        if not isinstance(data, Mapping):
            raise FormatError(where, f"{short(data)} where an object is expected")
        self.data: Mapping[str, Any] = data
        self.where = where

    def error(self, name: str, problem: str) -> FormatError:
        """Return the error for a problem with a field, or with the object itself if `name` is empty."""
        return FormatError(f"{self.where}.{name}" if name else self.where, problem)

    def text(self, name: str) -> str:
        """Return the text of a required field. Raises FormatError if the field is missing or not a text."""
        value = self.data.get(name)
        if not isinstance(value, str):
            raise self.error(name, "missing" if name not in self.data else f"{short(value)} is not a text")
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return the text of an optional field, or None if it is missing or null. Raises FormatError if it holds anything else."""
        return None if self.data.get(name) is None else self.text(name)

    def inner(self, name: str) -> PayloadObject:
        """Return the object in a field. Raises FormatError if the field holds none."""
        return PayloadObject(self.data.get(name), f"{self.where}.{name}")

    def each(self, name: str) -> Iterator[PayloadObject]:
        """Yield the objects of a list in a field; nothing if it is missing or null. Raises FormatError if it holds anything else."""
        members = self.data.get(name)
        if members is None:
            return
        if not isinstance(members, list | tuple):
            raise self.error(name, f"{short(members)} where a list is expected")
        for index, member in enumerate(members):
            yield PayloadObject(member, f"{self.where}.{name}[{index}]")

    def fields_except(self, names: frozenset[str]) -> dict[str, Any]:
        """Return a copy of all other fields that are not null or empty. Raises FormatError if JSON cannot hold a value."""
        return clean_json(  # type: ignore[no-any-return]
            {key: value for key, value in self.data.items() if key not in names and value not in (None, [], {})}, self.where
        )


def payload_objects(payload: object, name: str, aliases: tuple[str, ...] = ()) -> list[PayloadObject]:
    """Return the objects of a list, or of the list that a whole request holds under `name` or one of its aliases.

    Raises FormatError if `payload` is neither.
    """
    if not isinstance(payload, list | tuple | Mapping) and callable(getattr(payload, "model_dump", None)):
        payload = PayloadObject(payload, name).data
    where = name
    if isinstance(payload, Mapping):
        where = next((key for key in (name, *aliases) if key in payload), name)
        payload = payload.get(where)
    if not isinstance(payload, list | tuple):
        raise FormatError(where, f"{short(payload)} where a list is expected; pass the list, or a request with `{name}`")
    return [PayloadObject(member, f"{where}[{index}]") for index, member in enumerate(payload)]


def parse_image(part: PayloadObject, url: str | None, file_id: str | None) -> Image:
    """Return the image at a URL, in a data URL, or with a file id. Raises FormatError if there is no source, or `detail` is unknown."""
    detail_name = part.text_or_none("detail")
    if detail_name is not None and detail_name not in DETAILS:
        raise part.error("detail", f"{short(detail_name)} is none of {', '.join(DETAILS)}")
    detail: Detail | None = next((choice for choice in DETAILS if choice == detail_name), None)
    if url is None:
        if file_id is None:
            raise part.error("", "an image without its source")
        return Image(file_id=file_id, detail=detail)
    inline = decode_data_url(url)
    if inline is None:
        return Image(url=url, detail=detail)
    return Image(data=inline[0], media_type=inline[1] or None, detail=detail)


def parse_document(part: PayloadObject, data: str | None, url: str | None, file_id: str | None) -> Document:
    """Return the document in a data URL, at a URL, or with a file id. Raises FormatError if there is none, or it is not base64."""
    name = part.text_or_none("filename")
    if data is not None and data[:4].lower() == "http":  # some compatible servers take a URL here
        data, url = None, data
    if data is not None:
        inline = decode_data_url(data) or decode_data_url(f"data:application/pdf;base64,{data}")
        if inline is None:
            raise part.error("file_data", "not base64")
        return Document(data=inline[0], media_type=inline[1] or None, title=title_of(name, inline[1]))
    if url is not None:
        return Document(url=url, title=name)
    if file_id is None:
        raise part.error("", "a file without its source")
    return Document(file_id=file_id, title=name)


def decode_data_url(url: str) -> tuple[bytes, str] | None:
    """Return the bytes and the media type of a base64 data URL, or None for other URLs and for damaged or empty data."""
    head, comma, body = url.partition(",")
    if not comma or head[:5].lower() != "data:" or not head.lower().endswith(";base64"):
        return None
    try:
        data = base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return (data, head[5:-7]) if data else None
