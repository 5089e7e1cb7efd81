"""A saved session loads byte for byte. A damaged one gives an error with its place, or a valid session."""

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import FormatError, Message, MessageCategory, Session, Usage
from session.items import ROLES, AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Reasoning
from session.parts import DETAILS, Document, Image, Part, Text
from tests.session.test_images import SOUND
from tests.session.test_items import JSON, deep
from tests.support.strategies import sessions

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)  # lone surrogates and NUL among them
MAYBE = st.none() | ANY_TEXT
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
COUNTS = st.integers(0, 2**63 - 1)
BYTES = st.binary(max_size=30) | st.sampled_from(list(SOUND.values()))


@st.composite
def images(draw: st.DrawFn) -> Image:
    source = draw(st.sampled_from(["data", "url", "path", "file_id", "data and path"]))
    values: dict[str, Any] = {name: draw(BYTES if name == "data" else ANY_TEXT) for name in source.split(" and ")}
    values |= draw(st.sampled_from([{}, {"width": 5}, {"width": 100_000, "height": 1}]))
    return Image(**values, media_type=draw(MAYBE), detail=draw(st.none() | st.sampled_from(DETAILS)))


@st.composite
def documents(draw: st.DrawFn) -> Document:
    source = draw(st.sampled_from(["data", "url", "file_id", "text"]))
    values: dict[str, Any] = {source: draw(BYTES if source == "data" else ANY_TEXT)}
    return Document(**values, media_type=draw(MAYBE), title=draw(MAYBE))


CONTENT: st.SearchStrategy[list[Part]] = st.lists(st.builds(Text, ANY_TEXT) | images() | documents(), max_size=3)


@st.composite
def rich_items(draw: st.DrawFn, number: int) -> Item:
    """Draw an item with arbitrary values in all fields."""
    base: dict[str, Any] = {
        "id": f"{number}{draw(ANY_TEXT)}",
        "created_at": draw(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60)),
        "agent_id": draw(MAYBE),
        "pinned": draw(st.booleans()),
        "usage": draw(st.none() | st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS)),
        "extra": draw(OBJECTS),
    }
    if draw(st.booleans()):
        base["category"] = draw(st.sampled_from(MessageCategory))
    kind = draw(st.integers(0, 6))
    if kind == 0:
        return Message(draw(st.sampled_from(ROLES)), draw(CONTENT), interrupted=draw(st.booleans()), **base)
    if kind == 1:
        return Reasoning(draw(ANY_TEXT), draw(MAYBE), draw(MAYBE), **base)
    if kind == 2:
        return FunctionCall(draw(ANY_TEXT), draw(ANY_TEXT), draw(ANY_TEXT), metadata=draw(OBJECTS), **base)
    if kind == 3:
        return FunctionCallOutput(draw(ANY_TEXT), draw(CONTENT), draw(ANY_TEXT), is_error=draw(st.booleans()), **base)
    if kind == 4:
        return AgentHandoff(draw(ANY_TEXT), draw(MAYBE), draw(MAYBE), **base)
    if kind == 5:
        return AgentConfigUpdate(draw(MAYBE), draw(st.none() | st.lists(ANY_TEXT, max_size=3)), **base)
    return Compaction(draw(ANY_TEXT), draw(st.lists(ANY_TEXT, max_size=3)), **base)


@st.composite
def rich_sessions(draw: st.DrawFn) -> Session:
    items = [draw(rich_items(number)) for number in range(draw(st.integers(0, 4)))]
    session = Session(items, id=draw(ANY_TEXT) or None, metadata=draw(OBJECTS))
    if draw(st.booleans()):
        breaks = frozenset(item.id for item in items if draw(st.booleans()))
        session.restore_seams(breaks, draw(st.integers(0, len(items))))
    return session


def same(first: Session, second: Session) -> None:
    assert list(first.items) == list(second.items)
    assert [hash(item) for item in first.items] == [hash(item) for item in second.items]
    assert (first.id, first.metadata, first.response_breaks, first.settled) == (
        second.id,
        second.metadata,
        second.response_breaks,
        second.settled,
    )


# Round trips


@given(rich_sessions() | sessions(max_steps=6))
def test_any_session_survives_a_round_trip_byte_for_byte(session: Session) -> None:
    for as_is in (True, False):
        saved = json.dumps(session.to_dict(), ensure_ascii=as_is, allow_nan=False).encode()
        loaded = Session.from_dict(json.loads(saved))
        same(session, loaded)
        assert json.dumps(loaded.to_dict(), ensure_ascii=as_is).encode() == saved


def test_a_session_is_saved_as_documented() -> None:
    session = Session(id="s", metadata={"k": 1})
    session.append(Message("user", ["hi", Image(data=SOUND["png"], media_type="image/png")], id="m", created_at=5.0))
    session.append(
        FunctionCall(
            "f", "{}", "c", id="f", created_at=6.0, category=MessageCategory.DIALOG, usage=Usage(1), pinned=True, metadata={"a": 1}
        )
    )
    session.append(Compaction("so far", ["m"], id="z", created_at=7.0))
    data = session.to_dict()
    image = data["items"][0]["content"][1]
    assert image.pop("data").startswith("iVBORw0KGgo")
    assert data == {
        "version": 1,
        "id": "s",
        "metadata": {"k": 1},
        "items": [
            {
                "type": "message",
                "id": "m",
                "created_at": 5.0,
                "role": "user",
                "content": [{"type": "text", "text": "hi"}, {"type": "image", "media_type": "image/png", "width": 31, "height": 17}],
            },
            {
                "type": "function_call",
                "id": "f",
                "created_at": 6.0,
                "category": "DIALOG",
                "pinned": True,
                "usage": {"input_tokens": 1},
                "name": "f",
                "arguments": "{}",
                "call_id": "c",
                "metadata": {"a": 1},
            },
            {"type": "compaction", "id": "z", "created_at": 7.0, "summary": "so far", "replaces": ["m"]},
        ],
    }


def test_a_category_that_differs_from_the_default_is_saved() -> None:
    item = dataclasses.replace(Message("user", "x"), role="system")
    assert Session.from_dict(Session([item]).to_dict()).items[0].category is MessageCategory.DIALOG


def test_changing_the_saved_data_does_not_change_the_session() -> None:
    session = Session([FunctionCall("f", "{}", "c", extra={"a": [1]}, metadata={"b": [1]})], metadata={"c": [1]})
    before = json.dumps(session.to_dict())
    data = session.to_dict()
    data["metadata"]["c"].append(2)
    data["items"][0]["extra"]["a"].append(2)
    data["items"][0]["metadata"]["b"].append(2)
    assert json.dumps(session.to_dict()) == before
    loaded = Session.from_dict(data)
    data["items"][0]["extra"]["a"].append(3)
    assert loaded.items[0].extra == {"a": [1, 2]}


def test_a_view_is_saved_with_only_the_seams_of_its_own_items() -> None:
    items: list[Item] = [Message("assistant", "", id=name, created_at=0.0) for name in "abcd"]
    view = Session.showing(Session(id="s"), items[:3], breaks=frozenset("cad"), settled=2)
    data = view.to_dict()
    assert (data["breaks"], data["settled"]) == (["a", "c"], 2)
    loaded = Session.from_dict(data)
    assert (loaded.response_breaks, loaded.settled) == (frozenset("ac"), 2)


def test_metadata_that_cannot_be_saved_raises_on_save() -> None:
    session = Session()
    session.metadata["a"] = [math.nan]
    with pytest.raises(FormatError) as caught:
        session.to_dict()
    assert caught.value.where == "metadata.a[0]"


def test_item_data_changed_against_the_rules_raises_on_save() -> None:
    session = Session([Message("user", ""), Message("user", "", extra={"a": 1})])
    session.items[1].extra["a"] = 10**5_000  # type: ignore[index]
    with pytest.raises(FormatError) as caught:
        session.to_dict()
    assert caught.value.where == "items[1].extra.a"


def test_loading_opens_no_file(tmp_path: Path) -> None:
    """A saved session may come from anywhere, and a file changed since then must not change the session."""
    path = tmp_path / "it.png"
    session = Session([Message("user", [Image(path=str(path))])])
    path.write_bytes(SOUND["png"])
    same(Session.from_dict(session.to_dict()), session)
    loaded = Session([Message("user", [Image(path=str(path))])])
    path.unlink()
    same(Session.from_dict(loaded.to_dict()), loaded)
    assert Session.from_dict(loaded.to_dict()).to_anthropic_messages() == loaded.to_anthropic_messages()


def test_bytes_without_a_size_are_measured() -> None:
    data = sound()
    part = data["items"][0]["content"][1]
    del part["width"], part["height"]
    message = Session.from_dict(data).items[0]
    assert isinstance(message, Message)
    assert isinstance(image := message.content[1], Image)
    assert (image.width, image.height) == (31, 17)


# Damage


def sound() -> dict[str, Any]:
    """Return a saved session with every kind of value."""
    session = Session(id="s", metadata={"k": {"l": [1]}})
    session.append(
        Message(
            "user",
            ["hi", Image(data=SOUND["png"], detail="low"), Document(text="d", title="t")],
            id="m",
            created_at=1.0,
            usage=Usage(1, 2, 3, 4),
            extra={"a": [{"b": 1}]},
        )
    )
    session.append(Reasoning("r", "sig", "data", id="r", created_at=2.0, category=MessageCategory.CONTEXT))
    session.append(FunctionCall("f", "{}", "c", id="f", created_at=3.0, metadata={"a": 1}, agent_id="x"))
    session.append(FunctionCallOutput("f", "out", "c", id="o", created_at=4.0, is_error=True))
    session.append(AgentHandoff("b", "a", "why", id="h", created_at=5.0))
    session.append(AgentConfigUpdate("i", ["t"], id="u", created_at=6.0))
    session.append(Compaction("s", ["m"], id="z", created_at=7.0, pinned=True))
    session.restore_seams(frozenset({"r", "f"}), 3)
    data: dict[str, Any] = session.to_dict()
    return data


GONE = object()
DAMAGE: list[tuple[str, object, str]] = [
    ("version", GONE, "version"),
    ("version", 2, "version"),
    ("version", 1.0, "version"),
    ("version", True, "version"),
    ("version", 10**5_000, "version"),
    ("version", deep(100_000), "version"),
    ("id", GONE, "id"),
    ("id", "", "id"),
    ("id", 10**5_000, "id"),
    ("metadata", [], "metadata"),
    ("metadata", None, "metadata"),
    ("metadata.k.l", [math.nan], "metadata.k.l[0]"),
    ("metadata.k.l", deep(100_000), "metadata.k.l" + "[0]" * 98),
    ("items", GONE, "items"),
    ("items", {}, "items"),
    ("items", None, "items"),
    ("colour", 1, "colour"),
    ("x" * 5_000, 1, "a text of 5,000 characters that begins with 'xxxx'"),
    ("breaks", "rf", "breaks"),
    ("breaks", ["r", "nobody"], "breaks[1]"),
    ("breaks", ["\ud800"], "breaks[0]"),
    ("breaks", [["r"]], "breaks[0]"),
    ("settled", 8, "settled"),
    ("settled", -1, "settled"),
    ("settled", True, "settled"),
    ("settled", 1.0, "settled"),
    ("settled", 10**5_000, "settled"),
    ("items[0]", None, "items[0]"),
    ("items[0]", [], "items[0]"),
    ("items[0].type", GONE, "items[0].type"),
    ("items[0].type", "massage", "items[0].type"),
    ("items[0].type", ["message"], "items[0].type"),
    ("items[0].type", "reasoning", "items[0].role"),
    ("items[0].id", GONE, "items[0].id"),
    ("items[0].id", "", "items[0].id"),
    ("items[1].id", "m", "items[1].id"),
    ("items[0].created_at", GONE, "items[0].created_at"),
    ("items[0].created_at", None, "items[0].created_at"),
    ("items[0].created_at", math.nan, "items[0].created_at"),
    ("items[0].role", GONE, "items[0].role"),
    ("items[0].role", "tool", "items[0].role"),
    ("items[0].content", GONE, "items[0].content"),
    ("items[0].content", "hi", "items[0].content"),
    ("items[0].content[0]", "hi", "items[0].content[0]"),
    ("items[0].content[0].type", "txt", "items[0].content[0].type"),
    ("items[0].content[0].text", GONE, "items[0].content[0].text"),
    ("items[0].content[0].text", 5, "items[0].content[0].text"),
    ("items[0].content[0].colour", 5, "items[0].content[0].colour"),
    ("items[0].content[1].data", "no base64!", "items[0].content[1].data"),
    ("items[0].content[1].data", "é", "items[0].content[1].data"),
    ("items[0].content[1].data", "QQ", "items[0].content[1].data"),
    ("items[0].content[1].data", 5, "items[0].content[1].data"),
    ("items[0].content[1].data", GONE, "items[0].content[1]"),
    ("items[0].content[1].url", "u", "items[0].content[1]"),
    ("items[0].content[1].width", 0, "items[0].content[1].width"),
    ("items[0].content[1].height", 10**9, "items[0].content[1].height"),
    ("items[0].content[1].detail", "huge", "items[0].content[1].detail"),
    ("items[0].content[1].open_path", True, "items[0].content[1].open_path"),
    ("items[0].content[2].text", GONE, "items[0].content[2]"),
    ("items[0].content[2].title", 5, "items[0].content[2].title"),
    ("items[0].usage", None, "items[0].usage"),
    ("items[0].usage.input_tokens", -1, "items[0].usage.input_tokens"),
    ("items[0].usage.input_tokens", 10**5_000, "items[0].usage.input_tokens"),
    ("items[0].usage.colour", 1, "items[0].usage.colour"),
    ("items[0].extra", 5, "items[0].extra"),
    ("items[0].extra", None, "items[0].extra"),
    ("items[0].extra.a[0].b", math.inf, "items[0].extra.a[0].b"),
    ("items[0].extra.a[0].b", 10**5_000, "items[0].extra.a[0].b"),
    ("items[0].pinned", 1, "items[0].pinned"),
    ("items[0].memo", 1, "items[0].memo"),
    ("items[1].category", None, "items[1].category"),
    ("items[1].category", "DIALOGUE", "items[1].category"),
    ("items[1].category", [], "items[1].category"),
    ("items[1].text", None, "items[1].text"),
    ("items[2].metadata", [], "items[2].metadata"),
    ("items[2].agent_id", 5, "items[2].agent_id"),
    ("items[2].call_id", GONE, "items[2].call_id"),
    ("items[3].output", {}, "items[3].output"),
    ("items[3].output[0]", None, "items[3].output[0]"),
    ("items[3].is_error", None, "items[3].is_error"),
    ("items[4].to_agent", GONE, "items[4].to_agent"),
    ("items[5].tools", "t", "items[5].tools"),
    ("items[5].tools", 5, "items[5].tools"),
    ("items[5].tools[0]", 5, "items[5].tools[0]"),
    ("items[6].replaces", {"m": 1}, "items[6].replaces"),
    ("items[6].replaces[0]", None, "items[6].replaces[0]"),
]


def steps(where: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", where)]


def damaged(where: str, value: object) -> dict[str, Any]:
    data = sound()
    *inner, last = steps(where)
    target: Any = data
    for step in inner:
        target = target[step]
    if value is GONE:
        del target[last]
    else:
        target[last] = value
    return data


@pytest.mark.parametrize(("position", "value", "where"), DAMAGE, ids=range(len(DAMAGE)))
def test_damage_is_named_by_its_place(position: str, value: object, where: str) -> None:
    with pytest.raises(FormatError) as caught:
        Session.from_dict(damaged(position, value))
    assert caught.value.where == where
    assert len(caught.value.problem) < 300


@pytest.mark.parametrize("data", [None, [], "session", 5, b"{}"])
def test_a_value_that_is_not_an_object_is_refused(data: object) -> None:
    with pytest.raises(FormatError, match=r"^session: "):
        Session.from_dict(data)


def test_a_field_that_is_not_a_text_is_refused() -> None:
    with pytest.raises(FormatError, match=r"^items\[0\]\.5: unknown field"):
        Session.from_dict({"version": 1, "id": "s", "items": [{"type": "reasoning", "id": "a", "created_at": 1, 5: 6}]})


def test_of_two_faults_the_first_is_reported() -> None:
    message = {"type": "message", "id": "a", "created_at": 1.0, "role": "user", "content": []}
    other, odd = message | {"id": "b"}, message | {"id": "c", "role": "nobody"}
    for items, where in (([message, other, message, odd], "items[2].id"), ([message, odd, message], "items[1].role")):
        with pytest.raises(FormatError) as caught:
            Session.from_dict({"version": 1, "id": "s", "metadata": {}, "items": items})
        assert caught.value.where == where
