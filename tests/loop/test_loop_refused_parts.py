"""An image or document that OpenAI or Gemini refuses becomes a note, and the request is tried once more."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from context_window import Document, GoogleModel, Image, Model, ModelError, OpenAIModel, PartRefusedError, Session, Text, run_turn
from session import Message
from tests.support.looping import manager
from tests.support.pictures import pdf, png
from tests.support.stubs import Block, GeminiStub, OpenAIChatStub, OpenAIResponsesStub, Say
from tests.support.stubs.clients import google_client, openai_client
from tests.support.stubs.server import Refusal

DATA = png(40, 40)
OTHER = png(30, 20)
PDF = pdf()


class Refusing:
    """A model whose provider refuses every request with some content."""

    def __init__(self, content: bytes, refusal: Refusal) -> None:
        self.requests, self.last = 0, cast(Mapping[str, Any], {})
        self._sign = base64.b64encode(content).decode()[:40]
        self._refusal = refusal

    def __call__(self, request: Mapping[str, Any]) -> Sequence[Block]:
        self.requests, self.last = self.requests + 1, request
        if self._sign in str(request):
            raise self._refusal
        return [Say("I cannot see it.")]


@contextmanager
def model_of(api: str, script: Refusing) -> Iterator[Model]:
    if api == "google":
        with GeminiStub(script) as stub, google_client(stub) as google:
            yield GoogleModel(google, "gemini-3-pro")
    elif api == "chat":
        with OpenAIChatStub(script) as chat_stub, openai_client(chat_stub) as client:
            yield OpenAIModel(client, "gpt-5.2", api="chat")
    else:
        with OpenAIResponsesStub(script) as responses_stub, openai_client(responses_stub) as client:
            yield OpenAIModel(client, "gpt-5.2")


IMAGES = [
    ("chat", "You uploaded an unsupported image. Please make sure your image is valid.", "image_parse_error"),
    ("chat", "Invalid image.", None),
    ("chat", "Error while downloading https://example.org/a.png. Upstream status code: 404.", "invalid_image_url"),
    ("responses", "The image data you provided does not represent a valid image. Please check your input.", "invalid_value"),
    ("responses", "Something new is wrong.", "unsupported_image_media_type"),
    ("google", "Unable to process input image. Please retry or report in https://developers.generativeai.google", None),
    ("google", "Provided image is not valid.", None),
    ("google", "Unsupported MIME type: image/png", None),
]
DOCUMENTS = [
    ("responses", "Invalid input: Expected context stuffing file type to be a supported format: .pdf but got none.", "invalid_value"),
    ("google", "The document has no pages.", None),
]


@pytest.mark.parametrize(("api", "message", "code"), IMAGES)
def test_a_refused_image_becomes_a_note(api: str, message: str, code: str | None) -> None:
    check_note(api, Image(DATA), DATA, message, code)


@pytest.mark.parametrize(("api", "message", "code"), DOCUMENTS)
def test_a_refused_document_becomes_a_note(api: str, message: str, code: str | None) -> None:
    check_note(api, Document(data=PDF), PDF, message, code)


def check_note(api: str, part: Image | Document, data: bytes, message: str, code: str | None) -> None:
    session, events = Session(), list[object]()
    handler = manager(on_event=events.append)
    script = Refusing(data, Refusal(message, code=code, kind="INVALID_ARGUMENT" if api == "google" else "invalid_request_error"))
    with model_of(api, script) as model:
        question = Message("user", [Text("What is this?"), part])
        assert asyncio.run(run_turn(session, question, model=model, tools=[], manager=handler)).text == "I cannot see it."
        assert script.requests == 2
        asyncio.run(run_turn(session, "And now?", model=model, tools=[], manager=handler))
    assert script.requests == 3  # the note stays
    assert session.items[0] is question
    assert [type(event).__name__ for event in events] == ["PartRefused"]


@pytest.mark.parametrize(("api", "param"), [("chat", "messages[1].content[2].image_url"), ("responses", "input[1].content[2].image_url")])
def test_only_the_image_that_openai_names_becomes_a_note(api: str, param: str) -> None:
    """Two images are new, OpenAI names one: the model sees the other one."""
    session = Session()
    session.add_message("system", "Be brief.")
    script = Refusing(DATA, Refusal("Something new is wrong.", code="invalid_value", param=param))
    with model_of(api, script) as model:
        question = Message("user", [Text("Which one?"), Image(OTHER), Image(DATA)])
        asyncio.run(run_turn(session, question, model=model, tools=[], manager=manager(images_kept=2)))
    assert script.requests == 2
    assert base64.b64encode(OTHER).decode() in str(script.last)
    assert base64.b64encode(DATA).decode() not in str(script.last)


@pytest.mark.parametrize("is_image_at_fault", [True, False])
def test_gemini_is_asked_once_more_without_new_images_if_it_names_no_cause(is_image_at_fault: bool) -> None:
    """Gemini says only "Request contains an invalid argument.": the new image was the cause if the request works without it."""
    session = Session()
    script = Refusing(DATA if is_image_at_fault else b"", Refusal("Request contains an invalid argument.", kind="INVALID_ARGUMENT"))
    with model_of("google", script) as model:
        question = Message("user", [Text("What is this?"), Image(DATA)])
        if is_image_at_fault:
            assert asyncio.run(run_turn(session, question, model=model, tools=[], manager=manager())).text == "I cannot see it."
        else:
            handler = manager()
            with pytest.raises(ModelError) as caught:
                asyncio.run(run_turn(session, question, model=model, tools=[], manager=handler))
            assert not isinstance(caught.value, PartRefusedError)
            assert list(handler.process_session(session).items) == [question]  # the image is shown again
    assert script.requests == 2


def test_an_image_that_gemini_has_answered_before_is_not_suspected() -> None:
    session = Session()
    session.add_message("user", [Text("What is this?"), Image(DATA)])
    session.add_message("assistant", "A square.")
    script = Refusing(DATA, Refusal("Request contains an invalid argument.", kind="INVALID_ARGUMENT"))
    with model_of("google", script) as model, pytest.raises(ModelError) as caught:
        asyncio.run(run_turn(session, "And now?", model=model, tools=[], manager=manager()))
    assert not isinstance(caught.value, PartRefusedError)
    assert script.requests == 1


@pytest.mark.parametrize("message", ["Invalid value: 'image'.", "Request contains an invalid argument.", "Your image violates our policy."])
def test_other_refusals_end_the_turn(message: str) -> None:
    script = Refusing(DATA, Refusal(message, code="image_content_policy_violation"))
    with model_of("responses", script) as model, pytest.raises(ModelError) as caught:
        asyncio.run(run_turn(Session(), Message("user", [Image(DATA)]), model=model, tools=[], manager=manager()))
    assert not isinstance(caught.value, PartRefusedError)
    assert script.requests == 1
