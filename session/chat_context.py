"""Reads what VideoSDK's `ChatContext.to_dict` writes: `{"items": [{"type": "message", "id": …, "content": ["Hello"], …}, …]}`.

Each item becomes an item of the same type here. The fields are listed at
https://docs.videosdk.live/agent-sdk-reference/agents/llm/context/context. Fields that ours have no place for are kept in
`extra["videosdk"]`. Values are checked by `serial.py`, which knows no other format.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from time import time
from typing import Any

from .errors import FormatError, short
from .items import new_id

FOREIGN_FIELDS = "videosdk"
"""Key of `extra` for the fields of an item that ours have no place for, such as `confidence` and `metrics`."""


def is_chat_context(data: Mapping[str, Any]) -> bool:
    """True if the values are a `ChatContext`: they have items, and neither the version nor the id of a saved session."""
    return data.keys() == {"items"}


def item_values(data: Mapping[str, Any], field_names: AbstractSet[str], where: str) -> dict[str, Any]:
    """Return the values of an item as `Session.to_dict` would write them, from those that VideoSDK writes.

    Raises FormatError at `where` if its content holds something other than texts and images.
    """
    values = {name: value for name, value in data.items() if value is not None}
    for name in ("content", "output"):
        if name in values:
            values[name] = _part_values(values[name], f"{where}.{name}")
    foreign = {name: values.pop(name) for name in list(values) if name not in field_names}
    if foreign and isinstance(values.get("extra", {}), Mapping):
        values["extra"] = {**values.get("extra", {}), FOREIGN_FIELDS: foreign}
    values.setdefault("created_at", time())
    return values


def without_repeated_id(values: dict[str, Any], ids: dict[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the values with a new id if another item has theirs, and None if that item is the same: their merges copy items.

    Adds them to `ids`, the values of earlier items by id.
    """
    earlier = ids.setdefault(str(values.get("id")), values)
    if earlier is values:
        return values
    return None if earlier == values else {**values, "id": new_id()}


def _part_values(content: object, where: str) -> list[Any]:
    if not isinstance(content, list):
        content = [content]
    return [_part(part, f"{where}[{index}]") for index, part in enumerate(content)]


def _part(part: Any, where: str) -> Any:
    """Return a text or an image as `Session.to_dict` writes it. `ImageContent` is an object if the values were never JSON."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if callable(getattr(part, "to_data_url", None)):
        part = {"type": "image", "image": part.to_data_url(), "inference_detail": getattr(part, "inference_detail", None)}
    if not isinstance(part, Mapping):
        raise FormatError(where, f"{short(part)} is neither a text nor an image")
    return dict(part) if "image" not in part else _image(part["image"], part.get("inference_detail"), where)


def _image(source: object, detail: object, where: str) -> dict[str, Any]:
    if not isinstance(source, str):
        raise FormatError(f"{where}.image", f"{short(source)} is not the address of an image")
    image: dict[str, Any] = {"type": "image"} | ({} if detail is None else {"detail": detail})
    head, comma, body = source.partition(",")
    if comma and head[:5].lower() == "data:" and head.lower().endswith(";base64"):
        return {**image, "data": "".join(body.split()), "media_type": head[5:-7] or None}
    return {**image, "url": source}
