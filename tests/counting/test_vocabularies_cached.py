"""Vocabularies that tiktoken may have in its cache: found there, checked, never downloaded; and what counts where they are not."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tiktoken

from context_window import ArgumentError, ContextWindow, ContextWindowError, ContextWindowManager, Session, TiktokenCounter
from context_window.counting import select as choosing
from context_window.counting import vocabulary
from context_window.counting.select import select_counter
from context_window.counting.tiktoken_counter import _shared_counter
from context_window.counting.vocabulary import OLDER, load
from context_window.events.definitions import CounterFellBack, Event
from context_window.models import describe_model

SIZES = {"cl100k_base": 300, "p50k_base": 50_280, "r50k_base": 50_256}
"""Tokens of the vocabularies here, special ones not included. tiktoken checks the number of the last two."""
OPENAI = import_module("tiktoken_ext.openai_public")
MERGES = [b"he", b"ll", b"hell", b"hello", b" w", b"or", b" wor", b"ld"]


def in_tiktokens_form(size: int) -> bytes:
    """A vocabulary as tiktoken keeps it: every byte, a few merges, and tokens that no text has."""
    tokens = [*(bytes([byte]) for byte in range(256)), *MERGES]
    tokens += [b"\xff" + number.to_bytes(4) for number in range(size - len(tokens))]
    ranks = [number for number in range(size + 1) if number != 50_256]  # that is a special token
    return b"".join(b64encode(token) + b" %d\n" % rank for token, rank in zip(tokens, ranks, strict=False))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        pytest.fail("something was to be downloaded")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty cache folder, without remembered vocabularies."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    vocabulary._loaded.cache_clear()
    _shared_counter.cache_clear()
    yield tmp_path
    vocabulary._loaded.cache_clear()
    _shared_counter.cache_clear()


def keep(cache: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tiktoken fill its cache with a vocabulary, which passes for the real one."""
    monkeypatch.setattr(tiktoken.load, "check_hash", lambda *_: True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiktoken.load, "read_file", lambda _: in_tiktokens_form(SIZES[name]))
        getattr(OPENAI, name)()
    assert any(cache.iterdir())


@pytest.mark.parametrize("name", OLDER)
def test_a_vocabulary_in_the_cache_counts_as_tiktoken_counts_with_it(name: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, name, monkeypatch)
    theirs = tiktoken.Encoding(**getattr(OPENAI, name)())
    counter = TiktokenCounter(encoding=name)
    for text in ("hello world", "hello", "x" * 10, "hello <|endoftext|>\n\n hello", ""):
        assert counter.count_text(text) == len(theirs.encode_ordinary(text))
    assert counter.count_text("hello world") == 3
    assert counter.name == f"tiktoken {name.removesuffix('_base')}"
    assert load(name) is load(name)


def test_counters_of_two_vocabularies_are_two(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, "cl100k_base", monkeypatch)
    older = TiktokenCounter(encoding="cl100k_base")
    assert older == TiktokenCounter(encoding="cl100k_base")
    assert older != TiktokenCounter()
    assert len({older, TiktokenCounter(), TiktokenCounter(encoding="cl100k_base")}) == 2


@pytest.mark.parametrize("content", [None, b"", in_tiktokens_form(300)], ids=["missing", "empty", "damaged"])
def test_what_is_not_there_whole_is_not_there(content: bytes | None, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if content is not None:
        keep(cache, "cl100k_base", monkeypatch)
        next(cache.iterdir()).write_bytes(content)
        monkeypatch.undo()
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
    with pytest.raises(ArgumentError, match="not in tiktoken's cache"):
        TiktokenCounter(encoding="cl100k_base")


def test_a_cache_that_is_switched_off_holds_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, "cl100k_base", monkeypatch)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    with pytest.raises(ArgumentError, match="not in tiktoken's cache"):
        TiktokenCounter(encoding="cl100k_base")


@pytest.mark.parametrize("name", ["gpt2", "", None, 5])
def test_a_vocabulary_that_nobody_knows_is_refused(name: Any) -> None:
    with pytest.raises(ArgumentError, match=r"pass one of o200k_base, o200k_gemini, o200k_claude_3, o200k_claude_4\.7, cl100k_base"):
        TiktokenCounter(encoding=name)


@pytest.mark.parametrize(
    ("model", "name"), [("gpt-4", "cl100k_base"), ("gpt-3.5-turbo", "cl100k_base"), ("openai/gpt-4-0613", "cl100k_base")]
)
def test_models_before_4o_are_counted_by_their_own_where_it_is_there(
    model: str, name: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = select_counter(None, describe_model(model))
    assert (stand_in.counter.name, stand_in.expected_error) == ("tiktoken o200k", 0.10)
    keep(cache, name, monkeypatch)
    selected = select_counter(None, describe_model(model))
    assert (selected.counter.name, selected.expected_error) == ("tiktoken cl100k", 0.02)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1", "gpt-5", "o3", "claude-opus-4-7", "gemini-2.5-pro", "a-model-nobody-knows"])
def test_later_ones_and_others_are_not(model: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "has_ctok", lambda: False)
    for name in OLDER:
        keep(cache, name, monkeypatch)
    assert select_counter(None, describe_model(model)).counter.name.startswith("tiktoken o200k")


# A broken installation


@pytest.mark.parametrize(
    "broken", [ImportError("DLL load failed"), ContextWindowError("the vocabulary is damaged")], ids=["tiktoken", "vocabulary"]
)
def test_where_nothing_loads_four_characters_count_and_everything_says_so(broken: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise broken

    monkeypatch.setattr(choosing, "default_counter", fail)
    monkeypatch.setattr(choosing, "has_ctok", lambda: False)
    events: list[Event] = []
    manager = ContextWindowManager("claude-opus-4-7", context_window=ContextWindow(max_tokens=1000), on_event=events.append)
    session = Session()
    session.add_message("user", "x" * 400)
    for _ in range(2):
        stats = manager.analyze_session(session)
    assert (stats["counter"], stats["expected_error"], stats["per_category"]["DIALOG"]) == ("4 characters", 0.3, 104)
    assert str(broken) in stats["counter_problem"]
    assert f"counted with 4 characters (the vocabulary cannot be loaded: {broken})" in " ".join(str(manager.usage()).split())
    assert manager.usage().to_dict()["counter_problem"] == stats["counter_problem"]
    (event,) = events  # once
    assert isinstance(event, CounterFellBack)
    assert (event.tokens, event.counter, event.why) == (stats["total_tokens"], "4 characters", stats["counter_problem"])


def test_where_all_is_well_nothing_is_said() -> None:
    events: list[Event] = []
    manager = ContextWindowManager("gpt-5", on_event=events.append)
    assert manager.analyze_session(Session())["counter_problem"] == ""
    assert events == []
