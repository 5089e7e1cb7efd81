"""Counters: which are one, and what users count with. What all keep is in contracts/; the vocabulary in test_vocabulary.py."""

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
import tiktoken

from context_window import (
    ArgumentError,
    CharacterCounter,
    ContextWindow,
    ContextWindowManager,
    CountingError,
    Session,
    TiktokenCounter,
    TokenCounter,
)
from context_window.counting import CallableCounter, default_counter
from context_window.counting.counter import CheckedCounter
from context_window.counting.images import claude_high_tokens, claude_standard_tokens
from session.parts import Document, Image, Part, Text
from tests.support.counting import Letters
from tests.support.numpy_like import Array, Whole

# Which counters are one


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_managers_of_a_family_share_a_counter() -> None:
    assert default_counter() is default_counter()
    assert default_counter(claude_standard_tokens, Fraction("1.17")) is default_counter(claude_standard_tokens, Fraction("1.17"))
    first, second = (ContextWindowManager(model)._settings.current.budget.counter for model in ("claude-sonnet-4-5", "claude-opus-4-5"))
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
    counter, same, other = make(), make(), make_other()
    assert (counter == same, hash(counter) == hash(same)) == (True, True)
    assert counter != other
    assert other != counter


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
    for attempt in attempts:
        with pytest.raises(CountingError, match="it must return a whole number of tokens, 0 or more") as error:
            attempt()
        assert error.value.answer is answer


@pytest.mark.parametrize("counter", [lambda text: -1, Answering(-1)], ids=["function", "counter"])
def test_a_manager_refuses_wrong_counts_whatever_counts(counter: Any) -> None:
    with pytest.raises(CountingError):
        ContextWindowManager(token_counter=counter)


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
    assert manager.process_session(session).items == session.items
    assert manager.get_token_usage()["total"] == 8 + 2 * 4


@pytest.mark.parametrize(
    ("counter", "message"),
    [
        (5, r"tokens of the window have a name: ContextWindowManager\(model, max_tokens=5\)"),
        ("approximate", "pass a function that returns the tokens of a text"),
        (tiktoken.Encoding, "this is the class"),
        (TiktokenCounter, r"this is the class; pass an instance, TiktokenCounter\(…\)"),
        (CharacterCounter, "this is the class"),
    ],
    ids=["number", "text", "Encoding", "TiktokenCounter", "CharacterCounter"],
)
def test_what_is_no_counter_is_refused(counter: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ContextWindowManager(token_counter=counter)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [(0.05, 0.05), (Fraction(1, 4), 0.25), (1, 1.0), (None, 0.0), ("5 %", 0.0), (True, 0.0), (-1, 0.0), (float("nan"), 0.0)],
)
def test_a_counter_may_say_how_far_off_it_is(declared: Any, expected: float) -> None:
    class Saying(Letters):
        expected_error = declared

    stats = ContextWindowManager(token_counter=Saying()).analyze_session(Session())
    assert (stats["counter"], stats["expected_error"]) == ("letters", expected)


def test_four_characters_are_a_token_and_only_nothing_is_free() -> None:
    counter = CharacterCounter()
    assert [counter.count_text("x" * length) for length in (0, 1, 3, 4, 7, 8)] == [0, 1, 1, 1, 1, 2]
    assert counter.count_part(Document(text="x" * 9)) == 2
    assert counter.count_part(Document(url="u")) == 2_000
    assert counter.count_part(Image(url="u")) == 300


def test_a_callable_with_count_part_counts_images_and_documents_itself() -> None:
    assert CallableCounter(Both(9)).count_part(Image(url="u")) == 9
    manager = ContextWindowManager("claude-opus-4-8", token_counter=len)
    assert manager._settings.current.budget.counter.count_part(Image(url="u", width=1920, height=1080)) == 2691  # the family's rule


@pytest.mark.parametrize("counter", [TiktokenCounter(), CallableCounter(len)], ids=["tiktoken", "function"])
def test_a_document_costs_its_text_and_its_title(counter: TokenCounter) -> None:
    text = counter.count_text("the whole text")
    assert counter.count_part(Document(text="the whole text")) == text
    assert counter.count_part(Document(text="the whole text", title="Title")) == text + counter.count_text("Title")
    assert counter.count_part(Document(data=b"%PDF" * 12_500, title="T")) == 2 * 2_000 + 1
