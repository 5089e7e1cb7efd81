"""A provider that cannot read some images and documents, and helpers that send requests to it with the real client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from context_window import AnthropicModel, ContextWindow, ContextWindowManager, Session, run_turn
from context_window.events.definitions import Event
from context_window.integrations.anthropic import acreate, create
from tests.support import pictures
from tests.support.counting import Letters
from tests.support.lazy import LazyModule
from tests.support.stubs import AnthropicStub, Say, in_order
from tests.support.stubs.clients import TLS, anthropic_client
from tests.support.stubs.server import Body, Refusal

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

MODEL = "claude-opus-5"
BAD, WORSE, GOOD = (pictures.png(8, 6, colour) for colour in (b"bad", b"wrs", b"ok!"))
PDF = pictures.pdf()
IMAGE_WORDS = "Could not process image"
PDF_WORDS = "The PDF specified was not valid."
WAYS = ("create", "acreate", "run_turn")


class Moody(AnthropicStub):
    """A stub whose first responses are its `moods`: each raises a refusal or lets the request pass."""

    def __init__(self, *moods: Callable[[Body], None]) -> None:
        super().__init__(in_order(*([Say(f"Answer {number}.")] for number in range(1, 10))))
        self.moods = list(moods)

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        if self.moods:
            self.moods.pop(0)(body)
        return super().serve(path, headers, body)


def says(message: str, **fields: Any) -> Callable[[Body], None]:
    """Return a mood that refuses the request with this message."""

    def refuse(body: Body) -> None:
        raise Refusal(message, **fields)

    return refuse


def refusing(*contents: bytes | str, words: str = IMAGE_WORDS, named: bool = True) -> Moody:
    """Return a provider that cannot read these images and documents."""
    stub = Moody()
    stub.unusable = dict.fromkeys(contents, words)
    stub.names_place = named
    return stub


def make_manager(events: list[Event] | None = None, max_tokens: int = 100_000, **window: Any) -> ContextWindowManager:
    """Return a manager that keeps old images."""
    limits = ContextWindow(max_tokens=max_tokens, warn_at=(), **{"images_max": 20, "images_kept": 20, **window})
    return ContextWindowManager(MODEL, Letters(), context_window=limits, on_event=None if events is None else events.append)


@contextmanager
def asked(stub: AnthropicStub) -> Iterator[anthropic.Anthropic]:
    with stub, anthropic_client(stub) as client:
        yield client


def ask(window_manager: ContextWindowManager, client: anthropic.Anthropic, session: Session, way: str = "create") -> str:
    """Have the session answered, append the answer, return its text."""
    if way == "run_turn":
        return asyncio.run(_turn(window_manager, client, session))
    answer = (
        create(window_manager, client, session, model=MODEL, max_tokens=1_000)
        if way == "create"
        else asyncio.run(_awaited(window_manager, client, session))
    )
    text = "".join(block.text for block in answer.content if block.type == "text")
    session.add_message("assistant", text)
    return text


async def _turn(window_manager: ContextWindowManager, client: anthropic.Anthropic, session: Session) -> str:
    async with _twin(client) as async_client:
        return (await run_turn(session, None, model=AnthropicModel(async_client, MODEL, max_tokens=1_000), manager=window_manager)).text


async def _awaited(window_manager: ContextWindowManager, client: anthropic.Anthropic, session: Session) -> anthropic.types.Message:
    async with _twin(client) as async_client:
        return await acreate(window_manager, async_client, session, model=MODEL, max_tokens=1_000)


def _twin(client: anthropic.Anthropic) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=TLS)
    return anthropic.AsyncAnthropic(api_key="k", base_url=client.base_url, max_retries=0, http_client=http)


def blocks(request: Body) -> list[dict[str, Any]]:
    """Return the blocks of a request's messages in order, each tool result followed by its content."""

    def of(content: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for block in content:
            yield block
            if block["type"] == "tool_result":
                yield from of(block.get("content", []))

    return [block for message in request["messages"] for block in of(message["content"])]


def texts(request: Body) -> list[str]:
    return [block["text"] for block in blocks(request) if block["type"] == "text"]


def media(request: Body) -> list[bytes | str]:
    """Return the bytes, URLs and file ids of a request's images and documents, in order."""
    sources = [block["source"] for block in blocks(request) if block["type"] in ("image", "document")]
    return [
        base64.b64decode(source["data"]) if source["type"] == "base64" else source.get("url") or source["file_id"] for source in sources
    ]


def looking(*parts: Any, id: str = "look") -> Session:
    session = Session(id="s")
    session.add_message("user", ["What is this?", *parts], id)
    return session
