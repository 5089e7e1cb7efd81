"""Images that a provider would refuse are shrunk; all others are sent unchanged, byte for byte."""

from __future__ import annotations

from io import BytesIO

import pytest
from PIL import Image as Pillow

from session import Image, Session
from session.images import image_size
from session.providers import validate_anthropic
from session.providers.media import Inline, Note, shrunk_to_fit


def picture(width: int, height: int, kind: str = "PNG", *, noise: bool = False) -> Inline:
    drawn = Pillow.effect_noise((width, height), 90).convert("RGB") if noise else Pillow.new("RGB", (width, height), (90, 9, 9))
    out = BytesIO()
    drawn.save(out, kind)
    return Inline(out.getvalue(), f"image/{kind.lower()}")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_an_image_within_the_limits_does_not_change(kind: str) -> None:
    image = picture(300, 200, kind)
    assert shrunk_to_fit(image, side=300, encoded=(len(image.data) + 2) // 3 * 4) is image


@pytest.mark.parametrize(("kind", "becomes"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/png"), ("WEBP", "image/png")])
def test_a_long_side_is_scaled_with_its_proportions(kind: str, becomes: str) -> None:
    smaller = shrunk_to_fit(picture(3000, 1000, kind), side=1500, encoded=10**7)
    assert isinstance(smaller, Inline)
    assert (image_size(smaller.data), smaller.media_type) == ((1500, 500), becomes)


def test_a_large_file_is_scaled_until_it_fits() -> None:
    image = picture(1200, 1200, noise=True)
    limit = len(image.base64) // 2
    smaller = shrunk_to_fit(image, side=8000, encoded=limit)
    assert isinstance(smaller, Inline)
    assert len(smaller.base64) <= limit


def test_an_image_that_cannot_fit_becomes_a_note() -> None:
    assert shrunk_to_fit(picture(900, 900, noise=True), side=8000, encoded=100) == Note("[image too large to send: 900x900]")
    bomb = bytearray(picture(10, 10).data)
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    assert shrunk_to_fit(Inline(bytes(bomb), "image/png"), side=8000, encoded=10**7) == Note("[image too large to send: 60000x60000]")


def test_a_damaged_picture_becomes_a_note() -> None:
    image = picture(3000, 10)
    assert shrunk_to_fit(Inline(image.data[: len(image.data) // 2], "image/png"), side=100, encoded=10**7) == Note("[image damaged]")


def test_images_sent_to_anthropic_are_within_its_limits() -> None:
    session = Session()
    session.add_message("user", ["look", Image(data=picture(9000, 30).data)])
    messages = session.to_anthropic_messages()
    assert validate_anthropic(messages) == []
    assert messages.messages[0]["content"][1]["source"]["type"] == "base64"
