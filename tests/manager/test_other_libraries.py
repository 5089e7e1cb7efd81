"""Calls that users of other libraries try first: a config as a mapping, `ContextWindow.manage`, counters of messages."""

from __future__ import annotations

import asyncio
import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from context_window import (
    ArgumentError,
    Compaction,
    ContextOverflowError,
    ContextWindow,
    ContextWindowManager,
    CountingError,
    MessageCategory,
    Session,
)
from context_window.counting.vocabulary import o200k
from tests.support.compacting import Writer, compactions
from tests.support.managing import session_of


def long_session(turns: int = 12) -> Session:
    session = Session()
    for number in range(turns):
        session.add_message("user", f"question {number} " + "word " * 20)
        session.add_message("assistant", f"answer {number} " + "word " * 20)
    session.add_message("user", "And now?")
    return session


LONG = long_session()


# A model's config as a mapping


def test_a_mapping_configures_the_model() -> None:
    config = {"model": "gpt-4o", "max_tokens": 40_000}
    manager = ContextWindowManager(config)
    assert manager.total_budget == 40_000
    config["max_tokens"] = 5
    manager.use_model("claude-sonnet-4-5")
    assert manager.total_budget == 168_000
    manager.use_model("gpt-4o")
    assert manager.total_budget == 40_000, "the limit is that of the mapping when it was passed"
    manager.use_model({"model": "gpt-4o", "max_tokens": 30_000})
    assert manager.total_budget == 30_000
    with pytest.raises(ArgumentError, match="pass the model's name"):
        manager.use_model({"max_tokens": 30_000})


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"model": "gpt-4o", "max_tokens": 16_384, "max_input_tokens": 90_000}, 90_000),
        ({"model": "gpt-4o", "context_window": 64_000}, 48_000),
        ({"context_length": 64_000}, 48_000),
        (SimpleNamespace(model_name="gpt-4o", context_window=64_000), 48_000),
    ],
    ids=["LiteLLM", "window", "OpenRouter", "LlamaIndex"],
)
def test_a_model_info_of_another_library_configures_the_model(config: Any, tokens: int) -> None:
    assert ContextWindowManager(config).total_budget == tokens


# Limits as arguments of the manager


def test_the_fields_of_a_window_are_arguments_of_the_manager() -> None:
    manager = ContextWindowManager("gpt-5", max_tokens=4_000, strict=True)
    assert manager.context_window == ContextWindow(max_tokens=4_000, strict=True)
    assert manager.total_budget == 4_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 5, "context_window": ContextWindow()}, r"max_tokens=5: pass it in ContextWindow\(max_tokens=…\), or leave"),
        ({"max_token": 5}, "max_token=5: there is no such argument; did you mean max_tokens"),
        ({"model": "gpt-5"}, "did you mean model_config"),
        ({"zzz": 1}, "the limits are the fields of ContextWindow"),
        ({"max_tokens": 0}, "max_tokens=0: pass a whole number of 1 or more"),
    ],
)
def test_an_argument_that_makes_no_sense_names_the_remedy(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ContextWindowManager(**arguments)


def test_figures_by_category_take_the_category_or_its_name() -> None:
    manager = ContextWindowManager(token_counter=len, max_tokens=1_000)
    stats, usage = manager.analyze_session(session_of(3)), manager.get_token_usage()
    for category in MessageCategory:
        assert stats["per_category"][category] == stats["per_category"][category.value] == usage[category] == usage[category.value]
    assert stats["items"][MessageCategory.DIALOG] == 6


# ContextWindow.manage


def test_a_window_manages_a_session_by_itself() -> None:
    session, llm = long_session(), Writer()
    view = asyncio.run(ContextWindow(max_tokens=400).manage(session, llm))
    (summary,) = compactions(session)
    assert len(llm.prompts) == 1
    assert summary in view.items
    assert ContextWindowManager(context_window=ContextWindow(max_tokens=400)).process_session(session).items == view.items


def test_without_a_summariser_a_window_trims() -> None:
    session = long_session()
    before = session.to_dict()
    view = asyncio.run(ContextWindow(max_tokens=400).manage(session))
    assert len(view.items) < len(session.items)
    assert session.to_dict() == before
    assert not any(isinstance(item, Compaction) for item in view.items)
    small = session_of(1)
    assert asyncio.run(ContextWindow(max_tokens=10**6).manage(small)).items == small.items


def fail(prompt: str) -> str:
    raise ValueError(len(prompt))


def test_a_windows_views_are_stable_and_its_managers_go_with_the_session() -> None:
    session, window = long_session(), ContextWindow(max_tokens=400, summary_llm=Writer(fail))  # a new error each time: it holds its frames
    first = asyncio.run(window.manage(session))
    for _ in range(3):
        session.add_message("user", "more")
        assert asyncio.run(window.manage(session)).items[: len(first.items)] == first.items
    assert window.summary_llm.prompts[2:] == [], "a failing summariser is left alone for a while"  # type: ignore[union-attr]
    assert len(asyncio.run(ContextWindow(max_tokens=10**6).manage(session)).items) == len(session.items)
    gone = weakref.ref(session)
    del session, first
    gc.collect()
    assert gone() is None


def test_a_window_refuses_what_a_manager_refuses() -> None:
    nothing: Any = []
    with pytest.raises(ArgumentError, match="pass a Session"):
        asyncio.run(ContextWindow(max_tokens=400).manage(nothing))
    with pytest.raises(ContextOverflowError):
        asyncio.run(ContextWindow(max_tokens=5, strict=True).manage(long_session()))


# Counters of messages


def by_key(message: Any) -> int:
    return len(message["content"])


def by_get(message: Any) -> int:
    return len(message.get("content", "")) if message.get("role") == "user" else 0


def by_attribute(message: Any) -> int:
    return len(message.content)


def by_text(message: Any) -> int:
    return len(message.text)


def of_a_list(messages: Any) -> int:
    return sum(len(message["content"]) for message in messages)


def of_objects(messages: Any) -> int:
    return sum(len(message.content) for message in messages)


def of_strict_messages(message: Any) -> int:
    content = message["content"] if isinstance(message, dict) else None
    if content is None:
        raise ValueError("not a message")
    return len(content)


COUNTERS = [by_key, by_get, by_attribute, by_text, of_a_list, of_objects, of_strict_messages]


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.__name__)
def test_a_counter_may_take_a_message(counter: Any) -> None:
    def trimmed(token_counter: Any) -> tuple[dict[str, int], list[str]]:
        manager = ContextWindowManager(token_counter=token_counter, context_window=ContextWindow(max_tokens=1_000))
        view = manager.process_session(long_session())
        return manager.get_token_usage(), [item.type for item in view.items]

    assert trimmed(counter) == trimmed(len)


def test_a_counter_is_asked_for_messages_only_if_it_takes_no_text() -> None:
    arguments: list[Any] = []

    def counter(message: Any) -> int:
        arguments.append(message)
        return len(message["content"])

    manager = ContextWindowManager(token_counter=counter, context_window=ContextWindow(max_tokens=1_000))
    manager.process_session(long_session())
    kinds = [type(argument) for argument in arguments if argument]
    assert kinds.count(str) == 1
    assert arguments[-1]["role"] == "user"


class Encoder:
    """A tokenizer as in `tokenizers`: it can also be called, and then returns no number."""

    def encode(self, text: str) -> list[str]:
        return list(text)

    def __call__(self, text: str) -> dict[str, list[str]]:
        return {"input_ids": self.encode(text)}


class Estimator:
    def estimate(self, text: str) -> int:
        return len(text)


class Messages:
    def count_tokens(self, message: Any) -> int:
        return len(message["content"])


@pytest.mark.parametrize("counter", [Encoder(), Estimator(), Messages()], ids=lambda counter: type(counter).__name__)
def test_an_object_counts_by_its_method(counter: Any) -> None:
    managers = [ContextWindowManager(token_counter=count, max_tokens=1_000) for count in (counter, len)]
    views = [[item.id for item in manager.process_session(LONG).items] for manager in managers]
    assert views[0] == views[1]
    assert managers[0].get_token_usage() == managers[1].get_token_usage()


def test_an_encoding_of_tiktoken_counts_texts_that_look_like_special_tokens() -> None:
    session = Session()
    session.add_message("user", "<|endoftext|>")
    usage = ContextWindowManager(token_counter=o200k(), max_tokens=1_000).get_token_usage(session)
    assert usage["DIALOG"] > 1


def test_the_error_of_a_counter_that_takes_nothing_is_its_first() -> None:
    def counter(text: Any) -> int:
        raise ValueError(f"no {type(text).__name__}")

    with pytest.raises(ValueError, match=r"^no str$"):
        ContextWindowManager(token_counter=counter, context_window=ContextWindow(max_tokens=1_000))


def test_the_result_for_a_message_is_checked() -> None:
    with pytest.raises(CountingError):
        ContextWindowManager(token_counter=lambda message: message["content"], context_window=ContextWindow(max_tokens=1_000))
