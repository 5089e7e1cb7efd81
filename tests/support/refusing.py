"""A provider that cannot read some images and documents, and ways to ask it with the real client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anthropic

from context_window import AnthropicModel, ContextWindow, ContextWindowManager, Session, run_turn
from context_window.events import Event
from context_window.integrations.anthropic import acreate, create
from tests.support import pictures
from tests.support.counting import Letters
from tests.support.stubs import AnthropicStub, Say, in_order
from tests.support.stubs.clients import TLS, anthropic_client
from tests.support.stubs.server import Body, Refusal

MODEL = "claude-opus-5"
BAD, WORSE, GOOD = (pictures.png(8, 6, colour) for colour in (b"bad", b"wrs", b"ok!"))
PDF = pictures.pdf()
IMAGE_WORDS = "Could not process image"
PDF_WORDS = "The PDF specified was not valid."
WAYS = ("create", "acreate", "run_turn")


class Moody(AnthropicStub):
    """A stub whose `moods` come first: each raises a refusal, or lets the request pass."""

    def __init__(self, *moods: Callable[[Body], None]) -> None:
        super().__init__(in_order(*([Say(f"Answer {number}.")] for number in range(1, 10))))
        self.moods = list(moods)

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        if self.moods:
            self.moods.pop(0)(body)
        return super().serve(path, headers, body)


def says(message: str, **more: Any) -> Callable[[Body], None]:
    """A mood: the request is refused with these words."""

    def refuse(body: Body) -> None:
        raise Refusal(message, **more)

    return refuse


def refusing(*contents: bytes | str, words: str = IMAGE_WORDS, named: bool = True) -> Moody:
    """A provider that cannot read these images and documents."""
    stub = Moody()
    stub.unusable = dict.fromkeys(contents, words)
    stub.names_place = named
    return stub


def manager(told: list[Event] | None = None, max_tokens: int = 100_000, **window: Any) -> ContextWindowManager:
    """A manager that takes no image out for its age."""
    limits = ContextWindow(max_tokens=max_tokens, warn_at=(), **{"images_max": 20, "images_kept": 20, **window})
    return ContextWindowManager(MODEL, Letters(), context_window=limits, on_event=None if told is None else told.append)


@contextmanager
def asked(stub: AnthropicStub) -> Iterator[anthropic.Anthropic]:
    with stub, anthropic_client(stub) as client:
        yield client


def ask(one: ContextWindowManager, client: anthropic.Anthropic, session: Session, way: str = "create") -> str:
    """Have the session answered, append the answer, return its text."""
    if way == "run_turn":
        return asyncio.run(_turn(one, client, session))
    answer = create(one, client, session, model=MODEL, max_tokens=1_000) if way == "create" else asyncio.run(_awaited(one, client, session))
    text = "".join(block.text for block in answer.content if block.type == "text")
    session.add_message("assistant", text)
    return text


async def _turn(one: ContextWindowManager, client: anthropic.Anthropic, session: Session) -> str:
    async with _twin(client) as other:
        return (await run_turn(session, None, model=AnthropicModel(other, MODEL, max_tokens=1_000), manager=one)).text


async def _awaited(one: ContextWindowManager, client: anthropic.Anthropic, session: Session) -> anthropic.types.Message:
    async with _twin(client) as other:
        return await acreate(one, other, session, model=MODEL, max_tokens=1_000)


def _twin(client: anthropic.Anthropic) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=TLS)
    return anthropic.AsyncAnthropic(api_key="k", base_url=client.base_url, max_retries=0, http_client=http)


def blocks(request: Body) -> list[dict[str, Any]]:
    """The blocks of a request's messages in order, each tool result followed by what is in it."""

    def of(found: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for block in found:
            yield block
            if block["type"] == "tool_result":
                yield from of(block.get("content", []))

    return [block for message in request["messages"] for block in of(message["content"])]


def texts(request: Body) -> list[str]:
    return [block["text"] for block in blocks(request) if block["type"] == "text"]


def media(request: Body) -> list[bytes | str]:
    """The bytes, URLs and file ids of a request's images and documents, in order."""
    sources = [block["source"] for block in blocks(request) if block["type"] in ("image", "document")]
    return [base64.b64decode(one["data"]) if one["type"] == "base64" else one.get("url") or one["file_id"] for one in sources]


def looking(*parts: Any, id: str = "look") -> Session:
    session = Session(id="s")
    session.add_message("user", ["What is this?", *parts], id)
    return session
