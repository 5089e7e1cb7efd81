"""Claude through Anthropic's own client: a view as a request, a stream as an answer, a refusal as one of our errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from time import time
from typing import Any

from session.errors import FormatError, SessionError
from session.items import Message, Reasoning, new_id
from session.parts import Text
from session.providers.anthropic import from_anthropic
from session.providers.anthropic.blocks import CARRIED, is_server_call, is_server_result
from session.session import Session
from session.units import is_answer
from session.usage import Usage

from ..config import check_amount
from ..errors import BudgetError
from ..model_errors import ModelError, ModelNetworkError
from ..models import describe_model
from ..refusals import model_error
from .model import Answer, OnText

BROKEN = (ValueError, LookupError)
"""What the client raises where a stream makes no sense to it."""
UNFINISHED = "the stream ended before the answer did"
OUTPUT_LIMIT = 8_192
"""Tokens of an answer where nothing is known of the model."""


class AnthropicModel:
    """A `Model` that asks Claude.

        model = AnthropicModel(anthropic.AsyncAnthropic(), "claude-sonnet-5-5")
        result = await run_turn(session, "What is in main.py?", model=model, tools=[read_file], manager=manager)

    Answers are streamed, however long they are. Retries are the client's (`max_retries`); what it raises in the end comes out as a
    `ModelError`.

    Attributes:
        model: The model that is asked.
        max_tokens: Tokens an answer may have.
        caching: Whether the request marks what the prompt cache is to keep.
    """

    def __init__(self, client: Any, model: str, *, max_tokens: int | None = None, caching: bool = True, **more: Any) -> None:
        """
        Args:
            client: An `anthropic.AsyncAnthropic`, or an `anthropic.Anthropic`, which then works in a thread: a cancelled turn ends at
                once, but the thread, for which a program's end waits, not before the next piece of the answer.
            model: A model's name.
            max_tokens: As the attribute; None for what a manager keeps free for the answer (`output_reserve`), or less where the
                model writes less.
            caching: As the attribute.
            more: More fields of every request, such as `thinking={"type": "adaptive"}`, as the client takes them.

        Raises:
            BudgetError: A value makes no sense.
        """
        if not callable(getattr(getattr(client, "messages", None), "stream", None)) or isinstance(client, type):
            raise BudgetError("client", type(client), "pass an anthropic.AsyncAnthropic() or an anthropic.Anthropic()")
        if not isinstance(model, str) or not model.strip():
            raise BudgetError("model", model, "pass a model's name")
        if not isinstance(caching, bool):
            raise BudgetError("caching", caching, "pass True or False")
        for name in ("messages", "system", "tools", "tool_choice", "stream"):
            if name in more:
                raise BudgetError(name, type(more[name]), "the loop fills this field in; leave it out")
        self.model = model
        self.max_tokens = _room(model) if max_tokens is None else check_amount("max_tokens", max_tokens, least=1)
        self.caching = caching
        self._client = client
        self._more = more

    def request(self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool) -> dict[str, Any]:
        """What `client.messages.stream(**…)` is given.

        Args:
            view: What the model is shown.
            tools: Definitions in Anthropic's form.
            allow_tools: Whether it may call them.
        """
        messages, system = view.to_anthropic_messages(caching=self.caching)
        _go_on_paused(messages, view)
        request: dict[str, Any] = {"model": self.model, "max_tokens": self.max_tokens, "messages": messages}
        if system:
            request["system"] = system
        if tools:
            request["tools"] = [dict(tool) for tool in tools]
            if not allow_tools:
                request["tool_choice"] = {"type": "none"}  # a request whose history has calls must name its tools
        return {**request, **self._more}

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """What Claude says.

        Raises:
            PromptTooLongError: Anthropic counts more than the window holds.
            PartRefusedError: Anthropic cannot read an image or a document.
            ModelError: There is no answer for another reason.
        """
        import asyncio

        # In a thread: a long view with images takes a while to write, and the loop has others to serve.
        request = await asyncio.to_thread(self.request, view, tools, allow_tools=allow_tools)
        try:
            stream = self._client.messages.stream(**request)
            message = await (_streamed(stream, on_text) if hasattr(stream, "__aenter__") else _threaded(stream, on_text))
            return _answer(message)
        except Exception as error:
            found = _told(error)
            if found is None:
                raise
            raise found from error


def _go_on_paused(messages: Sequence[Mapping[str, Any]], view: Session) -> None:
    """Puts an answer that the model paused in back as it came: it goes on where that stands last, and unchanged.

    A call of the provider's own tools without its result is valid there alone; everywhere else converters write it as a text.
    """
    if not messages or messages[-1]["role"] != "assistant":
        return
    said = takewhile(lambda item: isinstance(item, Reasoning) or is_answer(item), reversed(view.items))
    came = {
        part.text: block
        for item in said
        if isinstance(item, Message) and isinstance(item.extra.get(CARRIED), list)
        for part, block in zip(item.content, item.extra[CARRIED], strict=False)
        if isinstance(part, Text) and isinstance(block, dict) and isinstance(block.get("type"), str)
    }
    content: list[Any] = messages[-1]["content"]
    whole = [_as_it_came(block, came) for block in content]
    if whole and (is_server_call(whole[-1]) or is_server_result(whole[-1])):
        content[:] = whole


def _as_it_came(block: dict[str, Any], came: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    found = came.get(block["text"]) if block.get("type") == "text" else None
    if found is None:
        return block
    mark = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    return {**found, **mark}


def _room(model: str) -> int:
    known = describe_model(model)
    if known.window is None:
        return OUTPUT_LIMIT if known.output_limit is None else min(OUTPUT_LIMIT, known.output_limit)
    return known.output_reserve if known.output_limit is None else min(known.output_reserve, known.output_limit)


async def _streamed(manager: Any, on_text: OnText | None) -> Any:
    """The whole message of an asynchronous client's stream."""
    async with manager as stream:
        events = aiter(stream)
        while True:
            try:
                event = await anext(events)
            except StopAsyncIteration:
                break
            except BROKEN as error:
                raise _unread(error) from error
            if on_text is not None and event.type == "text":
                on_text(event.text)
        try:
            return await stream.get_final_message()
        except AssertionError as error:  # of the client's, where no message had begun
            raise ModelNetworkError(UNFINISHED) from error


async def _threaded(manager: Any, on_text: OnText | None) -> Any:
    """The whole message of a client's stream that is read in a thread. After a cancel the stream is closed at its next event."""
    import asyncio

    loop = asyncio.get_running_loop()
    wanted = True

    def heard(text: str) -> None:
        if wanted and on_text is not None:  # what was on its way at a cancel is in no log
            on_text(text)

    def read() -> Any:
        with manager as stream:
            events = iter(stream)
            while True:
                try:
                    event = next(events)
                except StopIteration:
                    break
                except BROKEN as error:
                    raise _unread(error) from error
                if not wanted:
                    return None
                if event.type == "text":
                    loop.call_soon_threadsafe(heard, event.text)
            try:
                return stream.get_final_message()
            except AssertionError as error:  # as above
                raise ModelNetworkError(UNFINISHED) from error

    try:
        return await asyncio.to_thread(read)
    finally:
        wanted = False


def _answer(message: Any) -> Answer:
    """The answer that a message of the SDK is.

    Raises:
        FormatError: It is none.
        ModelNetworkError: The stream ended before it did.
    """
    if message.stop_reason is None:
        raise ModelNetworkError(UNFINISHED)
    told = from_anthropic([message])
    now = time()
    items = tuple(replace(item, id=new_id(), created_at=now, usage=None) for item in told.items)
    return Answer(items, str(message.stop_reason), _usage(message.usage), message.model)


def _usage(reported: Any) -> Usage:
    return Usage(
        input_tokens=reported.input_tokens or 0,
        cache_read_tokens=reported.cache_read_input_tokens or 0,
        cache_write_tokens=reported.cache_creation_input_tokens or 0,
        output_tokens=reported.output_tokens or 0,
    )


def _unread(error: Exception) -> ModelNetworkError:
    """What the client could not read: events out of order, or a call whose arguments are no JSON."""
    broken = type(error).__name__ == "JSONDecodeError"
    return ModelNetworkError("what came back is broken JSON" if broken else "what came back is no stream of an answer")


def _told(error: Exception) -> ModelError | None:
    """One of our errors for what asking and reading raised; None where it is a fault in the program."""
    if isinstance(error, ModelError):
        return None
    if isinstance(error, SessionError):
        where = error.where if isinstance(error, FormatError) else type(error).__name__
        return ModelError(f"what came back is no answer ({where})")
    if isinstance(error, ValueError) and type(error).__name__ == "JSONDecodeError":
        return ModelNetworkError("what came back is broken JSON")
    if isinstance(error, RuntimeError) and str(error).startswith("Unexpected event"):  # older clients' words for a stream out of order
        return ModelNetworkError("what came back is no stream of an answer")
    return model_error(error)
