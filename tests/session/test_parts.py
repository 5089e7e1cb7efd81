"""Parts: accepted and refused values, and their stored form."""

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
from session.images import MAX_SIDE
from session.parts import DETAILS, Document, Image, Part, Text, joined_text, parts_of
from session.sanitize import MAX_COUNT, clean
from session.usage import Usage
from tests.session.test_images import SOUND, png

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
def test_unusual_texts_are_accepted(text: str) -> None:
    assert Text(text).text == text


class Loud(str):
    __slots__ = ()

    def __add__(self, other: str) -> str:
        return f"{self}!{other}"


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize("text", [Loud("red"), Loud("réd"), Colour.RED], ids=range(3))
def test_a_subclass_of_str_becomes_a_plain_str(text: str) -> None:
    cleaned = Text(text).text
    assert type(cleaned) is str
    assert cleaned == str.__str__(text)


# Images


@pytest.mark.parametrize(
    "sources", [{"data": b"x"}, {"url": "u"}, {"path": "p"}, {"file_id": "f"}, {"data": b"x", "path": "p"}, {"data": b""}]
)
def test_an_image_has_one_source_or_bytes_and_their_path(sources: dict[str, str]) -> None:
    image = Image(**sources)  # type: ignore[arg-type]
    assert {name: value for name in ("data", "url", "path", "file_id") if (value := getattr(image, name)) is not None} == sources


@pytest.mark.parametrize(
    ("sources", "named"),
    [
        ({}, "none"),
        ({"width": 5, "height": 5}, "none"),
        ({"data": b"x", "url": "u"}, "data, url"),
        ({"url": "u", "path": "p"}, "url, path"),
        ({"path": "p", "file_id": "f"}, "path, file_id"),
        ({"data": b"x", "path": "p", "file_id": "f"}, "data, path, file_id"),
    ],
)
def test_an_image_without_exactly_one_source_is_refused(sources: dict[str, object], named: str) -> None:
    with pytest.raises(FormatError, match=rf"^Image: pass exactly one of data, url, path, file_id; got {named}$"):
        Image(**sources)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "where"),
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
def test_an_invalid_value_of_an_image_is_named(values: dict[str, object], where: str) -> None:
    with pytest.raises(FormatError) as caught:
        Image(**values)  # type: ignore[arg-type]
    assert caught.value.where == where


@pytest.mark.parametrize("detail", DETAILS)
def test_every_detail_is_accepted(detail: str) -> None:
    assert Image(url="u", detail=detail).detail == detail  # type: ignore[arg-type]


def test_an_images_size_comes_from_its_bytes_not_its_media_type() -> None:
    image = Image(data=SOUND["jpeg"], media_type="image/png")
    assert (image.width, image.height, image.media_type) == (31, 17, "image/png")


def test_an_image_with_an_implausible_header_has_no_size() -> None:
    image = Image(data=png(MAX_SIDE + 1, 5))
    assert (image.width, image.height) == (None, None)


def test_an_explicit_width_or_height_is_kept_and_the_other_is_read() -> None:
    both, partial = Image(data=SOUND["png"], width=5, height=6), Image(data=SOUND["png"], width=5)
    assert (both.width, both.height) == (5, 6)
    assert (partial.width, partial.height) == (5, 17)


def test_an_image_file_is_read_and_measured(tmp_path: Path) -> None:
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


def test_bytes_do_not_appear_in_the_repr() -> None:
    assert "secret" not in repr((Image(data=b"secret"), Document(data=b"secret")))


# Documents


@pytest.mark.parametrize("sources", [{"data": b"x"}, {"url": "u"}, {"file_id": "f"}, {"text": ""}])
def test_a_document_has_one_source(sources: dict[str, str]) -> None:
    document = Document(**sources, title="t\ud800")  # type: ignore[arg-type]
    assert document.title == "t\ufffd"


@pytest.mark.parametrize("sources", [{}, {"title": "t"}, {"data": b"x", "text": "x"}, {"url": "u", "file_id": "f"}])
def test_a_document_without_exactly_one_source_is_refused(sources: dict[str, object]) -> None:
    with pytest.raises(FormatError, match=r"^Document: pass exactly one of data, url, file_id, text; got"):
        Document(**sources)  # type: ignore[arg-type]


# Usage


def test_total_input_is_the_sum_of_new_read_and_written_tokens() -> None:
    assert Usage(1, 20, 300, 4_000).total_input == 321
    assert Usage() == Usage(0, 0, 0, 0)


@pytest.mark.parametrize("tokens", [-1, True, 1.0, None, "1", MAX_COUNT + 1, 10**5_000], ids=range(7))
def test_an_invalid_token_count_is_refused(tokens: object) -> None:
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
def test_invalid_content_is_refused(content: object) -> None:
    with pytest.raises(FormatError, match="pass a text, or parts"):
        parts_of(content, "Message.content")


@pytest.mark.parametrize("part", [None, 5, b"x", {"type": "text"}, ["x"], Sub("x")])
def test_an_invalid_part_is_refused_with_its_place(part: object) -> None:
    with pytest.raises(FormatError) as caught:
        parts_of(["fine", part], "Message.content")
    assert caught.value.where == "Message.content[1]"


def test_joined_text_puts_each_text_on_its_own_line() -> None:
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
    for name in (field.name for field in dataclasses.fields(part)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, name, None)
    with pytest.raises((AttributeError, TypeError)):
        part.extra = 1  # type: ignore[union-attr]


def test_a_text_has_no_instance_dictionary() -> None:
    assert not hasattr(Text("a"), "__dict__")
    assert sys.getsizeof(Text("a")) <= 48
