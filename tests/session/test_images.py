"""Image sizes from headers: correct for sound images, bounded in work and without errors for hostile ones."""

import io
import struct
import zlib
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from session import images
from session.images import MAX_SIDE, MAX_STEPS, image_size

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
JUNK = b"no pixels"


def painted(form: str, size: tuple[int, int], **options: object) -> bytes:
    """Return an image written by Pillow."""
    file = io.BytesIO()
    Pillow.new("RGB", size, (200, 30, 30)).save(file, form, **options)
    return file.getvalue()


def exif(orientation: int, order: str = "<") -> bytes:
    start = b"II*\0" if order == "<" else b"MM\0*"
    return start + struct.pack(f"{order}IHHHIHxxI", 8, 1, 0x0112, 3, 1, orientation, 0)


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width: int, height: int, *chunks: bytes) -> bytes:
    """Return a PNG whose pixels cannot be decoded."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IDAT", JUNK) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, before: bytes = b"") -> bytes:
    return b"\xff\xd8" + before + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03" + bytes(9) + b"\xff\xda" + JUNK


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


def webp(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2) for name, content in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def extended(width: int, height: int, flags: int = 0) -> tuple[bytes, bytes]:
    return b"VP8X", bytes([flags, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


SOUND = {
    "png": painted("PNG", (31, 17)),
    "jpeg": painted("JPEG", (31, 17)),
    "progressive jpeg": painted("JPEG", (31, 17), progressive=True),
    "gif": painted("GIF", (31, 17)),
    "lossy webp": painted("WEBP", (31, 17)),
    "lossless webp": painted("WEBP", (31, 17), lossless=True),
    "extended webp": painted("WEBP", (31, 17), exif=exif(1)),
    "animated webp": painted("WEBP", (31, 17), save_all=True, append_images=[Pillow.new("RGB", (31, 17))]),
}


# Sound images


@pytest.mark.parametrize("data", SOUND.values(), ids=SOUND)
def test_every_kind_of_every_format_gives_its_size(data: bytes) -> None:
    assert image_size(data) == (31, 17)


@given(form=st.sampled_from(FORMATS), size=st.tuples(st.integers(1, 300), st.integers(1, 300)), orientation=st.integers(0, 9))
def test_sizes_and_rotation_match_pillow(form: str, size: tuple[int, int], orientation: int) -> None:
    """Pillow is the slow twin: it decodes the image and applies the EXIF orientation."""
    options = {} if form == "GIF" else {"exif": exif(orientation, ">" if orientation % 2 else "<")}
    data = painted(form, size, **options)
    with Pillow.open(io.BytesIO(data)) as image:
        width, height = image.size
        turned = image.getexif().get(0x0112) in {5, 6, 7, 8}
    assert image_size(data) == ((height, width) if turned else (width, height))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientations_five_to_eight_swap_the_sides(orientation: int) -> None:
    expected = (20, 10) if orientation >= 5 else (10, 20)
    assert image_size(png(10, 20, chunk(b"eXIf", exif(orientation)))) == expected
    assert image_size(jpeg(10, 20, segment(0xE1, b"Exif\0\0" + exif(orientation, ">")))) == expected
    assert image_size(webp(extended(10, 20, 0x08), (b"ODD ", b"x"), (b"EXIF", exif(orientation)))) == expected


def segment(marker: int, content: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


@pytest.mark.parametrize(("first", "second", "expected"), [(6, 1, (20, 10)), (1, 6, (10, 20))])
def test_only_the_first_exif_segment_counts(first: int, second: int, expected: tuple[int, int]) -> None:
    segments = b"".join(segment(0xE1, b"Exif\0\0" + exif(orientation)) for orientation in (first, second))
    assert image_size(jpeg(10, 20, segments)) == expected


def test_invalid_exif_data_rotates_nothing() -> None:
    assert image_size(jpeg(10, 20, segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + exif(6)))) == (10, 20)
    assert image_size(jpeg(10, 20, segment(0xE2, b"Exif\0\0" + exif(6)))) == (10, 20)
    assert image_size(webp(extended(10, 20), (b"EXIF", exif(6)))) == (10, 20)  # the flag denies the EXIF data


@pytest.mark.parametrize("marker", [0xC4, 0xC8, 0xCC, 0xDB, 0xE0, 0xFE])
def test_segments_before_the_frame_header_are_skipped(marker: int) -> None:
    assert image_size(jpeg(10, 20, segment(marker, b"\x08\x00\x05\x00\x05"))) == (10, 20)


# Only the header counts, not the media type or the pixels


@pytest.mark.parametrize("form", FORMATS)
def test_pixels_are_never_decoded(form: str) -> None:
    """Only the header is sound here. Pillow, which decodes, fails."""
    data = {"PNG": png(12, 34), "JPEG": jpeg(12, 34), "GIF": gif(12, 34), "WEBP": webp(extended(12, 34))}[form]
    assert image_size(data) == (12, 34)
    with pytest.raises((OSError, SyntaxError)), Pillow.open(io.BytesIO(data)) as image:
        image.load()


def test_a_png_with_exif_data_before_broken_pixels_still_gives_its_size() -> None:
    assert image_size(png(10, 20, chunk(b"eXIf", exif(6)))) == (20, 10)


def test_exif_data_after_the_pixels_is_ignored() -> None:
    assert image_size(png(10, 20) + chunk(b"eXIf", exif(6))) == (10, 20)


@pytest.mark.parametrize(("width", "height"), [(20_000, 20_000), (MAX_SIDE, MAX_SIDE), (1, MAX_SIDE)])
def test_a_decompression_bomb_gives_its_size_without_being_decoded(width: int, height: int) -> None:
    assert image_size(png(width, height)) == (width, height)


@pytest.mark.parametrize(
    "data",
    [
        png(MAX_SIDE + 1, 1),
        png(1, MAX_SIDE + 1),
        png(2**32 - 1, 2**32 - 1),
        png(0, 5),
        png(5, 0),
        jpeg(0, 5),
        jpeg(5, 0),
        gif(0, 5),
        webp(extended(2**24, 5)),
        webp((b"VP8 ", b"\0\0\0\x9d\x01\x2a" + bytes(4))),
    ],
)
def test_an_implausible_header_gives_no_size(data: bytes) -> None:
    assert image_size(data) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"%PDF-1.7",
        b"BM" + bytes(60),
        b"II*\0" + bytes(60),
        b"<svg width='10' height='10'/>",
        png(5, 5).replace(b"IHDR", b"IDAT"),
        b"\xff\xd8\xff\xd9" + jpeg(5, 5)[2:],
        b"\xff\xd8\xff\xda" + jpeg(5, 5)[2:],
        webp((b"VP8 ", bytes(6) + b"\5\0\5\0")),
        webp((b"VP8L", bytes(5))),
        webp((b"ALPH", bytes(20))),
    ],
)
def test_data_in_another_format_has_no_size(data: bytes) -> None:
    assert image_size(data) is None


@pytest.mark.parametrize("data", SOUND.values(), ids=SOUND)
def test_a_truncated_image_has_its_size_or_none(data: bytes) -> None:
    sizes = [image_size(data[:length]) for length in range(len(data))]
    assert set(sizes) <= {None, (31, 17)}
    has_size = [size is not None for size in sizes]
    assert has_size == sorted(has_size)  # once there are enough bytes, more change nothing
    assert not has_size[9]
    assert has_size[-1]


STARTS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ", b"RIFF\0\0\0\0WEBPVP8L", b"RIFF\0\0\0\0WEBPVP8X")


@given(st.sampled_from(STARTS), st.binary(max_size=200))
def test_any_bytes_give_a_plausible_size_or_none(start: bytes, rest: bytes) -> None:
    size = image_size(start + rest)
    assert size is None or all(0 < side <= MAX_SIDE for side in size)


@given(st.sampled_from(list(SOUND.values())), st.data())
def test_a_damaged_image_gives_a_plausible_size_or_none(sound: bytes, data: st.DataObject) -> None:
    damaged = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, min(len(damaged), 80) - 1))] = data.draw(st.integers(0, 255))
    size = image_size(bytes(damaged))
    assert size is None or all(0 < side <= MAX_SIDE for side in size)


@pytest.mark.parametrize("start", [b"II*\0", b"MM\0*", b"XX*\0", b""])
@pytest.mark.parametrize("rest", [b"", b"\xff" * 4, b"\xff" * 20, struct.pack("<IH", 8, 0xFFFF), b"\0" * 40])
def test_broken_exif_data_leaves_the_stored_size(start: bytes, rest: bytes) -> None:
    assert image_size(png(10, 20, chunk(b"eXIf", start + rest))) == (10, 20)


# Bounded work


class Watched(io.BytesIO):
    """A file that counts how often it is read."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8\xff" + bytes(200_000),
        b"\xff\xd8" + b"\xff" * 200_000,
        b"\xff\xd8" + b"\xff\xe0\x00\x02" * 50_000,
        b"\xff\xd8" + b"\xff\xe0\x00\x00" * 50_000,
        b"\xff\xd8" + b"\xff\xd0" * 100_000,
        png(5, 5, chunk(b"tEXt", b"") * 50_000),
        webp(extended(5, 5, 0x08), *[(b"ANMF", b"")] * 50_000),
    ],
    ids=["stray bytes", "filling", "empty segments", "segments of no length", "restarts", "png chunks", "webp chunks"],
)
def test_a_file_of_markers_only_costs_a_bounded_number_of_reads(data: bytes) -> None:
    file = Watched(data)
    assert images._size(file) in {None, (5, 5)}
    assert file.reads <= 4 * MAX_STEPS


def test_a_chunk_that_claims_gigabytes_is_not_read_into_memory() -> None:
    read_sizes: list[int] = []

    class Asked(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            read_sizes.append(-1 if size is None else size)
            return super().read(size)

    huge = struct.pack(">I", 2**32 - 1) + b"eXIf" + exif(6)
    file: IO[bytes] = Asked(png(10, 20)[:33] + huge)
    assert images._size(file) == (20, 10)
    assert all(0 <= size <= images.MAX_EXIF for size in read_sizes)
