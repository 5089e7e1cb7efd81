"""Bodies that are read by parts: the value is that of `json.loads`, whatever was read before."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.gateway.known_bodies import KnownBodies
from context_window.gateway.wire_format import object_of

Json = dict[str, Any]

texts = st.text(st.sampled_from('aé“🙂"\\]}[{,: \n'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2)
)
fields = st.dictionaries(st.sampled_from(["role", "content", "messages", "input"]), values | texts.map(lambda text: text * 40), max_size=3)
others = st.dictionaries(st.sampled_from(["model", "system", "tools", "messages", "input", "contents"]), values, max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[bytes]:
    """Bodies of a few conversations that grow, are rewound, and share messages; some of them damaged."""
    known: list[list[Any]] = [[]]
    bodies = []
    for _ in range(draw(st.integers(1, 6))):
        earlier = draw(st.sampled_from(known))
        messages = [*earlier[: draw(st.integers(0, len(earlier)))], *draw(st.lists(fields | values, max_size=3))]
        known.append(messages)
        body = draw(others) | {draw(st.sampled_from(["messages", "input", "contents"])): messages} | draw(others)
        style: Any = {"ensure_ascii": draw(st.booleans()), "indent": draw(st.sampled_from([None, None, 1]))}
        text = json.dumps(body, **style)
        if draw(st.integers(0, 4)) == 0:  # damaged: a piece is missing, or there twice
            start, end = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
            text = draw(st.sampled_from([text[:start] + text[end:], text[:end] + text[start:]]))
        bodies.append(text.encode(errors="surrogatepass"))
    return bodies


@given(conversations(), st.sampled_from([0, 200, 10**6]))
def test_the_value_is_that_of_the_whole_body(bodies: list[bytes], kept_bytes: int) -> None:
    """Whatever does not look like that is read at once. The value is the same in both ways, and so is the order of its fields."""
    known = KnownBodies(kept_bytes)
    for body in bodies:
        value, expected = known.read(body), object_of(body)
        assert json.dumps(value) == json.dumps(expected)


def body_of(messages: list[Any], **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages, "system": "s", **more}, ensure_ascii=False).encode()


MESSAGES = [{"role": "user", "content": f"message é {number}"} for number in range(20)]


def test_equal_messages_are_the_same_objects() -> None:
    """Messages that an earlier body had are not read again, in whatever place they stand in the body."""
    known = KnownBodies()
    first = known.read(body_of(MESSAGES[:10])) or {}
    second = known.read(body_of([*MESSAGES[:9], {"role": "user", "content": "another"}, *MESSAGES], tools=["new"])) or {}
    assert all(now is then for now, then in zip(second["messages"][:9], first["messages"], strict=False))
    assert second["messages"][9]["content"] == "another"
    third = known.read(json.dumps({"system": "moved", "messages": MESSAGES}, ensure_ascii=False).encode()) or {}
    assert all(now is then for now, then in zip(third["messages"][:9], first["messages"], strict=False))


def test_equal_fields_around_the_messages_are_the_same_objects() -> None:
    """Values of equal bytes are the same objects at every request, so that what was made from them still holds."""
    known = KnownBodies()
    first = known.read(body_of(MESSAGES[:3], tools=[{"name": "a"}], head={"é": 1})) or {}
    second = known.read(body_of(MESSAGES, tools=[{"name": "a"}], head={"é": 1})) or {}
    assert second["tools"] is first["tools"]
    third = known.read(body_of(MESSAGES, tools=[{"name": "b"}], head={"é": 1})) or {}
    assert third["tools"] == [{"name": "b"}]


def test_a_side_request_does_not_push_the_conversation_out() -> None:
    """A rewind and a sub-agent may share the first messages only."""
    known = KnownBodies()
    first = known.read(body_of(MESSAGES)) or {}
    known.read(body_of([*MESSAGES[:2], {"role": "user", "content": "aside"}]))
    again = known.read(body_of(MESSAGES)) or {}
    assert all(now is then for now, then in zip(again["messages"], first["messages"], strict=True))


def test_no_more_bytes_are_kept_than_are_allowed() -> None:
    known = KnownBodies(3_000)
    for number in range(20):
        known.read(body_of([{"role": "user", "content": f"{number} " + "a" * 1_000}]))
    assert sum(len(each.body) for each in known._known) <= 3_000
    assert known.read(body_of([{"role": "user", "content": "a" * 10_000}]))
    assert known._known == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"tools": [{"input": [{"messages": []}]}], "messages": [{"a": 1}], "model": "m"}',
        b'{"messages": [{"a": 1}], "messages": [{"b": 2}]}',
        b'{"messages": [{"a": 1}], "model": "m", "model": "n"}',
        b'{"messages": [{"a": 1}] "model": "m"}',
        b'{"messages": [{"a": 1},], "model": "m"}',
        b'{"messages": [{"a": 1}], "model": "m",}',
        b'{"messages": [{"a": 1}],}',
        b'{"messages": [{"a": 1} {"b": 1}]}',
        b'{"messages": [{"a": 1}]} more',
        b'{"messages": [{"a": 1}]',
        b'{"messages": []}',
        b'{"messages": [{"a": 1}], 3}',
        b'[{"messages": [{"a": 1}]}]',
        b'{"messages": [' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"]}",
        '{"messages": [{"a": "\u00e9"}]}'.encode("utf-16"),
        b'{"messages": [{"a": "\xff"}]}',
    ],
)
def test_odd_bodies(body: bytes) -> None:
    known = KnownBodies()
    for _ in range(2):
        assert json.dumps(known.read(body)) == json.dumps(object_of(body))
