"""Images are decoded before they are sent, with bounded work, once, and without effects on Pillow's warnings or settings."""

from __future__ import annotations

import copy
import os
import pickle
import struct
import threading
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session import Document, Image, Message, Session
from session import image_check as image_check_module
from session.image_check import BROKEN, HEADER, UNKNOWN, image_problem
from session.providers import media
from session.providers.media import Inline, Note, document_source, image_source, unusable
from tests.support.counting import Letters
from tests.support.pictures import claiming_png, docx, encoded, every_kind, noise, pdf, png
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
def test_every_cut_that_loses_pixels_is_a_problem(name: str) -> None:
    """A format's last bytes only mark its end: the picture is whole without them."""
    data = KINDS[name]
    if "animated" in name:
        data = data[: len(data) // 4]  # in the first picture
    kept = [length for length in range(len(data)) if image_problem(data[:length]) is None]
    assert all(length >= len(data) - 4 for length in kept)


@given(name=st.sampled_from(sorted(KINDS)), offset=st.integers(0, 10**6), suffix=st.binary(max_size=30), gone=st.integers(0, 60))
def test_a_strict_decoder_reads_every_sound_image(name: str, offset: int, suffix: bytes, gone: int) -> None:
    """However an image is changed: if the check accepts it, an independent decoder does too. The check neither raises nor warns."""
    data = KINDS[name]
    offset %= len(data)
    data = data[:offset] + suffix + data[offset + gone :]
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
        (png()[:33], BROKEN),
        (png()[:40] + b"?" + png()[41:], BROKEN),  # inside the compressed pixels, so the checksum is wrong
        (b"GIF89a\2\0\2\0\0\0\0;", BROKEN),
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
    offset = data.index(b"\xff\xc0")
    return (
        data[:offset]
        + data[offset : offset + 19]
        + b"\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\x01\x22\0\x02\x11\x01\x03\x11\x01"
        + data[offset + 19 :]
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
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_rejected_quickly(name: str) -> None:
    data = HOSTILE[name]()
    start = time.process_time()
    assert image_problem(data) is not None
    assert time.process_time() - start < 5


@pytest.mark.parametrize("name", ["PNG, animated", "GIF, animated", "WebP, animated"])
def test_a_limited_number_of_frames_is_decoded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = KINDS[name][:-600]  # in the last of three frames
    assert image_problem(damaged) == BROKEN
    monkeypatch.setattr(image_check_module, "MOST_PIXELS", 24 * 16 * 2)
    assert image_problem(KINDS[name]) is None
    monkeypatch.setattr(image_check_module, "MOST_FRAMES", 1)
    assert image_problem(KINDS[name]) is None


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
    images = [Image(data=data) for data in KINDS.values()] + [Image(data=data[:200]) for data in KINDS.values()]
    answers: list[list[str | None]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=lambda: answers.append([unusable(image) for image in images])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [[None] * len(KINDS) + [BROKEN] * len(KINDS)] * 8


# Documents

OFFICE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


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
        (docx(), OFFICE, None),
        (docx()[:-1] + b"\0", OFFICE, None),
        (docx()[:-22], OFFICE, "damaged: it is no Office document"),
        (docx().replace(b"[Content_Types]", b"[Content?Types]"), OFFICE, "damaged: it is no Office document"),
        (docx().replace(b"PK\1\2", b"PK??"), OFFICE, "damaged: it is no Office document"),
        (b"<html>404</html>", OFFICE, "damaged: it is no Office document"),
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


@given(data=st.binary(max_size=200), media_type=st.sampled_from(["application/pdf", OFFICE]))
def test_no_document_raises(data: bytes, media_type: str) -> None:
    for start in (b"", b"PK\x03\x04", b"PK\5\6", b"%PDF-"):
        unusable(Document(data=start + data, media_type=media_type))


# Converters


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (Image(data=b"<html>404", media_type="image/png"), f"[image {UNKNOWN}]"),
        (Image(data=b"<html>404", media_type="image/heic"), f"[image {UNKNOWN}]"),
        (Image(data=png()[:33], media_type="image/png"), f"[image {BROKEN}]"),
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
