"""Number of pages of a PDF, from a bounded scan of its bytes. Nothing is parsed or rendered, and damaged files are expected.

PDF is ISO 32000. A page is an object of `/Type /Page` (7.7.3.3), perhaps in a compressed object stream (7.5.7). The root of the page
tree states the number of pages (7.7.3.2), and so does the first object of a linearized file (annex F).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from itertools import islice

SCANNED_BYTES = 32 * 1024 * 1024
"""Bytes that are scanned: no provider takes a larger request."""
MOST_PAGES = 1_000
"""Highest result. No provider takes a document with more pages."""
STREAMS, STREAM_BYTES, INFLATED_BYTES = 500, 256 * 1024, 16 * 1024 * 1024
"""Limits against decompression bombs: object streams that are opened, bytes read of each, and decompressed bytes of all together."""

_ENDS = rb"(?=[\s/<>\[\](){}%]|\Z)"
_PAGE = re.compile(rb"/Type\s{0,9}/Page" + _ENDS)
_STREAM = re.compile(rb"/Type\s{0,9}/ObjStm" + _ENDS)
_COUNT = re.compile(rb"/Count\s{1,9}(\d{1,7})" + _ENDS)
_LINEAR = re.compile(rb"/Linearized\s[^>]{0,400}?/N\s{1,9}(\d{1,7})" + _ENDS)


def is_pdf(data: bytes) -> bool:
    """True if the bytes are a PDF. As in PDF readers, some other bytes may precede the header."""
    return data.find(b"%PDF-", 0, 1024) >= 0


def pdf_pages(data: bytes) -> int | None:
    """Return the pages of the PDF, from 1 to `MOST_PAGES`, or None if the number cannot be found.

    Old versions of a page that the file keeps are counted too: the result is rather too high than too low.
    """
    pages = sum(1 for _ in _PAGE.finditer(data, 0, SCANNED_BYTES))
    stated = [int(match[1]) for match in _COUNT.finditer(data, 0, SCANNED_BYTES)]
    if (linear := _LINEAR.search(data, 0, 2048)) is not None:
        stated.append(int(linear[1]))
    for content in _object_streams(data):
        pages += sum(1 for _ in _PAGE.finditer(content))
        if not pages:
            stated += [int(match[1]) for match in _COUNT.finditer(content)]
    return min(pages or max(stated, default=0), MOST_PAGES) or None


def _object_streams(data: bytes) -> Iterator[bytes]:
    """Yield the content of the compressed object streams. Encrypted and broken ones are skipped."""
    view, remaining = memoryview(data), INFLATED_BYTES
    for match in islice(_STREAM.finditer(data, 0, SCANNED_BYTES), STREAMS):
        start = data.find(b"stream", match.end(), match.end() + 512)
        if start < 0:
            continue
        start += len(b"stream")
        while data[start : start + 1] in {b"\r", b"\n"}:
            start += 1
        end = data.find(b"endstream", start, start + STREAM_BYTES)
        try:
            content = zlib.decompressobj().decompress(view[start : start + STREAM_BYTES if end < 0 else end], remaining)
        except zlib.error:
            continue
        yield content
        remaining -= len(content)
        if remaining <= 0:
            return
