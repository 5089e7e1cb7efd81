"""Finds damage in the bytes of a document before a provider does. It does not parse the file, it only looks at both ends.

As with images, a provider refuses every request of a session that holds a file it cannot read.
"""

from __future__ import annotations

import re
import struct
from io import BytesIO
from zipfile import ZipFile

PDF = "application/pdf"
WORD = "application/msword"
OFFICE = "application/vnd.openxmlformats-officedocument."
"""Office formats since 2007 have this prefix; they are zip archives."""

EDGE = 1024
"""Bytes at either end in which a PDF must show its marks. Its specification wants them in the first and the last line. Readers, Acrobat
first (PDF reference 1.7, implementation notes 13 and 18), have always searched this many bytes, since mail and web servers add some."""
MOST_DIRECTORY = 4 * 1024 * 1024
"""Bytes of a zip archive's directory that are read: enough for some 50,000 files."""

CUT = "damaged: it ends in the middle"
NO_PDF = "damaged: it does not begin as a PDF"
NO_TABLE = "damaged: its table of objects is missing"
NO_OFFICE = "damaged: it is no Office document"

_PDF_END = re.compile(rb"startxref\s{0,9}(\d{1,12})\s{0,9}%%EOF")


def document_problem(data: bytes, media_type: str | None) -> str | None:
    """Return the problem with a document's bytes, or None if there is none or the type is unknown.

    Args:
        data: The whole file.
        media_type: Its type without parameters.

    Returns:
        A predicate for a note such as `[document damaged: it ends in the middle]`. It never quotes the bytes.
    """
    if media_type == PDF:
        return _pdf_problem(data)
    if media_type == WORD:
        return _word_problem(data)
    return _office_problem(data) if media_type is not None and media_type.startswith(OFFICE) else None


def _pdf_problem(data: bytes) -> str | None:
    if data.find(b"%PDF-", 0, EDGE) < 0:
        return NO_PDF
    ends = _PDF_END.findall(data[-EDGE:])
    if not ends:
        return CUT
    return None if 0 < int(ends[-1]) < len(data) else NO_TABLE


def _office_problem(data: bytes) -> str | None:
    if not data.startswith(b"PK"):
        return NO_OFFICE
    end = data.rfind(b"PK\5\6", max(0, len(data) - 22 - 0xFFFF))
    try:
        if end < 0 or struct.unpack_from("<I", data, end + 12)[0] > MOST_DIRECTORY:
            return CUT if end < 0 else NO_TABLE
        with ZipFile(BytesIO(data)) as archive:
            return None if "[Content_Types].xml" in archive.namelist() else NO_OFFICE
    except Exception:  # noqa: BLE001 - zipfile raises BadZipFile, struct.error, NotImplementedError, UnicodeError and more
        return NO_TABLE


def _word_problem(data: bytes) -> str | None:
    """Check that the sectors of the directory and of the allocation table lie in the file (MS-CFB, 2.2)."""
    if not data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return NO_OFFICE
    try:
        (shift,) = struct.unpack_from("<H", data, 30)
        tables, directory = struct.unpack_from("<II", data, 44)
        sectors = struct.unpack_from(f"<{min(tables, 109)}I", data, 76)
    except struct.error:
        return CUT
    return CUT if shift > 16 or (max(directory, *sectors, 0) + 1) << shift >= len(data) else None
