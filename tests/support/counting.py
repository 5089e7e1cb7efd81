"""A counter whose answers a reader can check by eye: a token a character, an image its width."""

from __future__ import annotations

from session.parts import Document, Image, Part


class Letters:
    """A token a character; an image costs its width in pixels, a document without text ten."""

    name = "letters"

    def __init__(self) -> None:
        self.asked = 0

    def count_text(self, text: str) -> int:
        self.asked += 1
        return len(text)

    def count_part(self, part: Part) -> int:
        if isinstance(part, Image):
            return part.width or 0
        if isinstance(part, Document) and part.text is None:
            return 10
        return self.count_text(part.text or "")
