"""What every token counter keeps, whoever wrote it."""

import random
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import CharacterCounter, TiktokenCounter, TokenCounter
from context_window.counting import CallableCounter
from context_window.counting.counter import CheckedCounter
from context_window.counting.images import claude_high_tokens
from session.parts import Document, Image, Text
from tests.support.counting import Letters

COUNTERS: dict[str, TokenCounter] = {
    "tiktoken": TiktokenCounter(),
    "tiktoken times a ratio": TiktokenCounter(claude_high_tokens, Fraction("1.46")),
    "4 characters": CharacterCounter(),
    "a function": CallableCounter(lambda text: len(text.encode())),
    "a user's own": CheckedCounter(Letters()),
}

FREE = {"4 characters": 3}
"""Characters that cost nothing: this one rounds down. All others charge for every text."""

SEAM = 6
"""Tokens that joining two texts may cost or save."""

MEGABYTE = 1_000_000


@pytest.fixture(params=COUNTERS)
def counter(request: pytest.FixtureRequest) -> TokenCounter:
    return COUNTERS[request.param]


every = pytest.mark.parametrize("name", COUNTERS)


@every
@given(text=st.text())
def test_counts_are_whole_numbers_and_zero_for_nothing_only(name: str, text: str) -> None:
    found = COUNTERS[name].count_text(text)
    assert type(found) is int
    assert found >= 0
    assert (found == 0) == (len(text) <= FREE.get(name, 0))


@every
@given(text=st.text())
def test_the_same_text_costs_the_same(name: str, text: str) -> None:
    counter = COUNTERS[name]
    assert counter.count_text(text) == counter.count_text("".join(list(text))) == counter.count_part(Text(text))


@every
@given(before=st.text(), after=st.text())
def test_two_texts_cost_together_about_what_they_cost_apart(name: str, before: str, after: str) -> None:
    """Only around the seam can tokens fall otherwise: `SEAM` bounds how many more or fewer that makes."""
    counter = COUNTERS[name]
    apart = counter.count_text(before) + counter.count_text(after)
    assert abs(counter.count_text(before + after) - apart) <= SEAM


@every
@given(text=st.text(alphabet=st.characters(codec="utf-8")))
def test_a_token_covers_a_byte_at_least(name: str, text: str) -> None:
    """Bytes are a ceiling, ratio aside."""
    assert COUNTERS[name].count_text(text) <= -(-len(text.encode()) * 146 // 100)


@every
@given(width=st.integers(1, 5000), height=st.integers(1, 5000), size=st.integers(0, 10_000))
def test_an_image_costs_the_same_in_twice_the_bytes(name: str, width: int, height: int, size: int) -> None:
    counter = COUNTERS[name]
    small, large = (Image(data=bytes(length), width=width, height=height) for length in (size, 2 * size))
    assert counter.count_part(small) == counter.count_part(large) == counter.count_part(Image(url="u", width=width, height=height)) > 0


def test_an_image_of_unknown_size_costs_no_error(counter: TokenCounter) -> None:
    assert counter.count_part(Image(url="u")) == counter.count_part(Image(data=b"no image" * 1000)) >= 0


def test_documents_cost_something(counter: TokenCounter) -> None:
    assert counter.count_part(Document(text="a text of some length")) == counter.count_text("a text of some length")
    assert counter.count_part(Document(url="u")) > 0


def test_what_looks_special_is_text(counter: TokenCounter) -> None:
    """A special token is one token; the text that looks like it is at least what its letters cost together."""
    for special in ("<|endoftext|>", "<|endofprompt|>", "<|im_start|>system"):
        assert counter.count_text(special * 5) >= 5 * len(special) // 4
        assert counter.count_text(special) > 1


HOSTILE: dict[str, Callable[[], str]] = {
    "spaces": lambda: " " * MEGABYTE,
    "newlines": lambda: "\n" * MEGABYTE,
    "spaces and newlines": lambda: " \n" * (MEGABYTE // 2),
    "line ends": lambda: "\r\n" * (MEGABYTE // 2),
    "wide spaces": lambda: "\u2003" * MEGABYTE,
    "one letter": lambda: "a" * MEGABYTE,
    "letters in two cases": lambda: "aB" * (MEGABYTE // 2),
    "letters without a space": lambda: "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=MEGABYTE)),
    "digits": lambda: "7" * MEGABYTE,
    "base64": lambda: "".join(random.Random(2).choices("ABCDEFGHIJKLMNOPabcdefghijklmnop0123456789+/", k=MEGABYTE)),
    "a line of equals signs": lambda: "=" * MEGABYTE,
    "apostrophes": lambda: "'s" * (MEGABYTE // 2),
    "NUL bytes": lambda: "\0" * MEGABYTE,
    "any characters": lambda: "".join(map(chr, random.Random(3).choices(range(0x20, 0xD7FF), k=MEGABYTE // 3))),
    "Chinese": lambda: "日本語" * (MEGABYTE // 9),
    "marks": lambda: "e" + "\u0301" * (MEGABYTE // 2),
    "families": lambda: "👩\u200d" * (MEGABYTE // 7),
    "special tokens": lambda: "<|endoftext|>" * (MEGABYTE // 13),
    "deep JSON": lambda: "[" * (MEGABYTE // 2) + "]" * (MEGABYTE // 2),
    "lone surrogates": lambda: "\ud800" * (MEGABYTE // 3),
}


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", ["tiktoken", "tiktoken times a ratio", "4 characters", "a user's own"])
def test_a_megabyte_of_anything_is_counted_within_two_seconds(name: str, hostile: str) -> None:
    """Of processor time, so that a busy machine does not fail it: none takes more than half a second on a slow one."""
    counter, text = COUNTERS[name], HOSTILE[hostile]()
    counter.count_text("the vocabulary is loaded")
    start = time.thread_time()
    found = counter.count_text(text)
    taken = time.thread_time() - start
    assert 0 < found <= 1.46 * 3 * len(text) + 1
    assert taken < 2


def test_parts_clean_lone_surrogates_before_they_are_counted(counter: TokenCounter) -> None:
    dirty: Any = Text("a\ud800b")
    assert counter.count_part(dirty) == counter.count_text("a\ufffdb")
