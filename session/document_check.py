"""Finds damage in the bytes of a document before a provider does. It does not parse the file, it only looks at both ends.

As with images, a provider refuses every request of a session that holds a file it cannot read.
"""

from __future__ import annotations

import re
from io import BytesIO

PDF = "application/pdf"
OFFICE = "application/vnd.openxmlformats-officedocument."
"""Office formats since 2007 have this prefix; they are zip archives."""

EDGE = 1024
"""Bytes at either end in which a PDF must show its marks. Its specification wants them in the first and the last line. Readers, Acrobat
first (PDF reference 1.7, implementation notes 13 and 18), have always searched this many bytes, since mail and web servers add some."""

CUT = "damaged: it ends in the middle"
NO_PDF = "damaged: it does not begin as a PDF"
NO_OFFICE = "damaged: it is no Office document"

_PDF_END = re.compile(rb"startxref\s{0,9}\d{1,12}\s{0,9}%%EOF")


def document_problem(data: bytes, media_type: str | None) -> str | None:
    """Return the problem with a document's bytes, or None if there is none or the type is unknown.

    It is a predicate for a note such as `[document damaged: it ends in the middle]`, and never quotes the bytes.
    """
    if media_type == PDF:
        if data.find(b"%PDF-", 0, EDGE) < 0:
            return NO_PDF
        return None if _PDF_END.search(data[-EDGE:]) else CUT
    return NO_OFFICE if media_type is not None and media_type.startswith(OFFICE) and not _is_office(data) else None


def _is_office(data: bytes) -> bool:
    from zipfile import ZipFile

    try:
        with ZipFile(BytesIO(data)) as archive:
            return "[Content_Types].xml" in archive.namelist()
    except Exception:  # noqa: BLE001 - zipfile raises BadZipFile, struct.error, NotImplementedError, UnicodeError and more
        return False
