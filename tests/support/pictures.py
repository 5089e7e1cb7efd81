"""Pictures and documents. PNGs and PDFs are made by hand, so that no library stands between a test and their bytes."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from PIL import Image


def png(width: int = 3, height: int = 2, colour: bytes = b"\x10\x20\x30", *, padding: int = 0) -> bytes:
    """A real picture, all of one colour: red, green, blue; with a number of extra bytes in a chunk that no reader knows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + colour * width) * height)
    more = chunk(b"paDd", bytes(padding)) if padding else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def claiming_png(width: int, height: int) -> bytes:
    """A picture whose header claims this size, whatever follows it."""
    return png()[:16] + struct.pack(">II", width, height) + png()[24:]


def noise(width: int, height: int, mode: str = "RGB", seed: int = 0) -> Image.Image:
    """A picture that compresses badly: a cut anywhere in its file loses some of it."""
    return Image.frombytes(mode, (width, height), random.Random(seed).randbytes(width * height * len(mode)))


def encoded(kind: str, width: int = 24, height: int = 16, *, frames: int = 1, mode: str = "RGB", **options: Any) -> bytes:
    """A real file of a format that Pillow writes, with one frame or several."""
    first, *more = (noise(width, height, mode, seed) for seed in range(frames))
    out = BytesIO()
    first.save(out, kind, **({"save_all": True, "append_images": more} if more else {}), **options)
    return out.getvalue()


@cache
def every_kind() -> dict[str, bytes]:
    """Sound files of every format that is checked, in the forms that differ in how they are read."""
    return {
        "PNG": encoded("PNG"),
        "PNG, grey": encoded("PNG", mode="L"),
        "PNG, animated": encoded("PNG", frames=3),
        "JPEG": encoded("JPEG"),
        "JPEG, progressive": encoded("JPEG", progressive=True),
        "JPEG, restarting": encoded("JPEG", restart_marker_blocks=1),
        "JPEG, four colours": encoded("JPEG", mode="CMYK"),
        "GIF": encoded("GIF", mode="L"),
        "GIF, animated": encoded("GIF", frames=3, mode="L"),
        "WebP": encoded("WEBP"),
        "WebP, lossless": encoded("WEBP", lossless=True),
        "WebP, transparent": encoded("WEBP", mode="RGBA"),
        "WebP, animated": encoded("WEBP", frames=3),
    }


def pdf(size: int = 0) -> bytes:
    """A real document of one blank page. It has the given number of bytes, or the fewest that are possible."""
    data = _pdf(0)
    if len(data) < size:
        comment = size - len(data)
        data = _pdf(comment - len(_pdf(comment)) + size)  # places with more digits take room too
    return data


def _pdf(comment: int) -> bytes:
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    ]
    data, places = b"%PDF-1.7\n" + b"%".ljust(comment - 1, b"x")[:comment] + b"\n"[: comment > 0], []
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj%sendobj\n" % (number, content)
    table = b"xref\n0 4\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % position for position in places)
    return data + table + b"trailer<</Size 4/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(data)


def docx() -> bytes:
    """The smallest archive that is an Office document by its directory."""
    out = BytesIO()
    with ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", "<document/>" * 50)
    return out.getvalue()


def heic(more: bytes = b"") -> bytes:
    """The boxes of a HEIC file, without anything that could be shown: nothing here decodes it."""

    def box(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I4s", 8 + len(data), kind) + data

    return box(b"ftyp", b"heic\0\0\0\0mif1heic") + box(b"meta", bytes(40)) + box(b"mdat", bytes(60)) + more


def scrubbed(data: bytes) -> bytes:
    """What a scrubber of secrets leaves of an image: base64 with a word inside that is base64 too."""
    coded = base64.b64encode(data).decode()
    middle = len(coded) // 8 * 4
    return base64.b64decode(coded[:middle] + "REDACTED" + coded[middle + 12 :])


def media_of(value: Any) -> Iterator[str]:
    """The base64 of every image and file in a payload, whatever its format."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            if name == "data" and isinstance(member, str) and value.get("type") != "text":
                yield member
            else:
                yield from media_of(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from media_of(member)
    elif isinstance(value, str) and value.startswith("data:"):
        yield value.partition(",")[2]
