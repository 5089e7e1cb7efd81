"""`CtokCounter` where `ctok` is installed, and what counts where it is not. What all counters keep is in contracts/."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from fractions import Fraction
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ArgumentError, ContextWindow, ContextWindowManager, CtokCounter, Session, TiktokenCounter
from context_window.counting import ctok_counter
from context_window.counting import select as choosing
from context_window.counting.ctok_counter import EXACT, PIECE, VERSIONS, pieces
from context_window.counting.images import claude_high_tokens, claude_standard_tokens
from context_window.counting.select import select_counter
from context_window.counting.tiktoken_counter import default_counter
from context_window.models import describe_model
from session.extras import install_line
from session.parts import Image

installed = pytest.mark.skipif(find_spec("ctok") is None, reason="ctok is not installed; it needs Python 3.12: pip install '.[claude]'")
every_version = pytest.mark.parametrize("version", VERSIONS)

CORPUS = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(str(files("session"))).rglob("*.py")))


def whole(text: str, version: str) -> int:
    """Return ctok's count of the whole text, minus the message around it: 7, 11 or 6 tokens."""
    from ctok import token_count

    return int(token_count(text, version)) - {"3.0": 7, "4.7": 11, "4.8": 6}[version]


# Where it is not installed


def test_without_ctok_claude_is_counted_by_tiktoken_times_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "has_ctok", lambda: False)
    chosen = select_counter(None, describe_model("claude-opus-4-7"))
    assert (chosen.counter.name, chosen.expected_error, chosen.problem) == ("tiktoken o200k_claude_4.7", 0.10, "")


def test_a_ctok_that_does_not_work_is_told_of_and_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> int:
        raise AttributeError("token_count")

    monkeypatch.setattr(choosing, "has_ctok", lambda: True)
    monkeypatch.setattr(choosing, "ctok_counter", fail)
    chosen = select_counter(None, describe_model("claude-opus-4-7"))
    assert (chosen.counter.name, chosen.expected_error) == ("tiktoken o200k_claude_4.7", 0.10)
    assert chosen.problem == "ctok is installed but fails to count: AttributeError"
    manager = ContextWindowManager("claude-opus-4-7")
    assert "(ctok is installed but fails to count: AttributeError)" in " ".join(str(manager.usage(Session())).split())


def test_who_asks_for_ctok_without_having_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctok_counter, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=re.escape(install_line("claude"))):
        CtokCounter("4.8")


@pytest.mark.parametrize("version", ["5.0", 4.8, "", None])
def test_a_generation_that_there_is_not_is_refused(version: Any) -> None:
    with pytest.raises(ArgumentError, match=r"pass one of 3\.0, 4\.7, 4\.8"):
        CtokCounter(version)


# Where texts are cut


@given(st.text(alphabet="ab1' \n\té日", max_size=30), st.integers(1, 400))
def test_pieces_are_the_text_but_for_the_spaces_they_were_cut_at(text: str, times: int) -> None:
    text *= times
    cut = pieces(text)
    assert max(map(len, cut)) <= PIECE
    at = 0
    for number, piece in enumerate(cut):
        if number and not text.startswith(piece, at):
            assert text[at] == " "
            at += 1
        assert text.startswith(piece, at)
        at += len(piece)
    assert at == len(text)


# Where it is


@installed
@pytest.mark.parametrize(
    ("model", "name", "rule"),
    [
        ("claude-3-5-haiku-20241022", "ctok 3.0", claude_standard_tokens),
        ("claude-sonnet-4-5", "ctok 3.0", claude_standard_tokens),
        ("claude-opus-4-6", "ctok 3.0", claude_standard_tokens),
        ("claude-opus-4-7", "ctok 4.7", claude_high_tokens),
        ("claude-opus-4-8", "ctok 4.8", claude_high_tokens),
        ("claude-opus-5", "ctok 4.8", claude_high_tokens),
    ],
)
def test_claude_is_counted_by_ctok_of_its_generation(model: str, name: str, rule: Any) -> None:
    chosen = select_counter(None, describe_model(model))
    assert (chosen.counter.name, chosen.expected_error, chosen.problem) == (name, 0.02, "")
    image = Image(url="u", width=1920, height=1080)
    assert chosen.counter.count_part(image) == rule(image)
    assert chosen.counter is select_counter(None, describe_model(model)).counter


@installed
@pytest.mark.parametrize("model", ["gpt-5", "gemini-2.5-pro", "a-model-nobody-knows"])
def test_others_are_not(model: str) -> None:
    assert isinstance(select_counter(None, describe_model(model)).counter, TiktokenCounter)
    assert isinstance(select_counter(None, None).counter, TiktokenCounter)


@installed
def test_a_counter_that_was_passed_goes_before_it() -> None:
    assert select_counter(len, describe_model("claude-opus-5")).counter.name == "len"
    mine = TiktokenCounter()
    assert select_counter(mine, describe_model("claude-opus-5")).counter is mine


@installed
def test_statistics_and_display_say_who_counted_and_how_well() -> None:
    session = Session()
    session.add_message("user", "hello, world")
    manager = ContextWindowManager("claude-opus-4-8", context_window=ContextWindow(max_tokens=1000))
    stats = manager.analyze_session(session)
    assert (stats["counter"], stats["expected_error"], stats["per_category"]["DIALOG"]) == ("ctok 4.8", 0.02, 3 + 4)
    assert "counted with ctok 4.8: an estimate; the provider usually counts" in " ".join(str(manager.usage()).split())


@installed
@every_version
@given(text=st.text(max_size=60))
def test_short_texts_cost_what_ctok_says(version: str, text: str) -> None:
    assert CtokCounter(version).count_text(text) == (max(1, whole(text, version)) if text else 0)


@installed
@every_version
@pytest.mark.parametrize("start", [0, 77_777])
def test_pieces_of_code_cost_what_the_whole_does(version: str, start: int) -> None:
    text = CORPUS[start : start + 6 * PIECE]
    assert len(pieces(text)) > 5
    assert abs(CtokCounter(version).count_text(text) - whole(text, version)) <= len(pieces(text)) - 6


@installed
@every_version
def test_of_a_long_text_a_part_is_counted_and_little_is_lost(version: str) -> None:
    text = CORPUS[: 5 * EXACT]
    exact = sum(CtokCounter(version).count_text(piece) for piece in pieces(text))
    assert abs(CtokCounter(version).count_text(text) - exact) < 0.03 * exact


@installed
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda counter: pickle.loads(pickle.dumps(counter))])
def test_it_can_be_sent_to_other_processes(again: Any) -> None:
    counter = CtokCounter("4.7", claude_high_tokens)
    before = counter.count_text("some text")
    received = again(counter)
    assert (received, hash(received), received.count_text("some text")) == (counter, hash(counter), before)
    assert len({counter, CtokCounter("4.8", claude_high_tokens), CtokCounter("4.7"), default_counter(ratio=Fraction(2))}) == 4


@installed
def test_it_is_imported_when_something_is_counted_and_not_before() -> None:
    import subprocess

    code = "import sys; from context_window import CtokCounter; CtokCounter(); assert 'ctok' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
