"""The o200k vocabulary: tiktoken's own, loaded once; its counts times a ratio; long texts in pieces."""

import hashlib
import importlib.resources
import json
import re
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ArgumentError, ContextWindowError, TiktokenCounter
from context_window.counting import tiktoken_counter, vocabulary
from context_window.counting.select import select_counter
from context_window.counting.tiktoken_counter import PIECE, pieces
from context_window.models import describe_model
from tests.support.shared import ROOT


def rebuilt(ranks: dict[bytes, int]) -> bytes:
    """The vocabulary in the form that tiktoken downloads."""
    return b"".join(b64encode(token) + b" " + str(rank).encode() + b"\n" for token, rank in ranks.items())


def test_the_vocabulary_is_tiktokens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash is the one that tiktoken itself checks its download against."""
    requests: dict[str, str] = {}

    def load(url: str, *, expected_hash: str) -> dict[bytes, int]:
        requests["hash"] = expected_hash
        return {}

    openai_public = import_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    theirs = openai_public.o200k_base()
    ours = vocabulary.o200k()
    assert (ours.name, ours._pat_str, ours._special_tokens) == (theirs["name"], theirs["pat_str"], theirs["special_tokens"])
    assert hashlib.sha256(rebuilt(ours._mergeable_ranks)).hexdigest() == requests["hash"]


def test_tiktoken_itself_stays_as_it_is() -> None:
    """Other code in the program that loads an encoding by tiktoken gets what tiktoken has for it."""
    modules = ("tiktoken", "tiktoken.load", "tiktoken.registry", "tiktoken_ext.openai_public")
    before = {name: dict(vars(import_module(name))) for name in modules}
    vocabulary._loaded.__wrapped__("o200k_gemini")
    assert {name: dict(vars(import_module(name))) for name in before} == before


def test_a_tiktoken_that_reads_in_another_way_is_refused_before_it_reads() -> None:
    with pytest.raises(ContextWindowError, match="this version of tiktoken"):
        vocabulary._rebound(test_tiktoken_itself_stays_as_it_is, load_tiktoken_bpe=pytest.fail)


@pytest.mark.parametrize(("last", "problem"), [(b"?", "damaged"), (b"", "damaged"), (None, "missing")])
def test_a_damaged_or_missing_vocabulary_says_to_install_again(
    last: bytes | None, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    if last is not None:
        content = (files("context_window") / "data" / vocabulary.FILE).read_bytes()
        (tmp_path / "data" / vocabulary.FILE).write_bytes(content[:-1] + last)
    monkeypatch.setattr(importlib.resources, "files", lambda package: tmp_path)
    with pytest.raises(ContextWindowError, match=f"{problem}.*reinstall context-window"):
        vocabulary.token_ranks()


def test_threads_that_come_first_together_load_the_vocabulary_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    together = Barrier(8, timeout=30)

    def load() -> dict[bytes, int]:
        loads.append(1)
        return ranks()

    def count(n: int) -> int:
        together.wait()
        return TiktokenCounter().count_text("hello world")

    ranks = vocabulary.token_ranks
    monkeypatch.setattr(vocabulary, "token_ranks", load)
    monkeypatch.setattr(vocabulary, "_loaded", cache(vocabulary._loaded.__wrapped__))
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(count, range(8))) == [2] * 8
    assert loads == [1]


# Ratios


@given(st.text(max_size=40), st.text(max_size=40), st.fractions(min_value="1/100", max_value=10).filter(bool))
def test_a_ratio_rounds_up_and_keeps_the_order(first: str, second: str, ratio: Fraction) -> None:
    plain, scaled = TiktokenCounter(), TiktokenCounter(ratio=ratio)
    counts = {text: (plain.count_text(text), scaled.count_text(text)) for text in (first, second)}
    for text, (tokens, adjusted) in counts.items():
        assert tokens * ratio <= adjusted < tokens * ratio + 1
        assert (adjusted == 0) == (text == "")
    (a, x), (b, y) = counts[first], counts[second]
    assert x <= y if a <= b else x >= y


@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(-1), 1.17, None])
def test_a_ratio_that_makes_no_sense_is_refused(ratio: Any) -> None:
    with pytest.raises(ArgumentError, match=r"pass a Fraction above 0, such as Fraction\('1.17'\)"):
        TiktokenCounter(ratio=ratio)


# Gemini's split


WORDS = ["word", "Word", "<", "=>", '"a":', "é", "日本", "7", "1984", "  "]


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_gemini_counts_digits_line_breaks_and_indents_by_themselves(words: list[str]) -> None:
    """Each digit is a token, and newlines and indents stand apart from the text around them."""
    counter = TiktokenCounter(encoding="o200k_gemini")
    assert counter.count_text("\n".join(words)) == max(0, len(words) - 1) + sum(map(counter.count_text, words))
    digits = "".join(re.findall(r"[0-9]", "".join(words)))
    assert counter.count_text(digits) == len(digits)
    assert counter.count_text("    if x:\n\n\n") == 1 + counter.count_text("if x:") + 1


@pytest.mark.parametrize("name", ["gemini-2.5-flash", "models/gemini-3-pro-preview", "google/gemini-3.5-flash", "gemma-3-27b-it"])
def test_googles_models_are_counted_with_geminis_split(name: str) -> None:
    assert select_counter(None, describe_model(name)).counter.name == "tiktoken o200k_gemini"


def test_geminis_vocabulary_is_o200ks() -> None:
    assert vocabulary.load("o200k_gemini")._mergeable_ranks == vocabulary.o200k()._mergeable_ranks


# Long texts in pieces


def _code() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(Path(str(files("session"))).rglob("*.py")))


def _prose() -> str:
    return " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split()) + " It's one's own; they'll say \"we'd\". "


def _rows() -> list[dict[str, Any]]:
    return [{"id": n, "name": f"row {n}", "share": n / 7, "tags": ["a", None, True]} for n in range(9000)]


@cache
def corpus(name: str) -> str:
    makers: dict[str, Callable[[], str]] = {
        "code": _code,
        "code with CRLF": lambda: _code().replace("\n", "\r\n"),
        "prose on one line": _prose,
        "contractions": lambda: "It's one's own, they'll say; I'd've thought we're 'them'. ",
        "JSON": lambda: json.dumps(_rows(), indent=2),
        "JSON on one line": lambda: json.dumps(_rows(), separators=(",", ":")),
    }
    counters = makers[name]()
    return (counters * (PIECE * 2 // len(counters) + 1))[: PIECE * 2]


CORPORA = ["code", "code with CRLF", "prose on one line", "contractions", "JSON", "JSON on one line"]


def tokens(text: str) -> int:
    return len(vocabulary.o200k().encode_ordinary(text))


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("length", [PIECE - 1, PIECE, PIECE + 1, PIECE + 777, 2 * PIECE])
def test_pieces_cost_what_the_whole_does(name: str, length: int) -> None:
    text = corpus(name)[:length]
    assert TiktokenCounter().count_text(text) == tokens(text)
    assert len(pieces(text)) > 1 or length <= PIECE


@given(st.sampled_from(CORPORA), st.integers(0, 390_000), st.integers(60, 400))
def test_wherever_the_cuts_fall(name: str, start: int, size: int) -> None:
    text = corpus(name)[start : start + 3000]
    cut = pieces(text, size)
    assert sum(map(tokens, cut)) == tokens(text)


@given(st.text(alphabet="ab'1 \n\r\t,é日\u0301", max_size=60), st.integers(1, 9))
def test_pieces_are_the_text_and_no_longer_than_asked(text: str, size: int) -> None:
    cut = pieces(text, size)
    assert "".join(cut) == text
    assert max(map(len, cut)) <= size
    assert all(cut) or not text


def test_text_without_words_is_cut_after_a_newline() -> None:
    assert pieces("日本\n語" * 3, 5) == ["日本\n", "語日本\n", "語日本\n語"]


def test_no_piece_is_longer_than_tiktoken_bears(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whitespace run near a million characters makes its regex engine panic."""
    longest = 0

    class Watched:
        def encode_ordinary(self, text: str) -> list[int]:
            nonlocal longest
            longest = max(longest, len(text))
            return [0]

    monkeypatch.setattr(tiktoken_counter, "load", lambda _: Watched())
    assert TiktokenCounter().count_text(" " * 1_000_000) == 5
    assert longest == PIECE
