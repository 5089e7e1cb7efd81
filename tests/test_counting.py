"""Counters: the vocabulary and its encoding, long texts in pieces, and what users count with. What all have in common is in contracts/."""

import copy
import hashlib
import json
import lzma
import pickle
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from context_window import (
    BudgetError,
    CharacterCounter,
    ContextWindow,
    ContextWindowError,
    ContextWindowManager,
    CountingError,
    Session,
    TiktokenCounter,
    TokenCounter,
)
from context_window.counting import CallableCounter, default_counter, tiktoken_counter, vocabulary
from context_window.counting.counter import CheckedCounter
from context_window.counting.images import claude_high_tokens, claude_standard_tokens
from context_window.counting.tiktoken_counter import PIECE, pieces
from session.parts import Document, Image, Part, Text
from tests.support.counting import Letters
from tests.support.shared import ROOT

# The vocabulary


def rebuilt(ranks: dict[bytes, int]) -> bytes:
    """The vocabulary in the form that tiktoken downloads."""
    return b"".join(b64encode(token) + b" " + str(rank).encode() + b"\n" for token, rank in ranks.items())


def test_the_encoding_is_tiktokens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pattern, special tokens and vocabulary; the hash is the one that tiktoken itself checks its download against."""
    asked: dict[str, str] = {}

    def load(url: str, *, expected_hash: str) -> dict[bytes, int]:
        asked["hash"] = expected_hash
        return vocabulary._ranks()

    openai_public = import_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    theirs = openai_public.o200k_base()
    ours = vocabulary.o200k()
    assert (ours.name, ours._pat_str, ours._special_tokens) == (theirs["name"], theirs["pat_str"], theirs["special_tokens"])
    assert ours._mergeable_ranks == theirs["mergeable_ranks"]
    assert hashlib.sha256(rebuilt(ours._mergeable_ranks)).hexdigest() == asked["hash"]


@pytest.mark.parametrize(("last", "told"), [(b"?", "damaged"), (b"", "damaged"), (None, "missing")])
def test_a_damaged_or_missing_vocabulary_says_to_install_again(
    last: bytes | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    if last is not None:
        packed = (files("context_window") / "data" / vocabulary.FILE).read_bytes()
        (tmp_path / "data" / vocabulary.FILE).write_bytes(packed[:-1] + last)
    monkeypatch.setattr(vocabulary, "files", lambda package: tmp_path)
    with pytest.raises(ContextWindowError, match=f"{told}.*install context-window-manager again"):
        vocabulary._ranks()


def test_threads_that_come_first_together_load_the_vocabulary_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    together = Barrier(8, timeout=30)

    def unpack(packed: bytes) -> bytes:
        loads.append(1)
        return unpacked(packed)

    def count(n: int) -> int:
        together.wait()
        return TiktokenCounter().count_text("hello world")

    unpacked = lzma.decompress
    monkeypatch.setattr(lzma, "decompress", unpack)
    monkeypatch.setattr(vocabulary, "_loaded", cache(vocabulary._loaded.__wrapped__))
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(count, range(8))) == [2] * 8
    assert loads == [1]


# Ratios


@given(st.text(max_size=40), st.text(max_size=40), st.fractions(min_value="1/100", max_value=10).filter(bool))
def test_a_ratio_rounds_up_and_keeps_the_order(one: str, other: str, ratio: Fraction) -> None:
    plain, scaled = TiktokenCounter(), TiktokenCounter(ratio=ratio)
    counts = {text: (plain.count_text(text), scaled.count_text(text)) for text in (one, other)}
    for text, (found, adjusted) in counts.items():
        assert found * ratio <= adjusted < found * ratio + 1
        assert (adjusted == 0) == (text == "")
    (a, x), (b, y) = counts[one], counts[other]
    assert x <= y if a <= b else x >= y


@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(-1), 1.17, None])
def test_a_ratio_that_makes_no_sense_is_refused(ratio: Any) -> None:
    with pytest.raises(BudgetError, match=r"pass a Fraction above 0, such as Fraction\('1.17'\)"):
        TiktokenCounter(ratio=ratio)


# Long texts in pieces


def _code() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "session").rglob("*.py")))


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
    made = makers[name]()
    return (made * (PIECE * 2 // len(made) + 1))[: PIECE * 2]


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

    monkeypatch.setattr(tiktoken_counter, "o200k", Watched)
    assert TiktokenCounter().count_text(" " * 1_000_000) == 5
    assert longest == PIECE


# Which counters are one


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_managers_of_a_family_share_a_counter() -> None:
    assert default_counter() is default_counter()
    assert default_counter(claude_standard_tokens, Fraction("1.17")) is default_counter(claude_standard_tokens, Fraction("1.17"))
    first, second = (ContextWindowManager(model)._budget.counter for model in ("claude-sonnet-4-5", "claude-opus-4-5"))
    assert first is second


DIFFERENT: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "by ratio": (TiktokenCounter, lambda: TiktokenCounter(ratio=Fraction("1.17"))),
    "by image rule": (TiktokenCounter, lambda: TiktokenCounter(claude_high_tokens)),
    "by kind": (CharacterCounter, TiktokenCounter),
    "by function": (lambda: CallableCounter(len), lambda: CallableCounter(Words())),
    "by a function's image rule": (lambda: CallableCounter(len), lambda: CallableCounter(len, claude_high_tokens)),
    "by what is checked": (lambda: CheckedCounter(CharacterCounter()), lambda: CheckedCounter(Letters())),
}


@pytest.mark.parametrize("different", DIFFERENT)
def test_equal_counters_share_what_they_counted_and_others_do_not(different: str) -> None:
    make, make_other = DIFFERENT[different]
    one, same, other = make(), make(), make_other()
    assert (one == same, hash(one) == hash(same)) == (True, True)
    assert one != other
    assert other != one


def test_a_subclass_is_another_counter() -> None:
    class Doubled(TiktokenCounter):
        def count_text(self, text: str) -> int:
            return 2 * super().count_text(text)

    assert TiktokenCounter() != Doubled()
    assert Doubled() != TiktokenCounter()
    assert Doubled() == Doubled()


@pytest.mark.parametrize(
    "counter",
    [TiktokenCounter(), default_counter(claude_high_tokens, Fraction("1.46")), CharacterCounter(), CallableCounter(len)],
    ids=lambda counter: counter.name,
)
@pytest.mark.parametrize("again", [pickled, copy.deepcopy, copy.copy])
def test_counters_can_be_sent_to_other_processes(counter: TokenCounter, again: Callable[[Any], Any]) -> None:
    before = counter.count_text("some text")  # after its first count, too
    received = again(counter)
    assert (received, received.name, received.count_text("some text")) == (counter, counter.name, before)


# What users count with


class Whole:
    """A stand-in for numpy's integers: no `int`, but usable as one."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Array:
    def __index__(self) -> int:
        raise TypeError("only integer scalar arrays can be converted to a scalar index")


class Words:
    def count(self, text: str) -> int:
        return len(text.split())

    def __call__(self, text: str) -> int:
        return self.count(text)


def seven(text: str) -> Any:
    return 7


def numpy_like(text: str) -> Any:
    return Whole(3)


def per(size: int, text: str) -> int:
    return len(text) // size


@pytest.mark.parametrize(
    ("function", "count", "name"),
    [
        (len, 11, "len"),
        (seven, 7, "seven"),
        (partial(per, 5), 2, "per"),
        (partial(partial(per), 2), 5, "per"),
        (Words().count, 2, "count"),
        (Words(), 2, "Words"),
        (numpy_like, 3, "numpy_like"),
        (lambda text: 0, 0, "custom counter"),
    ],
    ids=["builtin", "function", "partial", "partial of a partial", "method", "object", "numpy", "lambda"],
)
def test_any_callable_counts(function: Any, count: int, name: str) -> None:
    counter = CallableCounter(function)
    assert (counter.count_text("hello world"), type(counter.count_text("hello world")), counter.name) == (count, int, name)
    assert counter.count_part(Text("hello world")) == count
    assert counter.count_part(Image(url="u", width=28, height=28)) == 1
    assert isinstance(counter, TokenCounter)


WRONG = [-1, 1.0, 2.5, float("nan"), True, False, None, "3", [1], Whole(-2), Array()]


class Answering:
    """A user's own `TokenCounter`, with the same answer to everything."""

    name = "mine"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def count_text(self, text: str) -> Any:
        return self.answer

    def count_part(self, part: Part) -> Any:
        return self.answer


class Both(Answering):
    def __call__(self, text: str) -> int:
        return 1


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: f"{type(answer).__name__} {answer!r:.8}")
def test_an_answer_that_is_no_count_is_an_error(answer: Any) -> None:
    attempts: tuple[Callable[[], int], ...] = (
        lambda: CallableCounter(lambda text: answer).count_text("x"),
        lambda: CallableCounter(lambda text: answer).count_part(Text("x")),
        lambda: CallableCounter(Both(answer)).count_part(Image(url="u")),
        lambda: CheckedCounter(Answering(answer)).count_text("x"),
        lambda: CheckedCounter(Answering(answer)).count_part(Image(url="u")),
    )
    for asked in attempts:
        with pytest.raises(CountingError, match="it must give a whole number of tokens, 0 or more") as error:
            asked()
        assert error.value.answer is answer


@pytest.mark.parametrize("given", [lambda text: -1, Answering(-1)], ids=["function", "counter"])
def test_a_manager_refuses_wrong_counts_whatever_counts(given: Any) -> None:
    with pytest.raises(CountingError):
        ContextWindowManager(token_counter=given)


def test_a_counters_own_error_comes_through_and_leaves_the_manager_usable() -> None:
    def fragile(text: str) -> int:
        if "boom" in text and broken:
            raise KeyError("the user's own")
        return len(text)

    broken = True
    session = Session()
    session.add_message("user", "fine")
    session.add_message("user", "boom")
    manager = ContextWindowManager(token_counter=fragile, context_window=ContextWindow(max_tokens=1000))
    with pytest.raises(KeyError, match="the user's own"):
        manager.process_session(session)
    broken = False
    assert manager.process_session(session) is session
    assert manager.get_token_usage()["total"] == 8 + 2 * 4


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (5, "pass a function of a text"),
        (vocabulary.SPECIAL, "pass a function of a text"),
        (tiktoken.Encoding, "this is the class"),
        (TiktokenCounter, r"this is the class; pass a counter, TiktokenCounter\(…\)"),
        (CharacterCounter, "this is the class"),
    ],
    ids=["number", "dict", "Encoding", "TiktokenCounter", "CharacterCounter"],
)
def test_what_is_no_counter_is_refused(given: Any, told: str) -> None:
    with pytest.raises(BudgetError, match=told):
        ContextWindowManager(token_counter=given)


def test_a_callable_with_count_part_counts_images_and_documents_itself() -> None:
    assert CallableCounter(Both(9)).count_part(Image(url="u")) == 9
    manager = ContextWindowManager("claude-opus-4-8", token_counter=len)
    assert manager._budget.counter.count_part(Image(url="u", width=1920, height=1080)) == 2691  # the family's rule


@pytest.mark.parametrize("counter", [TiktokenCounter(), CallableCounter(len)], ids=["tiktoken", "function"])
def test_a_document_costs_its_text_and_its_title(counter: TokenCounter) -> None:
    text = counter.count_text("the whole text")
    assert counter.count_part(Document(text="the whole text")) == text
    assert counter.count_part(Document(text="the whole text", title="Title")) == text + counter.count_text("Title")
    assert counter.count_part(Document(data=b"%PDF" * 12_500, title="T")) == 2 * 2_000 + 1
