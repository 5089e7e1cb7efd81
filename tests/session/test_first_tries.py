"""Code that newcomers and users of other libraries write first works, or the error names the remedy."""

import base64
import importlib
from collections.abc import Callable
from typing import Any

import pytest

from context_window import ArgumentError, ContextWindowManager
from session import FormatError, FunctionCallOutput, Image, Message, MessageCategory, Session, Text
from session.parts import Document
from tests.session.test_images import png

PNG = png(4, 3)
BASE64 = base64.b64encode(PNG).decode()
IMAGE = Image(data=PNG, media_type="image/png")
URL = Image(url="https://example.org/a.png")

PARTS: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}, Text("Hi")),
    "anthropic image": ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}}, IMAGE),
    "anthropic url": ({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}, URL),
    "anthropic document": (
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "a"},
        Document(text="x", media_type="text/plain", title="a"),
    ),
    "openai image": ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}}, IMAGE),
    "openai url": ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, URL),
    "responses text": ({"type": "input_text", "text": "Hi"}, Text("Hi")),
    "responses image": ({"type": "input_image", "image_url": "https://example.org/a.png"}, URL),
    "google text": ({"text": "Hi"}, Text("Hi")),
    "google image": ({"inline_data": {"mime_type": "image/png", "data": BASE64}}, IMAGE),
    "google in camel case": ({"inlineData": {"mimeType": "image/png", "data": BASE64}}, IMAGE),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_message_takes_parts_in_a_providers_form(name: str) -> None:
    part, own = PARTS[name]
    session = Session()
    assert session.add_message("user", part).content == (own,)
    assert session.add_message("user", ["Look:", part, own]).content == (Text("Look:"), own, own)
    assert session.add_context([part]).content == (own,)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"type": "tool_result", "tool_use_id": "c", "content": "x"},
        {"type": "text", "text": 5},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}},
        {"type": ["image"]},
    ],
    ids=range(5),
)
def test_a_part_of_no_known_form_is_refused_with_its_position(wrong: dict[str, Any]) -> None:
    session = Session()
    with pytest.raises(FormatError) as caught:
        session.add_message("user", ["Look:", wrong])
    assert caught.value.where == "add_message.content[1]"
    assert len(session) == 0


@pytest.mark.parametrize("output", [{"size": 7, "name": "ä"}, [{"size": 7}, "x"], {"type": "text", "text": "x"}], ids=range(3))
def test_an_output_that_is_a_mapping_is_json_as_in_add_tool_results(output: Any) -> None:
    one, several = Session(), Session()
    for session in (one, several):
        session.add_function_call("f", {}, "c")
    one.add_function_output("f", output, "c")
    (expected,) = several.add_tool_results({"c": output})
    added = one[-1]
    assert isinstance(added, FunctionCallOutput)
    assert added.output == expected.output


def test_a_category_may_be_its_name() -> None:
    name: Any = "CONTEXT"
    session = Session()
    assert session.add_message("user", "x", category="CONTEXT").category is MessageCategory.CONTEXT
    assert Message("user", "x", category=name).category is MessageCategory.CONTEXT
    name = "context"
    with pytest.raises(FormatError, match="'context' is none of SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT"):
        session.add_message("user", "x", category=name)


@pytest.mark.parametrize(
    ("role", "remedy"), [("tool", "add_function_output"), ("function", "add_tool_results"), ("model", "'assistant'"), ("human", "'user'")]
)
def test_the_error_for_another_librarys_role_names_the_remedy(role: Any, remedy: str) -> None:
    with pytest.raises(FormatError, match=f"is none of system, developer, user, assistant; .*{remedy}"):
        Session().add_message(role, "x")


@pytest.mark.parametrize(
    ("name", "ours"), [("ChatContext", "Session"), ("ChatMessage", "Message"), ("ChatRole", "texts"), ("ImageContent", "Image")]
)
def test_the_import_of_another_librarys_name_names_ours(name: str, ours: str) -> None:
    with pytest.raises(ImportError, match=rf"^context_window has no {name}: .*{ours}.* docs/names\.md"):
        exec(f"from context_window import {name}", {})
    assert not hasattr(importlib.import_module("context_window"), "NoName")


@pytest.mark.parametrize("show", [lambda session: session, Session.view_of], ids=["session", "view"])
def test_items_that_are_edited_like_a_list_name_the_session(show: Callable[[Session], Session]) -> None:
    items: Any = show(Session([Message("user", "Hello")])).items
    with pytest.raises(
        AttributeError, match=r"^these items have no append: change items through the session, such as session\.append\(item\)$"
    ):
        items.append(Message("user", "again"))
    with pytest.raises(AttributeError, match=r"^these items have no size$"):
        assert items.size


def test_tokens_in_the_place_of_a_counter_name_their_argument() -> None:
    with pytest.raises(ArgumentError, match=r"tokens of the window have a name: ContextWindowManager\(model, max_tokens=4000\)"):
        ContextWindowManager("gpt-5", 4000)  # type: ignore[arg-type]


def test_an_error_of_a_saved_session_comes_without_an_error_of_ours() -> None:
    with pytest.raises(FormatError) as caught:
        Session.from_dict({})
    assert caught.value.__context__ is None
