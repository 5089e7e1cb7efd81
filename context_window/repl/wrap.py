"""Wraps text that arrives in pieces, and removes control characters. Lines break at spaces.

Tables and bars, which are drawn in one go, are laid out in `display/lines.py`.
"""

from __future__ import annotations

from ..display.glyphs import Glyphs
from ..display.lines import width_of

TAB = 4
"""Columns of a tab."""


class Wrapper:
    """Breaks a text into lines of a given width, piece by piece. A word is held back until it is complete."""

    def __init__(self, width: int, glyphs: Glyphs) -> None:
        """
        Args:
            width: Columns of a line. At least 2 are used, the width of the widest character.
            glyphs: The characters that can be shown.
        """
        self._width = max(2, width)
        self._glyphs = glyphs
        self._column = 0
        self._blanks = 0
        self._word: list[str] = []
        self._word_width = 0

    def resize(self, width: int) -> None:
        """Use another width from here on, after the terminal was resized."""
        self._width = max(2, width)

    def feed(self, text: str) -> str:
        """Add a piece of text, and return the output that is ready."""
        output: list[str] = []
        for character in text:
            if character == "\n":
                output += [self._flush_word(), "\n"]
                self._column = self._blanks = 0
            elif character == "\t":
                output.append(self._flush_word())
                self._blanks += TAB
            elif character != "\r":
                clean = self._glyphs.safe(character)
                if clean == " ":
                    output.append(self._flush_word())
                    self._blanks += 1
                elif clean:
                    output.append(self._extend_word(clean))
        return "".join(output)

    def end(self) -> str:
        """Return the output that was held back."""
        return self._flush_word()

    def _extend_word(self, character: str) -> str:
        """Add a character to the current word. A word that is longer than a line is broken."""
        columns = width_of(character)
        output = ""
        if self._word_width + columns > self._width:
            output = f"{self._flush_word()}\n"
            self._column = 0
        self._word.append(character)
        self._word_width += columns
        return output

    def _flush_word(self) -> str:
        if not self._word:
            return ""
        word, width = "".join(self._word), self._word_width
        self._word, self._word_width = [], 0
        blanks, self._blanks = self._blanks, 0
        if self._column + blanks + width <= self._width:
            self._column += blanks + width
            return " " * blanks + word
        line_break = "\n" if self._column else ""
        self._column = width
        return line_break + word


def folded(text: str, width: int, glyphs: Glyphs) -> list[str]:
    """Return the text as lines of at most `width` columns."""
    wrapper = Wrapper(width, glyphs)
    return (wrapper.feed(text) + wrapper.end()).split("\n")
