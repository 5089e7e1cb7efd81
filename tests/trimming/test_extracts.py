"""Extracts: lines and terms, and how the rest of the library handles an item that has only lines left."""

from __future__ import annotations

import json

import pytest

from session.identity import is_same
from session.items import FunctionCall, FunctionCallOutput, Message, MessageCategory
from session.parts import Image
from session.session import Session
from session.units import frontier
from tests.support.engine import HEAD, LINE, NAME, NUMBER, PATH, DigestPart, digest, lines_of, names_in, texts_of, weight_of


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


def test_a_digest_shows_lines_with_gaps_and_says_that_an_image_is_missing() -> None:
    output = FunctionCallOutput("run", ("a\nb\nc\nd", Image(url="https://example.org/a.png"), "e\nf"), "c", id="o1")
    visible = digest([DigestPart(output, (1, 2, 4))])
    assert visible.text == f"{HEAD}\n## run output without 1 image o1\n…\nb\nc\n…\ne\n…"


def test_a_digest_shows_lines_of_the_string_values_of_a_call() -> None:
    arguments = json.dumps({"path": "a.py", "limit": 3, "text": "\n".join(f"line {number}" for number in range(40)), "old": " "})
    visible = digest([DigestPart(FunctionCall("write", arguments, "c", id="f1"), (0, 4))])
    assert visible.text == f"{HEAD}\n## write call f1\na.py\n…\nline 3\n…"


def test_a_digest_is_in_the_users_voice_but_not_the_users_message() -> None:
    visible = digest([DigestPart(Message("user", "one\ntwo", id="m", category=MessageCategory.CONTEXT), (1,))])
    log = Session([Message("user", "Why?", id="why"), visible])
    assert (visible.id, visible.role, visible.category) == ("m", "user", MessageCategory.CONTEXT)
    assert [log.items[position].id for position in frontier(log)] == ["why", "m"]


def test_a_digest_has_no_lines_of_its_own() -> None:
    assert texts_of(digest([DigestPart(Message("user", "one\ntwo\nthree"), (1,))])) == []


def test_a_digest_is_the_same_item_as_the_first_that_it_shows_lines_of() -> None:
    """A merge of a log with a view of it knows by this that it has the item."""
    message, output = Message("user", "one\ntwo\nthree", id="m"), FunctionCallOutput("run", "four\nfive", "c", id="m")
    visible = digest([DigestPart(message, (0, 2)), DigestPart(output, (1,))])
    assert is_same(message, visible)
    assert is_same(digest([DigestPart(message, (1,))]), visible)
    assert is_same(visible, message)
    assert not is_same(output, visible)
    assert not is_same(digest([DigestPart(output, (0,))]), visible)
