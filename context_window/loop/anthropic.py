"""Claude through Anthropic's client: views become requests, streamed messages become answers, client errors become `ModelError`s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from session.items import Message, Reasoning
from session.parts import Text
from session.providers.anthropic.blocks import CARRIED, is_server_call, is_server_result
from session.providers.response import read_response
from session.session import Session
from session.units import is_answer

from ..errors import ArgumentError, ClientError
from ..model_errors import ModelNetworkError
from ..requests.payload import default_answer_tokens
from ..validation import check_amount
from .client_stream import INCOMPLETE, INVALID_STREAM_ERRORS, as_model_error, invalid_response, read_cancellably
from .model import Answer, OnText, check_model_name


class AnthropicModel:
    """A `Model` that asks Claude.

        model = AnthropicModel(anthropic.AsyncAnthropic(), "claude-sonnet-5-5")
        result = await run_turn(session, "What is in main.py?", model=model, tools=[read_file], manager=manager)

    All answers are streamed. The client does the retries (`max_retries`); errors that remain are raised as `ModelError`.

    Attributes:
        model: Name of the model.
        max_tokens: Tokens that an answer may have.
        caching: True if requests mark what the prompt cache should keep.
    """

    def __init__(self, client: Any, model: str, *, max_tokens: int | None = None, caching: bool = True, **request_fields: Any) -> None:
        """
        Args:
            client: An `anthropic.AsyncAnthropic`, or an `anthropic.Anthropic`, which is then used in a thread. A cancelled turn ends at
                once, but that thread ends only at the next piece of the answer, and the program waits for it when it exits.
            model: Name of the model.
            max_tokens: Tokens that an answer may have. None for the amount that a manager reserves for the answer (`output_reserve`),
                or the model's output limit if that is less.
            caching: True to mark what the prompt cache should keep.
            request_fields: Other fields of every request, such as `thinking={"type": "adaptive"}`, in the client's form.

        Raises:
            ArgumentError: An argument is invalid.
        """
        if not callable(getattr(getattr(client, "messages", None), "stream", None)) or isinstance(client, type):
            raise ClientError("client", type(client), "pass an anthropic.AsyncAnthropic() or an anthropic.Anthropic()")
        check_model_name(model)
        if not isinstance(caching, bool):
            raise ArgumentError("caching", caching, "pass True or False")
        for name in ("messages", "system", "tools", "tool_choice", "stream"):
            if name in request_fields:
                raise ArgumentError(name, type(request_fields[name]), "leave it out; the loop sets this field")
        self.model = model
        self.max_tokens = default_answer_tokens(model) if max_tokens is None else check_amount("max_tokens", max_tokens, least=1)
        self.caching = caching
        self._client = client
        self._request_fields = request_fields

    def request(self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool) -> dict[str, Any]:
        """Return the arguments of `client.messages.stream`.

        Args:
            view: The view to send.
            tools: Definitions in Anthropic's form.
            allow_tools: False if the model may not call tools now.
        """
        messages, system = view.to_anthropic_messages(caching=self.caching)
        _restore_paused_answer(messages, view)
        request: dict[str, Any] = {"model": self.model, "max_tokens": self.max_tokens, "messages": messages}
        if system:
            request["system"] = system
        if tools:
            request["tools"] = [dict(tool) for tool in tools]
            if not allow_tools:
                request["tool_choice"] = {"type": "none"}  # a request whose history has calls must define their tools
        return {**request, **self._request_fields}

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Ask Claude and return its answer.

        Raises:
            PromptTooLongError: The prompt exceeds the context window.
            PartRefusedError: Anthropic cannot read an image or a document.
            ModelError: The request failed for another reason.
        """
        import asyncio

        # In a thread: converting a long view with images takes a while, and the event loop has other work.
        request = await asyncio.to_thread(self.request, view, tools, allow_tools=allow_tools)
        try:
            stream = self._client.messages.stream(**request)
            message = await (_read_async_stream(stream, on_text) if hasattr(stream, "__aenter__") else _read_in_thread(stream, on_text))
            return _answer_from(message)
        except Exception as error:
            converted = as_model_error(error)
            if converted is None:
                raise
            raise converted from error


def _restore_paused_answer(messages: Sequence[Mapping[str, Any]], view: Session) -> None:
    """Put the original blocks of a paused answer back if the request ends in it: the model continues only from an unchanged answer.

    Converters write a server-side call without its result as text, since the API accepts such a call only in this place.
    """
    if not messages or messages[-1]["role"] != "assistant":
        return
    response = takewhile(lambda item: isinstance(item, Reasoning) or is_answer(item), reversed(view.items))
    originals = {
        part.text: block
        for item in response
        if isinstance(item, Message) and isinstance(item.extra.get(CARRIED), list)
        for part, block in zip(item.content, item.extra[CARRIED], strict=False)
        if isinstance(part, Text) and isinstance(block, dict) and isinstance(block.get("type"), str)
    }
    content: list[Any] = messages[-1]["content"]
    restored = [_original_block(block, originals) for block in content]
    if restored and (is_server_call(restored[-1]) or is_server_result(restored[-1])):
        content[:] = restored


def _original_block(block: dict[str, Any], originals: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    original = originals.get(block["text"]) if block.get("type") == "text" else None
    if original is None:
        return block
    cache_mark = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    return {**original, **cache_mark}


async def _read_async_stream(stream_manager: Any, on_text: OnText | None) -> Any:
    """Read an asynchronous client's stream to its end and return the complete message."""
    async with stream_manager as stream:
        events = aiter(stream)
        while True:
            try:
                event = await anext(events)
            except StopAsyncIteration:
                break
            except INVALID_STREAM_ERRORS as error:
                raise invalid_response(error) from error
            if on_text is not None and event.type == "text":
                on_text(event.text)
        try:
            return await stream.get_final_message()
        except AssertionError as error:  # the client's, if no message had begun
            raise ModelNetworkError(INCOMPLETE) from error


async def _read_in_thread(stream_manager: Any, on_text: OnText | None) -> Any:
    """Read a synchronous client's stream in a thread and return the complete message. After a cancel it is closed at its next event."""

    def read(is_wanted: Callable[[], bool], emit: OnText) -> Any:
        with stream_manager as stream:
            events = iter(stream)
            while True:
                try:
                    event = next(events)
                except StopIteration:
                    break
                except INVALID_STREAM_ERRORS as error:
                    raise invalid_response(error) from error
                if not is_wanted():
                    return None
                if event.type == "text":
                    emit(event.text)
            try:
                return stream.get_final_message()
            except AssertionError as error:  # as above
                raise ModelNetworkError(INCOMPLETE) from error

    return await read_cancellably(read, on_text)


def _answer_from(message: Any) -> Answer:
    """Convert a message of the SDK.

    Raises:
        FormatError: The message cannot be converted.
        ModelNetworkError: The stream ended before the message was complete.
    """
    if message.stop_reason is None:
        raise ModelNetworkError(INCOMPLETE)
    response = read_response(message)
    return Answer(response.items, response.stop, response.usage, response.model)
