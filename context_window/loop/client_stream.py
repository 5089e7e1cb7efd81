"""Read a client's streamed answer: in the event loop for asynchronous clients, in a thread for others. Errors are converted.

Nothing here knows a provider: `anthropic.py`, `openai.py` and `google.py` do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import isawaitable, iscoroutinefunction, unwrap
from typing import Any

from session.errors import FormatError, SessionError
from session.items import FunctionCall
from session.providers.response import read_response

from ..model_errors import ModelError, ModelNetworkError
from ..requests.client_errors import model_error
from .model import END_TURN, TOOL_USE, Answer, OnText

INVALID_STREAM_ERRORS = (ValueError, LookupError)
"""Exceptions of the client for a stream that it cannot interpret."""
INCOMPLETE = "the stream ended before the answer was complete"
INVALID_JSON = "the response is invalid JSON"
INVALID_STREAM = "the response is not a valid event stream"


async def streamed_answer(
    send: Callable[..., Any],
    request: dict[str, Any],
    *,
    text_of: Callable[[Any], str],
    final: Callable[[list[Any]], object],
    stops: Mapping[str, str],
    on_text: OnText | None,
    is_kept: Callable[[Any], bool] = lambda _piece: True,
) -> Answer:
    """Send a request, read the stream to its end and return the answer. An asynchronous `send` runs in the event loop, others in a thread.

    `text_of` returns the text of the answer that a piece of the stream holds, and `final` what `read_response` reads of the pieces that
    `is_kept` keeps; it raises a `ModelError` if they report one. `stops` has the stop reasons of an `Answer` by the provider's; others stay
    as they are, in lower case. Raises ModelError if the request failed, the provider refused it, or the stream is no complete answer.
    """
    reader = _read_async if iscoroutinefunction(unwrap(send)) else _read_in_thread
    try:
        pieces = await reader(partial(send, **request), text_of, on_text, is_kept)
        if not pieces:
            raise ModelNetworkError(INCOMPLETE)  # noqa: TRY301 - passed on as it is
        response = read_response(final(pieces))
    except Exception as error:
        converted = as_model_error(error)
        if converted is None:
            raise
        raise converted from error
    if not response.stop:
        raise ModelNetworkError(INCOMPLETE)
    stop = stops.get(response.stop, response.stop.lower())
    has_calls = any(isinstance(item, FunctionCall) for item in response.items)
    return Answer(response.items, TOOL_USE if stop == END_TURN and has_calls else stop, response.usage, response.model)


async def _read_async(
    send: Callable[[], Any], text_of: Callable[[Any], str], on_text: OnText | None, is_kept: Callable[[Any], bool]
) -> list[Any]:
    stream, pieces, is_first = await send(), list[Any](), True
    try:
        iterator = aiter(stream)
        while True:
            try:
                piece = await anext(iterator)
            except StopAsyncIteration:
                return pieces
            except INVALID_STREAM_ERRORS as error:
                raise _stream_error(error, is_first=is_first) from error
            is_first = False
            pieces += [piece] if is_kept(piece) else []
            if on_text is not None and (text := text_of(piece)):
                on_text(text)
    finally:
        closing = getattr(stream, "close", getattr(stream, "aclose", lambda: None))()
        if isawaitable(closing):
            await closing


async def _read_in_thread(
    send: Callable[[], Any], text_of: Callable[[Any], str], on_text: OnText | None, is_kept: Callable[[Any], bool]
) -> list[Any]:
    """Read a synchronous client's stream. After a cancel it is closed at its next piece, and its texts are passed on no more."""
    import asyncio

    loop = asyncio.get_running_loop()
    is_wanted = True

    def pass_on(text: str) -> None:
        if is_wanted and on_text is not None:  # text that arrives after a cancel is in no log
            on_text(text)

    def read() -> list[Any]:
        stream, pieces, is_first = send(), list[Any](), True
        try:
            iterator = iter(stream)
            while is_wanted:
                try:
                    piece = next(iterator)
                except StopIteration:
                    break
                except INVALID_STREAM_ERRORS as error:
                    raise _stream_error(error, is_first=is_first) from error
                is_first = False
                pieces += [piece] if is_kept(piece) else []
                if is_wanted and (text := text_of(piece)):
                    loop.call_soon_threadsafe(pass_on, text)
        finally:
            getattr(stream, "close", lambda: None)()
        return pieces

    try:
        return await asyncio.to_thread(read)
    finally:
        is_wanted = False


def as_model_error(error: Exception) -> ModelError | None:
    """Convert an exception of sending or reading a request. None if it is a `ModelError` already, or a fault in the program."""
    if isinstance(error, ModelError):
        return None
    if isinstance(error, SessionError):
        where = error.where if isinstance(error, FormatError) else type(error).__name__
        return ModelError(f"the response is not a valid answer ({where})")
    if isinstance(error, ValueError) and type(error).__name__ == "JSONDecodeError":
        return ModelNetworkError(INVALID_JSON)
    if isinstance(error, RuntimeError) and str(error).startswith("Unexpected event"):  # older clients, for events out of order
        return ModelNetworkError(INVALID_STREAM)
    return model_error(error)


def invalid_response(error: Exception) -> ModelNetworkError:
    """Return the error for a stream that the client could not read: events out of order, or a call whose arguments are not JSON."""
    return ModelNetworkError(INVALID_JSON if type(error).__name__ == "JSONDecodeError" else INVALID_STREAM)


def _stream_error(error: Exception, *, is_first: bool) -> Exception:
    """Return the error to raise: before the first piece, Google's client reports arguments that it does not accept."""
    return error if is_first and type(error).__name__ == "ValidationError" else invalid_response(error)
