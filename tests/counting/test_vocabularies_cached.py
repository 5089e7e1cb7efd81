"""Vocabularies that tiktoken may have in its cache: found there, checked, never downloaded; and what counts where they are not."""

from __future__ import annotations

import hashlib
import socket
from base64 import b64encode
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import regex
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from context_window import (
    ArgumentError,
    ContextWindow,
    ContextWindowError,
    ContextWindowManager,
    Session,
    TiktokenCounter,
)
from context_window.counting import select as choosing
from context_window.counting import vocabulary
from context_window.counting.select import select_counter
from context_window.counting.vocabulary import CACHED, CachedVocabulary, has_encoding, load
from context_window.events.definitions import CounterFellBack, Event
from context_window.models import describe_model

MERGES = [b"he", b"ll", b"hell", b"hello", b" w", b"or", b" wor", b"ld"]
SMALL = b"".join(b64encode(token) + b" %d\n" % rank for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), *MERGES]))
"""A vocabulary in the form that tiktoken keeps: every byte, and a few merges."""


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        pytest.fail("something was to be downloaded")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty cache folder, without remembered vocabularies."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    vocabulary._read_cached.cache_clear()
    yield tmp_path
    vocabulary._read_cached.cache_clear()


def keep(cache: Path, name: str, monkeypatch: pytest.MonkeyPatch, content: bytes = SMALL) -> None:
    """Puts a vocabulary into the cache under that name, and has it pass for the real one."""
    vocabulary = CACHED[name]
    (cache / vocabulary.key).write_bytes(content)
    monkeypatch.setitem(CACHED, name, vocabulary._replace(sha256=hashlib.sha256(content).hexdigest()))


def theirs(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """Cache key, hash and pattern that tiktoken has for an encoding."""
    requests: list[tuple[str, str]] = []

    def note(url: str, *, expected_hash: str) -> dict[bytes, int]:
        requests.append((url, expected_hash))
        return {}

    openai_public = import_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", note)
    pattern = getattr(openai_public, name)()["pat_str"]
    ((url, sha256),) = requests
    return hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest(), sha256, pattern


@pytest.mark.parametrize("name", CACHED)
def test_keys_and_hashes_are_tiktokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert theirs(name, monkeypatch)[:2] == CACHED[name][:2]


PATTERNS: dict[str, str] = {}


@pytest.mark.parametrize("name", CACHED)
@given(text=st.text(alphabet="ab1'sSll \n\r\té日\u0301!/\u2003", max_size=40) | st.text(max_size=40))
def test_patterns_split_as_tiktokens_do(name: str, text: str) -> None:
    if name not in PATTERNS:
        with pytest.MonkeyPatch.context() as patch:
            PATTERNS[name] = theirs(name, patch)[2]
    assert regex.findall(CACHED[name].pattern, text) == regex.findall(PATTERNS[name], text)


@pytest.mark.parametrize("name", CACHED)
def test_a_vocabulary_in_the_cache_counts(name: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, name, monkeypatch)
    encoding = load(name)
    ranks = {bytes([byte]): byte for byte in range(256)} | {token: 256 + rank for rank, token in enumerate(MERGES)}
    slow = tiktoken.Encoding(name, pat_str=theirs(name, monkeypatch)[2], mergeable_ranks=ranks, special_tokens={})
    for text in ("hello world", "hello", "x" * 10, "hello <|endoftext|>\n\n hello", ""):
        assert TiktokenCounter(encoding=name).count_text(text) == len(slow.encode_ordinary(text))
    assert TiktokenCounter(encoding=name).count_text("hello world") == 3
    assert encoding is load(name)
    assert TiktokenCounter(encoding=name).name == f"tiktoken {name.removesuffix('_base')}"


def test_counters_of_two_vocabularies_are_two(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, "cl100k_base", monkeypatch)
    older = TiktokenCounter(encoding="cl100k_base")
    assert older == TiktokenCounter(encoding="cl100k_base")
    assert older != TiktokenCounter()
    assert len({older, TiktokenCounter(), TiktokenCounter(encoding="cl100k_base")}) == 2


@pytest.mark.parametrize("content", [None, b"", SMALL[:-1] + b"?"], ids=["missing", "empty", "damaged"])
def test_what_is_not_there_whole_is_not_there(content: bytes | None, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if content is not None:
        (cache / CACHED["cl100k_base"].key).write_bytes(content)
    assert not has_encoding("cl100k_base")
    with pytest.raises(ArgumentError, match="not in tiktoken's cache"):
        TiktokenCounter(encoding="cl100k_base")


def test_a_cache_that_is_switched_off_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert not has_encoding("cl100k_base")


@pytest.mark.parametrize("name", ["gpt2", "", None, 5])
def test_a_vocabulary_that_nobody_knows_is_refused(name: Any) -> None:
    with pytest.raises(ArgumentError, match="pass one of o200k_base, o200k_gemini, cl100k_base"):
        TiktokenCounter(encoding=name)


@pytest.mark.parametrize(
    ("model", "name"), [("gpt-4", "cl100k_base"), ("gpt-3.5-turbo", "cl100k_base"), ("openai/gpt-4-0613", "cl100k_base")]
)
def test_models_before_4o_are_counted_by_their_own_where_it_is_there(
    model: str, name: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = select_counter(None, describe_model(model))
    assert (stand_in.counter.name, stand_in.expected_error) == ("tiktoken o200k", 0.10)
    vocabulary._read_cached.cache_clear()
    keep(cache, name, monkeypatch)
    selected = select_counter(None, describe_model(model))
    assert (selected.counter.name, selected.expected_error) == ("tiktoken cl100k", 0.02)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1", "gpt-5", "o3", "claude-opus-4-7", "gemini-2.5-pro", "a-model-nobody-knows"])
def test_later_ones_and_others_are_not(model: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "has_ctok", lambda: False)
    for name in CACHED:
        keep(cache, name, monkeypatch)
    assert select_counter(None, describe_model(model)).counter.name.startswith("tiktoken o200k")


# A broken installation


@pytest.mark.parametrize(
    "broken", [ImportError("DLL load failed"), ContextWindowError("the vocabulary is damaged")], ids=["tiktoken", "vocabulary"]
)
def test_where_nothing_loads_four_characters_count_and_everything_says_so(broken: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise broken

    monkeypatch.setattr(choosing, "check_o200k", fail)
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


def test_a_record_of_the_cache_is_complete() -> None:
    assert all(
        isinstance(vocabulary, CachedVocabulary) and len(vocabulary.key) == 40 and len(vocabulary.sha256) == 64
        for vocabulary in CACHED.values()
    )
