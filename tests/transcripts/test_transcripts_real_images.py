"""No request of a recorded session contains images that a provider cannot read, even if the log's images are damaged."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from session import FunctionCallOutput, Image, Message, Session
from session.items import Item
from session.parts import Part
from session.providers.media import unusable
from session.units import request_points
from tests.support.pictures import media_of, scrubbed
from tests.support.recordings import account_of
from tests.support.shared import TRANSCRIPTS, needs_transcripts
from tests.support.stubs.pictures import is_readable

pytestmark = needs_transcripts

IMAGE_MARK = re.compile(rb'"(?:media_type|mediaType|mime_type|mimeType|mime)"\s*:\s*"image/|data:image/')
REQUESTS_EXAMINED = 8
"""Requests to examine per session: the last ones, which contain all earlier items."""


@cache
def recorded() -> list[Session]:
    """Return the recorded sessions with image bytes, and those of Codex."""
    paths = [path for path in sorted(TRANSCRIPTS.rglob("*.json*")) if "provider_truth" not in path.parts and path.name != "manifest.json"]
    named = [path for path in paths if "codex" in path.parts or IMAGE_MARK.search(path.read_bytes())]
    sessions = [session for path in named for session in account_of(path).sessions]
    return [session for session in sessions if any(image_data(session)) or "codex" in str(session.metadata)]


def parts_of(item: Item) -> tuple[Part, ...]:
    return item.content if isinstance(item, Message) else item.output if isinstance(item, FunctionCallOutput) else ()


def image_data(session: Session) -> Iterator[bytes]:
    for item in session.items:
        yield from (part.data for part in parts_of(item) if isinstance(part, Image) and part.data is not None)


def with_scrubbed_images(item: Item) -> Item:
    parts = tuple(
        replace(part, data=scrubbed(part.data)) if isinstance(part, Image) and part.data is not None else part for part in parts_of(item)
    )
    if isinstance(item, Message):
        return replace(item, content=parts)
    return replace(item, output=parts) if isinstance(item, FunctionCallOutput) else item


def requests(session: Session) -> Iterator[Any]:
    """Yield the session's last requests in all four formats."""
    for end in request_points(session)[-REQUESTS_EXAMINED:]:
        view = Session.showing(session, list(session.items[:end]), breaks=session.response_breaks, settled=0)
        yield view.to_anthropic_messages()
        yield view.to_openai_messages()
        yield view.to_openai_responses()
        yield asyncio.run(view.to_google_contents())


def test_recorded_images_are_intact_and_sent() -> None:
    images = [data for session in recorded() for data in image_data(session)]
    assert len(images) >= 5
    assert [unusable(Image(data=data)) for data in images] == [None] * len(images)
    sent_images = {base64.b64decode(coded) for session in recorded() for payload in requests(session) for coded in media_of(payload)}
    assert sent_images & set(images)
    assert all(is_readable(data) for data in sent_images)


@pytest.mark.parametrize("cut", [False, True], ids=["scrubbed", "cut in half"])
def test_no_request_contains_redacted_or_truncated_data(cut: bool) -> None:
    """Logs are scrubbed of secrets before they are shared, and a word inserted into base64 is still base64."""
    notes = 0
    for session in recorded():
        damaged = Session([with_scrubbed_images(item) for item in session.items])
        if cut:
            damaged = Session.from_dict(_halved(session.to_dict()))
        for payload in requests(damaged):
            assert [coded for coded in media_of(payload) if not is_readable(base64.b64decode(coded))] == []
            notes += str(payload).count("[image damaged: ")
    assert notes > 0


def _halved(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: member[: len(member) // 8 * 4] if key == "data" and value.get("type") == "image" else _halved(member)
            for key, member in value.items()
        }
    return [_halved(member) for member in value] if isinstance(value, list) else value
