"""Images and documents as transcripts hold them: base64, URLs, `data:` URLs, ids of uploaded files."""

from __future__ import annotations

from session.parts import DETAILS, Detail, Document, Image, Part, Text
from session.providers.parsing import decode_base64


def bytes_of(data: object) -> bytes | None:
    """Return the bytes of a base64 text, or None for anything else and for an empty text."""
    return (decode_base64(data) or None) if isinstance(data, str) else None


def media_part(
    data: bytes | str | None,
    media_type: str,
    reasons: list[str],
    *,
    kind: str = "",
    file_id: str = "",
    title: str = "",
    detail: str = "",
) -> Part | None:
    """Return the image or document with this content, or a text in its place if the data is damaged.

    Args:
        data: The bytes, or a URL; a URL that begins with `data:` holds the content itself.
        media_type: The media type that the source names; may be empty.
        reasons: Gets a sentence if the data is damaged.
        kind: "image" or "document" if the source names one; otherwise the media type decides.
        file_id: The id that a provider gave the file; used only without data.
        title: The name of a document.
        detail: The resolution setting of an image.
    """
    url = None
    if isinstance(data, str):
        if data.startswith("data:"):
            head, _, body = data[5:].partition(",")
            media_type = head.split(";")[0] or media_type
            data = bytes_of(body) if ";base64" in head else body.encode("utf-8", "replace")
        else:
            url, data = data or None, None
    if kind != "document" and media_type.startswith("image/"):
        kind = "image"
    kind = kind or "document"
    if data is None and url is None and not file_id:
        return damaged(kind, reasons)
    known_type = None if "*" in media_type else media_type or None
    upload_id = file_id if data is None and url is None else None
    if kind == "image":
        known_detail: Detail | None = next((choice for choice in DETAILS if choice == detail), None)
        return Image(data=data, url=url, file_id=upload_id, media_type=known_type, detail=known_detail)
    return Document(data=data, url=url, file_id=upload_id, media_type=known_type, title=title or None)


def damaged(kind: str, reasons: list[str]) -> Text:
    """Return the text that stands for an image or a document with damaged data, and add a reason."""
    reasons.append(f"the data of {'an image' if kind == 'image' else 'a document'} is damaged")
    return Text(f"[{kind}: its data is damaged in the transcript]")


def linked_media(url: str, media_type: str, reasons: list[str], *, kind: str = "", title: str = "") -> Part | None:
    """Return the image or document at a URL, or None for a local file: the transcript does not hold it.

    Args:
        url: The URL, which may begin with `data:`.
        media_type: For example `image/png`; may be empty.
        reasons: Gets a sentence for a file that is left out and for damaged data.
        kind: "image" if the source says so; otherwise the media type decides.
        title: The name of a document.
    """
    if not url.startswith(("data:", "http://", "https://", "gs://")):
        reasons.append("left out a file that the log names and does not hold")
        return None
    return media_part(url, media_type, reasons, kind=kind, title=title)
