"""Rules that hold for every token counter, ours and users' own."""

import random
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import CharacterCounter, CtokCounter, GigatokenCounter, TiktokenCounter, TokenCounter
from context_window.counting import CallableCounter
from context_window.counting.counter import CheckedCounter, expected_error_of
from context_window.counting.images import claude_high_tokens
from session.parts import Document, Image, Text
from tests.support.counting import Letters

COUNTERS: dict[str, TokenCounter] = {
    "tiktoken": TiktokenCounter(),
    "tiktoken times a ratio": TiktokenCounter(claude_high_tokens, Fraction("1.46")),
    "tiktoken with weights": TiktokenCounter(claude_high_tokens, encoding="o200k_claude_4.7"),
    "4 characters": CharacterCounter(),
    "a function": CallableCounter(lambda text: len(text.encode())),
    "a user's own": CheckedCounter(Letters()),
}
if find_spec("ctok") is not None:  # else `test_ctok_is_among_them` says why it is not
    COUNTERS |= {"ctok 3.0": CtokCounter("3.0"), "ctok 4.7": CtokCounter("4.7"), "ctok 4.8": CtokCounter("4.8", claude_high_tokens)}

if find_spec("gigatoken") is not None:
    COUNTERS |= {"gigatoken": GigatokenCounter(), "gigatoken times a ratio": GigatokenCounter(claude_high_tokens, Fraction("1.46"))}

CEILING = dict.fromkeys(COUNTERS, Fraction(1)) | {name: Fraction("1.46") for name in COUNTERS if name.endswith("times a ratio")}
CEILING |= {name: Fraction(3) for name in COUNTERS if name.startswith("ctok")}
"""Tokens that a UTF-8 byte may cost. ctok's are above 1: a capital of two bytes can be six, with the marks of its word and case."""

SEAM = 6
"""Tokens that joining two texts may cost or save."""


def seam(name: str, before: str, after: str) -> int:
    """Return the tokens that joining two texts may add or save. ctok may tokenize the whole joined word differently."""
    if not name.startswith("ctok"):
        return SEAM
    last_word, first_word = before.split()[-1:], after.split()[:1]
    return SEAM + 3 * len("".join(last_word + first_word).encode())


TEXTS = st.text() | st.text(alphabet="aAbB1' \n\r\t\x01-=\"\u0301é日Ⱦ\u200d👩\ufe0f\u0730。\u00a0\u3000")
"""Any, and such as tokenizers treat specially: case, digits, white space, marks, controls, characters of several bytes."""

MEGABYTE = 1_000_000


@pytest.fixture(params=COUNTERS)
def counter(request: pytest.FixtureRequest) -> TokenCounter:
    return COUNTERS[request.param]


every = pytest.mark.parametrize("name", COUNTERS)


@every
@given(text=TEXTS)
def test_counts_are_whole_numbers_and_zero_for_nothing_only(name: str, text: str) -> None:
    tokens = COUNTERS[name].count_text(text)
    assert type(tokens) is int
    assert tokens >= 0
    assert (tokens == 0) == (text == "")


@every
@given(text=TEXTS)
def test_the_same_text_costs_the_same(name: str, text: str) -> None:
    counter = COUNTERS[name]
    assert counter.count_text(text) == counter.count_text("".join(list(text))) == counter.count_part(Text(text))


@every
@given(before=TEXTS, after=TEXTS)
def test_two_texts_cost_together_about_what_they_cost_apart(name: str, before: str, after: str) -> None:
    """Only around the seam can tokens fall otherwise: `seam` bounds how many more or fewer that makes."""
    counter = COUNTERS[name]
    apart = counter.count_text(before) + counter.count_text(after)
    assert abs(counter.count_text(before + after) - apart) <= seam(name, before, after)


@every
@given(text=st.text(alphabet=st.characters(codec="utf-8")))
def test_bytes_are_a_ceiling(name: str, text: str) -> None:
    """A token covers a byte at least, ratio aside; ctok's stated otherwise, with a mark where the message begins."""
    tokens, most = COUNTERS[name].count_text(text), CEILING[name] * len(text.encode())
    assert tokens <= -(-most.numerator // most.denominator) + name.startswith("ctok")


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
    "digits of one number": lambda: "".join(random.Random(4).choices("0123456789", k=MEGABYTE)),
    "control characters": lambda: "\x01" * MEGABYTE,
    "lone surrogates": lambda: "\ud800" * (MEGABYTE // 3),
}


QUICK_HOSTILE = [*HOSTILE][::4]


@pytest.mark.parametrize("hostile", [pytest.param(each, marks=[] if each in QUICK_HOSTILE else pytest.mark.long) for each in HOSTILE])
@pytest.mark.parametrize("name", [name for name in COUNTERS if name != "a function"])  # which is as fast as its author made it
def test_a_megabyte_of_anything_is_counted_within_two_seconds(name: str, hostile: str) -> None:
    """Of processor time, so that a busy machine does not fail it."""
    counter, text = COUNTERS[name], HOSTILE[hostile]()
    counter.count_text("the vocabulary is loaded")
    start = time.thread_time()
    tokens = counter.count_text(text)
    seconds = time.thread_time() - start
    assert 0 < tokens <= CEILING[name] * 3 * len(text) + 1
    assert seconds < 2


def test_ctok_is_among_them() -> None:
    if find_spec("ctok") is None:
        pytest.skip("ctok is not installed; it needs Python 3.12: pip install '.[claude]'")
    assert {"ctok 3.0", "ctok 4.7", "ctok 4.8"} < set(COUNTERS)


def test_an_error_that_is_said_is_a_part_of_the_count(counter: TokenCounter) -> None:
    assert 0 <= expected_error_of(counter) < 1


@every
@given(text=TEXTS)
def test_what_is_checked_counts_as_what_it_checks(name: str, text: str) -> None:
    counter = COUNTERS[name]
    checked = CheckedCounter(counter)
    assert (checked.count_text(text), checked.name) == (counter.count_text(text), counter.name)
    assert expected_error_of(checked) == expected_error_of(counter)


def test_parts_clean_lone_surrogates_before_they_are_counted(counter: TokenCounter) -> None:
    dirty: Any = Text("a\ud800b")
    assert counter.count_part(dirty) == counter.count_text("a\ufffdb")
