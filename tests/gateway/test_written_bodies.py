"""Bodies are written in pieces that are kept: the bytes are those of the whole, written at once."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import ContextWindow
from context_window.gateway.fitted_body import fitted_body
from context_window.gateway.known_bodies import KnownBodies
from context_window.gateway.known_lists import KnownLists
from context_window.gateway.openai_chat import OpenAIChat
from context_window.gateway.windows import Windows
from context_window.gateway.wire_format import WireFormat, object_of
from context_window.gateway.written_bodies import WrittenBodies
from tests.gateway.test_gateway_properties import FORMATS, Step, steps
from tests.gateway.test_known_bodies import others, values

Json = dict[str, Any]

CHAT = OpenAIChat()
MESSAGES: list[Json] = [{"role": "user", "content": f"message “é” {number}"} for number in range(20)]


def at_once(wire: WireFormat, fields: Json, messages: Sequence[Json]) -> bytes:
    """Return the bytes of a body that is written as a whole."""
    return json.dumps(wire.with_messages(fields, messages), separators=(",", ":")).encode()


@given(st.data())
def test_the_bytes_are_those_of_the_whole_body(data: st.DataObject) -> None:
    """The bytes are those of `json.dumps(wire.with_messages(fields, messages), separators=(",", ":"))`, whatever was written before:
    conversations that grow, are rewound and share messages; views that show them in part, in any order, or other messages."""
    written = WrittenBodies(data.draw(st.sampled_from([0, 200, 10**6])))
    conversations: list[list[Json]] = [[]]
    head: Json = {}
    for number in range(data.draw(st.integers(1, 6))):
        earlier = data.draw(st.sampled_from(conversations))
        new = data.draw(st.lists(st.dictionaries(st.text(max_size=2), values, max_size=3), max_size=3))
        conversation = [*earlier[: data.draw(st.integers(0, len(earlier)))], *new]
        conversations.append(conversation)
        chosen = data.draw(st.lists(st.sampled_from(conversation), max_size=6)) if conversation else []
        made: list[Json] = [{"number": number, "place": place} for place in range(data.draw(st.integers(0, 2)))]
        head = data.draw(st.sampled_from([head, data.draw(others)]))
        fields = {**head, "messages": conversation, **data.draw(others)}
        assert written.write(CHAT, fields, conversation, [*made, *chosen]) == at_once(CHAT, fields, [*made, *chosen])


@pytest.mark.no_cover
@pytest.mark.parametrize(("wire", "path", "body_of", "validate", "field"), FORMATS)
@settings(max_examples=max(1, settings().max_examples // 4))  # each example makes a request for every step
@given(conversation=steps, tokens=st.integers(200, 4_000), rewinds=st.lists(st.integers(0, 9), max_size=3))
def test_a_worker_sends_the_bytes_that_it_would_send_without_having_seen_anything(
    wire: WireFormat,
    path: str,
    body_of: Callable[[list[Step]], Json],
    validate: Callable[[Json], list[object]],
    field: str,
    conversation: list[Step],
    tokens: int,
    rewinds: list[int],
) -> None:
    """The bytes are those of `json.dumps(wire.with_messages(fields, messages), separators=(",", ":"))`: for every request of a conversation
    that grows, and of one that is rewound."""
    window = ContextWindow(max_tokens=tokens, keep_first_message=True)
    bodies, windows, written = KnownBodies(), Windows(window, are_frozen=True), WrittenBodies()
    for length in [*range(1, len(conversation) + 1), *(1 + rewind % len(conversation) for rewind in rewinds)]:
        body = json.dumps(body_of(conversation[:length])).encode()
        fields, fresh = bodies.read(body) or {}, object_of(body) or {}
        now, alone = wire.conversation(path, fields), wire.conversation(path, fresh)
        assert now is not None
        assert alone is not None
        messages = Windows(window).fit(wire, alone)
        expected = body if messages is None else at_once(wire, fresh, messages)
        assert fitted_body(windows, written, wire, now, fields, body) == expected


def test_messages_that_were_written_are_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of the checks above: a message that is changed in place, which nobody may do, goes out as it was."""
    written, tools = WrittenBodies(), [{"name": "a"}]
    sent: list[Json] = []

    def noted(_: OpenAIChat, message: Json) -> Json:
        sent.append(message)
        return message

    monkeypatch.setattr(OpenAIChat, "sent", noted)
    written.write(CHAT, {"messages": MESSAGES[:10], "tools": tools}, MESSAGES[:10], MESSAGES[2:10])
    assert sent == MESSAGES[2:10]
    sent.clear()
    later = written.write(CHAT, {"messages": MESSAGES[:12], "tools": tools}, MESSAGES[:12], MESSAGES[1:12])
    assert sent == [MESSAGES[1], *MESSAGES[10:12]]
    assert later == at_once(CHAT, {"messages": [], "tools": tools}, MESSAGES[1:12])
    changed = [dict(message) for message in MESSAGES[:2]]
    written.write(CHAT, {"messages": changed}, changed, changed)
    changed[0]["content"] = "another"
    assert b"another" not in written.write(CHAT, {"messages": changed}, changed, changed)


def test_a_message_in_the_place_of_another_is_written() -> None:
    """They are held so that their ids stay theirs."""
    written = WrittenBodies()
    for number in range(100):
        made = [{"number": number}, {"number": -number}]
        assert written.write(CHAT, {"messages": MESSAGES}, MESSAGES, made) == at_once(CHAT, {"messages": MESSAGES}, made)
        del made


class Message(dict[str, Any]):
    """A message that can be referred to weakly."""


def test_idle_bodies_are_forgotten() -> None:
    """Kept are the bytes of the last body of a conversation, until no request comes for a while."""
    now = 100.0
    written = WrittenBodies(clock=lambda: now)
    first, second = ([Message(role="user", content=f"{name} {number}") for number in range(3)] for name in "ab")
    alive = [*map(weakref.ref, [*first, *second])]
    written.write(CHAT, {"messages": first}, first, first)  # type: ignore[arg-type]
    now = 130.0
    written.write(CHAT, {"messages": second}, second, second)  # type: ignore[arg-type]
    del first, second
    written.forget_idle(20.0)
    gc.collect()
    assert [reference() is not None for reference in alive] == [False] * 3 + [True] * 3
    written.forget_idle(0.0)
    gc.collect()
    assert [reference() is not None for reference in alive] == [False] * 6


def test_no_more_is_kept_than_is_allowed() -> None:
    made: list[int] = []

    def make(common: int, earlier: str | None) -> str:
        made.append(common if earlier is not None else -1)
        return "a" * 400

    known: KnownLists[str] = KnownLists(1_000, len)
    lists = [[{"number": number}] for number in range(4)]
    for each in [*lists, *lists[2:], *lists[:2]]:
        known.made_from(each, make)
    assert made == [-1, -1, -1, -1, 1, 1, -1, -1]


def test_a_side_request_does_not_push_the_conversation_out() -> None:
    """A rewind and a sub-agent may share the first messages only: then both stay."""
    common: list[int] = []
    known: KnownLists[None] = KnownLists()
    for messages in (MESSAGES, [*MESSAGES[:2], {"role": "user", "content": "aside"}], MESSAGES):
        known.made_from(messages, lambda same, _: common.append(same))
    assert common == [0, 2, 20]
