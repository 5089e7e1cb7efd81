"""Images and documents are the same in every format, wherever they are and whichever base64 variant encodes them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from session import Image, Message
from session.transcripts import read_transcript
from tests.support.claude_lines import Log, image
from tests.support.pictures import png
from tests.support.tool_logs import gemini, gemini_said, opencode, opencode_said, pi, write_document, write_lines

Json = dict[str, Any]

PICTURE = (png_bytes := png()) + b"\xff\xfb\xfe" * 3 + b"\xff" * (1 if len(png_bytes) % 3 != 2 else 2)
"""The bytes at the end give its base64 characters that differ in the URL-safe alphabet, and padding."""
BASE64 = base64.b64encode(PICTURE).decode()


def _claude(folder: Path, data: str) -> Path:
    log = Log()
    log.user([image(data)])
    return log.write(folder)


def _gemini(folder: Path, data: str) -> Path:
    return write_document(folder, gemini(gemini_said("user", "u", [{"inlineData": {"mimeType": "image/png", "data": data}}])))


def _opencode(folder: Path, data: str) -> Path:
    part = {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{data}"}
    return write_document(folder, opencode(opencode_said("user", "m", part)))


def _pi(folder: Path, data: str) -> Path:
    return write_lines(folder, [pi("user", [{"type": "image", "data": data, "mimeType": "image/png"}])])


def _chat(folder: Path, data: str) -> Path:
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return write_document(folder, [{"role": "user", "content": [part]}])


def _google(folder: Path, data: str) -> Path:
    return write_document(folder, {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}]})


READERS = [_claude, _gemini, _opencode, _pi, _chat, _google]

BASE64_VARIANTS = {
    "as usual": BASE64,
    "wrapped": "\n".join(BASE64[start : start + 76] for start in range(0, len(BASE64), 76)),
    "for URLs": BASE64.translate(str.maketrans("+/", "-_")),
    "without padding": BASE64.rstrip("="),
}


def _image(path: Path) -> Image:
    message = read_transcript(path).items[0]
    assert isinstance(message, Message)
    (part,) = message.content
    assert isinstance(part, Image)
    return part


@pytest.mark.parametrize("way", BASE64_VARIANTS)
@pytest.mark.parametrize("write", READERS)
def test_an_image_is_read_from_any_base64_variant(tmp_path: Path, write: Callable[[Path, str], Path], way: str) -> None:
    assert BASE64_VARIANTS["for URLs"] != BASE64 != BASE64_VARIANTS["without padding"]
    assert _image(write(tmp_path, BASE64_VARIANTS[way])).data == PICTURE


@pytest.mark.parametrize(
    "document",
    [
        gemini(gemini_said("user", "u", [{"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}}])),
        {"contents": [{"role": "user", "parts": [{"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}}]}]},
    ],
)
def test_an_image_in_google_storage_is_kept_as_its_url(tmp_path: Path, document: Json) -> None:
    assert _image(write_document(tmp_path, document)).url == "gs://bucket/a.png"
