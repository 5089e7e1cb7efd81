"""What converters add is known by more than its text: a user, a tool or a model may say the same."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from session import Compaction, FunctionCall, FunctionCallOutput, Image, Message, Session, Text
from session.items import Item
from session.providers.additions import ADDED, FAILED, INTERRUPTED, PREAMBLE, SUMMARY_HEADER, summary_text
from session.providers.anthropic import from_anthropic, to_anthropic
from session.providers.google import from_google, to_google
from session.providers.openai_chat import from_openai_chat, to_openai_chat
from session.providers.openai_responses import from_openai_responses, to_openai_responses

There = Callable[[Session], Any]
Back = Callable[[Any], Session]

FORMATS: dict[str, tuple[There, Back]] = {
    "anthropic": (to_anthropic, lambda wire: from_anthropic(*wire)),
    "google": (to_google, lambda wire: from_google(*wire)),
    "openai_chat": (to_openai_chat, from_openai_chat),
    "openai_responses": (to_openai_responses, from_openai_responses),
}

CONSTANTS = st.sampled_from([*ADDED, *ADDED, SUMMARY_HEADER, f"{SUMMARY_HEADER}x", FAILED])
TEXTS = st.one_of(
    CONSTANTS,
    st.builds(str.__add__, CONSTANTS, st.sampled_from([" ", "  ", " \n", "\n", "x"])),
    st.builds(str.__add__, st.sampled_from([" ", "x"]), CONSTANTS),
    st.sampled_from(["hi", "Read it."]),
)
IMAGES = st.just(Image(url="https://example.org/a.png"))
USERS = st.builds(Message, st.just("user"), st.lists(st.one_of(TEXTS, TEXTS, IMAGES), min_size=1, max_size=3))
ASSISTANTS = st.builds(Message, st.just("assistant"), st.lists(TEXTS, min_size=1, max_size=2))
COMPACTIONS = st.builds(Compaction, st.one_of(TEXTS, st.just("")))


@st.composite
def steps(draw: st.DrawFn) -> list[Item]:
    """Parallel calls, each answered or not."""
    calls = draw(st.integers(1, 3))
    ids = [draw(st.uuids()).hex[:12] for _ in range(calls)]
    contents = st.lists(st.one_of(TEXTS, TEXTS, IMAGES), min_size=1, max_size=3)
    outputs = [
        FunctionCallOutput("run", draw(contents), call_id, is_error=draw(st.booleans())) for call_id in ids if draw(st.integers(0, 3))
    ]
    return [*(FunctionCall("run", "{}", call_id) for call_id in ids), *outputs]


@st.composite
def logs(draw: st.DrawFn) -> Session:
    """Well-formed conversations; many of their texts equal the ones that converters add."""
    pieces = draw(st.lists(st.one_of(USERS.map(lambda item: [item]), ASSISTANTS.map(lambda item: [item]), steps(), steps()), max_size=8))
    head = draw(st.sampled_from([[], [], [None]]))
    items: list[Item] = [draw(COMPACTIONS) for _ in head]
    return Session([*items, *(item for piece in pieces for item in piece)])


def texts_by_speaker(session: Session) -> dict[str, list[str]]:
    """All texts of the user, the model and the tools, each in order. Left out: notes for images, trailing whitespace of the model's,
    and where one text part of an output ends."""
    speakers: dict[str, list[str]] = {"user": [], "assistant": [], "tool": []}
    for item in session.items:
        if isinstance(item, Message) and item.role in speakers:
            texts = [part.text for part in item.content if isinstance(part, Text)]
            speakers[item.role] += [text.rstrip() if item.role == "assistant" else text for text in texts]
        elif isinstance(item, FunctionCallOutput) and item.text:
            lines = [line for line in item.text.split("\n") if not line.startswith("[image ")]
            speakers["tool"] += ["\n".join(lines)] if lines else []
        elif isinstance(item, Compaction) and item.summary.strip():
            speakers["user"].append(summary_text(item.summary))
    return speakers


@pytest.mark.parametrize("name", FORMATS)
@given(session=logs())
def test_no_text_vanishes_or_changes_its_speaker(name: str, session: Session) -> None:
    """Nothing of the user's, the model's or a tool's vanishes or changes kind, also where it says what a converter adds."""
    there, back = FORMATS[name]
    returned = back(there(session))
    assert texts_by_speaker(returned) == texts_by_speaker(session)
    event(f"the first message says the preamble: {texts_by_speaker(session)['user'][:1] == [PREAMBLE]}")
    answers = sum(isinstance(item, FunctionCallOutput) for item in session.items)
    assert sum(isinstance(item, FunctionCallOutput) for item in returned.items) == answers
    assert sum(isinstance(item, FunctionCall) for item in returned.items) == sum(isinstance(item, FunctionCall) for item in session.items)


@pytest.mark.parametrize("name", FORMATS)
@given(session=logs())
def test_round_trips_do_not_grow(name: str, session: Session) -> None:
    """The converter's own additions are still recognised: a second round trip gives the first one's payload."""
    there, back = FORMATS[name]
    wire = there(session)
    returned = back(wire)
    assert there(returned) == wire
    assert texts_by_speaker(back(there(returned))) == texts_by_speaker(returned)


def test_a_text_of_a_list_made_elsewhere_is_its_users() -> None:
    """Converters write lists of blocks: where a content is one text, nothing of it is theirs."""
    messages = [
        {"role": "user", "content": PREAMBLE},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "run", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": INTERRUPTED, "is_error": True}]},
    ]
    session = from_anthropic(messages)
    assert texts_by_speaker(session) == {"user": [PREAMBLE], "assistant": [], "tool": [INTERRUPTED]}
    assert texts_by_speaker(from_anthropic(*to_anthropic(session))) == texts_by_speaker(session)
