"""Text of Office files (docx, xlsx, pptx), from a bounded scan of their XML. Layout, images and formulas are left out.

OpenAI gives its models the text of such files, and of a spreadsheet the first 1,000 rows of each sheet
(https://developers.openai.com/api/docs/guides/file-inputs). The formats are those of ISO/IEC 29500: zip archives of XML files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from io import BytesIO
from zipfile import ZipFile

from session.parts import Document

PREFIX = "application/vnd.openxmlformats-officedocument."
"""How the media types of these files begin."""
FILES, INFLATED_BYTES = 500, 16 * 1024 * 1024
"""Limits against decompression bombs: files read from an archive, and decompressed bytes of all together."""
ROWS = 1_000
"""Rows of a sheet that count."""

_PAGES = re.compile(r"word/document\.xml|ppt/slides/slide\d+\.xml|xl/worksheets/sheet\d+\.xml")
_STRINGS = "xl/sharedStrings.xml"
_TEXT = re.compile(r"<(?:w|a):t(?:\s[^<>]{0,200})?>([^<]*)<|<(/(?:w|a):p)>")
_STRING = re.compile(r"<si>(.*?)</si>", re.DOTALL)
_STRING_TEXT = re.compile(r"<t(?:\s[^<>]{0,200})?>([^<]*)<")
_CELL = re.compile(r"<c\s([^<>]{0,200})>|<v>([^<]{0,40000})<|<t(?:\s[^<>]{0,200})?>([^<]*)<|<(/row)>")


def office_text(document: Document) -> str | None:
    """Return the text of an Office file; None if the document is no such file or cannot be read."""
    data = document.data
    if data is None or not (document.media_type or "").lower().startswith(PREFIX):
        return None
    try:
        with ZipFile(BytesIO(data)) as archive:
            names = [name for name in archive.namelist() if _PAGES.fullmatch(name)][:FILES]
            if not names:
                return None
            contents = _contents(archive, [_STRINGS, *names] if _STRINGS in archive.namelist() else names)
    except Exception:  # noqa: BLE001 - zipfile raises BadZipFile, struct.error, NotImplementedError, RuntimeError and more
        return None
    strings = ["".join(_STRING_TEXT.findall(item)) for item in _STRING.findall(contents.pop(_STRINGS, ""))]
    pages = ("".join(_cells(page, strings) if name.startswith("xl/") else _words(page)) for name, page in contents.items())
    return unescape("\n".join(pages)).strip()


def _contents(archive: ZipFile, names: list[str]) -> dict[str, str]:
    """Return the text of files in the archive, as far as the limit allows."""
    contents, remaining = {}, INFLATED_BYTES
    for name in names:
        with archive.open(name) as file:
            content = file.read(remaining)
        remaining -= len(content)
        contents[name] = content.decode("utf-8", "replace")
    return contents


def _words(page: str) -> Iterator[str]:
    """Yield the texts of a document or slide, with a newline after each paragraph."""
    for text, end in _TEXT.findall(page):
        yield "\n" if end else text


def _cells(sheet: str, strings: list[str]) -> Iterator[str]:
    """Yield the cells of a sheet, separated by commas, with a newline after each row."""
    rows, is_shared, separator = 0, False, ""
    for attributes, value, text, end in _CELL.findall(sheet):
        if end:
            rows, separator = rows + 1, ""
            yield "\n"
            if rows >= ROWS:
                return
        elif attributes:
            is_shared = 't="s"' in attributes
        else:
            shared = strings[int(value)] if is_shared and value.isascii() and value.isdigit() and int(value) < len(strings) else ""
            yield separator + (shared or text or value)
            separator = ","
