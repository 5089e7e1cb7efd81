"""What a sound or video costs: seconds read from headers, a price per second by provider, and files that lie or break."""

from __future__ import annotations

import struct
import time
import wave
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.counting import TiktokenCounter
from context_window.counting.recordings import kind_of, seconds_of
from context_window.models import describe_model
from session.estimate import BYTES_PER_PAGE, PAGE_TOKENS
from session.parts import Document


def sound(seconds: float) -> bytes:
    """A WAV file."""
    file = BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8_000)
        writer.writeframes(b"\0\0" * int(8_000 * seconds))
    return file.getvalue()


def box(kind: bytes, content: bytes) -> bytes:
    """A box of the MP4 format."""
    return struct.pack(">I", 8 + len(content)) + kind + content


def video(seconds: float, *, length_first: bool = True) -> bytes:
    """The parts of an MP4 file that tell its length."""
    movie = box(b"moov", box(b"mvhd", struct.pack(">5I", 0, 0, 0, 1_000, int(1_000 * seconds)) + b"\0" * 80))
    frames = box(b"mdat", b"\0" * 1_000)
    return box(b"ftyp", b"isom\0\0\0\0isom") + (movie + frames if length_first else frames + movie)


@pytest.mark.parametrize(
    ("model", "audio", "video_tokens"),
    [
        # tokens per second: 84 were reported for 2.6 seconds of sound by Gemini, 25 by OpenAI, which adds 4 of text
        ("gemini-2.5-flash", 32, 300),
        ("gemini-3-pro-preview", 32, 102),
        ("gpt-audio", 10, None),
    ],
)
def test_a_recording_costs_so_much_a_second(model: str, audio: int, video_tokens: int | None) -> None:
    counter, added = TiktokenCounter(describe_model(model).image_rule), 4 if model == "gpt-audio" else 0
    for seconds in (1, 2.5, 60):
        assert counter.count_part(Document(data=sound(seconds), media_type="audio/wav")) == added - int(-audio * seconds // 1)
        for film in (video(seconds), video(seconds, length_first=False)):
            tokens = counter.count_part(Document(data=film, media_type="video/mp4"))
            assert tokens == (PAGE_TOKENS if video_tokens is None else video_tokens * seconds)


def test_providers_that_take_no_recordings_have_no_price_for_them() -> None:
    data = sound(60)
    tokens = TiktokenCounter(describe_model("claude-opus-4-8").image_rule).count_part(Document(data=data, media_type="audio/wav"))
    assert tokens == PAGE_TOKENS * (1 + len(data) // BYTES_PER_PAGE)


def test_a_recording_whose_headers_tell_nothing_is_rather_too_long() -> None:
    assert seconds_of(b"\0" * 400_000, "audio") == 100
    assert seconds_of(b"\0" * 600_000, "video") == 10
    assert seconds_of(video(10**6), "video") < 1  # nobody sends eleven days


@pytest.mark.parametrize(
    ("media_type", "kind"), [("audio/mpeg", "audio"), ("VIDEO/MP4", "video"), ("text/plain", ""), ("", ""), (None, "")]
)
def test_the_media_type_tells_what_a_file_is(media_type: str | None, kind: str) -> None:
    assert kind_of(media_type) == kind


HOSTILE: dict[str, Callable[[], bytes]] = {
    "sound frames without content": lambda: b"\xff\xfb" * 4_000_000,
    "empty tags": lambda: b"ID3\x04\0\0\0\0\0\0" + b"\0" * 10_000_000,
    "empty boxes": lambda: box(b"ftyp", b"isom\0\0\0\0") + box(b"free", b"") * 500_000,
    "pages": lambda: b"OggS" * 3_000_000,
    "zeros": lambda: b"\0" * 20_000_000,
}
"""Files made to take long. An MP3 of 8 MB takes the reader six seconds if nobody stops it."""


@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_takes_long(name: str) -> None:
    data = HOSTILE[name]()
    start = time.process_time()
    assert seconds_of(data, "audio") > 0
    assert time.process_time() - start < 2


HEADERS = (
    b"",
    b"ID3\x04",
    b"RIFF\x10\0\0\0WAVEfmt ",
    b"OggS",
    b"fLaC",
    b"FORM",
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",
    sound(0.1)[:40],
    video(1)[:60],
)


@given(header=st.sampled_from(HEADERS), data=st.binary(max_size=300))
def test_any_bytes_have_a_length(header: bytes, data: bytes) -> None:
    assert seconds_of(header + data, "audio") >= 0
