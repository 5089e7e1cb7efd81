"""Read the results of several tool calls as outputs for the log: values by call id, or the tool results that a provider's request takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from session.errors import DuplicateItemError, FormatError, short
from session.items import FunctionCall, FunctionCallOutput
from session.parts import Document, Image, Part, Text
from session.sanitize import json_text
from session.session import Session

from .anthropic import from_anthropic
from .google import from_google
from .openai_chat import from_openai_chat
from .openai_responses import from_openai_responses
from .parsing import expect_object

MAX_ERROR_CHARACTERS = 500
"""Characters of an exception's message that an output repeats."""


def append_results(
    session: Session, waiting_calls: dict[str, FunctionCall], results: object, is_error: bool | Collection[str]
) -> list[FunctionCallOutput]:
    """Append the results of tool calls and return their outputs: see `Session.add_tool_results`. Calls that get one wait no longer."""
    outputs: list[FunctionCallOutput] = []
    for output in _read_results(results, waiting_calls, _failed_ids(is_error)):
        call = waiting_calls.pop(output.call_id, None)
        if call is None:
            if any(other.call_id == output.call_id for other in outputs):
                raise DuplicateItemError(output.call_id, f"call {short(output.call_id)} has two results; a call has one output")
            raise FormatError("add_tool_results", f"no call with id {short(output.call_id)} waits for its output")
        outputs.append(
            FunctionCallOutput(call.name, output.output, call.call_id, is_error=output.is_error, agent_id=call.agent_id, extra=output.extra)
        )
    for output in outputs:
        session.append(output)
    return outputs


def _failed_ids(is_error: object) -> Collection[str] | bool:
    if isinstance(is_error, bool):
        return is_error
    if isinstance(is_error, str) or not isinstance(is_error, Collection):
        raise FormatError("add_tool_results.is_error", f"{short(is_error)} is neither True, False nor the ids of the calls that failed")
    return is_error


def _read_results(
    results: object, waiting_calls: Mapping[str, FunctionCall], is_error: Collection[str] | bool
) -> Iterator[FunctionCallOutput]:
    """Yield an output for each result, without its tool's name and agent. The caller removes each call as its output is yielded."""
    if isinstance(results, Mapping) and not _is_message(results):
        for call_id, value in results.items():
            if not isinstance(call_id, str):
                raise FormatError("add_tool_results", f"{short(call_id)} where a call id is expected")
            has_failed = isinstance(value, BaseException) or is_error is True or (is_error is not False and call_id in is_error)
            yield FunctionCallOutput("", _content(value, call_id), call_id, is_error=has_failed)
        return
    if isinstance(results, str) or not isinstance(results, Iterable):
        results = [results]
    for result in [results] if isinstance(results, Mapping) else results:
        for output in _provider_outputs(result, waiting_calls):
            has_failed = output.is_error or is_error is True or (is_error is not False and output.call_id in is_error)
            yield FunctionCallOutput("", output.output, output.call_id, is_error=has_failed, extra=output.extra)


def _is_message(value: Mapping[Any, Any]) -> bool:
    """True for a provider's message or tool result; False for results by call id."""
    return bool(value.keys() & {"role", "type", "parts", "function_response", "functionResponse"})


def _provider_outputs(value: object, waiting_calls: Mapping[str, FunctionCall]) -> Iterator[FunctionCallOutput]:
    """Yield the outputs in a provider's tool result, or in a message that holds several. Raises FormatError if it is none."""
    if isinstance(value, FunctionCallOutput):
        yield value
        return
    result = expect_object(value, "add_tool_results")
    if result.get("role") == "tool":
        items = from_openai_chat([result]).items
    elif "tool_use_id" in result:
        items = from_anthropic([{"role": "user", "content": [result]}]).items
    elif isinstance(result.get("content"), list) and result.get("role") == "user":
        items = from_anthropic([result]).items
    elif str(result.get("type")).endswith(("_output", "_response")):
        items = from_openai_responses([result]).items
    elif "parts" in result or "function_response" in result or "functionResponse" in result:
        yield from _google_outputs(result.get("parts", [result]), waiting_calls)
        return
    else:
        raise FormatError("add_tool_results", f"{short(value)} is no tool result of Anthropic, OpenAI or Google")
    for item in items:
        if not isinstance(item, FunctionCallOutput):
            raise FormatError("add_tool_results", f"a {item.type} among the tool results; append it with the session's other methods")
        yield item


def _google_outputs(parts: object, waiting_calls: Mapping[str, FunctionCall]) -> Iterator[FunctionCallOutput]:
    """Yield the outputs of function responses. One without an id answers the first waiting call of its name."""
    if not isinstance(parts, list | tuple):
        raise FormatError("add_tool_results.parts", f"{short(parts)} where a list is expected")
    for part in parts:
        fields = expect_object(part, "add_tool_results.parts")
        key = "functionResponse" if "functionResponse" in fields else "function_response"
        response = expect_object(fields.get(key), f"add_tool_results.parts.{key}")
        call_id = response.get("id") or next((id for id, call in waiting_calls.items() if call.name == response.get("name")), None)
        if call_id is None:
            raise FormatError("add_tool_results", f"no call of {short(response.get('name'))} waits for its output")
        for item in from_google([{"role": "user", "parts": [{key: {**response, "id": call_id}}]}]).items:
            if isinstance(item, FunctionCallOutput):
                yield item


def _content(value: object, call_id: str) -> tuple[Part, ...]:
    """Return a tool's result as content: texts, images and documents unchanged, everything else as JSON."""
    if value is None:
        return ()
    if isinstance(value, BaseException):
        message = str(value)[:MAX_ERROR_CHARACTERS]
        return (Text(f"{type(value).__name__}: {message}" if message else type(value).__name__),)
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, Text | Image | Document):
        return (value,)
    if isinstance(value, list | tuple) and any(isinstance(member, Text | Image | Document) for member in value):
        return tuple(part for member in value for part in _content(member, call_id))
    dump = getattr(value, "model_dump", None)
    return (Text(json_text(dump(mode="json") if callable(dump) else value, f"add_tool_results[{short(call_id)}]")),)
