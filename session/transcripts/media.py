"""Images and documents as providers' requests hold them: bytes in base64, URLs, `data:` URLs, ids. Anthropic's are in `blocks.py`."""

from __future__ import annotations

import base64
import binascii

from session.parts import DETAILS, Detail, Document, Image, Part, Text

_USUAL = str.maketrans("-_", "+/")


def bytes_of(data: object) -> bytes | None:
    """The bytes that a base64 text stands for, in the usual alphabet or the one for URLs; None where it is none."""
    if not isinstance(data, str) or not data:
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        pass  # wrapped at 76 characters, as some encoders do; in the other alphabet; without its padding
    joined = "".join(data.split()).translate(_USUAL)
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def media_part(
    data: bytes | str | None,
    media_type: str,
    notes: list[str],
    *,
    kind: str = "",
    file_id: str = "",
    title: str = "",
    detail: str = "",
) -> Part | None:
    """The image or document with this content.

    Args:
        data: Its bytes, or the URL where they are, which may be one that begins with `data:`.
        media_type: What it is, as far as the source says.
        notes: Gets a sentence where it is damaged.
        kind: "image" or "document" where the source says so; else the media type tells.
        file_id: The id a provider gave it, asked for where there is no data.
        title: A document's name.
        detail: An image's resolution setting.
    """
    url = None
    if isinstance(data, str):
        if data.startswith("data:"):
            head, _, coded = data[5:].partition(",")
            media_type = head.split(";")[0] or media_type
            data = bytes_of(coded) if ";base64" in head else coded.encode("utf-8", "replace")
        else:
            url, data = data or None, None
    if kind != "document" and media_type.startswith("image/"):
        kind = "image"
    kind = kind or "document"
    form = None if "*" in media_type else media_type or None
    if data is not None:
        url = None
    elif url is None and not file_id:
        notes.append(f"the data of {'an image' if kind == 'image' else 'a document'} is damaged")
        return Text(f"[{kind}: its data is damaged in the transcript]")
    own_id = file_id if data is None and url is None else None
    if kind == "image":
        wanted: Detail | None = next((one for one in DETAILS if one == detail), None)
        return Image(data=data, url=url, file_id=own_id, media_type=form, detail=wanted)
    return Document(data=data, url=url, file_id=own_id, media_type=form, title=title or None)
