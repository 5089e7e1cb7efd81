"""The original sizes that a changed output records.

A view may be a log: its outputs are described, and changed again, as their originals would be.
"""

from __future__ import annotations

import json

import pytest

from context_window.counting.item_tokens import Measurer
from session import Document, FunctionCallOutput, Image, Session
from session.parts import Text
from tests.support.counting import Letters
from tests.support.engine import WAS, Cut, changed, cleared, original_of, output_text

SHOT = Image(url="https://example.org/a.png", width=30, height=20)
OUTPUT = FunctionCallOutput("Look", ("a" * 300, SHOT, "b" * 299, SHOT, Document(text="d")), "c", id="o")


def truncated(item: FunctionCallOutput, cut: Cut | None, *images: int) -> FunctionCallOutput:
    result = changed(item, images, cut)
    assert isinstance(result, FunctionCallOutput)
    return result


def test_however_often_it_was_changed_a_placeholder_tells_what_it_was() -> None:
    once = truncated(OUTPUT, Cut(40, 30, 0))
    twice = truncated(once, None, 1)
    thrice = truncated(twice, Cut(20, 30, 0))
    for entry in (OUTPUT, once, twice, thrice):
        assert cleared(entry) == cleared(OUTPUT)


def test_a_second_cut_is_the_cut_of_the_original() -> None:
    once = truncated(OUTPUT, Cut(40, 30, 0))
    assert truncated(once, Cut(20, 10, 0)) == truncated(OUTPUT, Cut(20, 10, 0))
    assert truncated(once, Cut(100, 100, 0)) == once
    assert output_text(once) == "a" * 40 + "\n[530 characters taken out here; recall id o]\n" + "b" * 30


def test_an_image_keeps_its_id_where_texts_beside_it_are_gone() -> None:
    once = truncated(OUTPUT, Cut(40, 30, 0))
    assert once.output.index(SHOT) == 1
    assert truncated(once, None, 2).output[2] == Text("[image 30x20 https://example.org/a.png taken out; recall id o#3]")
    assert truncated(once, None, 2) == truncated(OUTPUT, Cut(40, 30, 0), 3)


def test_what_is_said_lasts_through_a_file() -> None:
    once = truncated(OUTPUT, Cut(40, 30, 0), 1)
    (loaded,) = Session.from_dict(json.loads(json.dumps(Session([once]).to_dict()))).items
    assert isinstance(loaded, FunctionCallOutput)
    assert original_of(loaded) == original_of(once)


def test_a_cut_output_is_as_short_as_it_is_and_can_be_made_shorter() -> None:
    measurer = Measurer(Letters())
    once = truncated(OUTPUT, Cut(40, 30, 0), 1, 3)
    full_log = measurer.measure(once).tokens
    assert measurer.truncated(once, 10**6) == Cut(40, 30, full_log)
    less = measurer.truncated(once, full_log - 20)
    assert full_log - 24 <= less.tokens <= full_log - 20
    assert measurer.measure(truncated(once, less)).tokens == less.tokens


def test_a_placeholder_is_not_cut() -> None:
    placeholder = cleared(OUTPUT)
    tokens = Measurer(Letters()).measure(placeholder).tokens
    assert Measurer(Letters()).truncated(placeholder, 3) == Cut(0, 0, tokens)


@pytest.mark.parametrize(
    "was",
    [
        None,
        7,
        {},
        {**original_of(OUTPUT).to_extra(), "images": "many"},
        {**original_of(OUTPUT).to_extra(), "length": -1},
        {**original_of(OUTPUT).to_extra(), "length": True},
        {**original_of(OUTPUT).to_extra(), "kept": [1]},
        {**original_of(OUTPUT).to_extra(), "kept": None},
        {**original_of(OUTPUT).to_extra(), "places": [0]},
        {**original_of(OUTPUT).to_extra(), "notes": ["x"]},
    ],
)
def test_what_makes_no_sense_is_not_believed(was: object) -> None:
    damaged = FunctionCallOutput("Look", OUTPUT.output, "c", id="o", extra={WAS: was})
    assert original_of(damaged) == original_of(OUTPUT)
