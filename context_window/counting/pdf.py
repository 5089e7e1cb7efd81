"""How many pages a PDF has, by a bounded look into its bytes. Nothing is parsed or drawn, and no byte of it is believed to be right.

PDF is ISO 32000: a page is an object of `/Type /Page` (7.7.3.3), perhaps in a compressed object stream (7.5.7); the root of the
page tree counts them (7.7.3.2), and so does the first object of a linearized file (annex F).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from itertools import islice

LOOK = 32 * 1024 * 1024
"""Bytes that are looked at: no provider takes a larger request."""
MOST_PAGES = 1_000
"""Pages that any provider takes at most: a file that claims more is no request."""
STREAMS, STREAM, INFLATED = 500, 256 * 1024, 16 * 1024 * 1024
"""Object streams that are opened, bytes of each that are read, and bytes that all together may become: bombs end here."""

_ENDS = rb"(?=[\s/<>\[\](){}%]|\Z)"
_PAGE = re.compile(rb"/Type\s{0,9}/Page" + _ENDS)
_STREAM = re.compile(rb"/Type\s{0,9}/ObjStm" + _ENDS)
_COUNT = re.compile(rb"/Count\s{1,9}(\d{1,7})" + _ENDS)
_LINEAR = re.compile(rb"/Linearized\s[^>]{0,400}?/N\s{1,9}(\d{1,7})" + _ENDS)


def is_pdf(data: bytes) -> bool:
    """Whether the bytes are a PDF's: readers accept some bytes of anything else before its header."""
    return data.find(b"%PDF-", 0, 1024) >= 0


def pdf_pages(data: bytes) -> int | None:
    """Pages of the PDF, from 1 to `MOST_PAGES`; None where nothing in it tells.

    Old versions of a page that a file keeps are counted too: rather too many than too few.
    """
    pages = sum(1 for _ in _PAGE.finditer(data, 0, LOOK))
    counts = [int(found[1]) for found in _COUNT.finditer(data, 0, LOOK)]
    if (linear := _LINEAR.search(data, 0, 2048)) is not None:
        counts.append(int(linear[1]))
    for content in _object_streams(data):
        pages += sum(1 for _ in _PAGE.finditer(content))
        if not pages:
            counts += [int(found[1]) for found in _COUNT.finditer(content)]
    told = pages or max(counts, default=0)
    return min(told, MOST_PAGES) or None


def _object_streams(data: bytes) -> Iterator[bytes]:
    """What the compressed object streams hold, as far as it can be read: what is encrypted or broken tells nothing."""
    view, left = memoryview(data), INFLATED
    for found in islice(_STREAM.finditer(data, 0, LOOK), STREAMS):
        start = data.find(b"stream", found.end(), found.end() + 512)
        if start < 0:
            continue
        start += len(b"stream")
        while data[start : start + 1] in {b"\r", b"\n"}:
            start += 1
        end = data.find(b"endstream", start, start + STREAM)
        try:
            content = zlib.decompressobj().decompress(view[start : start + STREAM if end < 0 else end], left)
        except zlib.error:
            continue
        yield content
        left -= len(content)
        if left <= 0:
            return
