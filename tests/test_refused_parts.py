"""An image or document that the provider refuses becomes a note, and the request is tried once more: real client, strict stub."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anthropic
import pytest

from context_window import (
    AnthropicModel,
    ContextWindow,
    ContextWindowManager,
    Image,
    PartRefused,
    Session,
    Text,
    run_turn,
)
from context_window.events import Event
from context_window.integrations.anthropic import acreate, create
from context_window.trimming.placeholders import parts_of
from tests.support import pictures
from tests.support.counting import Letters
from tests.support.stubs import AnthropicStub, Say, in_order
from tests.support.stubs.clients import TLS, anthropic_client
from tests.support.stubs.server import Body

MODEL = "claude-opus-5"
BAD, WORSE, GOOD = (pictures.png(8, 6, colour) for colour in (b"bad", b"wrs", b"ok!"))
PDF = b"%PDF-1.4 nothing follows"
IMAGE_WORDS = "Could not process image"
PDF_WORDS = "The PDF specified was not valid."
URL = "https://example.org/plan.png"


def manager(told: list[Event] | None = None, max_tokens: int = 100_000, **window: Any) -> ContextWindowManager:
    limits = ContextWindow(max_tokens=max_tokens, warn_at=(), **window)
    return ContextWindowManager(MODEL, Letters(), context_window=limits, on_event=None if told is None else told.append)


@contextmanager
def asked(stub: AnthropicStub) -> Iterator[anthropic.Anthropic]:
    with stub, anthropic_client(stub) as client:
        yield client


def refusing(*contents: bytes | str, words: str = IMAGE_WORDS, named: bool = True, answers: int = 9) -> AnthropicStub:
    """A provider that cannot read these images and documents."""
    stub = AnthropicStub(in_order(*([Say(f"Answer {number}.")] for number in range(1, answers + 1))))
    stub.unusable = dict.fromkeys(contents, words)
    stub.names_place = named
    return stub


def ask(one: ContextWindowManager, client: anthropic.Anthropic, session: Session, way: str = "create") -> str:
    """Have the session answered, append the answer, return its text."""
    if way == "create":
        answer = create(one, client, session, model=MODEL, max_tokens=1_000)
    else:

        async def twin() -> Any:
            http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=TLS)
            async with anthropic.AsyncAnthropic(api_key="k", base_url=client.base_url, max_retries=0, http_client=http) as other:
                if way == "acreate":
                    return await acreate(one, other, session, model=MODEL, max_tokens=1_000)
                model = AnthropicModel(other, MODEL, max_tokens=1_000)
                return await run_turn(session, None, model=model, manager=one)

        answer = asyncio.run(twin())
        if way == "run_turn":
            return str(answer.text)
    text = "".join(block.text for block in answer.content if block.type == "text")
    session.add_message("assistant", text)
    return text


def texts(request: Body) -> list[str]:
    """The texts of a request, tool results included, in order."""

    def of(blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        for block in blocks:
            if block["type"] == "text":
                yield block["text"]
            elif block["type"] == "tool_result":
                yield from of(block.get("content", []))

    return [text for message in request["messages"] for text in of(message["content"])]


def images(request: Body) -> list[bytes]:
    """The bytes of a request's images, tool results included, in order."""

    def of(blocks: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
        for block in blocks:
            if block["type"] == "image":
                yield base64.b64decode(block["source"]["data"])
            elif block["type"] == "tool_result":
                yield from of(block.get("content", []))

    return [data for message in request["messages"] for data in of(message["content"])]


def looking(*parts: Any, id: str = "look") -> Session:
    session = Session()
    session.add_message("user", ["What is this?", *parts], id)
    return session


# A conversation goes on


@pytest.mark.parametrize("way", ["create", "acreate", "run_turn"])
@pytest.mark.parametrize("named", [True, False], ids=["place named", "no place named"])
def test_a_conversation_goes_on_after_an_image_that_the_provider_cannot_process(way: str, named: bool) -> None:
    """Turn 1 is refused once, tried again with a note and answered; turn 2 is not refused at all."""
    session, told = looking(Image(BAD)), list[Event]()
    one, stub = manager(told), refusing(BAD, named=named)
    with asked(stub) as client:
        assert ask(one, client, session, way) == "Answer 1."
        assert len(stub.requests) == 2
        session.add_message("user", "And now?")
        assert ask(one, client, session, way) == "Answer 2."
    assert [images(request) for request in stub.requests] == [[BAD], [], []]
    note = "[image 8x6 refused by the model's provider; recall id look#1]"
    assert all(note in texts(request) for request in stub.requests[1:])
    assert parts_of(session.items[0]) == (Text("What is this?"), Image(BAD))
    assert one.recall(session, "look#1") == Image(BAD)
    (event,) = (event for event in told if isinstance(event, PartRefused))
    assert (event.session_id, event.item_id, event.part, event.kind) == (session.id, "look", 1, "image")
    assert IMAGE_WORDS in event.why
