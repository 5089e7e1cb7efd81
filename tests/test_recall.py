"""Recall in its corners: what placeholders name, which id wins, and what is said where nothing comes back."""

from __future__ import annotations

import pytest

from context_window.trimming.placeholders import SHOWN, image_placeholder
from session.items import Message
from session.parts import Image


@pytest.mark.parametrize("scheme", ["data:", "DATA:"])
def test_the_placeholder_of_an_image_in_a_data_url_does_not_hold_the_image(scheme: str) -> None:
    image = Image(url=f"{scheme}image/png;base64,{'A' * 50_000}", width=8, height=6)
    assert image_placeholder(Message("user", [image], id="m"), 0, image) == "[image 8x6 taken out; recall id m#0]"


@pytest.mark.parametrize("source", ["url", "path"])
def test_a_placeholder_repeats_the_beginning_of_a_long_address(source: str) -> None:
    address = "https://example.org/a.png?signature=" + "0123456789abcdef" * 200
    image = Image(**{source: address}, width=8, height=6, open_path=False)  # type: ignore[arg-type]
    told = image_placeholder(Message("user", [image], id="m"), 0, image)
    assert told == f"[image 8x6 {address[:SHOWN]} taken out; recall id m#0]"
