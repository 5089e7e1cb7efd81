"""Extracts: what counts as a line and as a term, and how the rest of the library meets an item of which only lines are left."""

from __future__ import annotations

import json

import pytest

from context_window.trimming.extracts import extracted, lines_of, texts_of
from context_window.trimming.terms import LINE, NAME, NUMBER, PATH, names_in, weight_of
from session.identity import is_same
from session.items import FunctionCall, FunctionCallOutput, Message
from session.parts import Image


@pytest.mark.parametrize(
    ("line", "weights"),
    [
        ("see src/app/main.py", {"src/app/main.py": PATH}),
        ("see my-app/the-view.tsx:14", {"my-app/the-view.tsx:14": PATH}),
        ("open README.md now", {"README.md": PATH}),
        ("call parse_rows or readAll", {"parse_rows": NAME, "readAll": NAME}),
        ("plain words, nothing more", {}),
        ("commit 3fa9c1d04e on 2024", {"3fa9c1d04e": NAME, "2024": NUMBER}),
        ("  12→the words of a line that is long", {"the words of a line that is long": LINE}),
    ],
)
def test_terms_of_a_line(line: str, weights: dict[str, float]) -> None:
    assert {name: weight_of(name) for name in names_in(line) if weight_of(name)} == weights


def test_lines_are_numbered_without_blank_ones_and_long_ones_in_pieces() -> None:
    texts = ["one\n\n  two  \r\n", "three " * 100]
    lines = [texts[text][start:end] for text, start, end in lines_of(texts)]
    assert lines[:2] == ["one", "  two"]
    assert "".join(lines[2:]) == texts[1].rstrip()
    assert [len(line) for line in lines[2:]] == [240, 240, 119]


def test_an_output_shows_its_lines_with_gaps_and_says_that_an_image_is_missing() -> None:
    output = FunctionCallOutput("run", ("a\nb\nc\nd", Image(url="https://example.org/a.png"), "e\nf"), "c", id="o1")
    shown = extracted(output, (1, 2, 4))
    assert isinstance(shown, FunctionCallOutput)
    assert shown.text == "[extract without 1 image; recall id o1]\n…\nb\nc\n…\ne\n…"


def test_a_call_keeps_its_short_values_and_lines_of_its_long_ones() -> None:
    arguments = json.dumps({"path": "a.py", "text": "\n".join(f"line {number}" for number in range(40)), "old": "x" * 300})
    shown = extracted(FunctionCall("write", arguments, "c", id="f1"), (3,))
    assert isinstance(shown, FunctionCall)
    assert json.loads(shown.arguments) == {
        "path": "a.py",
        "text": "[extract; recall id f1]\n…\nline 3\n…",
        "old": "[text taken out here; recall id f1]",
    }


def test_an_extract_has_no_lines_of_its_own() -> None:
    shown = extracted(Message("user", "one\ntwo\nthree"), (1,))
    assert texts_of(shown) == []


def test_an_extract_of_an_item_is_the_same_item_and_one_of_another_is_not() -> None:
    """A merge of a log with a view of it knows by this that it has the item."""
    message = Message("user", "one\ntwo\nthree", id="m")
    shorter, other = extracted(message, (0, 2)), extracted(Message("user", "four\nfive", id="m"), (0,))
    assert is_same(message, shorter)
    assert is_same(extracted(message, (1,)), message)
    assert not is_same(message, other)
