"""Images are checked to their end, with bounded work, once, and without effects on Pillow's warnings, logs or settings."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import struct
import threading
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from itertools import count
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from PIL import Image as PillowImage
from PIL import ImageFile

from context_window import ContextWindow, ContextWindowManager
from session import Document, Image, Message, Session
from session import image_check as image_check_module
from session.image_check import (
    BROKEN,
    CUT,
    HEADER,
    LONG,
    MOST_FRAMES,
    UNKNOWN,
    heif_problem,
    image_problem,
)
from session.png_check import is_decodable_png
from session.providers import media
from session.providers.media import Inline, Note, document_source, image_source, unusable
from tests.support.counting import Letters
from tests.support.pictures import (
    claiming_png,
    docx,
    encoded,
    every_kind,
    heic,
    noise,
    pdf,
    png,
)
from tests.support.stubs.pictures import is_readable

KINDS = every_kind()
kinds = pytest.mark.parametrize("name", KINDS)


# Sound and damaged images


@kinds
def test_bytes_after_a_sound_image_are_no_problem(name: str) -> None:
    """Phones and editors append data of their own."""
    assert image_problem(KINDS[name]) is None
    assert image_problem(KINDS[name] + b"\0\xff\xd8\xff more") is None


@kinds
def test_every_cut_is_a_problem(name: str) -> None:
    """An image is damaged even if only its last byte is missing."""
    data = KINDS[name]
    assert [length for length in range(len(data)) if image_problem(data[:length]) is None] == []
    assert image_problem(data[: len(data) // 2]) in {CUT, HEADER}


@kinds
def test_every_cut_is_a_problem_even_if_pillow_may_load_truncated_images(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    data = KINDS[name]
    assert [length for length in range(0, len(data), 7) if image_problem(data[:length]) is None] == []
    assert image_problem(data[:-1]) == CUT


@given(name=st.sampled_from(sorted(KINDS)), place=st.integers(0, 10**6), suffix=st.binary(max_size=30), gone=st.integers(0, 60))
def test_a_strict_decoder_reads_every_sound_image(name: str, place: int, suffix: bytes, gone: int) -> None:
    """However an image is changed: if the check accepts it, an independent decoder does too. The check neither raises nor warns."""
    data = KINDS[name]
    place %= len(data)
    data = data[:place] + suffix + data[place + gone :]
    problem = image_problem(data)
    event("sound" if problem is None else problem.partition(":")[0])
    if problem is None:
        assert is_readable(data)


@given(
    st.one_of(
        st.binary(max_size=300),
        st.tuples(st.sampled_from(sorted(KINDS.values())), st.binary(max_size=99)).map(lambda two: two[0][:40] + two[1]),
    )
)
def test_no_bytes_raise(data: bytes) -> None:
    problem = image_problem(data)
    assert problem is None or problem.partition(" ")[0].rstrip(":") in {"damaged", "too"}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", UNKNOWN),
        (b"<html>404</html>", UNKNOWN),
        (b"BM" + bytes(60), UNKNOWN),
        (b"%PDF-1.7", UNKNOWN),
        (encoded("JPEG")[:3] + b"\0" + encoded("JPEG")[3:], UNKNOWN),
        (png()[:20], HEADER),
        (png()[:33], CUT),
        (png()[:-1], CUT),
        (png()[:40] + b"?" + png()[41:], BROKEN),  # inside the compressed pixels, so the checksum is wrong
        (encoded("GIF", mode="L")[:-1], CUT),
        (encoded("JPEG")[:-2], CUT),
        (encoded("WEBP")[:-8], CUT),
        (png()[:33] + b"\0\0\0\0IEND\xaeB`\x82", BROKEN),
        (b"GIF89a\2\0\2\0\0\0\0;", BROKEN),
        (b"GIF89a\2\0\2\0\0\0\0?", BROKEN),
    ],
)
def test_the_problem_is_named(data: bytes, problem: str) -> None:
    assert image_problem(data) == problem


@kinds
def test_damaged_metadata_is_no_problem_and_gives_no_warning(name: str) -> None:
    """Warnings would reach the user's terminal. Where warnings are errors, a sound image would count as damaged."""
    exif = b"Exif\0\0II*\0\x08\0\0\0\xff\xff\x0f\x01\x02\0\xff\xff\xff\x7f\xff\xff\xff\x7f"
    data = KINDS[name]
    if name.startswith("JPEG"):
        data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]
        data = data[:2] + b"\xff\xe2\0\x10MPF\0II*\0\xff\xff\xff\xff??" + data[2:]
    elif name.startswith("PNG"):
        body = b"eXIf" + exif
        data = data[:33] + struct.pack(">I", len(exif)) + body + struct.pack(">I", zlib.crc32(body)) + data[33:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert image_problem(data) is None


def test_pillow_logs_nothing_about_checked_images_and_still_logs_others(caplog: pytest.LogCaptureFixture) -> None:
    profile = b"secret profile\0\0" + zlib.compress(bytes(200))
    body = b"iCCP" + profile
    data = png()[:33] + struct.pack(">I", len(profile)) + body + struct.pack(">I", zlib.crc32(body)) + png()[33:]
    with caplog.at_level(logging.DEBUG):
        assert image_problem(data) is None
        assert caplog.records == []
        assert is_readable(data)
    assert "secret profile" in caplog.text


# Files that Pillow accepts, but libpng and strict JPEG decoders refuse


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def header(colour: int = 0, *, width: int = 8, depth: int = 8, compression: int = 0, filtering: int = 0, interlacing: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, 8, depth, colour, compression, filtering, interlacing))


def chunks(*parts: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


ROW = b"\0" + bytes(8)
ROWS = zlib.compress(ROW * 8)
IDAT = chunk(b"IDAT", ROWS)
PALETTE = chunk(b"PLTE", bytes(3))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(chunks(header(), chunk(b"IDAT", zlib.compress(ROW * 4))), id="half of the rows"),
        pytest.param(chunks(header(), chunk(b"IDAT", zlib.compress((ROW * 8)[:-1]))), id="a byte too few"),
        pytest.param(chunks(header(), chunk(b"IDAT", ROWS[:-4])), id="no checksum of the pixels"),
        pytest.param(chunks(header(), chunk(b"IDAT", ROWS[:-1] + b"?")), id="a wrong checksum of the pixels"),
        pytest.param(chunks(header(), chunk(b"IDAT", b"no pixels")), id="pixels that cannot be decompressed"),
        pytest.param(chunks(header(), chunk(b"IDAT", b"")), id="no pixels"),
        pytest.param(chunks(header(), chunk(b"IDAT", ROWS[:6]), chunk(b"tIME", b"1234567"), chunk(b"IDAT", ROWS[6:])), id="parted pixels"),
        pytest.param(chunks(header(3), IDAT), id="no palette"),
        pytest.param(chunks(header(3), IDAT, PALETTE), id="a late palette"),
        pytest.param(chunks(header(3), PALETTE, PALETTE, IDAT), id="two palettes"),
        *(pytest.param(chunks(header(3), chunk(b"PLTE", bytes(n)), IDAT), id=f"a palette of {n} bytes") for n in (0, 4, 771)),
        pytest.param(chunks(header(), chunk(b"ABCD", b"x"), IDAT), id="an unknown critical chunk"),
        pytest.param(chunks(header(), chunk(b"a1b2", b"x"), IDAT), id="a chunk without a name"),
        pytest.param(chunks(header(), header(width=4), IDAT), id="two headers"),
        pytest.param(chunks(header(), IDAT, header()), id="a late header"),
        pytest.param(chunks(chunk(b"IHDR", header()[8:21] + b"?"), IDAT), id="a long header"),
        pytest.param(chunks(header(compression=1), IDAT), id="compression"),
        pytest.param(chunks(header(filtering=1), IDAT), id="filter method"),
        pytest.param(chunks(header(interlacing=2), IDAT), id="interlacing"),
        pytest.param(chunks(header(1), IDAT), id="colour type"),
        pytest.param(chunks(header(depth=3), IDAT), id="bit depth"),
    ],
)
def test_a_png_that_libpng_refuses_is_broken(data: bytes) -> None:
    assert image_problem(data) == BROKEN


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(chunks(header(), IDAT), id="plain"),
        pytest.param(chunks(header(), chunk(b"IDAT", zlib.compress(ROW * 9))), id="a row too many"),
        pytest.param(chunks(header(), chunk(b"IDAT", ROWS + b"more")), id="more after the compressed pixels"),
        pytest.param(chunks(header(), *(chunk(b"IDAT", ROWS[n : n + 1]) for n in range(len(ROWS)))), id="a byte a chunk"),
        pytest.param(chunks(header(3), PALETTE, IDAT), id="a palette of one colour"),
        pytest.param(chunks(header(2), PALETTE, chunk(b"IDAT", zlib.compress((b"\0" + bytes(24)) * 8))), id="a suggested palette"),
    ],
)
def test_a_png_that_libpng_accepts_is_sound(data: bytes) -> None:
    assert image_problem(data) is None


@given(
    mode=st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]),
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    optimize=st.booleans(),
    colours=st.integers(1, 256),
)
def test_every_png_that_pillow_writes_is_sound(mode: str, width: int, height: int, *, optimize: bool, colours: int) -> None:
    picture = noise(width, height)
    if mode == "P":
        picture = picture.quantize(colours)
    elif mode == "I;16":
        picture = noise(width * 2, height, "L")
        picture = PillowImage.frombytes("I;16", (width, height), picture.tobytes())
    else:
        picture = picture.convert(mode)
    out = BytesIO()
    picture.save(out, "PNG", optimize=optimize)
    assert image_problem(out.getvalue()) is None


@given(width=st.integers(1, 20), height=st.integers(1, 20), depth=st.sampled_from([1, 2, 4, 8, 16]))
def test_an_interlaced_png_is_sound_only_with_all_passes(width: int, height: int, depth: int) -> None:
    """The test counts its size pixel by pixel, from the table of passes in the PNG specification."""
    pattern = ("16462646", "77777777", "56565656", "77777777", "36463646", "77777777", "56565656", "77777777")
    rows = b""
    for number in "1234567":
        for y in range(height):
            columns = sum(pattern[y % 8][x % 8] == number for x in range(width))
            rows += bytes(1 + (columns * depth + 7) // 8) if columns else b""
    start = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 1))
    assert image_problem(chunks(start, chunk(b"IDAT", zlib.compress(rows)))) is None
    assert image_problem(chunks(start, chunk(b"IDAT", zlib.compress(rows[:-1])))) == BROKEN


def test_the_pixels_of_a_png_are_never_in_memory_at_once() -> None:
    bomb = chunks(header(), chunk(b"IDAT", zlib.compress(bytes(100_000_000))))
    large = png(4_000, 2_000)
    tracemalloc.start()
    try:
        assert is_decodable_png(large, 100)
        assert is_decodable_png(bomb, 100)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def without_tables(data: bytes) -> bytes:
    """Return a JPEG without its Huffman tables."""
    while (place := data.find(b"\xff\xc4")) >= 0:
        (length,) = struct.unpack_from(">H", data, place + 2)
        data = data[:place] + data[place + 2 + length :]
    return data


def scan_start(data: bytes) -> int:
    place = data.index(b"\xff\xda") + 2
    return place + int.from_bytes(data[place : place + 2])


SEQUENTIAL = [
    encoded("JPEG", 128, 128),
    encoded("JPEG", 70, 50, mode="L"),
    encoded("JPEG", 64, 64, subsampling=0, optimize=True),
    encoded("JPEG", 64, 64, mode="CMYK"),
    encoded("JPEG", 128, 128, restart_marker_blocks=1),
]


@pytest.mark.parametrize("name", [name for name in KINDS if name.startswith("JPEG")])
def test_a_jpeg_without_coded_data_or_huffman_tables_is_broken(name: str) -> None:
    data = KINDS[name]
    assert image_problem(data[: scan_start(data)] + b"\xff\xd9") == BROKEN
    assert image_problem(data[: scan_start(data)] + b"\xff\xff\xd9") == BROKEN
    assert image_problem(without_tables(data)) == BROKEN


@pytest.mark.parametrize("data", SEQUENTIAL)
def test_a_sequential_jpeg_cut_in_its_scan_is_found_despite_an_appended_end_marker(data: bytes) -> None:
    """Cuts in the last blocks may go unnoticed; here these are a tenth of the scan."""
    assert image_problem(data) is None
    start = scan_start(data)
    last = start + (len(data) - start) * 9 // 10
    assert [end for end in range(start + 1, last, 5) if image_problem(data[:end] + b"\xff\xd9") is None] == []


@given(
    width=st.integers(1, 70),
    height=st.integers(1, 70),
    quality=st.integers(1, 100),
    mode=st.sampled_from(["L", "RGB", "CMYK"]),
    subsampling=st.integers(0, 2),
    restart=st.integers(0, 3),
    progressive=st.booleans(),
)
def test_every_jpeg_that_pillow_writes_is_sound(
    width: int, height: int, quality: int, mode: str, *, subsampling: int, restart: int, progressive: bool
) -> None:
    options = {"quality": quality, "subsampling": subsampling, "restart_marker_blocks": restart, "progressive": progressive}
    assert image_problem(encoded("JPEG", width, height, mode=mode, **options)) is None


# Bounds


def pages(count: int, side: int = 8) -> bytes:
    """Return a GIF with this number of frames."""
    data = encoded("GIF", side, side, mode="L")
    start = 13 + (3 << (data[10] & 7) + 1)
    return data[:start] + data[start:-1] * count + b";"


def scans(count: int) -> bytes:
    """Return a progressive JPEG that repeats its last scan many times."""
    data = encoded("JPEG", 2_000, 500, mode="L", progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * count + b"\xff\xd9"


def growing() -> bytes:
    """Return a JPEG with a second, huge frame header after the first."""
    data = encoded("JPEG")
    place = data.index(b"\xff\xc0")
    return (
        data[:place]
        + data[place : place + 19]
        + b"\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\x01\x22\0\x02\x11\x01\x03\x11\x01"
        + data[place + 19 :]
    )


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a picture of 3,600 million pixels": lambda: claiming_png(60_000, 60_000),
    "a picture just above the bound": lambda: claiming_png(9_000, 9_000),
    "a frame larger than its screen": lambda: b"GIF89a\1\0\1\0\0\0\0," + struct.pack("<4HB", 0, 0, 65535, 65535, 0) + b"\2\1\0\0;",
    "a second, larger size": growing,
    "thousands of scans": lambda: scans(2_000),
    "millions of chunks": lambda: png()[:33] + b"\0\0\0\0teSt\x9d\xd4\x1f\x9b" * 600_000,
    "millions of blocks": lambda: b"GIF89a\1\0\1\0\0\0\0" + b"!\xfe\0" * 900_000,
    "millions of segments": lambda: KINDS["JPEG"][:20] + b"\xff\xfe\0\2" * 900_000 + KINDS["JPEG"][20:],
    "millions of markers": lambda: KINDS["JPEG"][:-2] + b"\xff\xfe\0\2" * 900_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_rejected_quickly(name: str) -> None:
    data = HOSTILE[name]()
    start = time.process_time()
    assert image_problem(data) is not None
    assert time.process_time() - start < 5


def test_a_limited_number_of_frames_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The remaining frames are walked without decoding, so that a cut in them is found too."""
    many = pages(MOST_FRAMES * 3)
    start = time.process_time()
    assert image_problem(many) is None
    assert image_problem(many[:-1]) == CUT
    assert time.process_time() - start < 5
    monkeypatch.setattr(image_check_module, "MOST_PIXELS", 24 * 16 * 2)
    for name in ("PNG, animated", "GIF, animated", "WebP, animated"):
        assert image_problem(KINDS[name]) is None
        assert image_problem(KINDS[name][:-1]) == CUT


def test_a_picture_within_the_limit_is_decoded() -> None:
    assert image_problem(png(4_000, 2_000)) is None


def test_a_format_missing_from_this_pillow_does_not_count_as_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_check_module, "_openers", dict)
    assert {image_problem(data) for data in KINDS.values()} == {None}


# HEIC


def test_heic_is_checked_by_its_boxes() -> None:
    assert heif_problem(heic()) is None
    assert heif_problem(heic(b"what a phone appends")) is None
    assert [length for length in range(len(heic())) if heif_problem(heic()[:length]) is None] == []
    assert heif_problem(heic()[:24] + struct.pack(">I4s", 0, b"mdat")) == HEADER
    assert heif_problem(heic()[:24] + struct.pack(">I4s", 3, b"mdat")) == BROKEN
    assert heif_problem(heic()[:72] + struct.pack(">I4sQ", 1, b"mdat", 20) + bytes(4)) is None
    assert heif_problem(b"\0\0\0\x08free" * 600_000) == LONG
    rare = b"\0\0\0\x14ftypavci\0\0\0\0mif1" + heic()[24:]
    assert isinstance(image_source(Image(data=rare, media_type="image/heic")), Inline)


# One check per image


class Decodes:
    """Count how often bytes are checked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        judge = image_problem

        def counting(data: bytes) -> str | None:
            self.count += 1
            return judge(data)

        monkeypatch.setattr(media, "image_problem", counting)


def test_an_image_is_checked_once_for_all_turns_views_and_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is shared by the log, its views and all converters."""
    decodes = Decodes(monkeypatch)
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(3_000))
    session = Session([Message("user", [Image(data=png(20, 20, bytes([n] * 3))) for n in range(3)], pinned=True)])
    session.add_message("user", Image(data=png()[:40], media_type="image/png"))
    session.add_message("user", Image(url="data:image/png;base64,iVBORw0KGgo="))
    for turn in range(40):
        session.add_message("assistant", f"{turn} " * 40)
        session.add_message("user", "More. " * 20)
        for view in (manager.process_session(session), session):
            view.to_anthropic_messages()
            view.to_openai_messages()
            view.to_openai_responses()
    assert len(manager.process_session(session).items) < len(session.items)
    assert decodes.count == 5


def test_measuring_a_log_decodes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    decodes = Decodes(monkeypatch)
    session = Session([Message("user", [Image(data=png(1_000, 1_000)), Image(data=png(1_000, 1_000)[:60])])])
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(100_000))
    tokens = manager.analyze_session(session)["total_tokens"]
    str(manager.usage(session))
    manager.plan_session(session)
    assert decodes.count == 0
    manager.process_session(session)
    assert manager.analyze_session(session)["total_tokens"] == tokens
    assert decodes.count == 2


@pytest.mark.parametrize("part", [Image(data=png()), Image(data=png()[:40], media_type="image/png"), Document(data=b"%PDF-")], ids=repr)
def test_the_cached_result_is_not_part_of_the_value(part: Image | Document) -> None:
    """Not compared, shown, copied or saved."""
    fresh = replace(part)
    before = repr(fresh), hash(fresh), Session([Message("user", fresh, id="m", created_at=0.0)]).to_dict()["items"]
    problem = unusable(part)
    assert unusable(part) == problem
    assert fresh == part
    assert (repr(part), hash(part), Session([Message("user", part, id="m", created_at=0.0)]).to_dict()["items"]) == before
    for other in (copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part)), replace(part)):
        assert other == part
        assert not hasattr(other, "_problem")
        assert unusable(other) == problem


def test_concurrent_checks_agree() -> None:
    images = [Image(data=data) for data in KINDS.values()] + [Image(data=data[:-1]) for data in KINDS.values()]
    answers: list[list[str | None]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=lambda: answers.append([unusable(image) for image in images])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [[None] * len(KINDS) + [CUT] * len(KINDS)] * 8


# Documents

OFFICE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
WORD = "application/msword"


def word(sectors: int = 3) -> bytes:
    """Return the beginning of an old Word file with this number of sectors."""
    header = bytearray(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(512, b"\0"))
    struct.pack_into("<H", header, 30, 9)
    struct.pack_into("<II", header, 44, 1, 1)
    struct.pack_into("<I", header, 76, 2)
    return bytes(header) + bytes(512 * sectors)


@pytest.mark.parametrize(
    ("data", "media_type", "problem"),
    [
        (pdf(), None, None),
        (pdf(9_000), "application/pdf", None),
        (b"\xef\xbb\xbf\n" + pdf(), "application/pdf", None),
        (pdf() + b"\r\n\0\0", "Application/PDF; version=1.7", None),
        (pdf(9_000) + bytes(1_000), None, None),
        (pdf(9_000) + bytes(1_100), None, "damaged: it ends in the middle"),
        (bytes(1_100) + pdf(), "application/pdf", "damaged: it does not begin as a PDF"),
        (b"<html>404</html>", "application/pdf", "damaged: it does not begin as a PDF"),
        (b"%PDF-1.4 not really a pdf", "application/pdf", "damaged: it ends in the middle"),
        (b"%PDF-1.7 startxref 0 %%EOF", None, "damaged: its table of objects is missing"),
        (b"%PDF-1.7 startxref 999999 %%EOF", None, "damaged: its table of objects is missing"),
        (docx(), OFFICE, None),
        (docx()[:-1] + b"\0", OFFICE, None),
        (docx()[:-22], OFFICE, "damaged: it ends in the middle"),
        (docx()[60:], OFFICE, "damaged: it is no Office document"),
        (docx().replace(b"[Content_Types]", b"[Content?Types]"), OFFICE, "damaged: it is no Office document"),
        (docx().replace(b"PK\1\2", b"PK??"), OFFICE, "damaged: its table of objects is missing"),
        (docx()[:-10] + b"\xff" * 4 + docx()[-6:], OFFICE, "damaged: its table of objects is missing"),
        (b"<html>404</html>", OFFICE, "damaged: it is no Office document"),
        (word(), WORD, None),
        (word()[:1_500], WORD, "damaged: it ends in the middle"),
        (word()[:80], WORD, "damaged: it ends in the middle"),
        (b"<html>404</html>", WORD, "damaged: it is no Office document"),
        (b"<html>404</html>", "text/html", None),
        (b"", "application/pdf", "empty"),
    ],
    ids=count(),
)
def test_documents_are_checked_at_both_ends(data: bytes, media_type: str | None, problem: str | None) -> None:
    document = Document(data=data, media_type=media_type)
    assert unusable(document) == problem
    assert document_source(document) == Note(f"[document {problem}]") if problem else isinstance(document_source(document), Inline)


@given(size=st.integers(0, 4_000), length=st.integers(0, 4_000))
def test_a_document_cut_anywhere_is_a_problem(size: int, length: int) -> None:
    data = pdf(size)
    assert unusable(Document(data=data[: length % (len(data) - 1)], media_type="application/pdf")) is not None


@given(data=st.binary(max_size=200), media_type=st.sampled_from(["application/pdf", OFFICE, WORD]))
def test_no_document_raises(data: bytes, media_type: str) -> None:
    for start in (b"", b"PK\x03\x04", b"PK\5\6", b"%PDF-", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(22)):
        unusable(Document(data=start + data, media_type=media_type))


# Converters


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (Image(data=b"<html>404", media_type="image/png"), f"[image {UNKNOWN}]"),
        (Image(data=b"<html>404", media_type="image/heic"), f"[image {UNKNOWN}]"),
        (Image(data=png()[:33], media_type="image/png"), f"[image {CUT}]"),
        (Image(data=claiming_png(60_000, 60_000)), "[image too large to send: 60000x60000]"),
        (Image(url="data:image/png;base64,PGh0bWw+"), f"[image {UNKNOWN}]"),
        (Image(url="data:image/png,<html>"), f"[image {UNKNOWN}]"),
        (Image(data=b""), "[image empty]"),
    ],
    ids=repr,
)
def test_an_unreadable_image_is_sent_as_a_note(image: Image, text: str) -> None:
    assert image_source(image) == Note(text)


def test_a_mislabelled_image_is_sent_with_its_real_type() -> None:
    data = encoded("JPEG")
    assert image_source(Image(data=data, media_type="image/png")) == Inline(data, "image/jpeg")


def test_results_for_unchanged_blocks_are_cached_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    decodes = Decodes(monkeypatch)
    monkeypatch.setattr(media, "REMEMBERED_CHECKS", 2)
    monkeypatch.setattr(media, "_CHECKS", {})
    coded: list[Any] = [os.urandom(30).hex() for _ in range(3)]
    for _ in range(5):
        assert media.base64_problem(coded[0], "image/png") == UNKNOWN
    assert decodes.count == 1
    for item in coded:
        media.base64_problem(item, "image/png")
        assert len(media._CHECKS) <= 2
    assert media.base64_problem(None, "image/png") is None
    assert media.base64_problem("PGh0bWw", None) is None
    assert media.base64_problem("PGh0bWw", "audio/mp3") is None


def test_the_noise_of_these_tests_does_not_compress() -> None:
    """Otherwise cuts would remove no information."""
    assert len(zlib.compress(noise(24, 16).tobytes())) > 24 * 16 * 3
