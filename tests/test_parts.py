"""Parts: what they take, what they refuse, and what they look like once they are in."""

import copy
import dataclasses
import enum
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session import FormatError
from session.door import MAX_COUNT, clean
from session.images import MAX_SIDE
from session.parts import DETAILS, Document, Image, Part, Text, joined_text, parts_of
from session.usage import Usage
from tests.test_images import SOUND, png

ANY_TEXT = st.text(st.characters(exclude_categories=()))


# Texts


@given(ANY_TEXT)
@example("\ud83d\ude00")
@example("\ude00\ud83d")
@example("a\ud83d")
@example("\ud83d\ud83d\ude00x")
def test_each_lone_surrogate_is_replaced_and_nothing_else(text: str) -> None:
    paired = re.sub("[\ud800-\udbff][\udc00-\udfff]", lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    assert clean(text) == re.sub("[\ud800-\udfff]", "\ufffd", paired)
    assert Text(text).text == clean(text)
    clean(text).encode()


def test_a_clean_text_is_not_copied() -> None:
    for text in ("x" * 1_000, "é" * 1_000):
        assert Text(text).text is text


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "<|endoftext|>", "\r\n", "\ufeff", " " * 1_000_000])
def test_odd_texts_are_texts(text: str) -> None:
    assert Text(text).text == text


class Loud(str):
    __slots__ = ()

    def __add__(self, other: str) -> str:
        return f"{self}!{other}"


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize("text", [Loud("red"), Loud("réd"), Colour.RED], ids=range(3))
def test_a_subclass_of_str_becomes_a_plain_str(text: str) -> None:
    found = Text(text).text
    assert type(found) is str
    assert found == str.__str__(text)


# Images


@pytest.mark.parametrize(
    "given", [{"data": b"x"}, {"url": "u"}, {"path": "p"}, {"file_id": "f"}, {"data": b"x", "path": "p"}, {"data": b""}]
)
def test_an_image_has_one_source_or_bytes_and_their_path(given: dict[str, str]) -> None:
    image = Image(**given)  # type: ignore[arg-type]
    assert {name: value for name in ("data", "url", "path", "file_id") if (value := getattr(image, name)) is not None} == given


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "none"),
        ({"width": 5, "height": 5}, "none"),
        ({"data": b"x", "url": "u"}, "data, url"),
        ({"url": "u", "path": "p"}, "url, path"),
        ({"path": "p", "file_id": "f"}, "path, file_id"),
        ({"data": b"x", "path": "p", "file_id": "f"}, "data, path, file_id"),
    ],
)
def test_an_image_of_no_source_or_several_is_refused(given: dict[str, object], named: str) -> None:
    with pytest.raises(FormatError, match=rf"^Image: pass exactly one of data, url, path, file_id; got {named}$"):
        Image(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"data": "aGk="}, "Image.data"),
        ({"data": bytearray(b"x")}, "Image.data"),
        ({"url": b"u"}, "Image.url"),
        ({"path": 3}, "Image.path"),
        ({"url": "u", "media_type": 3}, "Image.media_type"),
        ({"url": "u", "detail": "medium"}, "Image.detail"),
        ({"url": "u", "detail": ["low"]}, "Image.detail"),
        ({"url": "u", "width": 0}, "Image.width"),
        ({"url": "u", "width": True}, "Image.width"),
        ({"url": "u", "width": 5.0}, "Image.width"),
        ({"url": "u", "height": -1}, "Image.height"),
        ({"url": "u", "height": MAX_SIDE + 1}, "Image.height"),
        ({"url": "u", "height": 10**5_000}, "Image.height"),
    ],
    ids=range(13),
)
def test_a_wrong_value_of_an_image_is_named(given: dict[str, object], where: str) -> None:
    with pytest.raises(FormatError) as caught:
        Image(**given)  # type: ignore[arg-type]
    assert caught.value.where == where


@pytest.mark.parametrize("detail", DETAILS)
def test_every_detail_is_taken(detail: str) -> None:
    assert Image(url="u", detail=detail).detail == detail  # type: ignore[arg-type]


def test_an_image_knows_its_size_from_its_bytes_whatever_its_label_says() -> None:
    image = Image(data=SOUND["jpeg"], media_type="image/png")
    assert (image.width, image.height, image.media_type) == (31, 17, "image/png")


def test_an_image_whose_header_cannot_be_believed_has_no_size() -> None:
    image = Image(data=png(MAX_SIDE + 1, 5))
    assert (image.width, image.height) == (None, None)


def test_a_size_that_is_given_stands_and_the_other_is_read() -> None:
    both, one = Image(data=SOUND["png"], width=5, height=6), Image(data=SOUND["png"], width=5)
    assert (both.width, both.height) == (5, 6)
    assert (one.width, one.height) == (5, 17)


def test_an_image_file_is_read_in_and_measured(tmp_path: Path) -> None:
    path = tmp_path / "it.png"
    path.write_bytes(SOUND["png"])
    image = Image(path=path)  # type: ignore[arg-type]  # a Path is taken too
    assert (image.path, image.data, image.width, image.height) == (str(path), SOUND["png"], 31, 17)
    for reference in (Image(path=str(path), open_path=False), Image(path="no such file")):
        assert (reference.data, reference.width, reference.height) == (None, None, None)


def test_bytes_and_their_path_are_measured_by_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "it.png"
    path.write_bytes(png(5, 5))
    assert Image(data=SOUND["png"], path=str(path), open_path=False).width == 31


def test_bytes_are_not_shown() -> None:
    assert "secret" not in repr((Image(data=b"secret"), Document(data=b"secret")))


# Documents


@pytest.mark.parametrize("given", [{"data": b"x"}, {"url": "u"}, {"file_id": "f"}, {"text": ""}])
def test_a_document_has_one_source(given: dict[str, str]) -> None:
    document = Document(**given, title="t\ud800")  # type: ignore[arg-type]
    assert document.title == "t\ufffd"


@pytest.mark.parametrize("given", [{}, {"title": "t"}, {"data": b"x", "text": "x"}, {"url": "u", "file_id": "f"}])
def test_a_document_of_no_source_or_several_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(FormatError, match=r"^Document: pass exactly one of data, url, file_id, text; got"):
        Document(**given)  # type: ignore[arg-type]


# Usage


def test_the_whole_prompt_is_what_was_new_read_and_written() -> None:
    assert Usage(1, 20, 300, 4_000).total_input == 321
    assert Usage() == Usage(0, 0, 0, 0)


@pytest.mark.parametrize("tokens", [-1, True, 1.0, None, "1", MAX_COUNT + 1, 10**5_000], ids=range(7))
def test_what_is_no_count_of_tokens_is_refused(tokens: object) -> None:
    with pytest.raises(FormatError) as caught:
        Usage(cache_read_tokens=tokens)  # type: ignore[arg-type]
    assert caught.value.where == "Usage.cache_read_tokens"


# Content


def test_content_is_a_text_a_part_or_several_of_either() -> None:
    image = Image(url="u")
    assert parts_of("a", "x") == (Text("a"),)
    assert parts_of(Loud("a"), "x") == (Text("a"),)
    assert parts_of(image, "x") == (image,)
    assert parts_of(["a", image, Text("b")], "x") == (Text("a"), image, Text("b"))
    assert parts_of((part for part in ("a", image)), "x") == (Text("a"), image)
    assert parts_of([], "x") == ()


class Sub(Text):  # type: ignore[misc]  # it is final; those who do not use mypy may try
    __slots__ = ()


@pytest.mark.parametrize("content", [None, 5, b"bytes", bytearray(b"bytes"), {"type": "text", "text": "x"}, Sub("x")])
def test_what_is_no_content_is_refused(content: object) -> None:
    with pytest.raises(FormatError, match="pass a text, or parts"):
        parts_of(content, "Message.content")


@pytest.mark.parametrize("part", [None, 5, b"x", {"type": "text"}, ["x"], Sub("x")])
def test_what_is_no_part_is_refused_by_its_place(part: object) -> None:
    with pytest.raises(FormatError) as caught:
        parts_of(["fine", part], "Message.content")
    assert caught.value.where == "Message.content[1]"


def test_joined_text_has_the_texts_one_a_line() -> None:
    assert joined_text((Text("a"), Image(url="u"), Text(""), Document(text="no"), Text("b"))) == "a\n\nb"


# Values

PARTS = (Text("a"), Image(data=SOUND["png"], path="p", detail="low"), Document(text="x", title="t"), Usage(1, 2, 3, 4))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, dataclasses.replace, lambda part: pickle.loads(pickle.dumps(part))])
def test_a_copy_of_a_part_equals_it(part: Part, again: Callable[[Part], Part]) -> None:
    assert again(part) == part
    assert hash(again(part)) == hash(part)
    assert repr(again(part)) == repr(part)


@pytest.mark.parametrize("part", PARTS)
def test_parts_are_frozen(part: Part) -> None:
    for name in (one.name for one in dataclasses.fields(part)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, name, None)
    with pytest.raises((AttributeError, TypeError)):
        part.extra = 1  # type: ignore[union-attr]


def test_a_text_costs_no_dictionary() -> None:
    assert not hasattr(Text("a"), "__dict__")
    assert sys.getsizeof(Text("a")) <= 48
