"""`longest_cut`: within the limit, as long as it may be, between characters, at a line's end, and quick."""

import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from context_window import TiktokenCounter
from context_window.counting import text_truncation as cutting
from context_window.counting.text_truncation import longest_cut

CLUSTERS = (
    "a",
    "word ",
    "\n",
    "\r\n",
    "\r",
    "e\u0301",
    "\u0301" * 3,
    "👩\u200d👩\u200d👧",
    "👍🏽",
    "👩\u200d",
    "🇩🇪",
    "🇫",
    "한",
    "\u1112\u1161\u11ab",
    "\u1100\u1100\u1161",
    "क्षि",
    "\u0600",
    "日本",
)
"""What Unicode's annex 29 keeps together, and pieces of it."""
LONG_CLUSTERS = (
    "\u0301" * 70,
    "🇫" * 131,
    "🇫" * 132,
    "\u1100" * 200,
    "👩\u200d" * 80,
    "\u0600🇩" + "\u0301" * 80,
)
"""Longer than any character that people write."""

mixed = st.lists(st.sampled_from(CLUSTERS), max_size=80).map("".join)
longer = st.lists(st.sampled_from(CLUSTERS + LONG_CLUSTERS), max_size=12).map("".join)


def marker(removed: int) -> str:
    return f"\n[{removed:,} characters taken out here]\n"


def cut(text: str, head: int, tail: int) -> str:
    return text[:head] + marker(len(text) - head - tail) + text[len(text) - tail :]


def letters(text: str) -> Callable[[int, int], int]:
    """A token a character."""
    return lambda head, tail: len(cut(text, head, tail))


def boundaries(text: str) -> list[int]:
    return [0, *(match.end() for match in regex.finditer(r"\X", text))]


class TestTheCut:
    @given(text=st.one_of(mixed, longer), limit=st.integers(0, 400))
    def test_it_is_within_the_limit_unless_nothing_is_kept(self, text: str, limit: int) -> None:
        head, tail = longest_cut(text, limit, letters(text), len(text))
        assert head >= 0
        assert tail >= 0
        assert head + tail < len(text) or not text
        assert (head, tail) == (0, 0) or letters(text)(head, tail) <= limit

    @given(text=mixed, limit=st.integers(-5, 120))
    def test_it_is_within_the_limit_of_a_real_tokenizer(self, text: str, limit: int) -> None:
        """Its counts may fall when a text gets longer."""
        counter = TiktokenCounter()
        head, tail = longest_cut(text, limit, lambda head, tail: counter.count_text(cut(text, head, tail)), counter.count_text(text))
        assert (head, tail) == (0, 0) or counter.count_text(cut(text, head, tail)) <= limit

    @given(length=st.integers(1, 3000), limit=st.integers(0, 3100), line=st.integers(3, 200), total=st.integers(0, 9000))
    def test_it_fills_the_limit_exactly(self, length: int, limit: int, line: int, total: int) -> None:
        """Whatever is guessed from: `whole` may be quite wrong."""
        text = ("x" * (line - 1) + "\n") * (length // line + 1)
        text = text[:length]
        head, tail = longest_cut(text, limit, letters(text), total)
        costs = letters(text)(head, tail)
        if (head, tail) == (0, 0):
            assert length == 1 or limit <= letters(text)(0, 0)
        else:
            assert costs == limit or head + tail == length - 1

    @given(text=longer, limit=st.integers(0, 900))
    def test_it_fills_the_limit_but_for_the_characters_at_the_cuts(self, text: str, limit: int) -> None:
        head, tail = longest_cut(text, limit, letters(text), len(text))
        ends = boundaries(text)
        if letters(text)(0, 0) > limit or not text:
            return
        # One more character at the tail would be too much, or would leave nothing to take out.
        longer_tail = len(text) - max(end for end in ends if end < len(text) - tail or end == 0)
        assert head + longer_tail >= len(text) or letters(text)(head, longer_tail) > limit or _digits_changed(text, head, tail, longer_tail)

    @given(text=st.one_of(mixed, longer), limit=st.integers(0, 900))
    def test_it_splits_no_character(self, text: str, limit: int) -> None:
        head, tail = longest_cut(text, limit, letters(text), len(text))
        assert {head, len(text) - tail} <= set(boundaries(text))

    @given(lines=st.lists(st.integers(0, 30), min_size=20, max_size=60), limit=st.integers(150, 500))
    def test_the_head_ends_at_a_lines_end_where_one_is_near(self, lines: list[int], limit: int) -> None:
        text = "".join("x" * length + "\n" for length in lines) + "y" * 400
        head, _ = longest_cut(text, limit, letters(text), len(text))
        assert text[head - 1] == "\n" or "\n" not in text[head - head // 4 : head]

    @pytest.mark.parametrize(
        ("text", "room", "expected"),
        [
            pytest.param("", 100, (0, 0), id="nothing"),
            pytest.param("x", 100, (0, 0), id="at least one character is taken out"),
            pytest.param("xy", 100, (1, 0), id="the other is kept"),
            pytest.param("x" * 90, 0, (0, 0), id="room for the marker"),
            pytest.param("x" * 90, -1, (0, 0), id="no room for the marker"),
            pytest.param("x" * 90, 3, (2, 1), id="three characters"),
            pytest.param("x" * 100, 2, (2, 1), id="three, as 100 has become 97"),
            pytest.param("x" * 90, 10_000, (45, 44), id="all the room there is"),
            pytest.param("aaaaaaa\nb" + "x" * 80, 18, (8, 10), id="the head gives up its b, the tail takes the room"),
            pytest.param("aaaaaaa\r\nb" + "x" * 80, 18, (9, 9), id="a line end of two characters"),
            pytest.param("a\nbbbbbbb" + "x" * 80, 18, (9, 9), id="no line end is near"),
        ],
    )
    def test_examples(self, text: str, room: int, expected: tuple[int, int]) -> None:
        assert longest_cut(text, letters(text)(0, 0) + room, letters(text), len(text)) == expected

    def test_a_head_that_costs_more_when_shorter_is_not_taken(self) -> None:
        """It would end at a line's end, but the result must fit."""
        text = "aaaaaaaaa\nb" + "x" * 100

        def odd(head: int, tail: int) -> int:
            return 100 if head == 10 else head + tail

        head, tail = longest_cut(text, 22, odd, len(text))
        assert odd(head, tail) <= 22
        assert head + tail == 22


def _digits_changed(text: str, head: int, tail: int, longer_tail: int) -> bool:
    """True if the number in the marker became shorter, so that the count did not rise with every character."""
    return len(marker(len(text) - head - tail)) != len(marker(len(text) - head - longer_tail))


class TestTheSearch:
    """`_largest`, asked about anything."""

    @given(data=st.data(), limit=st.integers(0, 100), highest=st.integers(0, 10**7), guess=st.integers(0, 10**8), least=st.integers(0, 100))
    def test_it_ends_whatever_things_cost(self, data: st.DataObject, limit: int, highest: int, guess: int, least: int) -> None:
        costs: dict[int, int] = {}

        def cost(number: int) -> int:
            assert 0 < number <= highest
            assert number not in costs
            costs[number] = data.draw(st.integers(0, 200))
            return costs[number]

        result = cutting._largest(cost, limit, highest, guess, least)
        assert result == 0 or costs[result] <= limit
        assert len(costs) <= 50

    @given(
        edge=st.integers(0, 10**7),
        extra=st.integers(0, 10**7),
        guess=st.integers(0, 10**8),
        rate=st.integers(1, 9),
        least=st.integers(0, 30),
    )
    @example(edge=0, extra=0, guess=0, rate=1, least=0)
    def test_it_finds_the_largest_where_costs_rise(self, edge: int, extra: int, guess: int, rate: int, least: int) -> None:
        limit = edge // rate + least
        probes: list[int] = []

        def cost(number: int) -> int:
            probes.append(number)
            return number // rate + least

        result = cutting._largest(cost, limit, edge + extra, guess, least)
        assert result == min(edge + extra, (edge // rate + 1) * rate - 1)
        assert len(probes) <= 40


class TestCharacters:
    """Places at which a text may be cut, compared with `regex` on the whole text."""

    @given(data=st.data(), text=st.one_of(mixed, longer))
    def test_the_boundaries_are_unicodes(self, data: st.DataObject, text: str) -> None:
        ends = boundaries(text)
        for index in data.draw(st.lists(st.integers(0, len(text)), min_size=20, max_size=20)):
            assert cutting._boundary(text, index) == max(end for end in ends if end <= index)
            assert len(text) - cutting._tail(text, len(text) - index) == min(end for end in ends if end >= index)

    @given(text=st.text())
    def test_in_any_text(self, text: str) -> None:
        ends = boundaries(text)
        assert [cutting._boundary(text, index) for index in ends] == ends

    def test_a_cluster_that_never_ends_may_be_cut(self) -> None:
        """Else a text that is one long cluster would be taken out whole."""
        assert cutting._boundary("e" + "\u0301" * 100_000, 90_000) == 90_000


@cache
def large(name: str) -> str:
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(str(files("session"))).rglob("*.py")))
    texts = {
        "code": code,
        "one line": "a" * 1000,
        "Chinese": "日本語のテキスト。",
        "families": "👩\u200d👩\u200d👧",
        "flags": "🇩🇪",
        "marks": "\u0301",
        "newlines": "\n",
    }[name]
    return texts * (10_000_000 // len(texts))


@pytest.mark.parametrize("name", ["code", "one line", "Chinese", "families", "flags", "marks", "newlines"])
@pytest.mark.parametrize("limit", [100, 20_000, 9_000_000])
def test_ten_megabytes_take_few_counts_and_little_time(name: str, limit: int) -> None:
    """Processor time without the counts themselves, with room for a slow machine."""
    text = large(name)
    counts = 0

    def tokens(head: int, tail: int) -> int:
        nonlocal counts
        counts += 1
        return head + tail + 30

    start = time.thread_time()
    head, tail = longest_cut(text, limit, tokens, len(text))
    seconds = time.thread_time() - start
    assert head + tail + 30 <= limit
    assert head + tail >= limit * 0.9 - 60
    assert counts <= 40
    assert seconds < 5
