"""Images and documents are the same in every format, however their base64 is written and wherever they lie."""

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

PICTURE = (whole := png()) + b"\xff\xfb\xfe" * 3 + b"\xff" * (1 if len(whole) % 3 != 2 else 2)
"""With some bytes at the end: its base64 has letters that the alphabet for URLs writes otherwise, and padding."""
CODED = base64.b64encode(PICTURE).decode()


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

WRITTEN = {
    "as usual": CODED,
    "wrapped": "\n".join(CODED[start : start + 76] for start in range(0, len(CODED), 76)),
    "for URLs": CODED.translate(str.maketrans("+/", "-_")),
    "without padding": CODED.rstrip("="),
}


def _image(path: Path) -> Image:
    message = read_transcript(path).items[0]
    assert isinstance(message, Message)
    (part,) = message.content
    assert isinstance(part, Image)
    return part


@pytest.mark.parametrize("way", WRITTEN)
@pytest.mark.parametrize("write", READERS)
def test_an_image_is_read_however_its_base64_is_written(tmp_path: Path, write: Callable[[Path, str], Path], way: str) -> None:
    assert WRITTEN["for URLs"] != CODED != WRITTEN["without padding"]
    assert _image(write(tmp_path, WRITTEN[way])).data == PICTURE


@pytest.mark.parametrize(
    "document",
    [
        gemini(gemini_said("user", "u", [{"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}}])),
        {"contents": [{"role": "user", "parts": [{"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}}]}]},
    ],
)
def test_an_image_in_googles_store_is_kept_by_its_address(tmp_path: Path, document: Json) -> None:
    assert _image(write_document(tmp_path, document)).url == "gs://bucket/a.png"
