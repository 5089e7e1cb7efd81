"""Text that arrives in pieces: lines fit, nothing is lost, and no control characters remain."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.display.glyphs import ASCII, UNICODE
from context_window.display.lines import width_of
from context_window.printable import printable
from context_window.repl.wrap import Wrapper, folded

ANY = st.text(st.one_of(st.characters(), st.sampled_from(" \n\t\r\x1b\u200d👩💻漢字é\u0301ab")), max_size=80)


@given(st.lists(ANY, max_size=6), st.integers(2, 30))
def test_no_line_is_wider_than_the_width_however_the_text_is_split(pieces: list[str], width: int) -> None:
    wrapper = Wrapper(width, UNICODE)
    output = "".join(map(wrapper.feed, pieces)) + wrapper.end()
    assert output == Wrapper(width, UNICODE).feed("".join(pieces) + "\n").removesuffix("\n")
    assert all(width_of(line) <= width for line in output.split("\n"))


@given(ANY, st.integers(2, 30))
def test_only_spaces_and_control_characters_are_removed(text: str, width: int) -> None:
    output = "".join(folded(text, width, UNICODE))
    assert re.sub(r" ", "", output) == re.sub(r" ", "", printable(text))
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs"} for character in output)


@given(ANY, st.integers(2, 30))
def test_an_ascii_terminal_gets_only_ascii(text: str, width: int) -> None:
    assert "".join(folded(text, width, ASCII)).isascii()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("  in\n    deep", ["  in", "    deep"]),
        ("abcdefghijkl", ["abcdefgh", "ijkl"]),
        ("a abcdefghijkl", ["a", "abcdefgh", "ijkl"]),
        ("漢字漢字漢", ["漢字漢字", "漢"]),
        ("x\n\ny", ["x", "", "y"]),
        ("\tx", ["    x"]),
        ("one     two", ["one", "two"]),
        ("", [""]),
        ("\x1b[2Jx\x07", ["[2Jx"]),
        ("x\r\ny", ["x", "y"]),
    ],
)
def test_line_breaks(text: str, lines: list[str]) -> None:
    assert folded(text, 8, UNICODE) == lines


def test_a_word_is_written_once_it_is_complete() -> None:
    wrapper = Wrapper(20, UNICODE)
    assert [wrapper.feed(piece) for piece in ("Hel", "lo wor", "ld\nA")] == ["", "Hello", " world\n"]
    assert wrapper.end() == "A"


@given(st.text(max_size=60), st.text(max_size=60), st.integers(2, 30), st.integers(2, 30))
def test_output_after_a_resize_fits_the_new_width(before: str, after: str, width: int, then: int) -> None:
    wrapper = Wrapper(width, UNICODE)
    output = wrapper.feed(f"{before}\n")
    wrapper.resize(then)
    rest = wrapper.feed(after) + wrapper.end()
    assert all(width_of(line) <= width for line in output.split("\n"))
    assert all(width_of(line) <= then for line in rest.split("\n"))
