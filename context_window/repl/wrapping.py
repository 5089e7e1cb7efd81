"""Text that arrives in pieces, laid out as it arrives: lines broken at blanks, nothing in it that a terminal would act on.

What is drawn at once, tables and bars, is laid out in `display/lines.py`.
"""

from __future__ import annotations

from ..display.glyphs import Glyphs
from ..display.lines import width_of

TAB = 4
"""Columns that a tab becomes."""


class Wrapper:
    """Breaks a text into lines of a width, piece by piece. A word stays back until it is known to be complete."""

    def __init__(self, width: int, glyphs: Glyphs) -> None:
        """
        Args:
            width: Columns of a line; at least two, which the widest character takes.
            glyphs: What may be shown.
        """
        self._width = max(2, width)
        self._glyphs = glyphs
        self._column = 0
        self._blanks = 0
        self._word: list[str] = []
        self._word_width = 0

    def resize(self, width: int) -> None:
        """Breaks what comes from here on at another width: the terminal has changed."""
        self._width = max(2, width)

    def feed(self, text: str) -> str:
        """What can be written of the text so far."""
        out: list[str] = []
        for character in text:
            if character == "\n":
                out += [self._flushed(), "\n"]
                self._column = self._blanks = 0
            elif character == "\t":
                out.append(self._flushed())
                self._blanks += TAB
            elif character != "\r":
                shown = self._glyphs.shown(character)
                if shown == " ":
                    out.append(self._flushed())
                    self._blanks += 1
                elif shown:
                    out.append(self._grown(shown))
        return "".join(out)

    def end(self) -> str:
        """What was still held back."""
        return self._flushed()

    def _grown(self, shown: str) -> str:
        """Adds to the word; one that is as long as a line is broken, for it fits nowhere."""
        columns = width_of(shown)
        out = ""
        if self._word_width + columns > self._width:
            out = f"{self._flushed()}\n"
            self._column = 0
        self._word.append(shown)
        self._word_width += columns
        return out

    def _flushed(self) -> str:
        if not self._word:
            return ""
        word, width = "".join(self._word), self._word_width
        self._word, self._word_width = [], 0
        blanks, self._blanks = self._blanks, 0
        if self._column + blanks + width <= self._width:
            self._column += blanks + width
            return " " * blanks + word
        broken = "\n" if self._column else ""
        self._column = width
        return broken + word


def folded(text: str, width: int, glyphs: Glyphs) -> list[str]:
    """The whole text in lines of a width."""
    wrapper = Wrapper(width, glyphs)
    return (wrapper.feed(text) + wrapper.end()).split("\n")
