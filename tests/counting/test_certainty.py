"""The interval of a count: it contains the count, and says what cannot be known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindowManager
from context_window.counting import CharacterCounter
from context_window.counting.certainty import LEAST, interval_of
from context_window.usage.report import UsageReport
from session import Session
from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Document, Image, Text

MODELS = ["claude-opus-4-7", "claude-sonnet-4-5", "gpt-4o-mini", "gpt-4.1-nano", "gpt-5.6", "responses/gpt-5", "gemini-2.5-pro", "grok-4"]
PDF = b"%PDF-1.4\n1 0 obj<</Type/Page>>endobj"

texts = st.text(max_size=80)
parts: st.SearchStrategy[Any] = st.one_of(
    texts.map(Text),
    st.integers(1, 4_000).map(lambda side: Image(url="u", width=side, height=side)),
    st.sampled_from(
        [Image(file_id="f"), Document(file_id="f"), Document(url="u"), Document(data=PDF), Document(data=b"%PDF-"), Document(text="a")]
    ),
    st.sampled_from([Document(data=b"RIFF", media_type="audio/wav"), Document(data=b"x", media_type="video/mp4")]),
)
items = st.one_of(
    st.lists(parts, max_size=3).map(lambda content: Message(role="user", content=content)),
    texts.map(lambda text: Reasoning(text=text)),
    texts.map(lambda text: FunctionCall(call_id="c", name="read", arguments=text)),
    st.lists(parts, max_size=2).map(lambda output: FunctionCallOutput(call_id="c", name="read", output=output)),
)


def report(model: str, *content: Item, **options: object) -> UsageReport:
    return ContextWindowManager(model, max_tokens=10**8, **options).usage(Session(items=list(content)))  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS)
@given(log=st.lists(items, max_size=5))
def test_an_interval_contains_the_count(model: str, log: list[Item]) -> None:
    usage = report(model, *log)
    assert usage.least is not None
    assert 0 <= usage.least <= usage.total
    assert usage.most is None or usage.most > usage.total


@pytest.mark.parametrize("model", MODELS)
@given(log=st.lists(st.builds(lambda content: Message(role="user", content=content), st.lists(parts, max_size=3)), min_size=1, max_size=5))
def test_more_content_never_lowers_a_count(model: str, log: list[Item]) -> None:
    counts = [report(model, *log[:length]).total for length in range(len(log) + 1)]
    assert counts == sorted(counts)


@pytest.mark.parametrize(
    ("model", "least", "most"), [("gpt-4o-mini", 8_500, 48_169), ("claude-opus-4-7", 1, 4_784), ("gemini-2.5-pro", 258, 1_806)]
)
def test_an_image_known_only_by_its_id_is_a_range(model: str, least: int, most: int) -> None:
    usage = report(model, Message(role="user", content=[Image(file_id="f")]))
    assert usage.least is not None
    assert usage.most is not None
    assert least - 40 <= usage.least <= least + 10
    assert most <= usage.most <= most + 40
    assert f"the provider usually counts {usage.least:,} to {usage.most:,}" in " ".join(str(usage).split())


@pytest.mark.parametrize(
    "document",
    [Document(file_id="f"), Document(url="u"), Document(data=b"%PDF-"), Document(data=b"x" * 9_000, media_type="audio/wav")],
    ids=["id", "url", "damaged", "sound"],
)
def test_a_document_whose_size_is_not_known_has_no_upper_end(document: Document) -> None:
    usage = report("gpt-4o", Message(role="user", content=["What is it?", document]))
    assert usage.least is not None
    assert usage.least < 20
    assert usage.most is None
    assert f"the provider usually counts at least {usage.least}" in " ".join(str(usage).split())


@pytest.mark.parametrize(("model", "percent"), [("gpt-4o", 2), ("gemini-2.5-pro", 1), ("claude-sonnet-4-5", 8)])
def test_a_text_has_the_measured_error_of_its_models_texts(model: str, percent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_window.counting.select.has_ctok", lambda: False)
    usage = report(model, Message(role="user", content="It was a dark and stormy night. " * 400))
    assert usage.least is not None
    assert usage.most is not None
    for reach in (usage.total - usage.least, usage.most - usage.total):
        assert LEAST + usage.total * percent / 100 - 2 <= reach <= LEAST + usage.total * percent / 100 + 2


def test_of_a_counter_of_ones_own_its_error_is_the_interval_or_there_is_none() -> None:
    item = Message(role="user", content="a" * 4_000)
    assert interval_of(1_004, [(item, 1_004)], 0, CharacterCounter(), 0.3) == (int(1_004 - LEAST - 301.2), int(1_004 + LEAST + 301.2) + 1)
    length: Callable[[str], int] = len
    assert report("gpt-4o", item, token_counter=length).least is None
